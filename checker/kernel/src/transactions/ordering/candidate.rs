//! An order of the events that is likely one of the model: each happens as soon as it can, the earlier ones in time first.
//!
//! A commit waits until all reads of the version that it replaces have happened. A system that keeps a model mostly commits in the
//! order in which its answers came, so most histories need no more than this. Whether the order is one of the model is checked
//! elsewhere. The time is near-linear.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::class::Rule;
use super::closure::Next;
use super::problem::Problem;

/// What an event does to a key.
#[derive(Clone, Copy)]
struct Touch {
    event: u32,
    key: u32,
    /// One more than the place of a writer; 0 for the initial version.
    version: u32,
}

struct Run<'a> {
    time: &'a [i64],
    reads: Vec<Touch>,
    writes: Vec<Touch>,
    /// By key and version: how many reads of it did not happen yet.
    pending: Vec<Vec<u32>>,
    current: Vec<u32>,
    /// By key: the events that wait for reads of its current version.
    blocked: Vec<Vec<u32>>,
    ready: BinaryHeap<Reverse<(i64, u32)>>,
    done: Vec<bool>,
}

fn of(touches: &[Touch], event: u32) -> &[Touch] {
    let begin = touches.partition_point(|touch| touch.event < event);
    let end = begin + touches[begin..].partition_point(|touch| touch.event == event);
    &touches[begin..end]
}

/// Returns the events in an order that all arcs agree with; they have no cycle.
pub fn candidate(problem: &Problem, time: &[i64]) -> Vec<u32> {
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let mut pending = Vec::with_capacity(problem.keys.len());
    for (number, key) in (0..).zip(&problem.keys) {
        let mut counts = vec![0u32; key.writers.len() + 1];
        for read in key.reads.iter().filter(|read| read.rule != Rule::Nothing) {
            let version = read.from.wrapping_add(1);
            counts[version as usize] += 1;
            reads.push(Touch { event: read.event, key: number, version });
        }
        let all = (1..).zip(&key.writers);
        writes.extend(all.map(|(version, writer)| Touch { event: writer.commit, key: number, version }));
        pending.push(counts);
    }
    reads.sort_unstable_by_key(|touch| touch.event);
    writes.sort_unstable_by_key(|touch| touch.event);
    let mut waits = vec![0u32; problem.events()];
    for arc in &problem.arcs {
        waits[arc.to as usize] += 1;
    }
    let keys = problem.keys.len();
    let ready = (0..problem.events() as u32).filter(|&event| waits[event as usize] == 0);
    let mut run = Run {
        time,
        reads,
        writes,
        pending,
        current: vec![0; keys],
        blocked: vec![Vec::new(); keys],
        ready: ready.map(|event| Reverse((time[event as usize], event))).collect(),
        done: vec![false; problem.events()],
    };
    let next = Next::new(problem.events(), &problem.arcs);
    let mut order = Vec::with_capacity(problem.events());
    let mut held: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
    loop {
        let (event, is_forced) = match run.ready.pop() {
            Some(Reverse((_, event))) => (event, false),
            None => match held.pop() {
                Some(Reverse((_, event))) => (event, true),
                None => break,
            },
        };
        if run.done[event as usize] {
            continue;
        }
        if let (Some(key), false) = (run.waits_for(event), is_forced) {
            run.blocked[key as usize].push(event);
            held.push(Reverse((time[event as usize], event)));
            continue;
        }
        run.happen(event);
        order.push(event);
        for &arc in next.of(event) {
            let to = problem.arcs[arc as usize].to;
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                run.ready.push(Reverse((time[to as usize], to)));
            }
        }
    }
    order
}

impl Run<'_> {
    /// Returns a key whose current version has reads of others to come, if an event replaces it.
    fn waits_for(&self, event: u32) -> Option<u32> {
        let own = of(&self.reads, event);
        let waits = |write: &&Touch| {
            let key = write.key as usize;
            let now = self.current[key];
            let by_itself = own.iter().filter(|read| read.key == write.key && read.version == now).count() as u32;
            self.pending[key][now as usize] > by_itself
        };
        of(&self.writes, event).iter().find(waits).map(|write| write.key)
    }

    fn happen(&mut self, event: u32) {
        self.done[event as usize] = true;
        let mut keys: Vec<u32> = Vec::new();
        for read in of(&self.reads, event) {
            self.pending[read.key as usize][read.version as usize] -= 1;
            keys.push(read.key);
        }
        for write in of(&self.writes, event) {
            self.current[write.key as usize] = write.version;
            keys.push(write.key);
        }
        for key in keys {
            // One of these reads may be that of a transaction that waits.
            if self.pending[key as usize][self.current[key as usize] as usize] > 1 {
                continue;
            }
            for other in self.blocked[key as usize].split_off(0) {
                if !self.done[other as usize] {
                    self.ready.push(Reverse((self.time[other as usize], other)));
                }
            }
        }
    }
}
