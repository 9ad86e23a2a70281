//! Sockets: TCP and UDP over IPv4. `names` has their addresses, and `unix` Unix sockets. Sources: socket(7), tcp(7), and net/ipv4 of Linux.

use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{
    c_int, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EALREADY, EBADF, EINPROGRESS, EINVAL, EISCONN,
    ENETUNREACH, ENOTCONN, ENOTSOCK, EPROTONOSUPPORT,
};

use super::dispatch::{failed, Outcome};
use super::names::{Name, LOOPBACK6};
use super::objects::{Kind, READABLE, WRITABLE};
use super::tcp::{Phase, Stream};
use super::udp::Datagrams;
use super::{Kernel, NodeId, ObjectId, ThreadId, Wait};
use crate::tracee::Registers;

const FIRST_PORT: u16 = 40_000;
const LAST_PORT: u16 = 60_000;
pub const TYPE: c_int = 0xf; // the bits of a socket's type without its flags

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

    pub(super) fn local(&self, object: ObjectId) -> Option<SocketAddrV4> {
        match &self.objects[object].kind {
            Kind::Stream(stream) => stream.local,
            Kind::Datagrams(datagrams) => datagrams.local,
            _ => None,
        }
    }

    pub(super) fn free_port(&mut self, node: NodeId) -> u16 {
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

    pub(super) fn bind_to(&mut self, object: ObjectId, address: SocketAddrV4) {
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

    pub(super) fn await_connection(&mut self, thread: ThreadId, object: ObjectId) -> Outcome {
        self.block(thread, Wait::Ready(vec![(object, WRITABLE)]), None);
        Outcome::Block
    }

    pub(super) fn is_unix(&self, object: ObjectId) -> bool {
        matches!(&self.objects[object].kind, Kind::Stream(stream) if stream.is_unix())
    }

    /// Returns the address by which a node sends to another one.
    pub(super) fn own_address(&self, node: NodeId, to: Ipv4Addr) -> Ipv4Addr {
        if to == LOOPBACK6 {
            LOOPBACK6
        } else if to.is_loopback() || to.is_unspecified() {
            Ipv4Addr::LOCALHOST
        } else {
            self.nodes[node].address
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
}
