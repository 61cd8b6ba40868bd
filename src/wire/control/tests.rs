//! Every word of a control stream comes back from the wire as it went in.

use std::collections::BTreeMap;

use prost::Message as _;

use super::*;
use crate::protocol::cut::{ChannelFacts, Facts, Run};
use crate::protocol::ids::{ChannelId, JobId, MessageNumber};

fn through_node(word: &pb::NodeWord) -> NodeSaid {
    let bytes = word.encode_to_vec();
    let word = pb::NodeWord::decode(bytes.as_slice()).unwrap();
    word.try_into().unwrap()
}

fn through_collector(word: &pb::CollectorWord) -> CollectorSaid {
    let bytes = word.encode_to_vec();
    let word = pb::CollectorWord::decode(bytes.as_slice()).unwrap();
    word.try_into().unwrap()
}

fn place() -> Place {
    Place {
        address: "127.0.0.1:4000".to_owned(),
        pid: 77,
    }
}

fn join(holding: Holding) -> Join {
    Join {
        process: ProcessId::new(2),
        incarnation: Incarnation::new(u64::MAX),
        topology: 0xdead_beef,
        application: "bank".to_owned(),
        job: JobId::new(58),
        holding,
    }
}

fn part() -> StoredPart {
    let number = MessageNumber::new;
    let channel = ChannelId {
        from: ProcessId::new(0),
        to: ProcessId::new(2),
        nth: 2,
    };
    let facts = Facts {
        process: ProcessId::new(2),
        outputs: Vec::new(),
        inputs: vec![ChannelFacts {
            channel,
            number: number(7),
            after: Some(number(9)),
            share: vec![Run {
                first: number(8),
                last: number(9),
            }],
        }],
        in_state: BTreeMap::from([("money".to_owned(), i64::MIN)]),
        in_channels: BTreeMap::new(),
        initial: BTreeMap::new(),
        clock: None,
    };
    StoredPart {
        bytes: u64::MAX,
        checksum: u32::MAX,
        facts,
    }
}

#[test]
fn every_report_of_a_node_comes_through() {
    let generation = Generation::new(9);
    for holding in [
        Holding::Nothing,
        Holding::Prepared(generation),
        Holding::Running(generation),
    ] {
        let said = through_node(&report(Report::Join(join(holding)), &place()));
        assert_eq!(said, NodeSaid::Join(join(holding), place()));
    }
    let snapshot = SnapshotId::new(4);
    let reports = [
        Report::Ready(generation),
        Report::Unready(generation, "torn".to_owned()),
        Report::Stored {
            snapshot,
            generation,
            part: Box::new(part()),
        },
        Report::Declined {
            snapshot,
            generation,
            reason: "full".to_owned(),
        },
    ];
    for said in reports {
        let word = report(said.clone(), &place());
        assert_eq!(through_node(&word), NodeSaid::Report(said));
    }
}

#[test]
fn signs_of_life_and_answers_to_commands_come_through() {
    let progress = Progress {
        handled: 1,
        sent: u64::MAX,
    };
    assert_eq!(
        through_node(&heartbeat(progress)),
        NodeSaid::Heartbeat(progress)
    );
    for refusal in [None, Some("no funds".to_owned())] {
        let done = NodeSaid::CommandDone {
            request: 5,
            refusal: refusal.clone(),
        };
        assert_eq!(through_node(&command_done(5, refusal)), done);
    }
    let said = through_node(&command_done(5, Some(String::new())));
    let NodeSaid::CommandDone { refusal, .. } = said else {
        panic!("{said:?}");
    };
    assert!(refusal.is_some(), "a refusal without words is one still");
}

#[test]
fn every_order_of_the_collector_comes_through() {
    let (generation, snapshot) = (Generation::new(9), SnapshotId::new(4));
    let standing = Standing {
        job: JobId::new(58),
        generation,
        low: SnapshotId::new(2),
        last: SnapshotId::new(4),
        open: vec![SnapshotId::new(3), snapshot],
        complete: SnapshotId::new(1),
    };
    let ended = |complete| Order::Ended {
        snapshot,
        complete,
        low: SnapshotId::new(3),
    };
    let orders = [
        Order::Welcome(standing),
        Order::Trigger(snapshot, Mode::Classic.into()),
        Order::Trigger(snapshot, Taking::new(Mode::Aligned, Some(500))),
        ended(true),
        ended(false),
        Order::Run(generation),
        Order::Refused {
            job: JobId::new(57),
            reason: "another one is there".to_owned(),
        },
        Order::Halt,
    ];
    let term = Term::new(6);
    for order in orders {
        let said = Directive { term, order };
        let word = directive(said.clone(), Addresses::new());
        assert_eq!(
            through_collector(&word),
            CollectorSaid::Order(said, Addresses::new())
        );
    }
    let addresses = [(3, "a:1"), (7, "")];
    let addresses = addresses.map(|(of, address)| (ProcessId::new(of), address.to_owned()));
    let addresses = Addresses::from(addresses);
    let order = Order::Prepare(generation, snapshot);
    let said = Directive { term, order };
    let word = directive(said.clone(), addresses.clone());
    assert_eq!(
        through_collector(&word),
        CollectorSaid::Order(said, addresses)
    );
    let said = CollectorSaid::Command {
        request: 8,
        text: "send 1".to_owned(),
    };
    let word = command(term, 8, "send 1".to_owned());
    assert_eq!(through_collector(&word), said);
}

#[test]
fn what_is_no_word_is_refused_by_name() {
    let refusal = |word: NodeWord| NodeSaid::try_from(node_word(word)).unwrap_err().to_string();
    let stored = pb::PartStored {
        snapshot: 4,
        generation: 1,
        part: b"{}".as_slice().into(),
    };
    let message = refusal(NodeWord::Stored(stored));
    assert_eq!(message, "the description of the part of s4 cannot be read");
    let mut join = join_out(join(Holding::Nothing), &place());
    join.holding = 9;
    let message = refusal(NodeWord::Join(join));
    assert_eq!(
        message,
        "9 is no way of holding a generation this version knows"
    );
    let empty = pb::CollectorWord {
        term: 1,
        word: None,
    };
    let message = CollectorSaid::try_from(empty).unwrap_err().to_string();
    assert_eq!(message, "the collector's word is missing on the wire");
    assert!(matches!(
        read_mode(0),
        Err(WireError::Unknown { what: "mode", .. })
    ));
}
