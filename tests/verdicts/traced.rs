//! The two verdicts that are there only where the job is traced.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use cutline::apps::Bank;
use cutline::check::{Answer, Cut, Files, Logged, Origin, Verdict, Verdicts, judge, replayed};
use cutline::protocol::Topology;
use cutline::protocol::collector::Request;
use cutline::protocol::cut::Facts;
use cutline::protocol::ids::{ChannelId, ProcessId, SnapshotId};
use cutline::protocol::mode::Mode;
use cutline::protocol::trace::What;
use cutline::world::World;
use serde_json::{Value, json};

use crate::handmade::{Books, S1, Stored};
use crate::memory::job;
use crate::{only, only_in_manifest};

#[tokio::test]
async fn a_process_that_knew_of_what_came_after_the_cut_is_caught_by_causal() {
    let right = Books {
        clocks: Some([[9, 2], [7, 11]]),
        ..Books::right()
    };
    let verified = Stored::new(&right).await.verify().await;
    assert_eq!(verified.verdicts.get("causal").unwrap().holds, Answer::Yes);
    assert!(verified.holds, "{verified}");
    // The numbers agree, and so do the files: only the clocks tell.
    let wrong = Books {
        clocks: Some([[6, 2], [7, 11]]),
        ..Books::right()
    };
    let stored = Stored::new(&wrong).await;
    let evidence = "bob knew of event 7 of alice, which had recorded at event 6";
    only(&stored.verify().await, "causal", evidence);
    only_in_manifest(&stored.judge_manifest(), "causal");
}

const P1: ProcessId = ProcessId::new(0);
const P2: ProcessId = ProcessId::new(1);

/// Two traced accounts, and a snapshot of them in the midst of their business.
fn traced() -> World<Bank> {
    let channels = [ChannelId::new(P1, P2), ChannelId::new(P2, P1)];
    let names = vec!["p1".to_owned(), "p2".to_owned()];
    let topology = Topology::new(names, channels).unwrap();
    let mut world = World::new(job(topology, ("bank", json!({})), 5, true)).unwrap();
    assert!(world.stabilize(1000));
    for turn in 0..200 {
        let choices = world.choices();
        world.apply(&choices[turn * 7 % choices.len()]);
        if turn == 100 {
            let initiators = BTreeSet::new();
            world.ask(Request::snapshot(initiators));
        }
    }
    assert!(world.stabilize(1000));
    world
}

/// All verdicts on the snapshot, if this is what its parts hold, and this what was written down.
fn verdicts(
    world: &World<Bank>,
    states: &BTreeMap<ProcessId, Bytes>,
    traces: &[Vec<Logged>],
) -> Verdicts {
    let topology = &world.job().topology;
    let facts = topology.processes().map(|process| {
        let part = &world.part(S1, process).unwrap().part;
        Facts::of::<Bank>(&world.setup(process), part, &states[&process])
    });
    let facts: Vec<_> = facts.collect();
    let files = Files::Read {
        bytes: 1,
        missing: Vec::new(),
        damaged: Vec::new(),
    };
    let mut verdicts = judge(&Cut {
        topology,
        fingerprint: topology.fingerprint(),
        mode: Mode::Classic,
        facts: facts.iter().collect(),
        expected: &[("money".to_owned(), 2000)].into(),
        files,
    });
    verdicts.0.push(judged(world, states, traces, S1));
    verdicts
}

fn judged(
    world: &World<Bank>,
    states: &BTreeMap<ProcessId, Bytes>,
    traces: &[Vec<Logged>],
    snapshot: SnapshotId,
) -> Verdict {
    let origin = Origin {
        setups: [P1, P2].map(|process| world.setup(process)).into(),
        limits: world.job().process.limits,
        parts: Vec::new(),
    };
    replayed::<Bank>(&origin, traces, snapshot, states)
}

fn states(world: &World<Bank>) -> BTreeMap<ProcessId, Bytes> {
    let state = |process| (process, world.part(S1, process).unwrap().state.clone());
    [P1, P2].map(state).into()
}

fn traces(world: &World<Bank>) -> Vec<Vec<Logged>> {
    let own = |process| {
        let events = world
            .trace()
            .iter()
            .filter(move |event| event.process == process);
        let logged = events.cloned().map(|event| Logged { event, at_us: 0 });
        logged.collect()
    };
    [P1, P2].map(own).into()
}

/// Exactly `replayed` fails, with this evidence.
fn only_replayed(verdicts: &Verdicts, evidence: &str) {
    assert_eq!(verdicts.failing(), ["replayed"], "{verdicts}");
    let unknown = verdicts
        .0
        .iter()
        .filter(|verdict| verdict.holds == Answer::Unknown);
    assert_eq!(unknown.count(), 0, "{verdicts}");
    let found = verdicts.get("replayed").unwrap();
    assert!(found.evidence.contains(evidence), "{verdicts}");
}

#[test]
fn what_follows_from_the_inputs_is_replayed() {
    let world = traced();
    let verdicts = verdicts(&world, &states(&world), &traces(&world));
    assert!(verdicts.hold(), "{verdicts}");
    let evidence = &verdicts.get("replayed").unwrap().evidence;
    assert!(evidence.starts_with("2 states follow from "), "{evidence}");
}

#[test]
fn states_that_balance_but_do_not_follow_from_the_inputs_are_caught_by_replayed() {
    let world = traced();
    let mut states = states(&world);
    for (process, more) in [(P1, 1), (P2, -1)] {
        let mut state: Value = serde_json::from_slice(&states[&process]).unwrap();
        let balance = state["balance"].as_i64().unwrap();
        state["balance"] = (balance + more).into();
        states.insert(process, serde_json::to_vec(&state).unwrap().into());
    }
    let verdicts = verdicts(&world, &states, &traces(&world));
    only_replayed(&verdicts, "p1 recorded '{\"balance\":");
}

#[test]
fn a_trace_that_says_what_was_not_is_caught_by_replayed() {
    let world = traced();
    let mut traces = traces(&world);
    let mut handled = traces[1]
        .iter_mut()
        .filter_map(|logged| match &mut logged.event.what {
            What::Handle { message, .. } => Some(message),
            _ => None,
        });
    let message = handled.next().unwrap();
    *message = 77u64.to_le_bytes().to_vec().into();
    let verdicts = verdicts(&world, &states(&world), &traces);
    only_replayed(&verdicts, "0x4d00000000000000 handled, got another sent");
}

#[test]
fn a_trace_that_ends_before_the_recording_leaves_it_unknown() {
    let world = traced();
    let mut traces = traces(&world);
    let record = traces[1]
        .iter()
        .position(|logged| logged.event.what.records(S1));
    traces[1].truncate(record.unwrap());
    let verdict = judged(&world, &states(&world), &traces, S1);
    assert_eq!(verdict.holds, Answer::Unknown);
    assert_eq!(verdict.evidence, "the trace of p2 has no record of it");
}
