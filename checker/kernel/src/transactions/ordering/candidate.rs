//! An order of the events that is likely one of the model: each happens as soon as it can, the earlier ones in time first.
//!
//! A commit waits until all reads of the version that it replaces have happened. If the class holds the writers of a key apart, the
//! first event of one waits until no other one is between its first event and its commit. A system that keeps a model mostly commits
//! in the order in which its answers came, so most histories need no more than this. If all that could happen waits, the
//! earliest event happens nevertheless, and the result tells which writers should have come earlier. Whether the order is one of
//! the model is checked elsewhere. The time is near-linear.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use super::super::NONE;
use super::class::Rule;
use super::closure::{Link, Next};
use super::problem::Problem;

/// An event and its time; the earliest one is the greatest.
type Timed = Reverse<(i64, u32)>;

/// How many events that wait are looked at for a writer that should have come earlier.
const TRIES: usize = 32;

pub struct Candidate {
    pub order: Vec<u32>,
    /// From the commit of a writer to what another one of the same key begins with. The first one had to wait for something that
    /// waits for itself, because the second one came before it. No arcs contradict.
    pub earlier: Vec<Link>,
    /// Whether no event happened before its time.
    pub is_free: bool,
}

/// What an event does to a key.
#[derive(Clone, Copy)]
struct Touch {
    event: u32,
    key: u32,
    /// One more than the place of a writer; 0 for the initial version.
    version: u32,
}

struct Run<'a> {
    problem: &'a Problem,
    time: &'a [i64],
    reads: Vec<Touch>,
    writes: Vec<Touch>,
    /// What writers begin with, if the class holds them apart.
    begins: Vec<Touch>,
    /// By key and version: how many reads of it did not happen yet.
    pending: Vec<Vec<u32>>,
    current: Vec<u32>,
    /// By key: the version of the writer that began and did not commit; else 0.
    open: Vec<u32>,
    /// By key: the events that wait for it.
    blocked: Vec<BinaryHeap<Timed>>,
    /// By key: those of them that read its current version, or that began to write.
    readers: Vec<Vec<u32>>,
    ready: BinaryHeap<Timed>,
    /// By event: its place in the order; `NONE` as long as it did not happen.
    place: Vec<u32>,
    order: Vec<u32>,
}

fn of(touches: &[Touch], event: u32) -> &[Touch] {
    let begin = touches.partition_point(|touch| touch.event < event);
    let end = begin + touches[begin..].partition_point(|touch| touch.event == event);
    &touches[begin..end]
}

/// Returns the events in an order that some links agree with; these are those of the problem and others, and have no cycle.
pub fn candidate(problem: &Problem, time: &[i64], pairs: &[Link]) -> Candidate {
    let turned: Vec<Link> = pairs.iter().map(|&(from, to)| (to, from)).collect();
    let (next, before) = (Next::new(problem.events(), pairs), Next::new(problem.events(), &turned));
    let mut waits = vec![0u32; problem.events()];
    for pair in pairs {
        waits[pair.1 as usize] += 1;
    }
    let mut run = Run::new(problem, time);
    run.ready.extend((0..).zip(&waits).filter(|(_, &waits)| waits == 0).map(|(event, _)| timed(time, event)));
    let mut held: BinaryHeap<Timed> = BinaryHeap::new();
    let (mut earlier, mut is_free) = (Vec::new(), true);
    let mut left = pairs.len(); // how many links are looked at for `earlier`
    let mut since = 0; // the place of the last event that happened before its time
    loop {
        let event = if let Some(Reverse((_, event))) = run.ready.pop() {
            if run.place[event as usize] != NONE {
                continue;
            }
            let waits_for = run.waits_for(event).next();
            if let Some(touch) = waits_for {
                run.block(event, touch.key);
                held.push(timed(time, event));
                continue;
            }
            event
        } else {
            // All that is left waits for something that is left.
            let mut tried: Vec<u32> = Vec::new();
            let mut guess = None;
            let mut free = None;
            while let Some(Reverse((_, event))) = held.pop() {
                if run.place[event as usize] != NONE || tried.contains(&event) {
                    continue;
                }
                let pairs: Vec<Touch> = run.waits_for(event).collect();
                if pairs.is_empty() {
                    free = Some(event);
                    break;
                }
                tried.push(event);
                // What follows from an event before its time says little.
                let mut pairs = pairs.into_iter().filter_map(|touch| run.earlier(touch, since));
                let fits = |pair: &Link| !run.leads(pair.1, pair.0, event, &turned, &before, &mut left);
                guess = pairs.find(fits).map(|pair| (event, pair));
                if guess.is_some() || tried.len() == TRIES {
                    break;
                }
            }
            let Some(event) = free.or(guess.map(|(event, _)| event)).or(tried.first().copied()) else { break };
            held.extend(tried.into_iter().filter(|&other| other != event).map(|other| timed(time, other)));
            if free.is_some() {
                run.ready.push(timed(time, event));
                continue;
            }
            earlier.extend(guess.map(|(_, pair)| pair));
            (is_free, since) = (false, run.order.len() as u32);
            event
        };
        run.happen(event);
        for &number in next.of(event) {
            let to = pairs[number as usize].1;
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                run.ready.push(timed(time, to));
            }
        }
    }
    Candidate { order: run.order, earlier, is_free }
}

fn timed(time: &[i64], event: u32) -> Timed {
    Reverse((time[event as usize], event))
}

impl<'a> Run<'a> {
    fn new(problem: &'a Problem, time: &'a [i64]) -> Self {
        let (mut reads, mut writes, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        let mut pending = Vec::with_capacity(problem.keys.len());
        for (number, key) in (0..).zip(&problem.keys) {
            let mut counts = vec![0u32; key.writers.len() + 1];
            for read in key.reads.iter().filter(|read| read.rule != Rule::Nothing) {
                let version = read.from.wrapping_add(1);
                counts[version as usize] += 1;
                reads.push(Touch { event: read.event, key: number, version });
            }
            for (version, writer) in (1..).zip(&key.writers) {
                writes.push(Touch { event: writer.commit, key: number, version });
                if writer.begin != writer.commit {
                    begins.push(Touch { event: writer.begin, key: number, version });
                }
            }
            pending.push(counts);
        }
        for touches in [&mut reads, &mut writes, &mut begins] {
            touches.sort_unstable_by_key(|touch| touch.event);
        }
        let keys = problem.keys.len();
        Self {
            problem,
            time,
            reads,
            writes,
            begins,
            pending,
            current: vec![0; keys],
            open: vec![0; keys],
            blocked: vec![BinaryHeap::new(); keys],
            readers: vec![Vec::new(); keys],
            ready: BinaryHeap::new(),
            place: vec![NONE; problem.events()],
            order: Vec::with_capacity(problem.events()),
        }
    }

    /// Yields what an event does to keys that it has to wait for: another writer began, or the current version has reads of others
    /// to come.
    fn waits_for(&self, event: u32) -> impl Iterator<Item = Touch> + '_ {
        let own = of(&self.reads, event);
        let has_reads = move |write: &&Touch| {
            let key = write.key as usize;
            let now = self.current[key];
            let by_itself = own.iter().filter(|read| read.key == write.key && read.version == now).count() as u32;
            self.pending[key][now as usize] > by_itself
        };
        let is_open = |begin: &&Touch| self.open[begin.key as usize] != 0;
        let begins = of(&self.begins, event).iter().filter(is_open);
        begins.chain(of(&self.writes, event).iter().filter(has_reads)).copied()
    }

    /// Returns which writer should have come before which other one, so that an event need not wait; None if the other one came
    /// before some place, or if there is none.
    fn earlier(&self, touch: Touch, since: u32) -> Option<Link> {
        let key = touch.key as usize;
        let writers = &self.problem.keys[key].writers;
        let open = self.open[key];
        let version = if open == 0 || open == touch.version { self.current[key] } else { open };
        let other = &writers[version.checked_sub(1)? as usize];
        let first = self.place[other.begin as usize];
        (first >= since).then_some((writers[touch.version as usize - 1].commit, other.begin))
    }

    /// Returns whether an event that happened leads to another one; also if no steps are left.
    ///
    /// Args: the events; what happens now and is the other one or comes before it in its transaction; the links, from their ends.
    fn leads(&self, from: u32, to: u32, now: u32, turned: &[Link], before: &Next, left: &mut usize) -> bool {
        let first = self.place[from as usize];
        let mut waiting = if now == to { vec![to] } else { vec![to, now] };
        let mut seen = HashSet::new();
        while let Some(event) = waiting.pop() {
            for &number in before.of(event) {
                let one = turned[number as usize].1;
                if one == from || *left == 0 {
                    return true;
                }
                *left -= 1;
                let place = self.place[one as usize];
                if place != NONE && place > first && seen.insert(one) {
                    waiting.push(one);
                }
            }
        }
        false
    }

    fn happen(&mut self, event: u32) {
        self.place[event as usize] = self.order.len() as u32;
        self.order.push(event);
        let mut keys: Vec<u32> = Vec::new();
        for begin in of(&self.begins, event) {
            self.open[begin.key as usize] = begin.version;
        }
        for read in of(&self.reads, event) {
            self.pending[read.key as usize][read.version as usize] -= 1;
            keys.push(read.key);
        }
        for write in of(&self.writes, event) {
            self.current[write.key as usize] = write.version;
            for event in self.readers[write.key as usize].split_off(0) {
                self.blocked[write.key as usize].push(timed(self.time, event));
            }
            if self.open[write.key as usize] == write.version {
                self.open[write.key as usize] = 0;
            }
            keys.push(write.key);
        }
        for key in keys {
            self.wake(key);
        }
    }

    /// Lets an event wait for a key. The others that wait for what it does not wait for may happen.
    fn block(&mut self, event: u32, key: u32) {
        let (now, open) = (self.current[key as usize], self.open[key as usize]);
        let is_there = |touches: &[Touch], version: u32| {
            of(touches, event).iter().any(|touch| (touch.key, touch.version) == (key, version))
        };
        if is_there(&self.reads, now) || (open != 0 && is_there(&self.writes, open)) {
            self.readers[key as usize].push(event);
        } else {
            self.blocked[key as usize].push(timed(self.time, event));
        }
        let others = [of(&self.begins, event), of(&self.writes, event)].concat();
        for other in others.into_iter().map(|other| other.key as usize).filter(|&other| other != key as usize) {
            if self.open[other] == 0 && self.pending[other][self.current[other] as usize] == 0 {
                self.wake_next(other);
            }
        }
    }

    /// Lets what waits for a key happen, if it need not wait any more: the earliest event, or the one that reads the version last.
    fn wake(&mut self, key: u32) {
        let key = key as usize;
        let pending = self.pending[key][self.current[key] as usize];
        if pending <= 1 {
            for event in self.readers[key].split_off(0) {
                self.ready.push(timed(self.time, event));
            }
        }
        if pending == 0 || (self.open[key] == 0 && !self.begins.is_empty()) {
            self.wake_next(key);
        }
    }

    fn wake_next(&mut self, key: usize) {
        while let Some(next) = self.blocked[key].pop() {
            if self.place[next.0 .1 as usize] == NONE {
                self.ready.push(next);
                break;
            }
        }
    }
}
