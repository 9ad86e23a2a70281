//! Futexes: threads that wait for a word of their memory to change. Source: futex(2) and kernel/futex of Linux.

use std::collections::VecDeque;

use libc::{EAGAIN, EFAULT, EINVAL, ENOSYS, ETIMEDOUT};

use super::disk;
use super::dispatch::{failed, Outcome};
use super::{Kernel, ProcessId, Resume, Thread, ThreadId, Wait};
use crate::tracee::{self, Registers};

pub(super) const ALL_BITS: u32 = u32::MAX;
const COMMAND: i32 = !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
const EVERYBODY: u64 = u64::MAX;

/// A word for which threads wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    /// At an address of a process.
    Own(ProcessId, u64),
    /// At a place of memory that processes share.
    Shared(disk::Key, u64),
}

impl Kernel {
    /// Returns the word at an address of a thread. `is_private`: no other process waits for it.
    fn word(&self, thread: ThreadId, address: u64, is_private: bool) -> Key {
        let area = if is_private {
            None
        } else {
            let areas = self.areas(self.threads[thread].tid);
            areas.into_iter().find(|area| area.is_shared() && area.memory.contains(&address))
        };
        match area {
            Some(area) => Key::Shared(area.key, area.offset + (address - area.memory.start)),
            None => Key::Own(self.memory(thread), address),
        }
    }

    pub(super) fn futex(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let tid = self.threads[thread].tid;
        let (address, flags, value) = (registers.rdi, registers.rsi as i32, registers.rdx as u32);
        if address % 4 != 0 {
            return failed(EINVAL);
        }
        let is_bitset = matches!(flags & COMMAND, libc::FUTEX_WAIT_BITSET | libc::FUTEX_WAKE_BITSET);
        if is_bitset && registers.r9 as u32 == 0 {
            return failed(EINVAL);
        }
        let is_private = flags & libc::FUTEX_PRIVATE_FLAG != 0;
        let key = self.word(thread, address, is_private);
        match flags & COMMAND {
            command @ (libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) => {
                match tracee::read_u32(tid, address) {
                    None => return failed(EFAULT),
                    Some(word) if word != value => return failed(EAGAIN),
                    Some(_) => {}
                }
                let deadline = match registers.r10 {
                    0 => None,
                    timeout => match Self::read_time(tid, timeout) {
                        None => return failed(EFAULT),
                        Some(relative) if command == libc::FUTEX_WAIT => {
                            Some(self.after(self.threads[thread].node, relative.max(0) as u64))
                        }
                        Some(absolute) => {
                            let is_realtime = flags & libc::FUTEX_CLOCK_REALTIME != 0;
                            let clock = if is_realtime { libc::CLOCK_REALTIME } else { libc::CLOCK_MONOTONIC };
                            Some(self.when(thread, clock, absolute))
                        }
                    },
                };
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    return failed(ETIMEDOUT);
                }
                self.threads[thread].futex_bits =
                    if command == libc::FUTEX_WAIT { ALL_BITS } else { registers.r9 as u32 };
                self.wait_for_word(key, thread);
                self.block(thread, Wait::Futex(key), deadline);
                Outcome::Block
            }
            libc::FUTEX_WAKE => Outcome::Value(self.wake_futex(key, value.into(), ALL_BITS)),
            libc::FUTEX_WAKE_BITSET => Outcome::Value(self.wake_futex(key, value.into(), registers.r9 as u32)),
            command @ (libc::FUTEX_REQUEUE | libc::FUTEX_CMP_REQUEUE) => {
                if command == libc::FUTEX_CMP_REQUEUE && tracee::read_u32(tid, address) != Some(registers.r9 as u32) {
                    return failed(EAGAIN);
                }
                let woken = self.wake_futex(key, value.into(), ALL_BITS);
                let other = self.word(thread, registers.r8, is_private);
                Outcome::Value(woken + self.requeue(key, other, registers.r10 as u32))
            }
            libc::FUTEX_WAKE_OP => self.wake_and_change(thread, registers, is_private),
            _ => failed(ENOSYS), // locks with inherited priorities: glibc and the JVM do without
        }
    }

    /// Changes the threads that wait for a word: the only way to them.
    fn change_waiting<T>(&mut self, key: Key, change: impl FnOnce(&mut VecDeque<ThreadId>, &[Thread]) -> T) -> T {
        let waiting = self.futexes.entry(key).or_default();
        let before = waiting.len();
        let result = change(waiting, &self.threads);
        let now = waiting.len();
        if now == 0 {
            self.futexes.remove(&key);
        }
        if let Key::Own(memory, address) = key {
            self.answering.waited_for((memory, address), before, now);
        }
        result
    }

    fn wait_for_word(&mut self, key: Key, thread: ThreadId) {
        self.change_waiting(key, |waiting, _| waiting.push_back(thread));
    }

    fn requeue(&mut self, from: Key, to: Key, most: u32) -> i64 {
        let mut moved = 0;
        while moved < i64::from(most) {
            let Some(thread) = self.change_waiting(from, |waiting, _| waiting.pop_front()) else { break };
            self.threads[thread].wait = Wait::Futex(to);
            self.wait_for_word(to, thread);
            moved += 1;
        }
        moved
    }

    fn wake_and_change(&mut self, thread: ThreadId, registers: &Registers, is_private: bool) -> Outcome {
        let tid = self.threads[thread].tid;
        let (other, coded) = (registers.r8, registers.r9 as u32);
        let Some(old) = tracee::read_u32(tid, other) else { return failed(EFAULT) };
        let signed = |bits: u32| ((bits << 20) as i32) >> 20;
        let given = signed(coded >> 12 & 0xfff) as u32;
        let argument = if coded >> 31 == 1 { 1 << (given & 31) } else { given };
        let new = match coded >> 28 & 7 {
            0 => argument,
            1 => old.wrapping_add(argument),
            2 => old | argument,
            3 => old & !argument,
            4 => old ^ argument,
            _ => return failed(ENOSYS),
        };
        if !tracee::write_u32(tid, other, new) {
            return failed(EFAULT);
        }
        let (before, compared) = (old as i32, signed(coded & 0xfff));
        let holds = match coded >> 24 & 15 {
            0 => before == compared,
            1 => before != compared,
            2 => before < compared,
            3 => before <= compared,
            4 => before > compared,
            5 => before >= compared,
            _ => return failed(ENOSYS),
        };
        let mut woken =
            self.wake_futex(self.word(thread, registers.rdi, is_private), (registers.rdx as u32).into(), ALL_BITS);
        if holds {
            let other = self.word(thread, other, is_private);
            woken += self.wake_futex(other, (registers.r10 as u32).into(), ALL_BITS);
        }
        Outcome::Value(woken)
    }

    /// Wakes threads that wait for a word, in the order in which they came; returns their number.
    pub(super) fn wake_futex(&mut self, key: Key, most: u64, bits: u32) -> i64 {
        let mut woken = Vec::new();
        self.change_waiting(key, |waiting, threads| {
            waiting.retain(|thread| {
                let wakes = (woken.len() as u64) < most && threads[*thread].futex_bits & bits != 0;
                if wakes {
                    woken.push(*thread);
                }
                !wakes
            });
        });
        for thread in &woken {
            self.wake(*thread, Resume::Result(0));
        }
        woken.len() as i64
    }

    /// The end of a thread wakes all that wait for its word.
    pub(super) fn wake_all(&mut self, memory: ProcessId, address: u64) {
        self.wake_futex(Key::Own(memory, address), EVERYBODY, ALL_BITS);
    }

    /// A thread no longer waits for a word.
    pub(super) fn leave_futex(&mut self, thread: ThreadId, key: Key) {
        self.change_waiting(key, |waiting, _| waiting.retain(|other| *other != thread));
    }
}
