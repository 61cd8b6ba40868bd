//! Hosts one process of a job with a built-in application.

use std::process::ExitCode;

use cutline::apps::BuiltIn;

fn main() -> ExitCode {
    cutline::node::main::<BuiltIn>()
}
