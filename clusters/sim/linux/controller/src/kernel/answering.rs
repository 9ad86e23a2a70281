//! Which calls a thread may answer itself while it runs, and what becomes of those that it has answered; see `fast`.
//!
//! These are calls after which the thread goes on: a wake of those that wait for a futex, a look at an epoll that has nothing to
//! report, a read of a clock of processor time, and a sleep that nobody else uses. They stop all the same if an event is due, if the
//! quantum of the thread is over, if a stall may begin, or if a second ends, so that the controller does what it has to do then.

use std::collections::{HashMap, HashSet};

use super::futex::{Key, ALL_BITS};
use super::objects::Kind;
use super::running::quantum;
use super::{Kernel, Nanos, ProcessId, Settings, ThreadId, LATER, QUIET, SECOND, SHORT};
use crate::chance::Chance;
use crate::digest::Digest;
use crate::fast::{Answers, Fast, Offer, MOST_MEMORY, MOST_QUANTA};
use crate::start::SharedPages;
use crate::tracee::Registers;

const FEW_QUANTA: usize = 8;

/// What the controller knows about calls that programs answer.
#[derive(Clone)]
pub(super) struct Answering {
    /// None: all calls stop.
    fast: Option<Fast>,
    /// The addresses after calls at which the controller has looked, by the process whose memory they are in.
    seen: HashSet<(ProcessId, u64)>,
    /// The descriptor of each process with which it has last looked at an epoll without waiting.
    epolls: HashMap<ProcessId, u32>,
    /// The next quanta, if nobody else draws before, and the chance after each.
    quanta: Vec<Nanos>,
    chances: Vec<Chance>,
    /// The chance before them, and how many are worth it.
    from: Option<Chance>,
    most: usize,
}

impl Answering {
    /// A log has each call, so there all calls stop.
    pub fn new(pages: Option<&SharedPages>, settings: &Settings, digest: &Digest) -> Self {
        let pages = pages.filter(|_| settings.answers && !digest.logs());
        Self {
            fast: pages.map(|pages| pages.fast(settings.call, SHORT, LATER)),
            seen: HashSet::new(),
            epolls: HashMap::new(),
            quanta: Vec::new(),
            chances: Vec::new(),
            from: None,
            most: FEW_QUANTA,
        }
    }

    /// A process has executed another program.
    pub fn forget(&mut self, process: ProcessId) {
        self.seen.retain(|(memory, _)| *memory != process);
        self.epolls.remove(&process);
    }

    /// A word has another number of threads that wait for it.
    pub fn waited_for(&self, (memory, address): (ProcessId, u64), before: usize, now: usize) {
        if let Some(fast) = &self.fast {
            fast.waited_for(memory as u64, address, before, now);
        }
    }

    /// Draws the next quanta of a thread that sleeps and wakes alone, as the scheduler will.
    fn draw(&mut self, settings: &Settings, scheduling: &Chance) {
        if self.from.as_ref() == Some(scheduling) && self.quanta.len() >= FEW_QUANTA {
            return;
        }
        self.quanta.clear();
        self.chances.clear();
        let mut chance = scheduling.clone();
        for _ in 0..self.most {
            chance.below(1); // the pick of the only thread
            self.quanta.push(quantum(settings, &mut chance));
            self.chances.push(chance.clone());
        }
        self.from = Some(scheduling.clone());
    }

    /// The first of the quanta are over. Returns the chance after them.
    fn used(&mut self, count: usize) -> Chance {
        self.most = if count == self.quanta.len() { (2 * self.most).min(MOST_QUANTA) } else { FEW_QUANTA.max(count) };
        self.quanta.drain(..count);
        let chance = self.chances.drain(..count).next_back().expect("a thread that slept has used a quantum");
        self.from = Some(chance.clone());
        chance
    }
}

/// Returns whether a call is of those that a program may answer.
fn is_known(registers: &Registers) -> bool {
    match registers.orig_rax as libc::c_long {
        libc::SYS_nanosleep => true,
        libc::SYS_futex => registers.rsi as i32 == libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
        libc::SYS_clock_gettime => {
            let clock = registers.rdi as i32;
            clock < 0 || matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID)
        }
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => registers.r10 as i32 == 0,
        _ => false,
    }
}

impl Kernel {
    /// Looks at the place of a call: the next calls from there may be answered without a stop.
    pub(super) fn teach(&mut self, thread: ThreadId) {
        let registers = self.threads[thread].registers;
        if self.answering.fast.is_none() || !is_known(&registers) {
            return;
        }
        let number = registers.orig_rax as libc::c_long;
        if matches!(number, libc::SYS_epoll_wait | libc::SYS_epoll_pwait) {
            self.answering.epolls.insert(self.threads[thread].process, registers.rdi as u32);
        }
        if self.answering.seen.insert((self.memory(thread), registers.rip)) {
            if let Some(fast) = &mut self.answering.fast {
                fast.lead(self.threads[thread].tid, registers.rip, number);
            }
        }
    }

    /// A thread is about to run: says which calls it may answer.
    pub(super) fn offer_calls(&mut self, thread: ThreadId) {
        if self.answering.fast.is_none() {
            return;
        }
        let hears = self.has_news();
        let is_alone = self.runnable.is_empty() && !hears;
        let is_signalled = self.threads[thread].signals.is_signalled;
        let clock = &self.nodes[self.threads[thread].node].clock;
        let sleeps = is_alone
            && !is_signalled
            && clock.is_right()
            && self.threads[thread].registers.orig_rax == libc::SYS_nanosleep as u64;
        if sleeps {
            self.answering.draw(&self.settings, &self.scheduling);
        }
        let process = self.threads[thread].process;
        let epoll = self.answering.epolls.get(&process).copied().filter(|epoll| {
            let object = self.object(thread, (*epoll).into()).map(|object| &self.objects[object].kind);
            matches!(object, Some(Kind::Epoll { ready, .. }) if ready.is_empty())
        });
        let before = self.next_event().unwrap_or(Nanos::MAX).min(self.stalls.next());
        let second = (self.now / SECOND + 1) * SECOND;
        let quantum_ends = if is_alone { Nanos::MAX } else { self.quantum_ends };
        let Some(fast) = &self.answering.fast else { return };
        let memory = self.memory(thread) as u64;
        // The next call wakes threads first; or there are too many processes; or the calls of the process count as pieces of work; or the
        // next call ends a step of the disk.
        let ends_step = self.threads[thread].making_step.is_some();
        if self.is_stale || memory > MOST_MEMORY || self.workers.contains(&process) || ends_step {
            return fast.refuse();
        }
        fast.offer(&Offer {
            before,
            next: before.min(second).min(quantum_ends),
            digest: self.digest.state(),
            thread: thread as u64,
            memory,
            quantum_ends: self.quantum_ends,
            processor: self.threads[thread].processor_ns,
            quiet: self.nodes[self.threads[thread].node].heard + QUIET,
            has_waited: self.threads[thread].deadline.is_some(),
            epoll,
            quanta: if sleeps { &self.answering.quanta } else { &[] },
        });
    }

    /// A thread has stopped: the calls that it has answered count as all others.
    pub(super) fn take_answers(&mut self, thread: ThreadId) {
        let Some(answers) = self.answering.fast.as_ref().and_then(Fast::take) else { return };
        let Answers { digest, calls, wakes, sleeps, quantum_ends, has_waited, has_answered } = answers;
        self.digest.set_state(digest);
        let count: u64 = calls.iter().map(|(_, count)| count).sum();
        for (number, count) in calls.into_iter().filter(|(_, count)| *count > 0) {
            *self.counts.calls.entry(number).or_insert(0) += count;
        }
        self.counts.answered += count;
        self.counts.switches += sleeps as u64;
        let process = self.threads[thread].process;
        let first = self.processes[process].first;
        self.processes[first].calls += count;
        let now = self.now;
        let answered = &mut self.threads[thread];
        answered.processor_ns += count * self.settings.call;
        answered.yields = 0;
        answered.loops = 0;
        if has_answered {
            answered.timed_out = false;
        }
        answered.deadline = has_waited.then(|| answered.deadline.unwrap_or(now));
        let memory = self.memory(thread);
        for (address, count) in wakes {
            self.wake_futex(Key::Own(memory, address), count, ALL_BITS);
        }
        if sleeps > 0 {
            self.scheduling = self.answering.used(sleeps);
            self.quantum_ends = quantum_ends;
        }
    }
}
