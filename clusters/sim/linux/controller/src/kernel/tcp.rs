//! TCP: connections, windows, half-closed and reset streams. Sources: tcp(7), and net/ipv4 of Linux.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{c_int, EAGAIN, ECONNREFUSED, ECONNRESET, EINVAL, ENETUNREACH, ENOTCONN, EPIPE};

use super::dispatch::{failed, Outcome};
use super::names::LOOPBACK6;
use super::network::Message;
use super::objects::{Kind, FAILED, HUNG_UP, PEER_ENDED, READABLE, WRITABLE};
use super::options::MOST_BUFFER;
use super::streams::Taken;
use super::unix::{End, ROOM};
use super::{Kernel, Nanos, NodeId, ObjectId, ThreadId};
use crate::tracee::{self};

const BUFFER: usize = 1 << 17; // bytes that a socket holds of those that it sends, and as many that it has received
const LEAST_SEND: usize = 4_608;
const LEAST_RECEIVE: usize = 2_304;

/// The phase of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    Fresh,
    Listening,
    Connecting,
    Connected,
    Failed,
    Closed,
}

/// A TCP socket, or one of a pair.
#[allow(clippy::struct_excessive_bools)] // each is a fact of its own, as in TCP
#[derive(Clone)]
pub struct Stream {
    pub phase: Phase,
    pub family: c_int,
    /// What it has as a Unix socket.
    pub unix: End,
    /// Whether its program has heard that it is connected.
    pub is_told: bool,
    /// Of one of a pair: whether the other one is closed.
    pub peer_closed: bool,
    pub local: Option<SocketAddrV4>,
    /// Whether its program has chosen the local address.
    pub has_address: bool,
    pub remote: Option<SocketAddrV4>,
    pub peer: Option<ObjectId>,
    pub peer_node: NodeId,
    pub received: VecDeque<u8>,
    pub peer_ended: bool,
    pub is_reset: bool,
    pub sends_ended: bool,
    pub reads_ended: bool,
    /// Bytes that the other end has not read yet.
    pub unread: usize,
    /// Whether the other end has no room for more, as far as this end has heard.
    pub is_full: bool,
    /// Since when it waits for an answer.
    pub unanswered: Option<Nanos>,
    /// When it last heard of the other end, how often it has asked since, and for which request to keep it alive.
    pub heard: Nanos,
    pub probes: u32,
    pub keep_turn: u64,
    pub error: c_int,
    pub options: BTreeMap<(c_int, c_int), Vec<u8>>,
    pub backlog: VecDeque<ObjectId>,
}

impl Stream {
    pub fn new(node: NodeId, family: c_int) -> Self {
        Self {
            phase: Phase::Fresh,
            family,
            unix: End::default(),
            is_told: false,
            peer_closed: false,
            local: None,
            has_address: false,
            remote: None,
            peer: None,
            peer_node: node,
            received: VecDeque::new(),
            peer_ended: false,
            is_reset: false,
            sends_ended: false,
            reads_ended: false,
            unread: 0,
            is_full: false,
            unanswered: None,
            heard: 0,
            probes: 0,
            keep_turn: 0,
            error: 0,
            options: BTreeMap::new(),
            backlog: VecDeque::new(),
        }
    }

    /// Returns whether it is a Unix socket.
    pub fn is_unix(&self) -> bool {
        self.family == libc::AF_UNIX
    }

    /// Returns how many bytes one of its buffers holds: twice what its program has asked for, as Linux does it.
    pub fn buffer(&self, name: c_int) -> usize {
        let least = if name == libc::SO_SNDBUF { LEAST_SEND } else { LEAST_RECEIVE };
        match self.options.get(&(libc::SOL_SOCKET, name)).filter(|value| value.len() >= 4) {
            Some(value) => (tracee::u32_at(value, 0) as usize).saturating_mul(2).clamp(least, MOST_BUFFER),
            None => BUFFER,
        }
    }

    /// Returns the events of poll that hold.
    pub fn readiness(&self) -> u32 {
        let flag = |holds: bool, events: u32| if holds { events } else { 0 };
        match self.phase {
            Phase::Fresh => WRITABLE | HUNG_UP | flag(self.reads_ended, READABLE | PEER_ENDED),
            Phase::Listening => {
                flag(!self.backlog.is_empty() || self.reads_ended, READABLE)
                    | flag(self.backlog.len() <= self.unix.most_waiting || self.reads_ended, ROOM)
                    | flag(self.reads_ended, PEER_ENDED)
                    | flag(self.reads_ended && self.sends_ended, HUNG_UP)
            }
            Phase::Connecting => 0,
            Phase::Failed => READABLE | WRITABLE | PEER_ENDED | HUNG_UP | flag(self.error != 0, FAILED),
            Phase::Closed => READABLE | WRITABLE | HUNG_UP,
            Phase::Connected => {
                flag(!self.received.is_empty() || self.peer_ended || self.is_reset || self.reads_ended, READABLE)
                    | flag(!self.is_full || self.is_reset || self.sends_ended, WRITABLE)
                    | flag(self.peer_ended || self.is_reset || self.reads_ended, PEER_ENDED)
                    | flag(
                        self.is_reset
                            || self.peer_closed
                            || (self.peer_ended || self.reads_ended) && self.sends_ended,
                        HUNG_UP,
                    )
                    | flag(self.error != 0, FAILED)
            }
        }
    }
}

impl Kernel {
    /// Begins to connect a stream to an address.
    pub(super) fn begin_connection(&mut self, object: ObjectId, address: SocketAddrV4) -> Result<(), c_int> {
        let node = self.objects[object].node;
        let ip = match *address.ip() {
            Ipv4Addr::UNSPECIFIED if self.family_of(object) == libc::AF_INET6 => LOOPBACK6,
            Ipv4Addr::UNSPECIFIED => Ipv4Addr::LOCALHOST,
            ip => ip,
        };
        let peer_node = self.node_at(node, ip).ok_or(ENETUNREACH)?;
        let own = self.own_address(node, ip);
        let port = match self.local(object) {
            Some(local) => local.port(),
            None => self.free_port(node),
        };
        let stream = self.stream(object);
        stream.local = Some(SocketAddrV4::new(own, port));
        stream.remote = Some(SocketAddrV4::new(ip, address.port()));
        stream.peer_node = peer_node;
        stream.phase = Phase::Connecting;
        self.send(object, Message::Connect { client: object });
        Ok(())
    }

    /// A request for a connection arrives at a node.
    pub(super) fn connect_arrives(&mut self, client: ObjectId, node: NodeId) {
        let (Some(to), from) = (self.stream(client).remote, self.stream(client).local) else { return };
        let listener = self.ports.get(&(node, to.port())).and_then(|sockets| {
            sockets.iter().copied().find(|socket| {
                matches!(&self.objects[*socket].kind, Kind::Stream(stream) if stream.phase == Phase::Listening)
                    && self.reach(*socket).is_some_and(|reach| reach.has(*to.ip()))
            })
        });
        let Some(listener) = listener else {
            self.refuse(client, node, ECONNREFUSED);
            return;
        };
        let options = self.stream(listener).options.clone();
        let family = self.family_of(listener);
        let server = self.make(node, Kind::Stream(Box::new(Stream::new(node, family))), false);
        let client_node = self.objects[client].node;
        let stream = self.stream(server);
        (stream.phase, stream.is_told) = (Phase::Connected, true);
        (stream.local, stream.remote) = (Some(to), from);
        (stream.peer, stream.peer_node, stream.options) = (Some(client), client_node, options);
        self.stream(listener).backlog.push_back(server);
        self.changed(listener);
        self.watch_connection(server);
        self.send(server, Message::Accepted { client, server });
    }

    /// Takes bytes that a stream has received.
    pub(super) fn receive(&mut self, object: ObjectId, most: usize, peeks: bool) -> Taken {
        let stream = self.stream(object);
        if !stream.received.is_empty() {
            let count = most.min(stream.received.len());
            if peeks {
                return Taken::Bytes(stream.received.iter().take(count).copied().collect());
            }
            let bytes = stream.received.drain(..count).collect();
            self.acknowledge(object, count);
            return Taken::Bytes(bytes);
        }
        if stream.error != 0 {
            return Taken::Error(std::mem::take(&mut stream.error));
        }
        match stream.phase {
            Phase::Fresh | Phase::Listening if stream.is_unix() => Taken::Error(EINVAL),
            Phase::Listening => Taken::Error(ENOTCONN),
            _ if stream.peer_ended || stream.is_reset || stream.reads_ended => Taken::Bytes(Vec::new()),
            Phase::Fresh => Taken::Error(ENOTCONN),
            Phase::Failed | Phase::Closed => Taken::Bytes(Vec::new()),
            Phase::Connecting | Phase::Connected => Taken::Nothing,
        }
    }

    /// The other end learns that bytes were read, so it may send more.
    pub(super) fn acknowledge(&mut self, object: ObjectId, count: usize) {
        let Some(peer) = self.stream(object).peer else { return };
        let room = self.room(peer);
        let (node, is_open) = (self.objects[object].node, self.stream(object).phase == Phase::Connected);
        let Kind::Stream(sender) = &mut self.objects[peer].kind else { return };
        sender.unread = sender.unread.saturating_sub(count);
        // A window opens when half of it is free.
        if !sender.is_full || sender.unread > room / 2 {
            return;
        }
        if sender.is_unix() {
            sender.is_full = false;
            self.changed(peer);
        } else if is_open {
            self.send(object, Message::Window { to: peer, from: node });
        }
    }

    /// Returns how many bytes a stream takes that the other end has not read.
    fn room(&mut self, object: ObjectId) -> usize {
        let stream = self.stream(object);
        let (own, peer) = (stream.buffer(libc::SO_SNDBUF), stream.peer);
        let other = match peer.map(|peer| &self.objects[peer].kind) {
            Some(Kind::Stream(other)) => other.buffer(libc::SO_RCVBUF),
            _ => BUFFER,
        };
        own + other
    }

    /// Sends bytes of a stream.
    pub(super) fn transmit(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        bytes: &[u8],
        is_nonblocking: bool,
    ) -> Outcome {
        let done = if is_nonblocking { 0 } else { self.threads[thread].sent };
        let stream = self.stream(object);
        match stream.phase {
            Phase::Connected if done > 0 && (stream.error != 0 || stream.is_reset || stream.peer_closed) => {
                return Outcome::Value(done as i64); // the next call hears why
            }
            Phase::Connecting if is_nonblocking => return failed(EAGAIN),
            Phase::Connecting => return self.await_connection(thread, object),
            Phase::Connected if stream.is_unix() && stream.peer_closed => return failed(EPIPE),
            Phase::Connected if stream.error == 0 && !stream.is_reset && !stream.sends_ended => {}
            Phase::Fresh | Phase::Listening if stream.is_unix() => return failed(ENOTCONN),
            _ if stream.is_unix() || stream.error == 0 => return failed(EPIPE),
            _ => return failed(std::mem::take(&mut stream.error)),
        }
        if bytes.is_empty() {
            return Outcome::Value(0);
        }
        let is_full = stream.is_full;
        let unread = stream.unread;
        let room = if is_full { 0 } else { self.room(object).saturating_sub(unread) };
        let count = room.min(bytes.len() - done);
        if count > 0 {
            self.put_on_the_way(object, &bytes[done..done + count]);
        }
        if count == room {
            self.stream(object).is_full = true;
            self.changed(object);
        }
        if done + count == bytes.len() || is_nonblocking && count > 0 {
            return Outcome::Value((done + count) as i64);
        }
        match self.full(thread, object, is_nonblocking) {
            Outcome::Block => {
                self.threads[thread].sent = done + count;
                Outcome::Block
            }
            _ if done + count > 0 => Outcome::Value((done + count) as i64),
            refused => refused,
        }
    }

    /// Sends bytes of a connected stream, whatever its window says.
    pub(super) fn put_on_the_way(&mut self, object: ObjectId, bytes: &[u8]) -> Outcome {
        let stream = self.stream(object);
        let (Some(peer), is_unix) = (stream.peer, stream.is_unix()) else { return failed(EPIPE) };
        stream.unread += bytes.len();
        if !is_unix {
            self.send(object, Message::Bytes { to: peer, from: object, bytes: bytes.to_vec() });
            return Outcome::Value(bytes.len() as i64);
        }
        match &mut self.objects[peer].kind {
            Kind::Stream(other) if other.phase == Phase::Connected => {
                other.received.extend(bytes);
                self.changed(peer);
                Outcome::Value(bytes.len() as i64)
            }
            _ => failed(EPIPE),
        }
    }

    pub(super) fn shutdown(&mut self, object: ObjectId, how: c_int) -> Outcome {
        if ![libc::SHUT_RD, libc::SHUT_WR, libc::SHUT_RDWR].contains(&how) {
            return failed(EINVAL);
        }
        let stream = match &mut self.objects[object].kind {
            Kind::Stream(stream) => stream,
            Kind::Datagrams(datagrams) if datagrams.family == libc::AF_UNIX => return Outcome::Value(0),
            Kind::Datagrams(datagrams) if datagrams.remote.is_none() => return failed(ENOTCONN),
            _ => return Outcome::Value(0),
        };
        match stream.phase {
            Phase::Listening if stream.is_unix() => {
                stream.reads_ended |= how != libc::SHUT_WR;
                stream.sends_ended |= how != libc::SHUT_RD;
                self.changed(object);
                return Outcome::Value(0);
            }
            Phase::Listening if how == libc::SHUT_WR => return Outcome::Value(0),
            Phase::Listening => {
                stream.phase = Phase::Fresh;
                self.reset_backlog(object);
                self.changed(object);
                return Outcome::Value(0);
            }
            Phase::Connected if stream.is_reset => {
                stream.is_told = true;
                stream.reads_ended |= how != libc::SHUT_WR;
                stream.sends_ended |= how != libc::SHUT_RD;
                self.changed(object);
                return failed(ENOTCONN);
            }
            Phase::Connected => stream.is_told = true,
            Phase::Fresh => {
                // Linux refuses it, and keeps it all the same.
                stream.reads_ended |= how != libc::SHUT_WR;
                stream.sends_ended |= how != libc::SHUT_RD;
                let is_unix = stream.is_unix();
                self.changed(object);
                return if is_unix { Outcome::Value(0) } else { failed(ENOTCONN) };
            }
            _ => return failed(ENOTCONN),
        }
        if how != libc::SHUT_WR {
            stream.reads_ended = true;
            if let (true, Some(peer)) = (stream.is_unix(), stream.peer) {
                if let Kind::Stream(other) = &mut self.objects[peer].kind {
                    other.sends_ended = true;
                    self.changed(peer);
                }
            }
        }
        let stream = self.stream(object);
        if how != libc::SHUT_RD && !stream.sends_ended {
            stream.sends_ended = true;
            self.tell_end(object);
        }
        self.changed(object);
        Outcome::Value(0)
    }

    /// The other end learns that a stream sends no more.
    fn tell_end(&mut self, object: ObjectId) {
        let stream = self.stream(object);
        let (Some(peer), is_unix, is_reset) = (stream.peer, stream.is_unix(), stream.is_reset) else { return };
        if is_unix {
            if let Kind::Stream(other) = &mut self.objects[peer].kind {
                other.peer_ended = true;
                self.changed(peer);
            }
        } else if !is_reset {
            let from = self.objects[object].node;
            self.send(object, Message::End { to: peer, from });
        }
    }

    /// The last descriptor of a stream is closed. Data that nobody has read are a reset for the other end (RFC 2525).
    pub(super) fn close_stream(&mut self, object: ObjectId) {
        let node = self.objects[object].node;
        let stream = self.stream(object);
        let (was, sent) = (stream.phase, stream.sends_ended);
        let has_unread = !stream.received.is_empty();
        let peer = stream.peer;
        self.unbind(object);
        if was == Phase::Connected && has_unread && !self.stream(object).is_unix() && !self.stream(object).is_reset {
            if let Some(peer) = peer {
                self.send(object, Message::Reset { to: peer, from: node, error: ECONNRESET });
            }
        } else if was == Phase::Connected && !sent {
            self.tell_end(object);
        }
        if let (true, Some(peer)) = (self.is_unix(object), peer) {
            // Source: unix_release_sock of net/unix/af_unix.c.
            if let Kind::Stream(other) = &mut self.objects[peer].kind {
                other.peer_closed = true;
                if has_unread {
                    other.error = ECONNRESET;
                }
                self.changed(peer);
            }
        }
        self.stream(object).phase = Phase::Closed;
        self.reset_backlog(object);
    }

    /// Nobody will accept the connections that wait.
    fn reset_backlog(&mut self, object: ObjectId) {
        let node = self.objects[object].node;
        for waiting in std::mem::take(&mut self.stream(object).backlog) {
            if self.is_unix(waiting) {
                self.stream(waiting).received.push_back(0); // the other end hears a reset, as of data that nobody has read
                self.close_stream(waiting);
                continue;
            }
            if let Some(client) = self.stream(waiting).peer {
                self.send(waiting, Message::Reset { to: client, from: node, error: ECONNRESET });
            }
            self.stream(waiting).phase = Phase::Closed;
        }
    }

    /// The machine of a socket loses its power: the other end hears nothing, also of what a cut has kept from it.
    pub(super) fn vanish(&mut self, object: ObjectId) {
        self.unbind(object);
        let Kind::Stream(stream) = &mut self.objects[object].kind else { return };
        stream.phase = Phase::Closed;
        stream.is_reset = true;
        stream.received.clear();
        let waiting = std::mem::take(&mut stream.backlog);
        self.links.forget(object);
        for connection in waiting {
            self.vanish(connection);
        }
    }
}
