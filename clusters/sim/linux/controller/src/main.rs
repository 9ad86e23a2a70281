//! Runs unmodified Linux programs as the nodes of one deterministic simulation, in virtual time.
//!
//! `ptrace` and a filter of system calls stop each thread at all calls that are about time, chance, other threads or the network.
//! The controller answers these calls from a simulated kernel, and lets one thread of all programs run at a time. So a run depends
//! on its seed and its programs alone. Labrys drives it over a pipe (`outside`).

mod calls;
mod chance;
mod digest;
mod fast;
mod kernel;
mod machine;
mod outside;
mod start;
mod tracee;
mod volume;

use std::process::ExitCode;

fn main() -> ExitCode {
    match outside::serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("labrys-linux: {}", error.0);
            ExitCode::FAILURE
        }
    }
}
