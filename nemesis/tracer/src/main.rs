//! Lets a running process stand still right after the n-th step of its disk of a kind, on files of a pattern.
//!
//! usage: labrys-tracer PID FOLDER CALL PATTERN N LIMIT HOLD
//!
//! It writes `follows` when it sees all threads of the process. Then it writes one more line: `stands PID N CALL FILE` when the
//! process stands still, or `ended SEEN` when the process has ended before, with the number of the steps so far. After HOLD seconds,
//! a process that stands goes on. After LIMIT seconds, no step counts any more. With a filter, the tracer stays up to the end of
//! the process; see `filter`. Without one, it ends after these times, and the process goes on without it.

mod filter;
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
use thread::{Call, Event, Stop};

const USAGE: &str = "usage: labrys-tracer PID FOLDER CALL PATTERN N LIMIT HOLD";
const ANY: &str = "any";
const STOP_S: u32 = 5; // how long the threads of a process take to stop, at most

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

/// Waits until each of these threads has stopped once, or ended. Returns those that stand, or None if none is left.
fn all_stopped(mut waiting: HashSet<pid_t>) -> Option<HashMap<pid_t, Stop>> {
    let mut stopped = HashMap::new();
    thread::set_alarm(STOP_S);
    while !waiting.is_empty() {
        match thread::wait() {
            Event::Of(tid, Stop::Ended) => {
                waiting.remove(&tid);
                stopped.remove(&tid);
            }
            Event::Of(tid, stop) => {
                waiting.remove(&tid);
                stopped.insert(tid, stop);
            }
            Event::Alarm | Event::NothingLeft => break,
        }
    }
    (!stopped.is_empty()).then_some(stopped)
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush()); // whoever reads may be gone
}

/// The process and its threads.
struct Tracer {
    task: Task,
    threads: HashSet<pid_t>,
    /// Whether only calls that may be steps stop.
    filtered: bool,
    making: HashMap<pid_t, Making>,
    seen: u64,
    /// Whether steps still count.
    counts: bool,
    /// While the process stands still, the threads that have stopped.
    standing: Option<HashMap<pid_t, Stop>>,
}

impl Tracer {
    /// Follows the process to its end; without a filter, up to the limit, or to the end of the hold.
    fn follow(&mut self) {
        loop {
            match thread::wait() {
                Event::NothingLeft => break,
                Event::Alarm => {
                    self.stop_counting();
                    if !self.filtered {
                        return; // the kernel lets go of all threads
                    }
                    for (tid, stop) in self.standing.take().into_iter().flatten() {
                        thread::resume(tid, &stop, false);
                    }
                }
                Event::Of(tid, Stop::Ended) => {
                    self.making.remove(&tid);
                    self.threads.remove(&tid);
                    if tid == self.task.pid {
                        self.stop_counting();
                    }
                }
                Event::Of(tid, stop) => self.stopped(tid, stop),
            }
        }
        self.stop_counting();
    }

    fn stop_counting(&mut self) {
        if self.counts {
            self.counts = false;
            say(&format!("ended {}", self.seen));
        }
    }

    fn stopped(&mut self, tid: pid_t, stop: Stop) {
        self.threads.insert(tid);
        if self.standing.is_none() && matches!(stop, Stop::Call | Stop::Filtered) {
            self.called(tid);
        }
        if let Some(standing) = &mut self.standing {
            standing.insert(tid, stop); // nobody resumes it before the hold ends
            return;
        }
        let calls = !self.filtered || self.making.contains_key(&tid);
        thread::resume(tid, &stop, calls);
    }

    /// A thread stands at a call, or right after one.
    fn called(&mut self, tid: pid_t) {
        match thread::call(tid) {
            Call::Begins { number, arguments } if self.counts => {
                if let Some(begins) = self.task.wanted.making(tid, number, arguments) {
                    self.making.insert(tid, begins);
                }
            }
            Call::Ended { result } => {
                let Some(made) = self.making.remove(&tid).filter(|making| making.is_made(result)) else { return };
                self.seen += 1;
                if self.counts && self.seen == self.task.nth {
                    self.stand_still(tid, &made);
                }
            }
            _ => {}
        }
    }

    /// Lets all threads stop beside one that stands right after its step.
    fn stand_still(&mut self, tid: pid_t, made: &Making) {
        for other in self.threads.iter().filter(|other| **other != tid) {
            thread::interrupt(*other);
        }
        self.counts = false;
        self.standing = Some(HashMap::new());
        thread::set_alarm(self.task.hold_s.max(1));
        let pid = thread::process_of(tid).unwrap_or(self.task.pid);
        say(&format!("stands {pid} {} {} {}", self.seen, made.call, made.file.display()));
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(task) = Task::of(&arguments) else {
        eprintln!("{USAGE}; the folder must exist");
        return ExitCode::from(2);
    };
    let threads = match seize_all(task.pid) {
        Ok(threads) => threads,
        Err(error) => {
            eprintln!("process {} cannot be traced: {error}", task.pid);
            return ExitCode::FAILURE;
        }
    };
    let Some(threads) = all_stopped(threads) else {
        println!("ended 0");
        return ExitCode::SUCCESS;
    };
    let tids: Vec<pid_t> = threads.keys().copied().collect();
    let filtered = filter::install(&tids, &steps::numbers(task.wanted.call.as_deref()));
    thread::set_alarm(task.limit_s);
    say("follows");
    for (tid, stop) in &threads {
        thread::resume(*tid, stop, !filtered);
    }
    let (seen, counts, standing) = (0, true, None);
    let making = HashMap::new();
    Tracer { task, threads: tids.into_iter().collect(), filtered, making, seen, counts, standing }.follow();
    ExitCode::SUCCESS
}
