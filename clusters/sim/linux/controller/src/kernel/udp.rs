//! UDP. Sources: udp(7), and net/ipv4 of Linux.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddrV4};

use libc::{c_int, ECONNREFUSED, EDESTADDRREQ, EINVAL};

use super::dispatch::{failed, Outcome};
use super::names::Name;
use super::objects::{Kind, FAILED, READABLE, WRITABLE};
use super::unix::{End, MOST_WAITING, ROOM};
use super::{Kernel, NodeId, ObjectId};

/// A socket of datagrams: UDP, or a Unix socket.
#[derive(Clone, Default)]
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
    pub(super) fn connect_datagrams(&mut self, object: ObjectId, to: SocketAddrV4) {
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
}
