//! Reads and writes of simulated descriptors.

use libc::{c_int, EAGAIN, EBADF, EFAULT, EINVAL, EPIPE};

use super::dispatch::{failed, Outcome};
use super::names::Name;
use super::objects::{Kind, PIPE_SIZE, READABLE, WRITABLE};
use super::{Kernel, Nanos, ObjectId, Phase, ThreadId, Wait, HUNG_UP};
use crate::tracee;

/// Parts of a program's memory: the address and the size of each.
pub(super) type Parts = Vec<(u64, usize)>;

pub(super) const MOST_AT_ONCE: usize = 1 << 20;
const MOST_PARTS: u64 = 1024;

/// What an object gave to a read.
pub(super) enum Taken {
    Bytes(Vec<u8>),
    /// It has nothing now.
    Nothing,
    Error(c_int),
}

impl Kernel {
    /// Reads the parts of an iovec.
    pub(super) fn parts(&self, thread: ThreadId, address: u64, count: u64) -> Option<Parts> {
        let bytes = tracee::read(self.threads[thread].tid, address, 16 * count.min(MOST_PARTS) as usize)?;
        Some(bytes.chunks(16).map(|part| (tracee::u64_at(part, 0), tracee::u64_at(part, 8) as usize)).collect())
    }

    /// Reads the content of parts, at most so many bytes.
    pub(super) fn gather(&self, thread: ThreadId, parts: &Parts, most: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for (address, size) in parts {
            let size = (*size).min(most - bytes.len());
            bytes.extend(tracee::read(self.threads[thread].tid, *address, size)?);
        }
        Some(bytes)
    }

    /// Writes bytes into parts.
    pub(super) fn scatter(&self, thread: ThreadId, parts: &Parts, bytes: &[u8]) -> bool {
        let mut done = 0;
        parts.iter().all(|(address, size)| {
            let size = (*size).min(bytes.len() - done);
            let is_written = tracee::write(self.threads[thread].tid, *address, &bytes[done..done + size]);
            done += size;
            is_written
        })
    }

    /// Reads from an object into the memory of a program.
    pub(super) fn read_into(&mut self, thread: ThreadId, object: ObjectId, parts: &Parts, flags: c_int) -> Outcome {
        let most = parts.iter().map(|(_, size)| size).sum();
        match self.take(thread, object, most, flags & libc::MSG_PEEK != 0) {
            Taken::Bytes(bytes) => {
                self.digest.bytes(&bytes);
                if self.scatter(thread, parts, &bytes) {
                    Outcome::Value(bytes.len() as i64)
                } else {
                    failed(EFAULT)
                }
            }
            Taken::Error(error) => failed(error),
            Taken::Nothing => self.nothing_yet(thread, object, flags),
        }
    }

    /// An object has nothing to read now: a blocking reader waits.
    pub(super) fn nothing_yet(&mut self, thread: ThreadId, object: ObjectId, flags: c_int) -> Outcome {
        let is_nonblocking = self.objects[object].is_nonblocking || flags & libc::MSG_DONTWAIT != 0;
        if is_nonblocking || self.threads[thread].timed_out {
            return failed(EAGAIN);
        }
        let deadline = self.threads[thread].deadline.or_else(|| self.receive_timeout(object));
        self.block(thread, Wait::Ready(vec![(object, READABLE | HUNG_UP)]), deadline);
        Outcome::Block
    }

    pub(super) fn send_timeout(&self, object: ObjectId) -> Option<Nanos> {
        self.option_timeout(object, libc::SO_SNDTIMEO).map(|timeout| self.after(self.objects[object].node, timeout))
    }

    fn receive_timeout(&self, object: ObjectId) -> Option<Nanos> {
        self.option_timeout(object, libc::SO_RCVTIMEO).map(|timeout| self.after(self.objects[object].node, timeout))
    }

    fn take(&mut self, thread: ThreadId, object: ObjectId, most: usize, peeks: bool) -> Taken {
        match &mut self.objects[object].kind {
            Kind::Random => {
                let process = self.threads[thread].process;
                Taken::Bytes(self.processes[process].chance.bytes(most))
            }
            Kind::Event { .. } | Kind::Timer { .. } if most < 8 => Taken::Error(EINVAL),
            Kind::Event { count: 0, .. } | Kind::Timer { expired: 0, .. } => Taken::Nothing,
            Kind::Pipe { is_writer: false, .. } if most == 0 => Taken::Bytes(Vec::new()),
            Kind::Event { count, is_semaphore } => {
                let taken = if *is_semaphore { 1 } else { *count };
                *count -= taken;
                self.changed(object);
                Taken::Bytes(taken.to_le_bytes().to_vec())
            }
            Kind::Timer { expired, .. } => Taken::Bytes(std::mem::take(expired).to_le_bytes().to_vec()),
            Kind::Pipe { is_writer: true, .. } => Taken::Error(EBADF),
            Kind::Pipe { buffer, .. } => {
                let buffer = *buffer;
                let Kind::Buffer { bytes, writers, .. } = &mut self.objects[buffer].kind else {
                    return Taken::Error(EBADF);
                };
                if bytes.is_empty() {
                    return if *writers == 0 { Taken::Bytes(Vec::new()) } else { Taken::Nothing };
                }
                let count = most.min(bytes.len());
                let taken = bytes.drain(..count).collect();
                self.pipe_changed(buffer, true);
                Taken::Bytes(taken)
            }
            Kind::Stream(_) => self.receive(object, most, peeks),
            _ => Taken::Error(EINVAL),
        }
    }

    /// Writes bytes of a program to an object. A program that writes to a closed pipe gets SIGPIPE, unless it asks for none.
    pub(super) fn write_from(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        bytes: &[u8],
        flags: c_int,
        to: Option<Name>,
    ) -> Outcome {
        self.digest.bytes(bytes);
        let is_nonblocking = self.objects[object].is_nonblocking || flags & libc::MSG_DONTWAIT != 0;
        let outcome = match &mut self.objects[object].kind {
            Kind::Event { count, .. } => {
                let Ok(added) = <[u8; 8]>::try_from(bytes) else { return failed(EINVAL) };
                let added = u64::from_le_bytes(added);
                match count.checked_add(added) {
                    _ if added == u64::MAX => failed(EINVAL),
                    None | Some(u64::MAX) => self.full(thread, object, is_nonblocking),
                    Some(sum) => {
                        *count = sum;
                        self.changed(object);
                        Outcome::Value(8)
                    }
                }
            }
            Kind::Pipe { buffer, is_writer: true } => {
                let buffer = *buffer;
                let Kind::Buffer { bytes: held, readers, .. } = &mut self.objects[buffer].kind else {
                    return failed(EBADF);
                };
                let room = PIPE_SIZE.saturating_sub(held.len());
                let is_whole = bytes.len() <= libc::PIPE_BUF; // a short write is never split
                if bytes.is_empty() {
                    Outcome::Value(0)
                } else if *readers == 0 {
                    failed(EPIPE)
                } else if room == 0 || is_whole && room < bytes.len() {
                    self.full(thread, object, is_nonblocking)
                } else {
                    // A blocking write takes all: nobody sees whether the pipe grew for it or the writer waited.
                    let count = if is_nonblocking { room.min(bytes.len()) } else { bytes.len() };
                    held.extend(&bytes[..count]);
                    self.pipe_changed(buffer, false);
                    Outcome::Value(count as i64)
                }
            }
            Kind::Stream(stream) if stream.is_unix() && to.is_some() => {
                failed(if stream.phase == Phase::Connected { libc::EISCONN } else { libc::EOPNOTSUPP })
            }
            Kind::Stream(_) => self.transmit(thread, object, bytes, is_nonblocking),
            Kind::Datagrams(_) => match to {
                Some(Name::Unix(path)) => self.send_unix(thread, object, bytes, Some(&path), is_nonblocking),
                None if self.family_of(object) == libc::AF_UNIX => {
                    self.send_unix(thread, object, bytes, None, is_nonblocking)
                }
                Some(Name::Inet(to)) => self.send_datagram(object, bytes, Some(to)),
                None => self.send_datagram(object, bytes, None),
            },
            Kind::Work => self.write_work(thread, bytes),
            Kind::Pipe { .. } => failed(EBADF),
            _ => failed(EINVAL),
        };
        if matches!(outcome, Outcome::Value(result) if result == -i64::from(EPIPE)) && flags & libc::MSG_NOSIGNAL == 0
        {
            self.signal_thread(thread, libc::SIGPIPE);
        }
        outcome
    }

    /// An object takes nothing now: a blocking writer waits.
    pub(super) fn full(&mut self, thread: ThreadId, object: ObjectId, is_nonblocking: bool) -> Outcome {
        if is_nonblocking || self.threads[thread].timed_out {
            return failed(EAGAIN);
        }
        let deadline = self.threads[thread].deadline.or_else(|| self.send_timeout(object));
        self.block(thread, Wait::Ready(vec![(object, WRITABLE)]), deadline);
        Outcome::Block
    }
}
