//! Threads of a JVM that compute in a loop until another thread writes or until a time, and change memory meanwhile, so that `loops`
//! cannot tell.
//!
//! A JVM can write a line into its log each time a thread takes a new buffer for objects (`-Xlog:gc+tlab=trace`). If that log is the
//! file `WORK`, each line is a call, at a place that depends on what the thread did alone. So is a read of the clock that is a call,
//! because the stand-in for the vDSO has reached its limit. After several of these pieces of work without another call, the thread
//! sleeps. Without that, virtual time would hardly pass while it computes, and what it waits for would come late or never.

use libc::c_long;

use super::dispatch::Outcome;
use super::objects::Kind;
use super::{Kernel, Nanos, ObjectId, ThreadId, Wait, MICROSECOND};
use crate::tracee::Registers;

/// The file for these lines.
pub const WORK: &str = "/dev/labrys-work";
/// The begin of a line about the buffer of the thread that writes it. At a collection, one thread writes lines about all others.
const FILLS: &[u8] = b"TLAB: fill";
const FREE: u32 = 8; // pieces that take no time: a thread that handles a message does so many
const SLEEP: Nanos = 50 * MICROSECOND; // twice as long after each further piece
const MOST_DOUBLINGS: u32 = 6;

impl Kernel {
    /// A program opens the file: from now on, its threads sleep after pieces of work. Returns what is behind the descriptor.
    pub(super) fn open_work(&mut self, thread: ThreadId) -> ObjectId {
        self.workers.insert(self.threads[thread].process);
        self.make(self.threads[thread].node, Kind::Work, false)
    }

    /// Returns whether a call is a piece of work, or may be one.
    pub(super) fn is_work(&self, thread: ThreadId, number: c_long, registers: &Registers) -> bool {
        let is_work = |object: ObjectId| matches!(self.objects[object].kind, Kind::Work);
        number == libc::SYS_clock_gettime
            || number == libc::SYS_write && self.object(thread, registers.rdi).is_some_and(is_work)
    }

    /// A thread writes a line into the file.
    pub(super) fn write_work(&mut self, thread: ThreadId, line: &[u8]) -> Outcome {
        if line.starts_with(FILLS) && self.works(thread) {
            return Outcome::Block;
        }
        Outcome::Value(line.len() as i64)
    }

    /// A thread has done a piece of work, if its program says so. Returns whether it sleeps before its call goes on.
    pub(super) fn works(&mut self, thread: ThreadId) -> bool {
        if self.threads[thread].timed_out || !self.workers.contains(&self.threads[thread].process) {
            return false;
        }
        let pieces = &mut self.threads[thread].pieces;
        *pieces = (*pieces + 1).min(FREE + MOST_DOUBLINGS + 1);
        let Some(doublings) = pieces.checked_sub(FREE + 1) else { return false };
        let wakes = self.now + (SLEEP << doublings);
        self.block(thread, Wait::Work, Some(wakes));
        true
    }
}
