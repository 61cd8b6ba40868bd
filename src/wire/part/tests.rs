//! A part file reads back as it was written, or not at all.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::protocol::application::{Application, Capture, Outputs, Refusal, Setup};
use crate::protocol::mode::Mode;
use crate::protocol::topology::Topology;

fn batch(first: u64, messages: &[Vec<u8>]) -> Batch {
    let mut packed = Vec::new();
    for message in messages {
        packed.extend((message.len() as u32).to_le_bytes());
        packed.extend(message);
    }
    Batch::new(
        MessageNumber::new(first),
        messages.len() as u32,
        packed.into(),
    )
    .unwrap()
}

fn channel(text: &str) -> ChannelId {
    text.parse().unwrap()
}

fn sample(state: &[u8], messages: &[Vec<u8>]) -> PartFile {
    let money = |amount| Quantities::from([("money".to_owned(), amount)]);
    PartFile {
        part: Part {
            snapshot: SnapshotId::new(42),
            generation: Generation::new(7),
            process: ProcessId::new(1),
            mode: Mode::Classic,
            clock: Clock::of_counts(vec![7, 4]).map(Arc::new),
            initial: money(110),
            outputs: vec![OutputPart {
                channel: channel("p2→p1"),
                sent: MessageNumber::new(12),
                after: MessageNumber::new(12),
                share: Vec::new(),
            }],
            inputs: vec![
                InputPart {
                    channel: channel("p1→p2"),
                    handled: MessageNumber::new(4),
                    after: MessageNumber::new(6),
                    share: vec![batch(5, messages)],
                },
                InputPart {
                    channel: channel("p1→p2#2"),
                    handled: MessageNumber::new(0),
                    after: MessageNumber::new(0),
                    share: Vec::new(),
                },
            ],
        },
        topology: 0xfeed,
        application: "bank".to_owned(),
        state_version: 1,
        state: Bytes::copy_from_slice(state),
        in_state: money(100),
        in_channels: money(3),
    }
}

fn small() -> PartFile {
    sample(b"the state", &[b"one".to_vec(), Vec::new()])
}

/// A file with this body and everything around it right.
fn sealed(body: &pb::Part) -> Bytes {
    let body = body.encode_to_vec();
    let mut file = BytesMut::new();
    file.put_slice(MAGIC);
    file.put_u32_le(FORMAT);
    file.put_u64_le(body.len() as u64);
    file.put_slice(&body);
    let checksum = mask(crc32c::crc32c(&file));
    file.put_u32_le(checksum);
    file.freeze()
}

fn body() -> pb::Part {
    let file = small().encode();
    pb::Part::decode(file.slice(HEADER_BYTES..file.len() - CHECKSUM_BYTES)).unwrap()
}

#[test]
fn a_part_reads_back_as_it_was_written() {
    let written = small();
    let file = written.encode();
    let stored = written.stored(&file);
    assert_eq!(PartFile::decode(file.clone()).unwrap(), written);
    assert_eq!(PartFile::decode_stored(file, &stored).unwrap(), written);
    assert_eq!(stored.facts.inputs[0].share[0].last, MessageNumber::new(6));
}

#[test]
fn every_truncation_and_every_flipped_bit_is_an_error() {
    let file = small().encode();
    for length in 0..file.len() {
        let error = PartFile::decode(file.slice(..length)).unwrap_err();
        assert!(matches!(error, PartError::Torn { .. }), "{length}: {error}");
    }
    for bit in 0..file.len() * 8 {
        let mut damaged = file.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(PartFile::decode(damaged.into()).is_err(), "bit {bit}");
    }
    let mut longer = file.to_vec();
    longer.push(0);
    let error = PartFile::decode(longer.into()).unwrap_err();
    assert!(matches!(error, PartError::Overlong { .. }));
}

#[test]
fn the_manifest_tells_two_sound_parts_of_one_length_apart() {
    let (one, other) = (
        sample(b"a", &[b"x".to_vec()]),
        sample(b"b", &[b"x".to_vec()]),
    );
    let (one_file, other_file) = (one.encode(), other.encode());
    assert_eq!(one_file.len(), other_file.len());
    let error = PartFile::decode_stored(other_file, &one.stored(&one_file)).unwrap_err();
    assert!(matches!(error, PartError::OtherChecksum { .. }));
}

#[test]
fn the_manifest_may_not_say_of_a_part_what_is_not_in_it() {
    let written = small();
    let file = written.encode();
    let mut stored = written.stored(&file);
    stored.facts.in_state.insert("money".to_owned(), 101);
    assert_eq!(
        PartFile::decode_stored(file.clone(), &stored),
        Err(PartError::OtherFacts)
    );
    let error = PartFile::decode_stored(file.slice(..40), &written.stored(&file)).unwrap_err();
    assert!(matches!(error, PartError::OtherLength { bytes: 40, .. }));
}

#[test]
fn a_sealed_body_that_makes_no_sense_is_refused_with_the_channel() {
    let refusal = |change: &dyn Fn(&mut pb::Part)| {
        let mut body = body();
        change(&mut body);
        PartFile::decode(sealed(&body)).unwrap_err().to_string()
    };
    assert!(PartFile::decode(sealed(&body())).is_ok());
    let torn = refusal(&|body| body.inputs[0].share[0].count += 1);
    assert!(torn.contains("channel p1→p2 has messages"), "{torn}");
    let unending = refusal(&|body| body.inputs[0].share[0].first = u64::MAX);
    assert!(
        unending.contains("channel p1→p2 has messages"),
        "{unending}"
    );
    let nothing = refusal(&|body| body.inputs[0].share[0].first = 0);
    assert!(nothing.contains("channel p1→p2 has messages"), "{nothing}");
    assert!(refusal(&|body| body.inputs.swap(0, 1)).contains("p1→p2 is out of order"));
    assert!(refusal(&|body| body.inputs[1].to = 0).contains("is no input"));
    assert!(refusal(&|body| body.outputs[0].from = 5).contains("p6→p1 is no output"));
    assert!(refusal(&|body| body.outputs[0].nth = 0).contains("is no output"));
    assert!(refusal(&|body| body.mode = 0).contains("mode 0"));
}

#[test]
fn another_format_is_named() {
    let mut file = small().encode().to_vec();
    file[MAGIC.len()] = 9;
    let error = PartFile::decode(file.into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the part has format 9, and this program reads format 2"
    );
}

#[test]
fn a_part_of_something_else_is_refused_by_name() {
    let file = small();
    let wanted = Wanted {
        snapshot: SnapshotId::new(42),
        process: ProcessId::new(1),
        topology: 0xfeed,
        application: "bank",
    };
    assert_eq!(file.check_for(&wanted), Ok(()));
    let refusal = |wanted: &Wanted<'_>| file.check_for(wanted).unwrap_err().to_string();
    let other = Wanted {
        application: "token",
        ..wanted
    };
    let text = "this is a part of 'bank', this node runs 'token'";
    assert_eq!(refusal(&other), text);
    assert!(
        refusal(&Wanted {
            topology: 1,
            ..wanted
        })
        .contains("topology 0000feed")
    );
    let other = Wanted {
        snapshot: SnapshotId::new(43),
        ..wanted
    };
    assert_eq!(
        refusal(&other),
        "this is the part of p2 in s42, not of p2 in s43"
    );
}

/// Counts the bytes of its state and of its messages.
struct Counter;

impl Application for Counter {
    fn start(_: &Setup) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn restore(_: &Setup, _: &[u8]) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, _: ChannelId, _: &[u8], _: &mut Outputs<'_>) {}

    fn capture(&self) -> Capture {
        Box::new(Vec::new)
    }

    fn in_state(_: &Setup, state: &[u8]) -> Quantities {
        Quantities::from([("bytes".to_owned(), state.len() as i64)])
    }

    fn in_message(_: &Setup, message: &[u8]) -> Quantities {
        Quantities::from([("bytes".to_owned(), message.len() as i64)])
    }
}

#[test]
fn a_recount_asks_the_application_about_the_state_and_every_message() {
    let names = vec!["p1".to_owned(), "p2".to_owned()];
    let setup = Setup {
        topology: Arc::new(Topology::new(names, [channel("p1→p2")]).unwrap()),
        process: ProcessId::new(1),
        application: "counter".to_owned(),
        settings: Value::Null,
        seed: 0,
        message_bytes_max: 0,
    };
    let (in_state, in_channels) = recount::<Counter>(&setup, &small());
    assert_eq!(in_state["bytes"], 9);
    assert_eq!(in_channels["bytes"], 3);
}

proptest! {
    #[test]
    fn what_is_written_reads_back_and_one_flipped_bit_does_not(
        state in prop::collection::vec(any::<u8>(), 0..200),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..20),
        bit in any::<prop::sample::Index>(),
    ) {
        let written = sample(&state, &messages);
        let file = written.encode();
        prop_assert_eq!(PartFile::decode(file.clone()).unwrap(), written);
        let mut damaged = file.to_vec();
        let bit = bit.index(damaged.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(PartFile::decode(damaged.into()).is_err());
    }

    #[test]
    fn no_sealed_body_whatever_makes_the_reader_panic(
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut file = BytesMut::new();
        file.put_slice(MAGIC);
        file.put_u32_le(FORMAT);
        file.put_u64_le(body.len() as u64);
        file.put_slice(&body);
        let checksum = mask(crc32c::crc32c(&file));
        file.put_u32_le(checksum);
        if let Ok(read) = PartFile::decode(file.freeze()) {
            let _ = read.facts();
        }
    }

    #[test]
    fn no_changed_numbers_make_the_reader_panic(
        first in any::<u64>(),
        count in any::<u32>(),
        number in any::<u64>(),
    ) {
        let mut body = body();
        body.inputs[0].number = number;
        body.inputs[0].share[0].first = first;
        body.inputs[0].share[0].count = count;
        if let Ok(read) = PartFile::decode(sealed(&body)) {
            prop_assert_eq!(read.facts().inputs[0].share.len(), 1);
        }
    }
}
