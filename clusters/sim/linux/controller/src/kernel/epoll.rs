//! Epoll: level and edge triggers, one-shots, and a queue of ready descriptors in the order of the kernel's.
//!
//! Source: fs/eventpoll.c of Linux. A ready descriptor waits in a queue; a level-triggered one goes back to its end after each report.

use libc::{EBADF, EEXIST, EINVAL, ENOENT, EPERM};

use super::dispatch::{failed, Outcome};
use super::objects::{Interest, Kind, ALWAYS, READABLE};
use super::{Kernel, Nanos, ObjectId, ThreadId, Wait};
use crate::tracee::{self, Registers};

const EVENTS: u32 = 0xffff; // the bits of an interest that are events
const ONE_SHOT: u32 = libc::EPOLLONESHOT as u32;
const EDGE: u32 = libc::EPOLLET as u32;
const EVENT_SIZE: usize = 12; // epoll_event is packed on x86-64

impl Kernel {
    pub(super) fn epoll_ctl(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let descriptor = registers.rdx as i32;
        let (asked_epoll, asked_object) = (self.object(thread, registers.rdi), self.object(thread, registers.rdx));
        for (asked, number) in [(asked_epoll, registers.rdi), (asked_object, registers.rdx)] {
            if asked.is_none() && !self.is_native(thread, number) {
                return failed(EBADF);
            }
        }
        let Some(object) = asked_object else { return failed(EPERM) };
        let Some(epoll) = asked_epoll.filter(|epoll| *epoll != object) else { return failed(EINVAL) };
        let operation = registers.rsi as i32;
        let Kind::Epoll { interests, .. } = &mut self.objects[epoll].kind else { return failed(EINVAL) };
        let is_known = interests.contains_key(&(descriptor, object));
        if operation == libc::EPOLL_CTL_DEL {
            return if self.forget(epoll, descriptor, object) { Outcome::Value(0) } else { failed(ENOENT) };
        }
        let Some(asked) = tracee::read(self.threads[thread].tid, registers.r10, EVENT_SIZE) else {
            return failed(libc::EFAULT);
        };
        let (events, data) = (tracee::u32_at(&asked, 0) | ALWAYS, tracee::u64_at(&asked, 4));
        match (operation, is_known) {
            (libc::EPOLL_CTL_ADD, true) => return failed(EEXIST),
            (libc::EPOLL_CTL_MOD, false) => return failed(ENOENT),
            (libc::EPOLL_CTL_ADD, false) => {
                interests.insert((descriptor, object), Interest { events, data, is_queued: false });
                self.objects[object].watchers.push((epoll, descriptor));
            }
            (libc::EPOLL_CTL_MOD, true) => {
                if let Some(interest) = interests.get_mut(&(descriptor, object)) {
                    interest.events = events;
                    interest.data = data;
                }
            }
            _ => return failed(EINVAL),
        }
        if self.readiness(thread, object) & events & EVENTS != 0 {
            self.queue(epoll, descriptor, object); // other epolls have heard of it
        }
        Outcome::Value(0)
    }

    pub(super) fn epoll_wait(
        &mut self,
        thread: ThreadId,
        registers: &Registers,
        timeout: Option<Nanos>,
        again: bool,
    ) -> Outcome {
        let most = registers.rdx as i32;
        let epoll = match self.object(thread, registers.rdi) {
            Some(epoll) if matches!(self.objects[epoll].kind, Kind::Epoll { .. }) && most > 0 => epoll,
            None if most > 0 && !self.is_native(thread, registers.rdi) => return failed(EBADF),
            _ => return failed(EINVAL),
        };
        let reports = self.take_ready(thread, epoll, most as usize);
        if !reports.is_empty() {
            let mut bytes = Vec::with_capacity(reports.len() * EVENT_SIZE);
            for (events, data) in &reports {
                bytes.extend(events.to_le_bytes());
                bytes.extend(data.to_le_bytes());
            }
            self.digest.bytes(&bytes);
            if !tracee::write(self.threads[thread].tid, registers.rsi, &bytes) {
                return failed(libc::EFAULT);
            }
            return Outcome::Value(reports.len() as i64);
        }
        self.wait_until(thread, Wait::Ready(vec![(epoll, READABLE)]), timeout, again)
    }

    /// Takes the reports of ready descriptors: the events and the data of each.
    fn take_ready(&mut self, thread: ThreadId, epoll: ObjectId, most: usize) -> Vec<(u32, u64)> {
        let mut reports = Vec::new();
        let queued = match &self.objects[epoll].kind {
            Kind::Epoll { ready, .. } => ready.len(),
            _ => 0,
        };
        for _ in 0..queued {
            if reports.len() >= most {
                break;
            }
            let Kind::Epoll { ready, .. } = &mut self.objects[epoll].kind else { break };
            let Some(key) = ready.pop_front() else { break };
            let holds = self.readiness(thread, key.1);
            let Kind::Epoll { interests, ready } = &mut self.objects[epoll].kind else { break };
            let Some(interest) = interests.get_mut(&key) else { continue };
            interest.is_queued = false;
            let events = holds & interest.events & EVENTS;
            if events == 0 {
                continue; // a one-shot that is used up, or no longer ready
            }
            reports.push((events, interest.data));
            if interest.events & ONE_SHOT != 0 {
                interest.events &= !EVENTS;
            } else if interest.events & EDGE == 0 {
                interest.is_queued = true;
                ready.push_back(key);
            }
        }
        reports
    }

    /// An epoll no longer watches a descriptor. Returns whether it did.
    pub(super) fn forget(&mut self, epoll: ObjectId, descriptor: i32, object: ObjectId) -> bool {
        self.objects[object].watchers.retain(|watcher| *watcher != (epoll, descriptor));
        let Kind::Epoll { interests, ready } = &mut self.objects[epoll].kind else { return false };
        ready.retain(|key| *key != (descriptor, object));
        interests.remove(&(descriptor, object)).is_some()
    }
}
