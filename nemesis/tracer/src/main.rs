//! Lets a running process stand still right after the n-th step of its disk of a kind, on files of a pattern.
//!
//! usage: labrys-tracer PID FOLDER CALL PATTERN N LIMIT HOLD
//!
//! It writes `follows` when it sees all threads of the process. Then it writes one more line: `stands PID N CALL FILE` when the
//! process stands still, or `ended SEEN` when the process has ended before, with the number of the steps so far. After HOLD seconds,
//! a process that stands goes on. After LIMIT seconds, the tracer ends. If it is killed, the process goes on without it.

mod steps;
mod thread;

use std::collections::{HashMap, HashSet};
use std::env;
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use libc::pid_t;
use steps::{Making, Wanted};
use thread::{Call, Stop};

const USAGE: &str = "usage: labrys-tracer PID FOLDER CALL PATTERN N LIMIT HOLD";
const ANY: &str = "any";

struct Task {
    pid: pid_t,
    wanted: Wanted,
    nth: u64,
    limit_s: u32,
    hold_s: u32,
}

impl Task {
    fn of(arguments: &[String]) -> Option<Self> {
        let [pid, folder, call, pattern, nth, limit_s, hold_s] = arguments else { return None };
        let wanted = Wanted {
            call: (call != ANY).then(|| call.clone()),
            folder: fs::canonicalize(folder).ok()?,
            pattern: CString::new(pattern.as_str()).ok()?,
        };
        Some(Self {
            pid: pid.parse().ok()?,
            wanted,
            nth: nth.parse().ok()?,
            limit_s: limit_s.parse().ok()?,
            hold_s: hold_s.parse().ok()?,
        })
    }
}

/// Begins to trace all threads of a process. A thread that it makes meanwhile is traced with the one that makes it, or found here.
fn seize_all(pid: pid_t) -> io::Result<HashSet<pid_t>> {
    let mut seized = HashSet::new();
    loop {
        let new: Vec<pid_t> = thread::threads_of(pid)?.into_iter().filter(|tid| !seized.contains(tid)).collect();
        if new.is_empty() {
            return Ok(seized);
        }
        for tid in new {
            match thread::seize(tid) {
                Ok(()) => thread::interrupt(tid),
                // It has ended, or is traced with the one that made it.
                Err(error) if seized.is_empty() => return Err(error),
                Err(_) => {}
            }
            seized.insert(tid);
        }
    }
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush()); // whoever reads may be gone
}

/// Follows the process up to the step. Returns whether it stands still there.
fn follow(task: &Task, threads: &mut HashSet<pid_t>) -> bool {
    let mut making: HashMap<pid_t, Making> = HashMap::new();
    let mut seen = 0;
    while let Some((tid, stop)) = thread::wait() {
        if matches!(stop, Stop::Ended) {
            making.remove(&tid);
            threads.remove(&tid);
            if tid == task.pid || threads.is_empty() {
                break;
            }
            continue;
        }
        threads.insert(tid);
        if matches!(stop, Stop::Call) {
            match thread::call(tid) {
                Call::Begins { number, arguments } => {
                    if let Some(begins) = task.wanted.making(tid, number, arguments) {
                        making.insert(tid, begins);
                    }
                }
                Call::Ended { result } => {
                    if let Some(made) = making.remove(&tid).filter(|making| making.is_made(result)) {
                        seen += 1;
                        if seen == task.nth {
                            stand_still(tid, threads);
                            let pid = thread::process_of(tid).unwrap_or(task.pid);
                            say(&format!("stands {pid} {seen} {} {}", made.call, made.file.display()));
                            return true;
                        }
                    }
                }
                Call::None => {}
            }
        }
        thread::resume(tid, &stop);
    }
    say(&format!("ended {seen}"));
    false
}

/// Lets all threads stop beside one that stands. They stay where they are, because nobody resumes them.
fn stand_still(stands: pid_t, threads: &HashSet<pid_t>) {
    for tid in threads.iter().filter(|tid| **tid != stands) {
        thread::interrupt(*tid);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(task) = Task::of(&arguments) else {
        eprintln!("{USAGE}; the folder must exist");
        return ExitCode::from(2);
    };
    thread::set_alarm(task.limit_s);
    let mut threads = match seize_all(task.pid) {
        Ok(threads) => threads,
        Err(error) => {
            eprintln!("process {} cannot be traced: {error}", task.pid);
            return ExitCode::FAILURE;
        }
    };
    say("follows");
    if follow(&task, &mut threads) {
        thread::set_alarm(task.hold_s.max(1));
        // Each stop stays one. The end of this process lets all that still stand go on.
        while let Some((tid, stop)) = thread::wait() {
            if matches!(stop, Stop::Ended) {
                threads.remove(&tid);
                if threads.is_empty() {
                    break;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
