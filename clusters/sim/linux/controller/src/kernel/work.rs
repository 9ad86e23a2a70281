//! Threads that compute in a loop until another thread writes, and change memory meanwhile, so that `loops` cannot tell.
//!
//! A JVM can write a line into its log each time a thread takes a new buffer for objects (`-Xlog:gc+tlab=trace`). If that log is the
//! file `WORK`, each line is a call at a place that depends on what the thread did alone. So after several lines without another call,
//! the thread sleeps. Without that, no virtual time would pass while it computes, and what it waits for would never come.

use libc::c_long;

use super::dispatch::Outcome;
use super::objects::Kind;
use super::{Kernel, Nanos, ThreadId, Wait, MICROSECOND};
use crate::tracee::Registers;

/// The file for these lines.
pub const WORK: &str = "/dev/labrys-work";
/// The begin of a line about the buffer of the thread that writes it. At a collection, one thread writes lines about all others.
const FILLS: &[u8] = b"TLAB: fill";
const FREE: u32 = 8; // pieces that take no time: a thread that handles a message takes so many
const SLEEP: Nanos = 50 * MICROSECOND; // twice as long after each further piece
const MOST_DOUBLINGS: u32 = 6;

impl Kernel {
    /// Returns whether a call says that its thread has done a piece of work.
    pub(super) fn says_work(&self, thread: ThreadId, number: c_long, registers: &Registers) -> bool {
        number == libc::SYS_write
            && self.object(thread, registers.rdi).is_some_and(|object| matches!(self.objects[object].kind, Kind::Work))
    }

    /// A thread has done a piece of work, if it says so. It sleeps if it has done several in a row.
    pub(super) fn worked(&mut self, thread: ThreadId, line: &[u8]) -> Outcome {
        let written = Outcome::Value(line.len() as i64);
        if self.threads[thread].timed_out || !line.starts_with(FILLS) {
            return written;
        }
        let pieces = &mut self.threads[thread].pieces;
        *pieces = (*pieces + 1).min(FREE + MOST_DOUBLINGS + 1);
        let Some(doublings) = pieces.checked_sub(FREE + 1) else { return written };
        let wakes = self.now + (SLEEP << doublings);
        self.block(thread, Wait::Work, Some(wakes));
        Outcome::Block
    }
}
