//! The objects behind simulated descriptors, and whether they are ready.
//!
//! A program's descriptor of such an object is a real eventfd; one for signals is real itself. So the kernel gives the numbers, and dup, fork and close-on-exec
//! keep them; the object lives here, and counts the descriptors that name it.

use std::collections::{BTreeMap, VecDeque};

use super::tcp::Stream;
use super::udp::Datagrams;
use super::{Kernel, Nanos, NodeId, ObjectId, ThreadId};

pub const READABLE: u32 = libc::EPOLLIN as u32;
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
pub const FAILED: u32 = libc::EPOLLERR as u32;
pub const HUNG_UP: u32 = libc::EPOLLHUP as u32;
pub const PEER_ENDED: u32 = libc::EPOLLRDHUP as u32;
/// The events that poll and epoll report without being asked.
pub const ALWAYS: u32 = FAILED | HUNG_UP;
pub const PIPE_SIZE: usize = 65_536;

/// What an epoll watches of a descriptor.
#[derive(Clone)]
pub struct Interest {
    /// With `ALWAYS`; none after a one-shot.
    pub events: u32,
    pub data: u64,
    pub is_queued: bool,
}

/// The kinds of objects.
#[derive(Clone)]
pub enum Kind {
    Stream(Box<Stream>),
    Datagrams(Box<Datagrams>),
    Pipe {
        buffer: ObjectId,
        is_writer: bool,
    },
    Buffer {
        bytes: VecDeque<u8>,
        readers: u32,
        writers: u32,
    },
    Event {
        count: u64,
        is_semaphore: bool,
    },
    Timer {
        clock: i32,
        next: Nanos,
        interval: Nanos,
        expired: u64,
        turn: u64,
    },
    Epoll {
        interests: BTreeMap<(i32, ObjectId), Interest>,
        ready: VecDeque<(i32, ObjectId)>,
    },
    /// A descriptor from which its reader takes signals of a set.
    Signals {
        set: u64,
    },
    Random,
    /// Where a program says that it computes; see `work`.
    Work,
    Gone,
}

/// An object.
#[derive(Clone)]
pub struct Object {
    pub kind: Kind,
    pub node: NodeId,
    pub references: u32,
    pub is_nonblocking: bool,
    /// The epolls that watch it, each with the descriptor.
    pub watchers: Vec<(ObjectId, i32)>,
}

impl Kernel {
    /// Makes an object without a descriptor.
    pub(super) fn make(&mut self, node: NodeId, kind: Kind, is_nonblocking: bool) -> ObjectId {
        self.objects.push(Object { kind, node, references: 0, is_nonblocking, watchers: Vec::new() });
        self.objects.len() - 1
    }

    /// Returns the events of poll that hold for an object, if a thread asks.
    pub(super) fn readiness(&self, thread: ThreadId, object: ObjectId) -> u32 {
        let flag = |holds: bool, events: u32| if holds { events } else { 0 };
        match &self.objects[object].kind {
            Kind::Stream(stream) => stream.readiness(),
            Kind::Datagrams(datagrams) => datagrams.readiness(),
            Kind::Pipe { buffer, is_writer } => match &self.objects[*buffer].kind {
                Kind::Buffer { readers: 0, .. } if *is_writer => FAILED | WRITABLE,
                Kind::Buffer { bytes, .. } if *is_writer => flag(bytes.len() < PIPE_SIZE, WRITABLE),
                Kind::Buffer { bytes, writers, .. } => {
                    flag(!bytes.is_empty(), READABLE) | flag(*writers == 0, HUNG_UP)
                }
                _ => HUNG_UP,
            },
            Kind::Event { count, .. } => flag(*count < u64::MAX - 1, WRITABLE) | flag(*count > 0, READABLE),
            Kind::Timer { expired, .. } => flag(*expired > 0, READABLE),
            Kind::Epoll { interests, ready } => flag(
                ready.iter().any(|key| {
                    interests
                        .get(key)
                        .is_some_and(|interest| self.readiness(thread, key.1) & interest.events & 0xffff != 0)
                }),
                READABLE,
            ),
            Kind::Signals { set } => flag(self.pending(thread) & set != 0, READABLE),
            Kind::Random | Kind::Work => READABLE | WRITABLE,
            Kind::Buffer { .. } | Kind::Gone => 0,
        }
    }

    /// The state of an object may have changed: queues it at its epolls, and lets waiting threads look again.
    pub(super) fn changed(&mut self, object: ObjectId) {
        self.is_stale = true;
        if let Some(outside) = &mut self.outside {
            if self.objects[object].node == outside.node {
                outside.changed.insert(object);
            }
        }
        for (epoll, descriptor) in self.objects[object].watchers.clone() {
            self.queue(epoll, descriptor, object);
        }
    }

    /// Queues an object at one of its epolls.
    pub(super) fn queue(&mut self, epoll: ObjectId, descriptor: i32, object: ObjectId) {
        let Kind::Epoll { interests, ready } = &mut self.objects[epoll].kind else { return };
        let Some(interest) = interests.get_mut(&(descriptor, object)) else { return };
        if !interest.is_queued {
            interest.is_queued = true;
            ready.push_back((descriptor, object));
            self.changed(epoll);
        }
    }

    /// The ends of a pipe may have changed.
    pub(super) fn pipe_changed(&mut self, buffer: ObjectId, is_writer: bool) {
        for object in 0..self.objects.len() {
            if matches!(self.objects[object].kind, Kind::Pipe { buffer: own, is_writer: writes } if own == buffer && writes == is_writer)
            {
                self.changed(object);
            }
        }
    }

    /// A descriptor of an object is closed. The object ends with the last one.
    pub(super) fn release(&mut self, object: ObjectId) {
        self.objects[object].references -= 1;
        if self.objects[object].references > 0 {
            return;
        }
        for (epoll, descriptor) in self.objects[object].watchers.clone() {
            self.forget(epoll, descriptor, object);
        }
        match &mut self.objects[object].kind {
            Kind::Epoll { interests, .. } => {
                let keys: Vec<_> = interests.keys().copied().collect();
                for (descriptor, watched) in keys {
                    self.forget(object, descriptor, watched);
                }
                self.objects[object].kind = Kind::Gone;
            }
            Kind::Pipe { buffer, is_writer } => {
                let (buffer, is_writer) = (*buffer, *is_writer);
                if let Kind::Buffer { readers, writers, .. } = &mut self.objects[buffer].kind {
                    *(if is_writer { writers } else { readers }) -= 1;
                }
                self.objects[object].kind = Kind::Gone;
                self.pipe_changed(buffer, !is_writer);
            }
            Kind::Stream(_) => self.close_stream(object),
            Kind::Datagrams(_) => {
                self.unbind(object);
                self.objects[object].kind = Kind::Gone;
            }
            _ => self.objects[object].kind = Kind::Gone,
        }
        self.is_stale = true;
    }
}
