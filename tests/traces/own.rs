//! A job of a user's own program: `cutline` has not its code, and says so; whoever has it can do
//! the events again.

use std::fs;
use std::path::Path;

use cutline::apps::Bank;
use cutline::control::command::{CommandError, Progress, Reply};
use cutline::control::place::Place;
use cutline::control::traces::{self, Shape, TraceCommand};
use cutline::control::view::Format;
use cutline::protocol::ids::ProcessId;
use cutline::world::{Choice, World};
use serde_json::json;

use crate::counter::Counter;
use crate::files::write;
use crate::stage::job;

const JOB: &str = "name = \"own\"\nprogram = \"own-node\"\nprocesses = 2\ntopology = \"ring\"\n\
                   trace = true\nseed = 5\n[application]\nname = \"counter\"\n";

/// The directory of a job that ran in memory, with what its processes wrote down.
fn written(directory: &Path) -> Place {
    let job = job("counter", &["p1→p2", "p2→p1"], json!({}), 5);
    let mut world = World::<Counter>::new(job).unwrap();
    assert!(world.stabilize(1000));
    for turn in 0..40 {
        world.apply(&Choice::Tick(ProcessId::new(turn % 2)));
        assert!(world.stabilize(1000));
    }
    let directory = directory.join("own.cutline");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("job.toml"), JOB).unwrap();
    write(&directory, &world);
    Place {
        dir: Some(directory),
        job: None,
    }
}

async fn refused(place: &Place, command: TraceCommand) -> String {
    let progress = Progress(&|_| {});
    let answer: Result<Reply, CommandError> = command.answer(place, Format::Json, progress).await;
    let error = answer.expect_err("it has not the code");
    assert!(error.is_no());
    error.to_string()
}

#[tokio::test]
async fn cutline_refuses_to_do_the_events_of_a_program_of_ones_own_again_and_says_who_can() {
    let top = tempfile::tempdir().unwrap();
    let place = written(top.path());
    let witness = TraceCommand::Witness {
        id: "s1".to_owned(),
        format: Shape::Json,
    };
    let replay = TraceCommand::Replay {
        directory: None,
        generation: None,
        format: Shape::Json,
    };
    for command in [witness, replay] {
        let refusal = refused(&place, command).await;
        for word in [
            "'counter'",
            "own-node",
            "cutline::control::traces",
            "docs/trace.md",
        ] {
            assert!(refusal.contains(word), "{refusal}");
        }
    }
}

#[tokio::test]
async fn whoever_has_the_code_of_an_own_program_can_do_its_events_again() {
    let top = tempfile::tempdir().unwrap();
    let place = written(top.path());
    let replayed = traces::replay::<Counter>(&place, None, Format::Json).await;
    let replayed = replayed.unwrap();
    assert!(replayed.yes, "{}", replayed.text);
    let view: serde_json::Value = serde_json::from_str(&replayed.text).unwrap();
    assert!(
        view["generations"][0]["events"].as_u64() > Some(20),
        "{view:#}"
    );
    // Another application comes out differently.
    let other = traces::replay::<Bank>(&place, None, Format::Json).await;
    assert!(other.is_err() || !other.unwrap().yes);
}
