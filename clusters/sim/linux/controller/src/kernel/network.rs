//! The network between the nodes: delays, losses and cuts of each direction, and messages on their way.
//!
//! A stream keeps its order and loses nothing: a lost segment comes later, at the next retransmission, as TCP sends it again. The
//! time between retransmissions begins at 200 ms (1 s for a connection) and doubles (RFC 6298). Datagrams are lost for good.

use std::net::SocketAddrV4;

use super::objects::Kind;
use super::sockets::Phase;
use super::{Event, Kernel, Nanos, NodeId, ObjectId, MICROSECOND, MILLISECOND, SECOND};
use crate::chance::Chance;

const LOCAL_DELAY: (Nanos, Nanos) = (5 * MICROSECOND, 25 * MICROSECOND);
const DEFAULT_DELAY: (Nanos, Nanos) = (200 * MICROSECOND, 2 * MILLISECOND);
const FIRST_RETRANSMISSION: Nanos = 200 * MILLISECOND;
const FIRST_CONNECT_RETRY: Nanos = SECOND;
const MOST_RETRANSMISSIONS: u32 = 15; // tcp_retries2 of Linux

/// The state of one direction between two nodes.
#[derive(Clone)]
pub struct Link {
    /// The least and the largest delay of a message.
    pub delay: (Nanos, Nanos),
    /// The probability with which a segment or a datagram is lost.
    pub loss: f64,
    pub is_cut: bool,
}

/// A message on its way.
#[derive(Clone, Debug)]
pub enum Message {
    Connect {
        client: ObjectId,
    },
    Accepted {
        client: ObjectId,
        server: ObjectId,
    },
    /// The other end does not exist: the connection ends with an error.
    Reset {
        to: ObjectId,
        from: NodeId,
        error: i32,
    },
    Bytes {
        to: ObjectId,
        from: ObjectId,
        bytes: Vec<u8>,
    },
    /// The other end sends no more.
    End {
        to: ObjectId,
        from: NodeId,
    },
    Datagram {
        from: SocketAddrV4,
        to: SocketAddrV4,
        source: NodeId,
        target: NodeId,
        bytes: Vec<u8>,
    },
}

/// A message that cannot arrive until a cut is healed or a node is on again.
struct Held {
    from: NodeId,
    to: NodeId,
    sent: Nanos,
    message: Message,
}

/// All links.
pub struct Links {
    of: Vec<Vec<Link>>,
    held: Vec<Held>,
    chance: Chance,
}

impl Links {
    pub fn new(seed: u64, nodes: usize) -> Self {
        let link =
            |from, to| Link { delay: if from == to { LOCAL_DELAY } else { DEFAULT_DELAY }, loss: 0.0, is_cut: false };
        Self {
            of: (0..nodes).map(|from| (0..nodes).map(|to| link(from, to)).collect()).collect(),
            held: Vec::new(),
            chance: Chance::new(seed, "network"),
        }
    }

    pub fn link(&mut self, from: NodeId, to: NodeId) -> &mut Link {
        &mut self.of[from][to]
    }

    /// Draws the delay of a message; a stream's message also waits for the retransmissions of its losses.
    fn delay(&mut self, from: NodeId, to: NodeId, is_stream: bool) -> Nanos {
        let Link { delay: (least, most), loss, .. } = self.of[from][to];
        let mut delay = least + self.chance.below(most - least + 1);
        if is_stream && loss > 0.0 {
            let mut pause = FIRST_RETRANSMISSION;
            for _ in 0..MOST_RETRANSMISSIONS {
                if !self.chance.happens(loss) {
                    break;
                }
                delay += pause;
                pause *= 2;
            }
        }
        delay
    }
}

/// Returns the time of the first retransmission at or after a time, of a message that was sent earlier.
fn retransmission(sent: Nanos, now: Nanos, first: Nanos) -> Nanos {
    let (mut at, mut pause) = (sent, first);
    while at < now {
        at += pause;
        pause *= 2;
    }
    at
}

impl Kernel {
    /// Returns the node with an address, as seen from a node.
    pub(super) fn node_at(&self, from: NodeId, address: std::net::Ipv4Addr) -> Option<NodeId> {
        if address.is_loopback() || address.is_unspecified() {
            Some(from)
        } else {
            self.nodes.iter().position(|node| node.address == address)
        }
    }

    /// Sends a message of a stream. It arrives after the messages that the stream sent before.
    pub(super) fn send(&mut self, object: ObjectId, message: Message) {
        let from = self.objects[object].node;
        let to = self.stream(object).peer_node;
        let delay = self.links.delay(from, to, true);
        let now = self.now;
        let stream = self.stream(object);
        stream.last_arrival = (now + delay).max(stream.last_arrival + 1);
        let at = stream.last_arrival;
        self.at(at, Event::Message(message));
    }

    /// Sends a datagram.
    pub(super) fn send_to(&mut self, source: NodeId, from: SocketAddrV4, to: SocketAddrV4, bytes: Vec<u8>) {
        let Some(target) = self.node_at(source, *to.ip()) else { return };
        let loss = self.links.link(source, target).loss;
        if loss > 0.0 && self.links.chance.happens(loss) {
            return;
        }
        let at = self.now + self.links.delay(source, target, false);
        self.at(at, Event::Message(Message::Datagram { from, to, source, target, bytes }));
    }

    /// Answers with a reset, from the node that a message came to.
    pub(super) fn refuse(&mut self, to: ObjectId, from: NodeId, error: i32) {
        let delay = self.links.delay(from, self.objects[to].node, true);
        self.at(self.now + delay, Event::Message(Message::Reset { to, from, error }));
    }

    fn ends_of(&self, message: &Message) -> (NodeId, NodeId) {
        let node = |object: ObjectId| self.objects[object].node;
        match message {
            Message::Connect { client } => (node(*client), self.peer_node(*client)),
            Message::Accepted { client, server } => (node(*server), node(*client)),
            Message::Bytes { to, from, .. } => (node(*from), node(*to)),
            Message::Reset { to, from, .. } | Message::End { to, from } => (*from, node(*to)),
            Message::Datagram { source, target, .. } => (*source, *target),
        }
    }

    /// A message arrives, unless its direction is cut or its node is off. Then it is sent again after that.
    pub(super) fn arrive(&mut self, message: Message) {
        let (from, to) = self.ends_of(&message);
        if self.links.link(from, to).is_cut || self.nodes[to].is_down {
            if !matches!(message, Message::Datagram { .. }) {
                self.links.held.push(Held { from, to, sent: self.now, message });
            }
            return;
        }
        self.counts.messages += 1;
        self.digest.number((from as u64) << 32 | to as u64);
        match message {
            Message::Connect { client } => self.connect_arrives(client, to),
            Message::Accepted { client, server } => {
                if self.stream(client).phase == Phase::Connecting {
                    let stream = self.stream(client);
                    stream.phase = Phase::Connected;
                    stream.peer = Some(server);
                    self.changed(client);
                } else {
                    self.refuse(server, to, libc::ECONNRESET);
                }
            }
            Message::Reset { to, error, .. } => {
                let Kind::Stream(stream) = &mut self.objects[to].kind else { return };
                match stream.phase {
                    Phase::Connecting => stream.phase = Phase::Failed,
                    Phase::Connected => stream.is_reset = true,
                    _ => return,
                }
                stream.error = error;
                self.changed(to);
            }
            Message::Bytes { to: end, from: sender, bytes } => {
                self.digest.bytes(&bytes);
                let Kind::Stream(stream) = &mut self.objects[end].kind else { return };
                if stream.phase == Phase::Connected {
                    stream.received.extend(bytes);
                    self.changed(end);
                } else {
                    self.refuse(sender, to, libc::ECONNRESET);
                }
            }
            Message::End { to, .. } => {
                if let Kind::Stream(stream) = &mut self.objects[to].kind {
                    stream.peer_ended = true;
                    self.changed(to);
                }
            }
            Message::Datagram { from, to, target, bytes, .. } => self.datagram_arrives(target, from, to, bytes),
        }
    }

    /// Cuts the direction from a node to another one.
    pub fn cut(&mut self, from: NodeId, to: NodeId) {
        self.links.link(from, to).is_cut = true;
    }

    /// Heals a direction. What was sent meanwhile comes with its next retransmission.
    pub fn mend(&mut self, from: NodeId, to: NodeId) {
        self.links.link(from, to).is_cut = false;
        self.send_held_again();
    }

    /// Sends the messages again whose way is free now.
    pub(super) fn send_held_again(&mut self) {
        let (free, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.links.held)
            .into_iter()
            .partition(|held| !self.links.of[held.from][held.to].is_cut && !self.nodes[held.to].is_down);
        self.links.held = held;
        for (place, held) in free.into_iter().enumerate() {
            let first = if matches!(held.message, Message::Connect { .. }) {
                FIRST_CONNECT_RETRY
            } else {
                FIRST_RETRANSMISSION
            };
            // Messages of a stream were held in their order, and keep it.
            let at = retransmission(held.sent, self.now, first) + place as Nanos;
            self.at(at, Event::Message(held.message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{retransmission, Links, FIRST_RETRANSMISSION, MILLISECOND};

    #[test]
    fn a_retransmission_doubles_its_pause() {
        let at = |now| retransmission(0, now * MILLISECOND, FIRST_RETRANSMISSION) / MILLISECOND;
        assert_eq!([at(0), at(1), at(200), at(201), at(601)], [0, 200, 200, 600, 1400]);
    }

    #[test]
    fn a_loss_delays_a_stream_by_whole_retransmissions() {
        let mut links = Links::new(1, 2);
        links.link(0, 1).loss = 0.5;
        let delays: Vec<_> = (0..200).map(|_| links.delay(0, 1, true)).collect();
        assert!(delays.iter().any(|delay| *delay < 3 * MILLISECOND));
        assert!(delays.iter().any(|delay| *delay > 600 * MILLISECOND));
        assert!(delays.iter().all(|delay| delay % FIRST_RETRANSMISSION < 3 * MILLISECOND));
    }
}
