//! The steps of the disks: each change of a file by a call, and each sync; and those that the program outside waits for.
//!
//! A step counts when its call has ended. Right after one that somebody waits for, the program stands still, so that it can lose
//! its power there. What programs write through memory is no step; the next sync of the file has it.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::disk::Unsynced;
use super::errors::fits;
use super::{Kernel, Nanos, NodeId, ProcessId, ThreadId};

/// The call of the step right before the end of a sync: what the sync is of is not durable yet.
pub const SYNCING: &str = "syncing";

/// A step.
#[derive(Clone)]
pub struct Step {
    pub node: NodeId,
    /// Its number among the steps of the node.
    pub number: u64,
    pub at: Nanos,
    pub call: &'static str,
    /// The file below the folder of its volume.
    pub file: PathBuf,
    /// How many messages and steps of other nodes there were before.
    pub others: u64,
    /// The changes that are not durable after it, the oldest first.
    pub unsynced: Vec<Unsynced>,
}

/// A step of which the call has not ended.
#[derive(Clone)]
pub struct Making {
    pub call: &'static str,
    pub path: PathBuf,
}

/// The n-th step of a kind, on a file, of one of some nodes.
#[derive(Clone)]
pub struct Wanted {
    pub nodes: Vec<NodeId>,
    /// None: any but the moments before the ends of syncs.
    pub call: Option<String>,
    pub pattern: CString,
    pub nth: u64,
    pub seen: BTreeMap<NodeId, u64>,
}

impl Wanted {
    fn takes(&mut self, step: &Step) -> bool {
        let is_one = self.nodes.contains(&step.node)
            && self.call.as_deref().map_or(step.call != SYNCING, |call| call == step.call)
            && fits(&self.pattern, &step.file);
        if !is_one {
            return false;
        }
        let seen = self.seen.entry(step.node).or_default();
        *seen += 1;
        *seen == self.nth
    }
}

/// The steps of a run.
#[derive(Clone, Default)]
pub struct Steps {
    /// Whether the disks note their steps.
    pub notes: bool,
    /// How many steps each node has made.
    counts: BTreeMap<NodeId, u64>,
    pub noted: Vec<Step>,
    pub wanted: BTreeMap<u64, Wanted>,
    /// The numbers of waits that have ended, with the place of the step and the first process of the program.
    pub reached: Vec<(u64, usize, ProcessId)>,
}

impl Kernel {
    /// The call of a thread before this one was a step, which is done now. Returns whether its program stands still.
    pub(super) fn end_step(&mut self, thread: ThreadId) -> bool {
        let Some(making) = self.threads[thread].making_step.take() else { return false };
        self.note_step(thread, making)
    }

    /// A thread makes a step. Returns whether its program stands still.
    pub(super) fn note_step(&mut self, thread: ThreadId, Making { call, path }: Making) -> bool {
        let (node, process) = (self.threads[thread].node, self.threads[thread].process);
        let disk = &self.disks[node];
        let volume = disk.volumes.iter().find(|volume| path.starts_with(volume.data()));
        let file = volume.and_then(|volume| path.strip_prefix(volume.data()).ok()).unwrap_or(&path).to_owned();
        let number = disk.last();
        let unsynced = disk.unsynced();
        let others =
            self.counts.messages + self.steps.noted.len() as u64 - self.steps.counts.get(&node).unwrap_or(&0);
        *self.steps.counts.entry(node).or_default() += 1;
        let step = Step { node, number, at: self.now, call, file, others, unsynced };
        self.say(&format!("{} of {} is step {number} of the disk", step.call, step.file.display()));
        let place = self.steps.noted.len();
        let first = self.processes[process].first;
        let reached: Vec<u64> =
            self.steps.wanted.iter_mut().filter_map(|(wanted, rule)| rule.takes(&step).then_some(*wanted)).collect();
        self.steps.noted.push(step);
        let stands = !reached.is_empty();
        self.steps.reached.extend(reached.into_iter().map(|wanted| (wanted, place, first)));
        if stands {
            self.pause_program(first, true);
        }
        stands
    }

    /// Returns a step as the program outside reads it.
    pub fn told(&self, step: &Step) -> String {
        let digits = |path: &PathBuf| {
            path.as_os_str().as_encoded_bytes().iter().fold(String::from("-"), |mut digits, byte| {
                let _ = write!(digits, "{byte:02x}");
                digits
            })
        };
        let Step { node, number, at, call, file, others, unsynced } = step;
        let mut line = format!("{} {number} {at} {call} {} {others}", self.nodes[*node].name, digits(file));
        for change in unsynced {
            let kind = if change.names { 'n' } else { 'c' };
            let _ = write!(line, " {}{kind}{}", change.number, digits(&change.file));
        }
        line
    }
}
