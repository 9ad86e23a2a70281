//! Sockets: TCP and UDP over IPv4. `names` has their addresses, and `unix` Unix sockets. Sources: socket(7), tcp(7), and net/ipv4 of Linux.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{
    c_int, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF, ECONNREFUSED, ECONNRESET, EDESTADDRREQ,
    EFAULT, EINPROGRESS, EINVAL, EISCONN, ENETUNREACH, ENOTCONN, ENOTSOCK, EPIPE, EPROTONOSUPPORT,
};

use super::dispatch::{failed, Outcome};
use super::names::{Name, LOOPBACK6};
use super::network::Message;
use super::objects::{Kind, FAILED, HUNG_UP, PEER_ENDED, READABLE, WRITABLE};
use super::streams::Taken;
use super::unix::{End, MOST_WAITING, ROOM};
use super::{Kernel, Nanos, NodeId, ObjectId, ThreadId, Wait, MICROSECOND, SECOND};
use crate::tracee::{self, Registers};

const BUFFER: usize = 1 << 17; // bytes that a socket holds of those that it sends, and as many that it has received
const LEAST_SEND: usize = 4_608;
const LEAST_RECEIVE: usize = 2_304;
const MOST_BUFFER: usize = 425_984; // twice rmem_max and wmem_max
const FIRST_PORT: u16 = 40_000;
const LAST_PORT: u16 = 60_000;
const KEEPING: [c_int; 3] = [libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT];
pub const TYPE: c_int = 0xf; // the bits of a socket's type without its flags
const MOST_OPTION: usize = 256;

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

/// A socket of datagrams: UDP, or a Unix socket.
#[derive(Default)]
pub struct Datagrams {
    pub family: c_int,
    pub unix: End,
    /// Of a Unix socket: where it sends.
    pub peer: Option<ObjectId>,
    /// That its remote end does not exist.
    pub error: c_int,
    pub local: Option<SocketAddrV4>,
    pub has_address: bool,
    pub remote: Option<SocketAddrV4>,
    pub received: VecDeque<(Name, Vec<u8>)>,
    pub options: BTreeMap<(c_int, c_int), Vec<u8>>,
}

impl Datagrams {
    /// Returns the events of poll that hold.
    pub fn readiness(&self) -> u32 {
        let flag = |holds: bool, events: u32| if holds { events } else { 0 };
        WRITABLE
            | flag(!self.received.is_empty(), READABLE)
            | flag(self.error != 0, FAILED)
            | flag(self.received.len() <= MOST_WAITING, ROOM)
    }
}

impl Kernel {
    /// Returns a stream by its object.
    pub(super) fn stream(&mut self, object: ObjectId) -> &mut Stream {
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => stream,
            _ => unreachable!("the caller has checked that it is a stream"),
        }
    }

    pub(super) fn peer_node(&self, object: ObjectId) -> NodeId {
        match &self.objects[object].kind {
            Kind::Stream(stream) => stream.peer_node,
            _ => self.objects[object].node,
        }
    }

    fn local(&self, object: ObjectId) -> Option<SocketAddrV4> {
        match &self.objects[object].kind {
            Kind::Stream(stream) => stream.local,
            Kind::Datagrams(datagrams) => datagrams.local,
            _ => None,
        }
    }

    fn options(&mut self, object: ObjectId) -> Option<&mut BTreeMap<(c_int, c_int), Vec<u8>>> {
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => Some(&mut stream.options),
            Kind::Datagrams(datagrams) => Some(&mut datagrams.options),
            _ => None,
        }
    }

    /// Returns a time limit among the options of a socket; None: none.
    pub(super) fn option_timeout(&self, object: ObjectId, name: c_int) -> Option<Nanos> {
        let options = match &self.objects[object].kind {
            Kind::Stream(stream) => &stream.options,
            Kind::Datagrams(datagrams) => &datagrams.options,
            _ => return None,
        };
        let value = options.get(&(libc::SOL_SOCKET, name)).filter(|value| value.len() >= 16)?;
        let timeout = tracee::u64_at(value, 0) * SECOND + tracee::u64_at(value, 8) * MICROSECOND;
        (timeout > 0).then_some(timeout)
    }

    /// Writes as much of a value as the program has room for, and its whole size.
    pub(super) fn put_sized(&self, thread: ThreadId, address: u64, size_at: u64, bytes: &[u8]) {
        let tid = self.threads[thread].tid;
        let room = tracee::read_u32(tid, size_at).unwrap_or(0) as usize;
        tracee::write(tid, address, &bytes[..room.min(bytes.len())]);
        tracee::write_u32(tid, size_at, bytes.len() as u32);
    }

    fn free_port(&mut self, node: NodeId) -> u16 {
        loop {
            let next = self.nodes[node].next_port;
            self.nodes[node].next_port = if next >= LAST_PORT { FIRST_PORT } else { next + 1 };
            if self.ports.get(&(node, next)).is_none_or(Vec::is_empty) {
                return next;
            }
        }
    }

    fn set_local(&mut self, object: ObjectId, address: Option<SocketAddrV4>) {
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => stream.local = address,
            Kind::Datagrams(datagrams) => datagrams.local = address,
            _ => {}
        }
    }

    fn bind_to(&mut self, object: ObjectId, address: SocketAddrV4) {
        let node = self.objects[object].node;
        self.set_local(object, Some(address));
        self.ports.entry((node, address.port())).or_default().push(object);
    }

    /// A socket gives its port back.
    pub(super) fn unbind(&mut self, object: ObjectId) {
        if self.family_of(object) == libc::AF_UNIX {
            return self.unbind_unix(object);
        }
        let key = self.local(object).map(|local| (self.objects[object].node, local.port()));
        if let Some(sockets) = key.and_then(|key| self.ports.get_mut(&key)) {
            sockets.retain(|other| *other != object);
        }
    }

    pub(super) fn socket(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let (family, kind, protocol) = (registers.rdi as c_int, registers.rsi as c_int, registers.rdx as c_int);
        let node = self.threads[thread].node;
        let kind_of = match (family, kind & TYPE, protocol) {
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP)
            | (libc::AF_UNIX, libc::SOCK_STREAM, 0 | libc::AF_UNIX) => {
                Kind::Stream(Box::new(Stream::new(node, family)))
            }
            (libc::AF_INET | libc::AF_INET6, libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP)
            | (libc::AF_UNIX, libc::SOCK_DGRAM, 0 | libc::AF_UNIX) => {
                Kind::Datagrams(Box::new(Datagrams { family, ..Datagrams::default() }))
            }
            (libc::AF_INET | libc::AF_INET6 | libc::AF_UNIX, ..) => return failed(EPROTONOSUPPORT),
            _ => return failed(EAFNOSUPPORT),
        };
        let object = self.make(node, kind_of, kind & libc::SOCK_NONBLOCK != 0);
        self.new_descriptor(thread, object, kind & libc::SOCK_CLOEXEC != 0)
    }

    /// Makes two connected sockets of a process.
    pub(super) fn pair(&mut self, thread: ThreadId, is_nonblocking: bool) -> (ObjectId, ObjectId) {
        let node = self.threads[thread].node;
        let own = self.credentials(thread);
        let [one, other] =
            [0; 2].map(|_| self.make(node, Kind::Stream(Box::new(Stream::new(node, libc::AF_UNIX))), is_nonblocking));
        for (object, peer) in [(one, other), (other, one)] {
            let stream = self.stream(object);
            (stream.phase, stream.peer, stream.unix.peer_credentials) = (Phase::Connected, Some(peer), Some(own));
        }
        (one, other)
    }

    pub(super) fn bind(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        let node = self.objects[object].node;
        let address = match self.name_at(thread, object, registers.rsi, registers.rdx) {
            Ok(Name::Inet(address)) => address,
            Ok(Name::Unix(path)) => return self.bind_unix(thread, object, path),
            Err(ENETUNREACH) => return failed(EADDRNOTAVAIL),
            Err(error) => return failed(error),
        };
        let ip = *address.ip();
        if !ip.is_unspecified() && !ip.is_loopback() && ip != self.nodes[node].address {
            return failed(EADDRNOTAVAIL);
        }
        let port = if address.port() == 0 { self.free_port(node) } else { address.port() };
        let is_stream = matches!(self.objects[object].kind, Kind::Stream(_));
        let others = self.ports.get(&(node, port)).cloned().unwrap_or_default();
        let rivals = others.into_iter().filter(|other| match &self.objects[*other].kind {
            Kind::Stream(stream) => is_stream && stream.phase == Phase::Listening,
            Kind::Datagrams(_) => !is_stream,
            _ => false,
        });
        let reaches: Vec<_> = rivals.filter_map(|other| self.reach(other)).collect();
        self.bind_to(object, SocketAddrV4::new(ip, port));
        if self.reach(object).is_some_and(|own| reaches.into_iter().any(|other| own.meets(other))) {
            self.unbind(object);
            self.set_local(object, None);
            return failed(EADDRINUSE);
        }
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => stream.has_address = !ip.is_unspecified(),
            Kind::Datagrams(datagrams) => datagrams.has_address = !ip.is_unspecified(),
            _ => {}
        }
        Outcome::Value(0)
    }

    pub(super) fn listen(&mut self, thread: ThreadId, object: ObjectId, most: c_int) -> Outcome {
        let node = self.objects[object].node;
        match &self.objects[object].kind {
            Kind::Stream(stream) if matches!(stream.phase, Phase::Fresh | Phase::Listening) => {
                if stream.is_unix() {
                    return self.listen_unix(thread, object, most);
                }
            }
            Kind::Stream(_) => return failed(EINVAL),
            _ => return failed(libc::EOPNOTSUPP),
        }
        if self.local(object).is_none() {
            let port = self.free_port(node);
            self.bind_to(object, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port));
        }
        let stream = self.stream(object);
        stream.phase = Phase::Listening;
        Outcome::Value(0)
    }

    pub(super) fn accept(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        registers: &Registers,
        flags: c_int,
    ) -> Outcome {
        let Kind::Stream(stream) = &mut self.objects[object].kind else { return failed(libc::EOPNOTSUPP) };
        if stream.phase != Phase::Listening {
            return failed(EINVAL);
        }
        let has_ended = stream.reads_ended;
        let Some(accepted) = stream.backlog.pop_front() else {
            if has_ended {
                return failed(EINVAL);
            }
            if self.objects[object].is_nonblocking || self.threads[thread].timed_out {
                return failed(EAGAIN);
            }
            self.block(thread, Wait::Ready(vec![(object, READABLE)]), None);
            return Outcome::Block;
        };
        self.objects[accepted].is_nonblocking = flags & libc::SOCK_NONBLOCK != 0;
        self.is_stale = true; // a Unix socket may wait to connect
        let family = self.family_of(accepted);
        let stream = self.stream(accepted);
        let name = match stream.remote {
            Some(remote) => Name::Inet(remote),
            None => Name::Unix(stream.unix.peer_name.clone()),
        };
        self.put_name(thread, registers.rsi, registers.rdx, family, &name);
        self.new_descriptor(thread, accepted, flags & libc::SOCK_CLOEXEC != 0)
    }

    pub(super) fn connect(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        let is_dissolved = self.is_no_name(thread, registers.rsi, registers.rdx);
        let address = match self.name_at(thread, object, registers.rsi, registers.rdx) {
            Ok(Name::Unix(path)) => return self.connect_unix(thread, object, &path),
            Ok(Name::Inet(address)) => Ok(address),
            Err(error) if self.family_of(object) == libc::AF_UNIX => return failed(error),
            Err(error) => Err(error),
        };
        if let Kind::Datagrams(datagrams) = &mut self.objects[object].kind {
            if is_dissolved {
                datagrams.remote = None;
                if let (false, Some(local)) = (datagrams.has_address, &mut datagrams.local) {
                    local.set_ip(Ipv4Addr::UNSPECIFIED);
                }
                return Outcome::Value(0);
            }
            return match address {
                Err(error) => failed(error),
                Ok(address) => {
                    self.connect_datagrams(object, address);
                    Outcome::Value(0)
                }
            };
        }
        let is_nonblocking = self.objects[object].is_nonblocking;
        let stream = self.stream(object);
        let (phase, is_lost) = (stream.phase, stream.is_reset && !stream.is_told);
        match phase {
            Phase::Fresh => match address {
                Ok(address) => match self.begin_connection(object, address) {
                    Err(error) => failed(error),
                    Ok(()) if is_nonblocking => failed(EINPROGRESS),
                    Ok(()) => self.await_connection(thread, object),
                },
                Err(error) => failed(error),
            },
            Phase::Connecting if is_nonblocking => failed(EALREADY),
            Phase::Connecting => self.await_connection(thread, object),
            Phase::Connected if is_lost => failed(self.end_attempt(object)),
            // The first call after the connection was made tells of it.
            Phase::Connected => {
                let was_told = std::mem::replace(&mut self.stream(object).is_told, true);
                if was_told {
                    failed(EISCONN)
                } else {
                    Outcome::Value(0)
                }
            }
            Phase::Failed => failed(self.end_attempt(object)),
            Phase::Listening | Phase::Closed => failed(EISCONN),
        }
    }

    /// A program hears that its connection has failed: the socket is as before. Returns the error.
    fn end_attempt(&mut self, object: ObjectId) -> c_int {
        let stream = self.stream(object);
        let Stream { family, local, has_address, error, peer_node, .. } = *stream;
        let options = std::mem::take(&mut stream.options);
        *stream = Stream { has_address, options, ..Stream::new(peer_node, family) };
        stream.local = local.map(|local| {
            let ip = if has_address { *local.ip() } else { Ipv4Addr::UNSPECIFIED };
            SocketAddrV4::new(ip, local.port())
        });
        if error == 0 {
            libc::ECONNABORTED
        } else {
            error
        }
    }

    fn await_connection(&mut self, thread: ThreadId, object: ObjectId) -> Outcome {
        self.block(thread, Wait::Ready(vec![(object, WRITABLE)]), None);
        Outcome::Block
    }

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

    fn is_unix(&self, object: ObjectId) -> bool {
        matches!(&self.objects[object].kind, Kind::Stream(stream) if stream.is_unix())
    }

    /// Returns the address by which a node sends to another one.
    fn own_address(&self, node: NodeId, to: Ipv4Addr) -> Ipv4Addr {
        if to == LOOPBACK6 {
            LOOPBACK6
        } else if to.is_loopback() || to.is_unspecified() {
            Ipv4Addr::LOCALHOST
        } else {
            self.nodes[node].address
        }
    }

    /// Gives a UDP socket a port, if it has none. Returns its name.
    fn name_datagrams(&mut self, object: ObjectId) -> SocketAddrV4 {
        self.local(object).unwrap_or_else(|| {
            let port = self.free_port(self.objects[object].node);
            let name = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port);
            self.bind_to(object, name);
            name
        })
    }

    /// Connects a UDP socket: from now on, its address is the one by which it sends there.
    fn connect_datagrams(&mut self, object: ObjectId, to: SocketAddrV4) {
        let name = self.name_datagrams(object);
        let own = self.own_address(self.objects[object].node, *to.ip());
        if let Kind::Datagrams(datagrams) = &mut self.objects[object].kind {
            datagrams.remote = Some(to);
            if name.ip().is_unspecified() {
                datagrams.local = Some(SocketAddrV4::new(own, name.port()));
            }
        }
    }

    pub(super) fn send_datagram(&mut self, object: ObjectId, bytes: &[u8], to: Option<SocketAddrV4>) -> Outcome {
        let Kind::Datagrams(datagrams) = &mut self.objects[object].kind else { return failed(EINVAL) };
        if datagrams.error != 0 {
            return failed(std::mem::take(&mut datagrams.error));
        }
        let to = to.or(datagrams.remote);
        let node = self.objects[object].node;
        let local = self.name_datagrams(object);
        let Some(to) = to else { return failed(EDESTADDRREQ) };
        let ip = if local.ip().is_unspecified() { self.own_address(node, *to.ip()) } else { *local.ip() };
        self.send_to(node, SocketAddrV4::new(ip, local.port()), to, bytes);
        Outcome::Value(bytes.len() as i64)
    }

    pub(super) fn datagram_arrives(&mut self, node: NodeId, from: SocketAddrV4, to: SocketAddrV4, bytes: Vec<u8>) {
        let socket = self.ports.get(&(node, to.port())).and_then(|sockets| {
            sockets.iter().copied().find(|socket| {
                matches!(&self.objects[*socket].kind, Kind::Datagrams(datagrams)
                    if datagrams.remote.is_none_or(|remote| remote == from))
                    && self.reach(*socket).is_some_and(|reach| reach.has(*to.ip()))
            })
        });
        if let Some(socket) = socket {
            if let Kind::Datagrams(datagrams) = &mut self.objects[socket].kind {
                datagrams.received.push_back((Name::Inet(from), bytes));
            }
            self.changed(socket);
        } else if let Some(source) = self.node_at(node, *from.ip()) {
            // A message of ICMP tells a socket that is connected to the address; see udp(7).
            let sender = self.ports.get(&(source, from.port())).and_then(|sockets| {
                sockets.iter().copied().find(|socket| {
                    matches!(&self.objects[*socket].kind, Kind::Datagrams(datagrams) if datagrams.remote == Some(to))
                })
            });
            if let Some(Kind::Datagrams(datagrams)) = sender.map(|sender| &mut self.objects[sender].kind) {
                datagrams.error = ECONNREFUSED;
            }
            if let Some(sender) = sender {
                self.changed(sender);
            }
        }
    }

    /// Returns the socket of a descriptor.
    pub(super) fn socket_of(&self, thread: ThreadId, descriptor: u64) -> Result<ObjectId, c_int> {
        match self.object(thread, descriptor) {
            Some(object) if matches!(self.objects[object].kind, Kind::Stream(_) | Kind::Datagrams(_)) => Ok(object),
            Some(_) => Err(ENOTSOCK),
            None if self.is_native(thread, descriptor) => Err(ENOTSOCK),
            None => Err(EBADF),
        }
    }

    pub(super) fn socket_name(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        registers: &Registers,
        of_peer: bool,
    ) -> Outcome {
        let node = self.objects[object].node;
        let unix = |name: &Vec<u8>| Some(Name::Unix(name.clone()));
        let name = match &self.objects[object].kind {
            Kind::Stream(stream) if of_peer && stream.phase != Phase::Connected => return failed(ENOTCONN),
            Kind::Stream(stream) if stream.is_unix() => {
                unix(if of_peer { &stream.unix.peer_name } else { &stream.unix.name })
            }
            Kind::Stream(stream) if of_peer => stream.remote.map(Name::Inet),
            Kind::Datagrams(datagrams) if datagrams.family == libc::AF_UNIX => {
                if of_peer && datagrams.peer.is_none() {
                    return failed(ENOTCONN);
                }
                unix(if of_peer { &datagrams.unix.peer_name } else { &datagrams.unix.name })
            }
            Kind::Datagrams(datagrams) if of_peer => match datagrams.remote {
                None => return failed(ENOTCONN),
                remote => remote.map(Name::Inet),
            },
            Kind::Stream(stream) if stream.phase == Phase::Connected => stream.local.map(|local| {
                let ip = if local.ip().is_unspecified() { self.nodes[node].address } else { *local.ip() };
                Name::Inet(SocketAddrV4::new(ip, local.port()))
            }),
            _ => self.local(object).map(Name::Inet),
        };
        let name = name.unwrap_or(Name::Inet(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)));
        self.put_name(thread, registers.rsi, registers.rdx, self.family_of(object), &name);
        Outcome::Value(0)
    }

    pub(super) fn setsockopt(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        let size = (registers.r8 as usize).min(MOST_OPTION);
        let Some(value) = tracee::read(self.threads[thread].tid, registers.r10, size) else { return failed(EFAULT) };
        if let Some(options) = self.options(object) {
            options.insert((registers.rsi as c_int, registers.rdx as c_int), value);
        }
        let (level, name) = (registers.rsi as c_int, registers.rdx as c_int);
        if (level, name) == (libc::SOL_SOCKET, libc::SO_KEEPALIVE)
            || level == libc::IPPROTO_TCP && KEEPING.contains(&name)
        {
            self.watch_connection(object);
        }
        Outcome::Value(0)
    }

    pub(super) fn getsockopt(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        const SEGMENT: i32 = 1448;
        let key @ (level, name) = (registers.rsi as c_int, registers.rdx as c_int);
        let number = |number: i32| number.to_le_bytes().to_vec();
        let is_stream = matches!(self.objects[object].kind, Kind::Stream(_));
        let value = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => match &mut self.objects[object].kind {
                Kind::Stream(stream) => number(std::mem::take(&mut stream.error)),
                Kind::Datagrams(datagrams) => number(std::mem::take(&mut datagrams.error)),
                _ => number(0),
            },
            (libc::SOL_SOCKET, libc::SO_TYPE) => number(if is_stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM }),
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) if self.family_of(object) == libc::AF_UNIX => number(0),
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => number(self.family_of(object)),
            (libc::SOL_SOCKET, libc::SO_PEERCRED) => match &self.objects[object].kind {
                Kind::Stream(stream) => stream.unix.peer(),
                _ => End::default().peer(),
            },
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => {
                number(if is_stream { libc::IPPROTO_TCP } else { libc::IPPROTO_UDP })
            }
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                number((is_stream && self.stream(object).phase == Phase::Listening).into())
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => match &self.objects[object].kind {
                Kind::Stream(stream) => number(stream.buffer(name) as i32),
                _ => number(MOST_BUFFER as i32 / 2),
            },
            _ => match self.options(object).and_then(|options| options.get(&key)).cloned() {
                Some(value) => value,
                None => match (level, name) {
                    (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => number(SEGMENT),
                    (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                        let mut info = vec![0; 104];
                        info[0] = 1; // TCP_ESTABLISHED
                        info
                    }
                    _ => number(0),
                },
            },
        };
        self.put_sized(thread, registers.r10, registers.r8, &value);
        Outcome::Value(0)
    }
}

impl Kernel {
    /// The program outside connects to an address. Returns its socket.
    pub fn outside_connects(&mut self, address: SocketAddrV4) -> ObjectId {
        let node = self.outside.as_ref().map_or(0, |outside| outside.node);
        let object = self.make(node, Kind::Stream(Box::new(Stream::new(node, libc::AF_INET))), true);
        self.objects[object].references = 1;
        if let Err(error) = self.begin_connection(object, address) {
            let stream = self.stream(object);
            (stream.phase, stream.error) = (Phase::Failed, error);
            self.changed(object);
        }
        object
    }

    /// The program outside sends bytes. A connection that has failed meanwhile takes none.
    pub fn outside_sends(&mut self, object: ObjectId, bytes: &[u8]) {
        let stream = self.stream(object);
        if stream.phase == Phase::Connected && !stream.is_reset && !stream.sends_ended {
            self.digest.bytes(bytes);
            self.put_on_the_way(object, bytes);
        }
    }

    /// The program outside has read bytes.
    pub fn outside_read(&mut self, object: ObjectId, count: usize) {
        self.acknowledge(object, count);
    }

    /// The program outside sends no more.
    pub fn outside_finishes(&mut self, object: ObjectId) {
        self.shutdown(object, libc::SHUT_WR);
    }

    /// Makes a connection between the program outside and one that starts on a node. Returns the two ends.
    pub fn outside_talks(&mut self, node: NodeId) -> (ObjectId, ObjectId) {
        let own = self.outside.as_ref().map_or(0, |outside| outside.node);
        let outer = self.make(own, Kind::Stream(Box::new(Stream::new(node, libc::AF_INET))), true);
        let inner = self.make(node, Kind::Stream(Box::new(Stream::new(own, libc::AF_INET))), false);
        for (end, other) in [(outer, inner), (inner, outer)] {
            let stream = self.stream(end);
            (stream.phase, stream.peer) = (Phase::Connected, Some(other));
        }
        self.objects[outer].references = 1;
        (outer, inner)
    }

    /// The program outside closes a connection.
    pub fn outside_closes(&mut self, object: ObjectId) {
        self.release(object);
    }

    /// Returns how far the wall clock of a node is ahead of the true time, as its programs read it.
    pub fn ahead(&self, node: NodeId) -> i64 {
        self.pages.as_ref().map_or(self.nodes[node].clock_offset, |pages| pages.offset(node))
    }

    /// Sets how far the wall clock of a node is from the true time.
    pub fn set_offset(&mut self, node: NodeId, offset: i64) {
        self.nodes[node].clock_offset = offset;
        if let Some(pages) = &self.pages {
            pages.set_offset(node, offset);
        }
    }
}
