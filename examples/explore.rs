//! Walks through every interleaving of a small world in the browser, by stateright's explorer.
//!
//! `cargo run --example explore WORLD` serves the named world until it is interrupted;
//! without a name the worlds are listed. They are those of `tests/model`.

#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

#[path = "../tests/model/explored/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the test asks more of the worlds")]
mod explored;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Parser;
use explored::{CASES, Explored};
use stateright::Model;

/// Walks through every interleaving of a small world in the browser.
#[derive(Parser)]
struct Arguments {
    /// The world; none: lists them.
    world: Option<String>,
    /// Lists the worlds.
    #[arg(long)]
    list: bool,
    /// The port to be served at, on this machine only.
    #[arg(long, default_value_t = 3000)]
    port: u16,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let name = arguments.world.filter(|_| !arguments.list);
    let Some(name) = name else {
        for case in CASES {
            println!("{}", case.name);
        }
        return ExitCode::SUCCESS;
    };
    let Some(case) = CASES.iter().find(|case| case.name == name) else {
        eprintln!("there is no world '{name}': --list names those there are");
        return ExitCode::from(2);
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    println!("http://{address}");
    Explored::new(*case).checker().serve(address);
    ExitCode::SUCCESS
}
