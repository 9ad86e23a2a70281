//! Runs unmodified Linux programs as the nodes of one deterministic simulation, in virtual time.
//!
//! `ptrace` and a filter of system calls stop each thread at all calls that are about time, chance, other threads or the network.
//! The controller answers these calls from a simulated kernel, and lets one thread of all programs run at a time. So a run depends
//! on its seed and its programs alone. Labrys drives it over a pipe (`outside`).

mod calls;
mod chance;
mod digest;
mod fast;
mod inside;
mod kernel;
mod machine;
mod original;
mod outside;
mod processor;
mod start;
mod tracee;
mod volume;

use std::env;
use std::process::ExitCode;

/// The status of a command that cannot be started, as shells have it.
const CANNOT_RUN: u8 = 126;

fn main() -> ExitCode {
    let words: Vec<_> = env::args_os().skip(1).collect();
    if words.first().is_some_and(|word| word == "inside") {
        eprintln!("labrys-linux: {}", inside::run(&words[1..]));
        return ExitCode::from(CANNOT_RUN);
    }
    match outside::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labrys-linux: {}", error.0);
            ExitCode::FAILURE
        }
    }
}
