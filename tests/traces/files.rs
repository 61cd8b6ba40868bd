//! Traces on disk: what is written is read back, up to where it breaks off.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cutline::protocol::application::Application;
use cutline::protocol::ids::{Generation, Incarnation, ProcessId};
use cutline::protocol::trace::Event;
use cutline::trace::{GENERATIONS_MAX, GenerationTrace, TraceError, Traces, Writer, folder};
use cutline::world::World;

use crate::stage::{bank, run};

/// Writes what the world's processes did, as their nodes would.
pub(crate) fn write<A: Application>(directory: &Path, world: &World<A>) {
    let topology = &world.job().topology;
    for process in topology.processes() {
        let incarnation = Incarnation::new(7);
        let mut writer = Writer::new(directory, topology.clone(), process, incarnation);
        let own = world
            .trace()
            .iter()
            .filter(|event| event.process == process);
        for (at_us, event) in (1..).zip(own) {
            writer.write(event, at_us).unwrap();
        }
        writer.flush().unwrap();
    }
}

fn events(read: &GenerationTrace, process: usize) -> Vec<Event> {
    let logged = read.processes[process].events.iter();
    logged.map(|logged| logged.event.clone()).collect()
}

#[test]
fn what_was_written_reads_back_generation_by_generation() {
    let world = run(bank(4), true);
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &world);
    let traces = Traces::open(directory.path(), world.job().topology.clone()).unwrap();
    assert_eq!(traces.generations(), [1, 2].map(Generation::new));
    for &generation in traces.generations() {
        let read = traces.read(generation).unwrap();
        for process in world.job().topology.processes() {
            let of_it = |event: &&Event| (event.process, event.generation) == (process, generation);
            let wrote: Vec<_> = world.trace().iter().filter(of_it).cloned().collect();
            assert_eq!(events(&read, process.index()), wrote);
        }
    }
}

#[test]
fn a_last_line_without_its_end_is_none_and_any_other_is_named() {
    let world = run(bank(5), false);
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &world);
    let topology = &world.job().topology;
    let file = folder(directory.path()).join("g1/p2.i7.ndjson");
    let whole = fs::read(&file).unwrap();
    let read = || Traces::open(directory.path(), topology.clone())?.read(Generation::new(1));
    let lines = events(&read().unwrap(), 1).len();

    fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    let torn = read().unwrap();
    assert_eq!(events(&torn, 1).len(), lines - 1);
    assert!(!torn.processes[1].is_whole());

    let text = String::from_utf8(whole).unwrap();
    let without: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(line, _)| *line != 3)
        .collect();
    let without: String = without
        .iter()
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    fs::write(&file, without).unwrap();
    let error = read().unwrap_err();
    assert!(
        matches!(error, TraceError::Order { line: 4, .. }),
        "{error}"
    );

    fs::write(
        &file,
        text.replacen("\"event\":\"tick\"", "\"event\":\"tock\"", 1),
    )
    .unwrap();
    let error = read().unwrap_err();
    assert!(matches!(error, TraceError::Line { .. }), "{error}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let world = run(bank(5), false);
    let directory = tempfile::tempdir().unwrap();
    let topology = &world.job().topology;
    let error = Traces::open(directory.path(), topology.clone()).unwrap_err();
    assert!(error.to_string().contains("trace = true"), "{error}");
    write(directory.path(), &world);
    let traces = Traces::open(directory.path(), topology.clone()).unwrap();
    let error = traces.read(Generation::new(9)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no trace of g9; there are traces of g1"
    );
}

#[test]
fn old_generations_go_and_a_job_begun_anew_writes_over() {
    let world = run(bank(6), false);
    let directory = tempfile::tempdir().unwrap();
    let topology: Arc<_> = world.job().topology.clone();
    let one = ProcessId::new(0);
    let start = world
        .trace()
        .iter()
        .find(|event| event.process == one)
        .unwrap();
    let in_generation = |number: u64| Event {
        generation: Generation::new(number),
        ..start.clone()
    };
    for incarnation in [1, 2] {
        let incarnation = Incarnation::new(incarnation);
        let mut writer = Writer::new(directory.path(), topology.clone(), one, incarnation);
        for number in 1..=GENERATIONS_MAX + 2 {
            writer.write(&in_generation(number), 1).unwrap();
        }
        writer.flush().unwrap();
        let traces = Traces::open(directory.path(), topology.clone()).unwrap();
        let kept = traces.generations();
        assert_eq!(kept.first(), Some(&Generation::new(3)));
        assert_eq!(kept.len() as u64, GENERATIONS_MAX);
        let read = traces.read(Generation::new(5)).unwrap();
        let path = read.processes[0].path.clone().unwrap();
        assert!(path.ends_with(format!("g5/p1.{incarnation}.ndjson")));
    }
}
