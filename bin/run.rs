//! The command line of `cutline run`.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use cutline::control::command::Reply;
use cutline::control::log::Log;
use cutline::control::run::{self, Options, Schedule};
use cutline::scenario::{Scenario, Source};
use cutline::sim::{Course, Delays, Discipline, Settings};

use super::FormatArguments;

/// Long enough for a message and a marker to arrive between two ticks, as the files of COS 418
/// assume.
const TICK_MS: u64 = 20;

/// Everything that `cutline run` is told.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The scenario, or the .events file.
    scenario: PathBuf,
    /// The topology for an .events file.
    #[arg(long, value_name = "X.top")]
    top: Option<PathBuf>,
    /// What takes it to its end; by default, free.
    #[arg(long, value_enum, env = "CUTLINE_ENGINE")]
    engine: Option<Engine>,
    /// What is released when, with the engine gated; without it, you are asked.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// Instead of the job's own seed.
    #[arg(long, value_name = "N", env = "CUTLINE_SEED")]
    seed: Option<u64>,
    /// Once for each seed from A up to, and not including, B; with the engine sim.
    #[arg(long, value_name = "A..B", value_parser = seeds, conflicts_with_all = ["seed", "out"])]
    seeds: Option<Range<u64>>,
    /// Keep the job in this directory, which must be empty or new; with real processes.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How long a tick of an .events file lasts.
    #[arg(long, value_name = "N", default_value_t = TICK_MS, requires = "top")]
    tick_ms: u64,
    /// By which rules links hand over what is sent; with the engine sim.
    #[arg(long, value_enum, requires = "top")]
    discipline: Option<DisciplineArgument>,
    /// The numbers that the discipline draws, one a line, in a file.
    #[arg(long, value_name = "FILE", requires = "discipline")]
    delays: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArguments,
}

impl RunArguments {
    /// The same, deed by deed.
    pub(super) fn gated(self) -> anyhow::Result<Self> {
        if self.engine.is_some_and(|engine| engine != Engine::Gated) {
            bail!(
                "step goes deed by deed, which only the engine gated does: leave out --engine and \
                 CUTLINE_ENGINE, or use 'cutline run'"
            );
        }
        let engine = Some(Engine::Gated);
        Ok(Self { engine, ..self })
    }

    fn engine(&self) -> Engine {
        self.engine.unwrap_or(Engine::Free)
    }
}

/// What takes a scenario to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// Virtual time: the same seed gives the same run
    Sim,
    /// Real processes, of which every deed is released by a line of --schedule
    Gated,
    /// Real processes at full speed
    Free,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DisciplineArgument {
    /// As the simulator of the course: one packet for each server and tick
    Cos418,
}

pub(super) async fn run(arguments: RunArguments, log: &Log) -> anyhow::Result<Reply> {
    let options = Options {
        out: arguments.out.clone(),
        seed: arguments.seed,
        format: arguments.format.into(),
    };
    let is_for_sim = arguments.seeds.is_some() || arguments.discipline.is_some();
    if is_for_sim && arguments.engine() != Engine::Sim {
        bail!("--seeds and --discipline are for the engine sim: add --engine sim");
    }
    if arguments.schedule.is_some() && arguments.engine() != Engine::Gated {
        bail!("--schedule is for the engine gated: add --engine gated");
    }
    if arguments.engine() != Engine::Sim {
        let scenario = load(&arguments)?.scenario(arguments.seed)?;
        let schedule = schedule(&arguments)?;
        return Ok(run::run(&scenario, &options, schedule, log).await?);
    }
    let settings = settings(&arguments)?;
    let Some(seeds) = arguments.seeds.clone() else {
        let scenario = load(&arguments)?.scenario(arguments.seed)?;
        return Ok(run::simulate(&scenario, &options, &settings, log)?);
    };
    let command = command(&arguments);
    let source = load(&arguments)?;
    let reply = run::run_seeds(&source, seeds, &options, &settings, &command, log)?;
    Ok(reply)
}

/// Where the releases of a gated job come from.
fn schedule(arguments: &RunArguments) -> anyhow::Result<Option<Schedule>> {
    match (&arguments.schedule, arguments.engine()) {
        (None, Engine::Gated) => Ok(Some(Schedule::asked())),
        (Some(file), Engine::Gated) => {
            let shown = file.display();
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
            Ok(Some(Schedule::of_file(&text)))
        }
        _ => Ok(None),
    }
}

fn load(arguments: &RunArguments) -> anyhow::Result<Source> {
    let file = &arguments.scenario;
    if let Some(top) = &arguments.top {
        let scenario = Scenario::load_cos418(file, top, arguments.tick_ms)?;
        return Ok(Source::Fixed(Box::new(scenario)));
    }
    if file
        .extension()
        .is_some_and(|extension| extension == "events")
    {
        let shown = file.display();
        bail!("{shown} needs its topology: give it with --top X.top");
    }
    Ok(Source::load(file)?)
}

fn settings(arguments: &RunArguments) -> anyhow::Result<Settings> {
    let Some(DisciplineArgument::Cos418) = arguments.discipline else {
        return Ok(Settings::default());
    };
    let mut course = Course {
        tick: Duration::from_millis(arguments.tick_ms),
        drawn: Default::default(),
    };
    if let Some(file) = &arguments.delays {
        let shown = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        for (line, number) in (1..).zip(text.lines()) {
            let number = number.trim().parse();
            let what = "write one number from 0 a line";
            course
                .drawn
                .push_back(number.with_context(|| format!("{shown}:{line}: {what}"))?);
        }
    }
    Ok(Settings {
        delays: Delays::none(),
        discipline: Discipline::Course(course),
    })
}

/// What runs the same once more, but for the seed.
fn command(arguments: &RunArguments) -> String {
    let mut command = format!("cutline run --engine sim {}", quoted(&arguments.scenario));
    if let Some(top) = &arguments.top {
        command += &format!(" --top {} --tick-ms {}", quoted(top), arguments.tick_ms);
    }
    if arguments.discipline.is_some() {
        command += " --discipline cos418";
    }
    if let Some(file) = &arguments.delays {
        command += &format!(" --delays {}", quoted(file));
    }
    command
}

/// A path as a shell takes it for one word.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A text such as `1..100`.
fn seeds(text: &str) -> Result<Range<u64>, String> {
    let ends = text.split_once("..");
    let ends = ends.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    let ends: Option<Range<u64>> = ends.filter(|ends: &Range<u64>| !ends.is_empty());
    ends.ok_or_else(|| "give two numbers, the first below the second: 1..100".to_owned())
}
