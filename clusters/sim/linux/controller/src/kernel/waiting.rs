//! poll and select, and waits with a deadline.

use libc::{c_int, EFAULT};

use super::dispatch::{failed, Outcome};
use super::objects::{ALWAYS, READABLE, WRITABLE};
use super::{Kernel, Nanos, ObjectId, ThreadId, Wait, HUNG_UP, MICROSECOND, SECOND};
use crate::tracee::{self, Registers};

const NATIVE: u32 = READABLE | WRITABLE | 0x40 | 0x100; // a file is always ready
const WORD: usize = 64;

/// A set of descriptors of select: its address, the events that it stands for, and whether errors count.
const SETS: [(u32, u32); 3] = [(READABLE | HUNG_UP, ALWAYS), (WRITABLE, libc::EPOLLERR as u32), (0, 0)];

impl Kernel {
    /// Blocks until a deadline, which is that of the first try if the call is handled again.
    pub(super) fn wait_until(
        &mut self,
        thread: ThreadId,
        wait: Wait,
        timeout: Option<Nanos>,
        again: bool,
    ) -> Outcome {
        if self.threads[thread].timed_out {
            return Outcome::Value(0);
        }
        let deadline = if again {
            self.threads[thread].deadline
        } else {
            timeout.map(|timeout| self.after(self.threads[thread].node, timeout))
        };
        if deadline.is_some_and(|deadline| deadline <= self.now) {
            return Outcome::Value(0);
        }
        self.block(thread, wait, deadline);
        Outcome::Block
    }

    /// Returns the timeout of a call in milliseconds; None: none.
    pub(super) fn millis(timeout: u64) -> Option<Nanos> {
        u64::try_from(timeout as i32).ok().map(|millis| millis * super::MILLISECOND)
    }

    /// Returns the timeout of a call in a timespec; None: none. The error: its address is wrong.
    pub(super) fn timeout_at(&self, thread: ThreadId, address: u64) -> Result<Option<Nanos>, c_int> {
        if address == 0 {
            return Ok(None);
        }
        Self::read_time(self.threads[thread].tid, address).map(|time| Some(time.max(0) as u64)).ok_or(EFAULT)
    }

    pub(super) fn poll(
        &mut self,
        thread: ThreadId,
        registers: &Registers,
        timeout: Option<Nanos>,
        again: bool,
    ) -> Outcome {
        let tid = self.threads[thread].tid;
        let (address, count) = (registers.rdi, registers.rsi as usize);
        let Some(asked) = tracee::read(tid, address, 8 * count) else { return failed(EFAULT) };
        let mut wanted: Vec<(ObjectId, u32)> = Vec::new();
        let mut ready = 0;
        for (place, entry) in asked.chunks(8).enumerate() {
            let descriptor = tracee::u32_at(entry, 0) as i32;
            let events = u32::from(u16::from_le_bytes([entry[4], entry[5]]));
            let holds = match u64::try_from(descriptor) {
                Err(_) => 0,
                Ok(descriptor) => match self.object(thread, descriptor) {
                    Some(object) => {
                        wanted.push((object, events));
                        self.readiness(thread, object) & (events | ALWAYS)
                    }
                    None => events & NATIVE,
                },
            };
            ready += i64::from(holds != 0);
            if !tracee::write(tid, address + 8 * place as u64 + 6, &(holds as u16).to_le_bytes()) {
                return failed(EFAULT);
            }
        }
        if ready > 0 {
            return Outcome::Value(ready);
        }
        self.wait_until(thread, Wait::Ready(wanted), timeout, again)
    }

    pub(super) fn select(
        &mut self,
        thread: ThreadId,
        registers: &Registers,
        timeout: Option<Nanos>,
        again: bool,
    ) -> Outcome {
        let tid = self.threads[thread].tid;
        let count = registers.rdi as i32 as usize;
        let size = count.div_ceil(WORD) * WORD / 8;
        let mut wanted: Vec<(ObjectId, u32)> = Vec::new();
        let mut results = Vec::new();
        let mut ready = 0;
        for (address, (events, more)) in [registers.rsi, registers.rdx, registers.r10].into_iter().zip(SETS) {
            if address == 0 {
                continue;
            }
            let Some(asked) = tracee::read(tid, address, size) else { return failed(EFAULT) };
            let mut result = vec![0_u8; size];
            for descriptor in (0..count).filter(|descriptor| asked[descriptor / 8] >> (descriptor % 8) & 1 == 1) {
                let holds = match self.object(thread, descriptor as u64) {
                    Some(object) => {
                        wanted.push((object, events));
                        self.readiness(thread, object) & (events | more) != 0
                    }
                    None => events != 0,
                };
                if holds {
                    result[descriptor / 8] |= 1 << (descriptor % 8);
                    ready += 1;
                }
            }
            results.push((address, result));
        }
        let outcome = if ready > 0 {
            Outcome::Value(ready)
        } else {
            self.wait_until(thread, Wait::Ready(wanted), timeout, again)
        };
        if matches!(outcome, Outcome::Value(_))
            && !results.iter().all(|(address, set)| tracee::write(tid, *address, set))
        {
            return failed(EFAULT);
        }
        outcome
    }

    /// Returns the timeout of select, which is a timeval; see `timeout_at`.
    pub(super) fn timeval_at(&self, thread: ThreadId, address: u64) -> Result<Option<Nanos>, c_int> {
        if address == 0 {
            return Ok(None);
        }
        let bytes = tracee::read(self.threads[thread].tid, address, 16).ok_or(EFAULT)?;
        Ok(Some(tracee::u64_at(&bytes, 0) * SECOND + tracee::u64_at(&bytes, 8) * MICROSECOND))
    }
}
