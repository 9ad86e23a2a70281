//! The simulated kernel: nodes, processes, threads, virtual time, and all that the system calls of programs work on.
//!
//! One thread of all programs runs at a time. Time passes only by calls, by reads of the clock, and while nobody can run. So all
//! that happens depends on the seed and the programs alone.

mod answering;
mod copies;
mod disk;
mod dispatch;
mod epoll;
mod errors;
mod files;
mod full;
mod futex;
mod interfaces;
mod keeping;
mod loads;
mod loops;
mod names;
mod network;
mod objects;
mod options;
mod pages;
mod passing;
mod processes;
mod running;
mod signals;
mod slow;
mod sockets;
mod stalls;
mod steps;
mod streams;
mod tcp;
mod time;
mod timeouts;
mod udp;
mod unix;
mod waiting;
mod work;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use libc::pid_t;

use crate::chance::Chance;
use crate::digest::Digest;
use crate::original::Numbers;
use crate::start::{Root, SharedPages};
use crate::tracee::Registers;

pub use copies::Template;
pub use disk::Losing;
pub use disk::Loss;
pub use errors::{Failing, Failure};
pub use network::{Disturbance, Message};
pub use objects::{Kind, Object};
pub use pages::Image;
pub use passing::{Awaited, Passed};
pub use running::watch;
pub use stalls::Asked;
pub use steps::Wanted;
pub use tcp::Phase;
pub use time::Clock;

use objects::HUNG_UP;
use stalls::Stalls;

/// Virtual nanoseconds since the start of the run.
pub type Nanos = u64;

pub const MICROSECOND: Nanos = 1_000;
pub const MILLISECOND: Nanos = 1_000_000;
pub const SECOND: Nanos = 1_000_000_000;

/// After this time without a message to a node, waits there of at most `SHORT` take longer by `LATER`.
const QUIET: Nanos = 3 * MILLISECOND;
const SHORT: Nanos = 10 * MILLISECOND;
const LATER: Nanos = 8 * MILLISECOND;

/// What the clocks of all nodes say at the start of a run.
pub const MONOTONIC_START: Nanos = 1_000 * SECOND;
pub const REALTIME_START: Nanos = 1_700_000_000 * SECOND;

pub type NodeId = usize;
pub type ProcessId = usize;
pub type ThreadId = usize;
pub type ObjectId = usize;

/// Returns a time multiplied by a factor of at least 0.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a simulation lasts days at most
pub fn scaled(time: Nanos, factor: f64) -> Nanos {
    (time as f64 * factor) as Nanos
}

/// An error that ends a run: the controller cannot go on with a true simulation.
#[derive(Debug)]
pub struct Fatal(pub String);

impl From<std::io::Error> for Fatal {
    fn from(error: std::io::Error) -> Self {
        Self(format!("the controller could not trace a program: {error}"))
    }
}

pub type Run<T> = Result<T, Fatal>;

/// The costs and rhythms of a run.
#[derive(Clone)]
pub struct Settings {
    pub seed: u64,
    /// The virtual time of a call.
    pub call: Nanos,
    /// The virtual time of a read of the clock that makes no call.
    pub clock_read: Nanos,
    /// The time after which another thread may run.
    pub quantum: Nanos,
    /// The probability with which another thread runs before a call; a read of the clock counts as a tenth of a call.
    pub preempt: f64,
    /// How often a thread stalls for long before a call: the mean number of times in a second.
    pub stalls: f64,
    /// Whether every call stops and is in the digest.
    pub trace_all: bool,
    /// Whether programs answer some calls themselves. It has no effect on what they do.
    pub answers: bool,
    /// The processor time of a thread without a call before the controller looks whether it waits in a loop. It has no effect on
    /// what programs do.
    pub look: Duration,
}

/// Whether a thread can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Runnable,
    Blocked,
    /// The first thread of a process ended before the others.
    Zombie,
    Dead,
}

/// What a blocked thread waits for.
#[derive(Clone, Debug)]
pub enum Wait {
    Nothing,
    Futex(futex::Key),
    Sleep,
    /// Descriptors, each with the events of poll.
    Ready(Vec<(ObjectId, u32)>),
    Child,
    /// A child of vfork that has not executed another program yet.
    Vfork,
    /// One of these signals, or, without any, one with a handler.
    Signals(u64),
    /// A lock of a file: the thread asks for it again when one may be free.
    Lock,
    /// A loop that waits for memory; see `running`.
    Loop,
    /// The disk.
    Sync,
    /// The time that its own work takes; see `work`.
    Work,
    /// Nothing: it stalls.
    Stall,
}

/// How a thread goes on when it runs again.
#[derive(Clone, Copy, Debug)]
pub enum Resume {
    /// As it stands.
    Continue,
    /// With this result of its call.
    Result(i64),
    /// Its call ends, because a signal came.
    Interrupted,
    /// The call is handled again. `true`: it has waited already, so its deadline stays.
    Retry(bool),
}

/// A thread of a program.
#[derive(Clone)]
pub struct Thread {
    pub tid: pid_t,
    /// Its id in the namespace of the programs.
    pub number: pid_t,
    pub process: ProcessId,
    pub node: NodeId,
    pub state: State,
    pub resume: Resume,
    pub wait: Wait,
    pub registers: Registers,
    pub deadline: Option<Nanos>,
    pub timed_out: bool,
    /// Grows with each wait, so that a timeout of an earlier wait is known.
    pub turn: u64,
    /// The word that the end of the thread sets to zero and wakes.
    pub clear_tid: u64,
    pub futex_bits: u32,
    pub processor_ns: Nanos,
    /// How often it has slept in a loop since its last stop.
    pub loops: u32,
    /// How many bytes of its call have been sent so far, if it waits to send the rest.
    pub sent: usize,
    /// How many yields it has made in a row.
    pub yields: u32,
    /// How many pieces of work it has done in a row; see `work`.
    pub pieces: u32,
    /// The flags and the clear-tid word of its call that makes a thread.
    pub making: (u64, u64),
    /// Its last sync.
    pub sync: slow::Sync,
    /// Of a sync that goes on: what it makes durable.
    pub syncing: Option<disk::Begun>,
    /// Of a sync that will fail: how.
    pub refused: Option<errors::Refused>,
    /// The step of the disk that its last call was.
    pub making_step: Option<steps::Making>,
    /// It stands at a store that a full disk refuses, so the next signal about it is the program's.
    pub is_refused: bool,
    pub signals: signals::Coming,
    /// Whether the last datagram that it received had more bytes than it took.
    pub is_cut: bool,
    /// The Unix socket whose file its native call makes, and its name.
    pub binding: Option<(ObjectId, Vec<u8>)>,
    /// The descriptor that its native call makes: the object, and whether an exec closes it.
    pub opening: Option<(ObjectId, bool)>,
}

/// A descriptor of a process that stands for a simulated object.
#[derive(Clone, Copy)]
pub struct Descriptor {
    pub object: ObjectId,
    pub closes_at_exec: bool,
}

/// A process of a program.
#[derive(Clone)]
pub struct Process {
    pub pid: pid_t,
    /// Its id in the namespace of the programs.
    pub number: pid_t,
    pub node: NodeId,
    pub program: String,
    pub descriptors: BTreeMap<i32, Descriptor>,
    pub is_alive: bool,
    pub is_reaped: bool,
    pub status: i32,
    pub parent: Option<ProcessId>,
    /// The process that the program outside has started, and that this one descends from.
    pub first: ProcessId,
    /// Of a first process: whether it and its descendants stand still.
    pub is_paused: bool,
    /// Of a first process: how many calls it and its descendants have made that the controller saw.
    pub calls: u64,
    pub threads: Vec<ThreadId>,
    pub chance: Chance,
    pub alarm: signals::Alarm,
    /// The process whose memory it has, until it executes another program.
    pub memory_of: Option<ProcessId>,
    /// What it cannot use of its memory.
    pub memory: loads::Memory,
}

/// A machine of the simulation.
#[derive(Clone)]
pub struct Node {
    pub name: String,
    pub address: Ipv4Addr,
    pub environment: Vec<String>,
    /// The time that has passed on it, and how far its wall clock is ahead of that.
    pub clock: Clock,
    pub clock_offset: i64,
    pub is_down: bool,
    /// Its shared memory of System V, since its first program.
    pub shared_memory: Option<Rc<OwnedFd>>,
    pub next_port: u16,
    /// When the last message came to it.
    pub heard: Nanos,
    pub syncs: u64,
    /// The virtual time of a sync of a file: the mean.
    pub sync_mean: Nanos,
    /// The longest sync that no rule of a fault has slowed down.
    pub longest_sync: Nanos,
    pub writes: u64,
}

/// Something at a time.
#[derive(Clone)]
pub enum Event {
    Timeout {
        thread: ThreadId,
        turn: u64,
    },
    Timer {
        object: ObjectId,
        turn: u64,
    },
    /// The timer of a process that sends SIGALRM.
    Alarm {
        process: ProcessId,
        turn: u64,
    },
    /// A message arrives; of a stream: the end that sent it, and its place among what this end sends.
    Message {
        message: Message,
        of: Option<(ObjectId, u64)>,
    },
    /// A lost message of a connection is sent again; `times`: how often by then.
    Retransmission {
        message: Message,
        of: Option<(ObjectId, u64)>,
        times: u32,
    },
    /// A stream has waited for an answer since a time.
    Silence {
        object: ObjectId,
        since: Nanos,
    },
    /// A connection is kept alive.
    Keep {
        object: ObjectId,
        turn: u64,
    },
    /// The program outside waits until now.
    Outside {
        turn: u64,
    },
}

/// All of a run.
#[derive(Clone)]
pub struct Kernel {
    pub settings: Settings,
    pub root: Root,
    pub pages: Option<Rc<SharedPages>>,
    pub now: Nanos,
    order: u64,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    events: HashMap<u64, Event>,
    pub nodes: Vec<Node>,
    pub processes: Vec<Process>,
    pub threads: Vec<Thread>,
    pub runnable: Vec<ThreadId>,
    pub objects: Vec<Object>,
    futexes: HashMap<futex::Key, VecDeque<ThreadId>>,
    /// The sockets with a port: by node and port.
    pub ports: BTreeMap<(NodeId, u16), Vec<ObjectId>>,
    /// The Unix sockets with a name.
    unix: BTreeMap<unix::Place, ObjectId>,
    pub links: network::Links,
    pub passing: passing::Passing,
    /// What is not durable on the disk of each node.
    disks: Vec<disk::Disk>,
    /// The calls that failed by the rules of faults.
    pub failures: Vec<Failure>,
    /// The rules of faults that slow syncs down.
    pub slow: Vec<slow::Slow>,
    pub steps: steps::Steps,
    /// How many volumes there are.
    volumes: usize,
    /// How the numbers of files lead to those that programs see.
    numbers: Numbers,
    /// How many files programs have removed, for the names under which they stay.
    removed: u64,
    /// The processes that say when their threads work; see `work`.
    workers: BTreeSet<ProcessId>,
    scheduling: Chance,
    pub stalls: Stalls,
    answering: answering::Answering,
    pub digest: Digest,
    pub counts: Counts,
    is_stale: bool,
    quantum_ends: Nanos,
    pub outside: Option<Outside>,
}

/// The node of the program outside, and what it has to hear about.
#[derive(Clone, Default)]
pub struct Outside {
    pub node: NodeId,
    pub turn: u64,
    pub is_due: bool,
    /// Its sockets whose state may have changed.
    pub changed: BTreeSet<ObjectId>,
    /// Whether a program has ended that it may not have heard of.
    pub has_ended: bool,
}

impl Outside {
    /// Returns whether it has something to hear.
    pub fn hears(&self) -> bool {
        self.is_due || self.has_ended || !self.changed.is_empty()
    }
}

/// Figures of a run.
#[derive(Clone, Default)]
pub struct Counts {
    pub calls: BTreeMap<i64, u64>,
    pub stops: u64,
    pub switches: u64,
    pub signals: u64,
    pub counters_read: u64,
    pub loops: u64,
    pub stalls: u64,
    pub messages: u64,
    /// Calls that programs have answered themselves.
    pub answered: u64,
}

impl Kernel {
    /// Makes a simulation without programs.
    pub fn new(
        settings: Settings,
        root: Root,
        pages: Option<Rc<SharedPages>>,
        nodes: Vec<Node>,
        digest: Digest,
    ) -> Self {
        let seed = settings.seed;
        Self {
            links: network::Links::new(seed, nodes.len()),
            passing: passing::Passing::default(),
            disks: nodes.iter().map(|node| disk::Disk::new(seed, &node.name)).collect(),
            failures: Vec::new(),
            slow: Vec::new(),
            steps: steps::Steps::default(),
            volumes: 0,
            numbers: Numbers::default(),
            removed: 0,
            workers: BTreeSet::new(),
            scheduling: Chance::new(seed, "threads"),
            stalls: Stalls::new(seed, settings.stalls),
            answering: answering::Answering::new(pages.as_deref(), &settings, &digest),
            settings,
            root,
            pages,
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            events: HashMap::new(),
            nodes,
            processes: Vec::new(),
            threads: Vec::new(),
            runnable: Vec::new(),
            objects: Vec::new(),
            futexes: HashMap::new(),
            ports: BTreeMap::new(),
            unix: BTreeMap::new(),
            digest,
            counts: Counts::default(),
            is_stale: false,
            quantum_ends: 0,
            outside: None,
        }
    }

    /// Returns the folder of a node, as its programs see it.
    pub fn folder(&self, node: NodeId) -> PathBuf {
        self.root.folder_of(&self.nodes[node].name)
    }

    /// Plans an event. Events of one time happen in the order in which they were planned.
    pub fn at(&mut self, time: Nanos, event: Event) {
        self.order += 1;
        self.events.insert(self.order, event);
        self.queue.push(Reverse((time, self.order)));
    }

    /// Returns the time of the next event.
    pub fn next_event(&self) -> Option<Nanos> {
        self.queue.peek().map(|Reverse((time, _))| *time)
    }

    fn take_due(&mut self) -> Option<Event> {
        let Reverse((time, order)) = *self.queue.peek()?;
        if time > self.now {
            return None;
        }
        self.queue.pop();
        self.events.remove(&order)
    }

    fn is_paused(&self, thread: ThreadId) -> bool {
        self.processes[self.processes[self.threads[thread].process].first].is_paused
    }

    /// Puts a sentence into the digest and the log.
    pub fn say(&mut self, sentence: &str) {
        self.digest.add(sentence.as_bytes());
        self.digest.line(format_args!("{:>14} * {sentence}", self.now));
    }

    /// Returns the process whose memory a thread uses.
    fn memory(&self, thread: ThreadId) -> ProcessId {
        let process = self.threads[thread].process;
        self.processes[process].memory_of.unwrap_or(process)
    }

    /// Blocks a thread, at most until a deadline.
    fn block(&mut self, thread: ThreadId, wait: Wait, deadline: Option<Nanos>) {
        let deadline =
            deadline.map(|deadline| if self.polls(thread, &wait, deadline) { deadline + LATER } else { deadline });
        let blocked = &mut self.threads[thread];
        blocked.state = State::Blocked;
        blocked.wait = wait;
        blocked.turn += 1;
        blocked.deadline = deadline;
        let turn = blocked.turn;
        if let Some(deadline) = deadline {
            self.at(deadline.max(self.now), Event::Timeout { thread, turn });
        }
    }

    /// Returns whether a thread begins a short wait on a node to which nothing happens. Such a wait takes longer, as on a busy
    /// machine: programs that look for work every millisecond would take most of the time of a run.
    fn polls(&self, thread: ThreadId, wait: &Wait, deadline: Nanos) -> bool {
        let Thread { node, deadline: earlier, .. } = self.threads[thread];
        matches!(wait, Wait::Futex(_) | Wait::Sleep | Wait::Ready(_))
            && earlier.is_none()
            && deadline <= self.now + SHORT
            && self.now >= self.nodes[node].heard + QUIET
    }

    /// Lets a blocked thread run again; other threads stay as they are.
    fn wake(&mut self, thread: ThreadId, resume: Resume) {
        let woken = &mut self.threads[thread];
        if woken.state != State::Blocked {
            return;
        }
        woken.state = State::Runnable;
        woken.resume = resume;
        woken.wait = Wait::Nothing;
        woken.turn += 1;
        self.runnable.push(thread);
    }

    /// Carries out the events up to now.
    pub fn deliver(&mut self) {
        self.digest.passed(self.now);
        while let Some(event) = self.take_due() {
            match event {
                Event::Timeout { thread, turn } => self.time_out(thread, turn),
                Event::Timer { object, turn } => self.fire(object, turn),
                Event::Alarm { process, turn } => self.ring(process, turn),
                Event::Message { message, of } => self.arrive(message, of),
                Event::Retransmission { message, of, times } => self.retransmit(message, of, times),
                Event::Silence { object, since } => self.end_silence(object, since),
                Event::Keep { object, turn } => self.keep_alive(object, turn),
                Event::Outside { turn } => {
                    if let Some(outside) = self.outside.as_mut().filter(|outside| outside.turn == turn) {
                        outside.is_due = true;
                    }
                }
            }
        }
        if self.is_stale {
            self.wake_ready();
        }
    }

    fn time_out(&mut self, thread: ThreadId, turn: u64) {
        if self.threads[thread].state != State::Blocked || self.threads[thread].turn != turn {
            return;
        }
        match self.threads[thread].wait {
            Wait::Futex(key) => {
                self.leave_futex(thread, key);
                self.wake(thread, Resume::Result(-i64::from(libc::ETIMEDOUT)));
            }
            Wait::Sleep => self.wake(thread, Resume::Result(0)),
            Wait::Loop => self.wake(thread, Resume::Continue),
            Wait::Stall => self.wake(thread, Resume::Retry(false)),
            _ => {
                self.threads[thread].timed_out = true;
                self.wake(thread, Resume::Retry(true));
            }
        }
    }

    /// A lock of a file may be free now: those that wait for one ask again.
    fn wake_for_locks(&mut self) {
        for thread in 0..self.threads.len() {
            if matches!(self.threads[thread].wait, Wait::Lock) {
                self.wake(thread, Resume::Continue);
            }
        }
    }

    /// Wakes the threads that wait for descriptors which are ready now.
    fn wake_ready(&mut self) {
        self.is_stale = false;
        for thread in 0..self.threads.len() {
            let Wait::Ready(wanted) = &self.threads[thread].wait else { continue };
            let is_ready = wanted
                .iter()
                .any(|(object, events)| self.readiness(thread, *object) & (events | objects::ALWAYS) != 0);
            if is_ready {
                self.wake(thread, Resume::Retry(true));
            }
        }
    }
}
