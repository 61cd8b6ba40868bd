//! The command line: arguments and wiring only. What the commands do is in `cutline::control`.

mod foreign;
mod format;
mod run;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand, ValueEnum};
use cutline::control::command::{self, CommandError, Progress, Reply, Which};
use cutline::control::detach;
use cutline::control::log::{Clock, Log, LogFormat};
use cutline::control::place::Place;
use cutline::control::traces::TraceCommand;
use cutline::control::up::{self, UpError};
use cutline::control::wanted::{WantedSnapshot, millis};
use cutline::job::Job;
use cutline::protocol::mode::Mode;

use format::FormatArguments;

const EXAMPLES: &str = "\
Examples:
  cutline check bank.toml          does the job file make sense?
  cutline up bank.toml             run it here; Ctrl-C ends it
  cutline up bank.toml --detach    run it in the background
  cutline snapshot --wait          take a snapshot of it
  cutline verify --all             is every snapshot right, as it is on disk?
  cutline kill p2; cutline status  see it go back to a snapshot, and on
  cutline down                     end it

A command about a job finds it by its directory: --dir, or that of --job, or the only *.cutline
directory below the current one.

Exit status: 0 yes, 1 the answer is no, 2 could not ask.
Answers go to standard output, everything else to standard error. docs/cli.md has the details.";

/// Takes consistent snapshots of a running distributed program, proves them right, and restarts
/// from them.
#[derive(Debug, Parser)]
#[command(name = "cutline", version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    place: PlaceArguments,
    /// How progress and errors are written to standard error.
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "human",
        env = "CUTLINE_LOG_FORMAT"
    )]
    log_format: LogFormatArgument,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Args)]
struct PlaceArguments {
    /// The job's directory.
    #[arg(long, global = true, env = "CUTLINE_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The job file, which names the directory; commands that are given a file pass this over.
    #[arg(long, global = true, env = "CUTLINE_JOB", value_name = "FILE")]
    job: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormatArgument {
    /// Lines of text
    Human,
    /// A JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a job file; 1 with lines and remedies if it makes no sense.
    Check(foreign::CheckArguments),
    /// Start a job and keep it running: restart what dies, end everything on Ctrl-C.
    ///
    /// A job that has snapshots is continued. The job file is copied to the job's directory, so
    /// that later commands need only that.
    Up {
        /// The job file.
        file: PathBuf,
        /// Run it in the background, and return when it runs.
        #[arg(long, env = "CUTLINE_DETACH")]
        detach: bool,
        /// This is what --detach starts.
        #[arg(long, hide = true, conflicts_with = "detach")]
        background: bool,
    },
    /// How the job stands; 1 if it does not run.
    Status(FormatArguments),
    /// Every snapshot of the job, whether it runs or not.
    List(FormatArguments),
    /// What is in one snapshot: local states, channel states, quantities.
    Show {
        /// The snapshot, such as s42.
        id: String,
        #[command(flatten)]
        format: FormatArguments,
    },
    /// Read snapshots back from the store and judge them; 1 if a verdict does not hold.
    Verify {
        /// The snapshot, such as s42.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Every complete snapshot.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        format: FormatArguments,
    },
    /// Judge snapshots that another program has taken; 1 if a verdict does not hold.
    ///
    /// docs/audit.md explains the file. What it does not tell is not known, and no fault.
    Audit(foreign::AuditArguments),
    /// Take a snapshot now.
    Snapshot {
        /// A process that initiates it; may be repeated. By default, the job's initiators.
        #[arg(long, value_name = "P")]
        from: Vec<String>,
        /// Another mode than the job's: classic, aligned, unaligned or at-least-once.
        #[arg(long, value_name = "MODE")]
        mode: Option<Mode>,
        /// How long an aligned snapshot may align, such as 500ms, before it goes on unaligned.
        #[arg(long, value_name = "TIME", value_parser = millis)]
        alignment_timeout: Option<u64>,
        /// Wait until it is complete; 1 if it is aborted.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        format: FormatArguments,
    },
    /// Take the job back to a snapshot, and wait until it runs again.
    Restore {
        /// The snapshot; by default, the newest of the current line. s0 is the initial state.
        id: Option<String>,
        #[command(flatten)]
        format: FormatArguments,
    },
    /// Take a last snapshot, then end the job; 1 if that snapshot fails (the job then goes on).
    Stop {
        /// Say that a snapshot is wanted; 'cutline down' ends a job without one.
        #[arg(long, required = true)]
        snapshot: bool,
        #[command(flatten)]
        format: FormatArguments,
    },
    /// End the job, whatever state its programs are in.
    Down,
    /// Take a scenario to its end; 1 if an expectation does not hold.
    ///
    /// On real processes, which run in a fresh directory and are all stopped at its end; or in
    /// virtual time. docs/scenario.md explains the file; with --top, it is an .events file of
    /// COS 418.
    Run(run::RunArguments),
    /// Take a scenario to its end one deed at a time: lists what can be done, and does what is
    /// picked.
    ///
    /// The same as run --engine gated. Each answer is a number of the list, or a line such as
    /// 'take p1->p2' or 'time p1 5ms'; an empty line shows the list again; at the end of input
    /// nothing waits any more.
    Step(run::RunArguments),
    #[command(flatten)]
    Traced(TraceCommand),
    /// SIGKILL the node of a process, or the collector.
    Kill(Victim),
    /// SIGSTOP the node of a process, or the collector.
    Pause(Victim),
    /// SIGCONT every stopped node of a process, or the collector.
    Resume(Victim),
}

#[derive(Debug, Args)]
struct Victim {
    /// The process; or collector.
    #[arg(value_name = "P")]
    who: String,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let format = match arguments.log_format {
        LogFormatArgument::Human => LogFormat::Human,
        LogFormatArgument::Json => LogFormat::Json,
    };
    let is_background = matches!(
        arguments.command,
        Command::Up {
            background: true,
            ..
        }
    );
    let log = Log::new(
        format,
        if is_background {
            Clock::Wall
        } else {
            Clock::Elapsed
        },
    );
    match here(arguments, &log) {
        Ok(reply) => print(&reply, &log),
        Err(error) => {
            log.error(&format!("{error:#}"));
            ExitCode::from(if is_no(&error) { 1 } else { 2 })
        }
    }
}

/// Everything happens on this thread: nodes are to die with the thread that starts them.
fn here(arguments: Arguments, log: &Log) -> anyhow::Result<Reply> {
    if let Command::Up {
        background: true, ..
    } = arguments.command
    {
        detach::leave_terminal().context("cannot leave the terminal")?;
    }
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let answered = runtime.block_on(answer(arguments, log));
    // Work that is under way on another thread, such as a look-up of an address, is left alone.
    runtime.shutdown_background();
    answered
}

async fn answer(arguments: Arguments, log: &Log) -> anyhow::Result<Reply> {
    let place = Place {
        dir: arguments.place.dir,
        job: arguments.place.job,
    };
    let tell = |what: &str| log.say("progress", what);
    let progress = Progress(&tell);
    let reply = match arguments.command {
        Command::Check(of) => command::check(&of.file, of.form(), of.format.into())?,
        Command::Up {
            file,
            detach,
            background,
        } => {
            return up(&place, file, detach, background, log).await;
        }
        Command::Status(format) => command::status(&place, format.into(), progress).await?,
        Command::List(format) => command::list(&place, format.into(), progress).await?,
        Command::Show { id, format } => command::show(&place, &id, format.into(), progress).await?,
        Command::Verify { id, format, .. } => {
            let which = id.map_or(Which::All, Which::One);
            command::verify(&place, &which, format.into(), progress).await?
        }
        Command::Audit(of) => command::audit(&of.file, of.form(), of.format())?,
        Command::Snapshot {
            from,
            mode,
            alignment_timeout,
            wait,
            format,
        } => {
            let wanted = WantedSnapshot {
                from,
                mode,
                alignment_timeout_ms: alignment_timeout,
            };
            command::snapshot(&place, wanted, wait, format.into(), progress).await?
        }
        Command::Restore { id, format } => {
            command::restore(&place, id.as_deref(), format.into(), progress).await?
        }
        Command::Stop { format, .. } => {
            command::stop_with_snapshot(&place, format.into(), progress).await?
        }
        Command::Down => command::down(&place, progress).await?,
        Command::Run(arguments) => run::run(arguments, log).await?,
        Command::Step(arguments) => run::run(arguments.gated()?, log).await?,
        Command::Traced(command) => command.answer(&place, format::table(), progress).await?,
        Command::Kill(victim) => command::kill(&place, &victim.who).await?,
        Command::Pause(victim) => command::pause(&place, &victim.who).await?,
        Command::Resume(victim) => command::resume(&place, &victim.who)?,
    };
    Ok(reply)
}

async fn up(
    place: &Place,
    file: PathBuf,
    detach: bool,
    background: bool,
    log: &Log,
) -> anyhow::Result<Reply> {
    let mut job = Job::load(&file)?;
    if let Some(dir) = &place.dir {
        job = job.with_directory(dir);
    }
    let last = if detach {
        let mut arguments: Vec<OsString> = vec!["up".into(), file.into(), "--background".into()];
        arguments.extend(["--dir".into(), job.directory().into()]);
        arguments.extend(["--log-format".into(), log.format().name().into()]);
        up::background(&job, &arguments).await?
    } else {
        up::foreground(job, log, background).await?
    };
    // In the background nobody listens any more.
    let text = if background {
        String::new()
    } else {
        format!("{last}\n")
    };
    Ok(Reply { text, yes: true })
}

fn print(reply: &Reply, log: &Log) -> ExitCode {
    let mut out = io::stdout().lock();
    let written = out.write_all(reply.text.as_bytes());
    match written.and_then(|()| out.flush()) {
        // Whoever read and stopped has read enough: a no stays one.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            log.error(&format!("cannot write the answer: {error}"));
            ExitCode::from(2)
        }
        _ => ExitCode::from(u8::from(!reply.yes)),
    }
}

fn is_no(error: &anyhow::Error) -> bool {
    let no = error
        .downcast_ref::<CommandError>()
        .is_some_and(CommandError::is_no);
    no || error.downcast_ref::<UpError>().is_some_and(UpError::is_no)
}
