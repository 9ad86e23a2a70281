//! The network between the nodes: delays, losses and cuts of each direction, and messages on their way.
//!
//! A stream keeps its order and loses nothing: TCP sends a lost segment again, and the link decides anew what becomes of it. The
//! time between retransmissions begins at 200 ms (1 s for a connection) and doubles (RFC 6298). Datagrams are lost for good.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;

use super::objects::Kind;
use super::tcp::Phase;
use super::{scaled, Event, Kernel, Nanos, NodeId, ObjectId, MICROSECOND, MILLISECOND, SECOND};
use crate::chance::Chance;

const LOCAL_DELAY: (Nanos, Nanos) = (5 * MICROSECOND, 25 * MICROSECOND);
const DEFAULT_DELAY: (Nanos, Nanos) = (200 * MICROSECOND, 2 * MILLISECOND);
pub const FIRST_RETRANSMISSION: Nanos = 200 * MILLISECOND;
pub const FIRST_CONNECT_RETRY: Nanos = SECOND;
const LATE: Nanos = 300 * MILLISECOND;
const LONGEST_PAUSE: Nanos = 120 * SECOND; // TCP_RTO_MAX
const SEGMENT: u64 = 1_448; // bytes of a stream in a packet of Ethernet
const SEGMENT_HEADERS: u64 = 66; // of Ethernet, IP and TCP
const DATAGRAM_HEADERS: u64 = 42;
const MOST_RETRANSMISSIONS: u32 = 15; // tcp_retries2 of Linux

/// What a direction does with the messages in it.
#[derive(Clone)]
pub struct Link {
    /// The least and the largest delay of a message.
    pub delay: (Nanos, Nanos),
    /// The mean of a further delay, which varies from message to message; 0: none.
    pub mean: Nanos,
    /// The share of messages that are late by `LATE` on average.
    pub late: f64,
    /// The rules of faults, by their keys.
    disturbances: Vec<(Key, Disturbance)>,
    cuts: Vec<Key>,
}

/// The number of the fault that a rule belongs to.
pub type Key = u64;

/// A disturbance of messages, independent for each one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disturbance {
    pub lose: f64,
    pub duplicate: f64,
    /// The share with a wrong checksum: the receiver drops them.
    pub damage: f64,
    /// The mean delay and its deviation, in nanoseconds.
    pub delay: f64,
    pub jitter: f64,
    /// The share without this delay.
    pub hurry: f64,
    /// How many bits leave a node in a second, over all of its links; 0: no limit.
    pub rate: f64,
    /// The longest time that a datagram waits for the others before it. What a stream sends waits for as long as it takes.
    pub queue: Nanos,
}

/// A message that a node sends at a time.
#[derive(Clone, Copy)]
struct Sent {
    at: Nanos,
    /// Its bytes, with the headers of its packets.
    bytes: u64,
    is_datagram: bool,
}

impl Sent {
    /// Returns a message with some bytes of a program.
    fn new(at: Nanos, bytes: usize, is_datagram: bool) -> Self {
        let headers = if is_datagram { DATAGRAM_HEADERS } else { SEGMENT_HEADERS };
        let packets = (bytes as u64).div_ceil(SEGMENT).max(1);
        Self { at, bytes: bytes as u64 + packets * headers, is_datagram }
    }
}

/// What a link does with one message.
struct Passage {
    delay: Nanos,
    /// The delay of a second copy.
    again: Option<Nanos>,
    is_lost: bool,
    is_damaged: bool,
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
    /// The other end has read so much that it takes more.
    Window {
        to: ObjectId,
        from: NodeId,
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
    /// A datagram of the program outside between two nodes, which shows what the link does.
    Probe {
        id: u64,
        source: NodeId,
        target: NodeId,
        sent: Nanos,
        is_damaged: bool,
    },
}

impl Message {
    /// Returns what it has of a program's bytes, if it is one of a stream.
    fn bytes(&self) -> &[u8] {
        if let Self::Bytes { bytes, .. } = self {
            bytes
        } else {
            &[]
        }
    }

    /// Returns the end that waits for an answer until it arrives; `of`: the end that sent it, and its place.
    fn waiting(&self, of: Option<(ObjectId, u64)>) -> Option<ObjectId> {
        match self {
            // Nobody sends again what tells of a window: the other end asks for it.
            Self::Window { to, .. } => Some(*to),
            _ => of.map(|(stream, _)| stream),
        }
    }

    /// Returns the time until its first retransmission.
    fn first_pause(&self) -> Nanos {
        if matches!(self, Self::Connect { .. } | Self::Accepted { .. }) {
            FIRST_CONNECT_RETRY
        } else {
            FIRST_RETRANSMISSION
        }
    }
}

/// A probe that has arrived.
#[derive(Clone)]
pub struct Probed {
    pub id: u64,
    pub delay: Nanos,
    pub is_damaged: bool,
}

/// A message that cannot arrive until a cut is healed or a node is on again.
#[derive(Clone)]
struct Held {
    from: NodeId,
    to: NodeId,
    sent: Nanos,
    message: Message,
    of: Option<(ObjectId, u64)>,
}

/// The order of the messages that an end of a stream sends: one that comes early waits for those before it, as in TCP.
#[derive(Clone, Default)]
struct Order {
    sent: u64,
    taken_in: u64,
    waiting: BTreeMap<u64, Message>,
}

impl Order {
    /// Returns the place of a message that is sent now.
    fn next_place(&mut self) -> u64 {
        self.sent += 1;
        self.sent - 1
    }

    /// A message of a place arrives. Returns the message whose turn it is, if it is there.
    fn arrived(&mut self, place: u64, message: Message) -> Option<Message> {
        self.waiting.insert(place, message);
        self.next_arrived()
    }

    /// Returns the next message, if it is there.
    fn next_arrived(&mut self) -> Option<Message> {
        let message = self.waiting.remove(&self.taken_in)?;
        self.taken_in += 1;
        Some(message)
    }
}

/// All links.
#[derive(Clone)]
pub struct Links {
    of: Vec<Vec<Link>>,
    held: Vec<Held>,
    chance: Chance,
    /// The order of what each end of a stream sends.
    orders: HashMap<ObjectId, Order>,
    /// How many messages each cut has kept from arriving, by direction.
    dropped: BTreeMap<(Key, NodeId, NodeId), u64>,
    pub probed: Vec<Probed>,
    /// Until when each limited rate is used, by its rule and the node that sends.
    busy: BTreeMap<(Key, NodeId), Nanos>,
}

impl Links {
    pub fn new(seed: u64, nodes: usize) -> Self {
        let link = |from, to| Link {
            delay: if from == to { LOCAL_DELAY } else { DEFAULT_DELAY },
            mean: 0,
            late: 0.0,
            disturbances: Vec::new(),
            cuts: Vec::new(),
        };
        Self {
            of: (0..nodes).map(|from| (0..nodes).map(|to| link(from, to)).collect()).collect(),
            held: Vec::new(),
            chance: Chance::new(seed, "network"),
            orders: HashMap::new(),
            dropped: BTreeMap::new(),
            probed: Vec::new(),
            busy: BTreeMap::new(),
        }
    }

    /// Draws by another seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.chance = Chance::new(seed, "network");
    }

    pub fn link(&mut self, from: NodeId, to: NodeId) -> &mut Link {
        &mut self.of[from][to]
    }

    /// Cuts a direction by a rule.
    pub fn cut(&mut self, key: Key, from: NodeId, to: NodeId) {
        self.of[from][to].cuts.push(key);
    }

    /// Disturbs a direction by a rule.
    pub fn disturb(&mut self, key: Key, from: NodeId, to: NodeId, disturbance: Disturbance) {
        self.of[from][to].disturbances.push((key, disturbance));
    }

    /// Removes the rules with a key.
    fn mend(&mut self, key: Key) {
        for link in self.of.iter_mut().flatten() {
            link.cuts.retain(|cut| *cut != key);
            link.disturbances.retain(|(of, _)| *of != key);
        }
        self.busy.retain(|(of, _), _| *of != key);
    }

    /// Returns how many messages a cut has kept from arriving, by direction.
    pub fn dropped(&self, key: Key) -> impl Iterator<Item = (NodeId, NodeId, u64)> + '_ {
        self.dropped
            .range((key, 0, 0)..=(key, usize::MAX, usize::MAX))
            .map(|((_, from, to), count)| (*from, *to, *count))
    }

    /// Returns whether a direction is cut.
    pub(super) fn has_cut(&self, from: NodeId, to: NodeId) -> bool {
        !self.of[from][to].cuts.is_empty()
    }

    /// An end of a stream sends nothing again.
    pub(super) fn forget(&mut self, object: ObjectId) {
        self.held.retain(|held| held.of.is_none_or(|(sender, _)| sender != object));
    }

    /// Counts a message for the cuts of its direction. Returns whether there is one.
    fn is_cut(&mut self, from: NodeId, to: NodeId) -> bool {
        for key in &self.of[from][to].cuts {
            *self.dropped.entry((*key, from, to)).or_default() += 1;
        }
        !self.of[from][to].cuts.is_empty()
    }

    /// Draws what becomes of a message that is sent once.
    fn passage(&mut self, from: NodeId, to: NodeId, sent: Sent) -> Passage {
        let mean = self.of[from][to].mean;
        self.passage_with(from, to, sent, mean)
    }

    /// The same, with another mean of the further delay.
    fn passage_with(&mut self, from: NodeId, to: NodeId, sent: Sent, mean: Nanos) -> Passage {
        let Self { of, chance, busy, .. } = self;
        let link = &of[from][to];
        let draw_delay = |chance: &mut Chance| {
            let (least, most) = link.delay;
            let mut delay = least + chance.below(most - least + 1);
            if mean > 0 {
                delay += scaled(mean, 0.5 + 0.5 * chance.exponential());
                if link.late > 0.0 && chance.happens(link.late) {
                    delay += scaled(LATE, chance.exponential());
                }
            }
            delay
        };
        let mut passage = Passage { delay: draw_delay(chance), again: None, is_lost: false, is_damaged: false };
        for (key, disturbance) in &link.disturbances {
            let Disturbance { lose, duplicate, damage, delay, jitter, hurry, rate, queue } = *disturbance;
            passage.is_lost |= lose > 0.0 && chance.happens(lose);
            passage.is_damaged |= damage > 0.0 && chance.happens(damage);
            if duplicate > 0.0 && chance.happens(duplicate) {
                passage.again = Some(draw_delay(chance));
            }
            if delay > 0.0 && !(hurry > 0.0 && chance.happens(hurry)) {
                passage.delay += scaled(1, (delay + jitter * chance.normal()).max(0.0));
            }
            if rate > 0.0 {
                let until = busy.entry((*key, from)).or_default();
                let waits = until.saturating_sub(sent.at);
                if sent.is_datagram && waits > queue {
                    passage.is_lost = true;
                } else {
                    *until = (*until).max(sent.at) + scaled(8 * SECOND * sent.bytes, rate.recip());
                    passage.delay += *until - sent.at;
                }
            }
        }
        passage
    }
}

/// Returns the time of the first retransmission at or after a time, of a message that was sent earlier.
pub fn retransmission(sent: Nanos, now: Nanos, first: Nanos) -> Nanos {
    let (mut at, mut pause) = (sent, first);
    while at < now {
        at += pause;
        pause = (pause * 2).min(LONGEST_PAUSE);
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
        let held = self.held(from, to, message.bytes());
        let place = self.links.orders.entry(object).or_default().next_place();
        self.put_on_link(message, Some((object, place)), held, 0);
    }

    /// Sends a message of a connection, for the first time or again. What is lost or damaged is sent again after a pause, and a
    /// second copy has no effect.
    fn put_on_link(&mut self, message: Message, of: Option<(ObjectId, u64)>, held: Nanos, times: u32) {
        let (from, to) = self.ends_of(&message);
        let passage = self.links.passage(from, to, Sent::new(self.now, message.bytes().len(), false));
        if !passage.is_lost && !passage.is_damaged {
            self.at(self.now + held + passage.delay, Event::Message { message, of });
        } else if times < MOST_RETRANSMISSIONS {
            let pause = (message.first_pause() << times).min(LONGEST_PAUSE);
            if let Some(stream) = message.waiting(of) {
                self.sent_by(stream, false);
            }
            self.at(self.now + pause, Event::Retransmission { message, of, times: times + 1 });
        }
    }

    /// Sends a message again that was lost, unless its sender has nothing to say any more.
    pub(super) fn retransmit(&mut self, message: Message, of: Option<(ObjectId, u64)>, times: u32) {
        let (from, _) = self.ends_of(&message);
        let is_wanted = match (&message, of) {
            (Message::Connect { client }, _) => self.stream(*client).phase == Phase::Connecting,
            (_, Some((stream, _))) => !self.stream(stream).is_reset,
            (_, None) => !self.nodes[from].is_down,
        };
        if is_wanted {
            self.put_on_link(message, of, 0, times);
        }
    }

    /// Returns for how long a message with some bytes is held, beside its delay.
    fn held(&mut self, from: NodeId, to: NodeId, bytes: &[u8]) -> Nanos {
        let outside = self.outside.as_ref().map(|outside| outside.node);
        if from == to || outside == Some(from) || outside == Some(to) {
            return 0;
        }
        self.passing.sent(self.now, from, to, bytes)
    }

    /// Sends a datagram.
    pub(super) fn send_to(&mut self, source: NodeId, from: SocketAddrV4, to: SocketAddrV4, bytes: &[u8]) {
        let Some(target) = self.node_at(source, *to.ip()) else { return };
        let held = self.held(source, target, bytes);
        let passage = self.links.passage(source, target, Sent::new(self.now, bytes.len(), true));
        if passage.is_lost || passage.is_damaged {
            return;
        }
        for delay in std::iter::once(passage.delay).chain(passage.again) {
            let bytes = bytes.to_owned();
            let message = Message::Datagram { from, to, source, target, bytes };
            self.at(self.now + held + delay, Event::Message { message, of: None });
        }
    }

    /// Sends a probe of the program outside from a node to another one. A node gets it whatever runs there.
    ///
    /// It has no further delay, so that its lateness is that of disturbances.
    pub fn probe(&mut self, id: u64, source: NodeId, target: NodeId, bytes: usize) {
        let datagram = Sent::new(self.now, bytes, true);
        let Passage { delay, again, is_lost, is_damaged } = self.links.passage_with(source, target, datagram, 0);
        if is_lost {
            return;
        }
        let sent = self.now;
        for delay in std::iter::once(delay).chain(again) {
            let message = Message::Probe { id, source, target, sent, is_damaged };
            self.at(self.now + delay, Event::Message { message, of: None });
        }
    }

    /// Answers with a reset, from the node that a message came to.
    pub(super) fn refuse(&mut self, to: ObjectId, from: NodeId, error: i32) {
        self.put_on_link(Message::Reset { to, from, error }, None, 0, 0);
    }

    fn ends_of(&self, message: &Message) -> (NodeId, NodeId) {
        let node = |object: ObjectId| self.objects[object].node;
        match message {
            Message::Connect { client } => (node(*client), self.peer_node(*client)),
            Message::Accepted { client, server } => (node(*server), node(*client)),
            Message::Bytes { to, from, .. } => (node(*from), node(*to)),
            Message::Reset { to, from, .. } | Message::Window { to, from } | Message::End { to, from } => {
                (*from, node(*to))
            }
            Message::Datagram { source, target, .. } | Message::Probe { source, target, .. } => (*source, *target),
        }
    }

    /// A message arrives, unless its direction is cut or its node is off. Then it is sent again after that.
    pub(super) fn arrive(&mut self, message: Message, of: Option<(ObjectId, u64)>) {
        let (from, to) = self.ends_of(&message);
        let is_probe = matches!(message, Message::Probe { .. });
        if self.links.is_cut(from, to) || self.nodes[to].is_down && !is_probe {
            if !is_probe && !matches!(message, Message::Datagram { .. }) {
                let waiting = message.waiting(of);
                self.links.held.push(Held { from, to, sent: self.now, message, of });
                if let Some(stream) = waiting {
                    self.sent_by(stream, false);
                }
            }
            return;
        }
        self.counts.messages += 1;
        self.digest.number((from as u64) << 32 | to as u64);
        let Some((stream, place)) = of else { return self.take_in(message, to) };
        self.sent_by(stream, true);
        let mut next = self.links.orders.entry(stream).or_default().arrived(place, message);
        while let Some(message) = next {
            self.take_in(message, to);
            next = self.links.orders.entry(stream).or_default().next_arrived();
        }
    }

    /// The node that a message goes to acts on it.
    fn take_in(&mut self, message: Message, to: NodeId) {
        self.nodes[to].heard = self.now;
        match message {
            Message::Connect { client } => self.connect_arrives(client, to),
            Message::Accepted { client, server } => {
                if self.stream(client).phase == Phase::Connecting {
                    let stream = self.stream(client);
                    stream.phase = Phase::Connected;
                    stream.peer = Some(server);
                    self.changed(client);
                    self.watch_connection(client);
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
                if stream.phase == Phase::Connected && !stream.is_reset {
                    stream.received.extend(bytes);
                    stream.heard = self.now;
                    self.changed(end);
                } else {
                    self.refuse(sender, to, libc::ECONNRESET);
                }
            }
            Message::Window { to, .. } => {
                if let Kind::Stream(stream) = &mut self.objects[to].kind {
                    stream.is_full = false;
                    self.changed(to);
                }
            }
            Message::End { to, .. } => {
                if let Kind::Stream(stream) = &mut self.objects[to].kind {
                    stream.peer_ended = true;
                    self.changed(to);
                }
            }
            Message::Datagram { from, to, target, bytes, .. } => self.datagram_arrives(target, from, to, bytes),
            Message::Probe { id, sent, is_damaged, .. } => {
                self.links.probed.push(Probed { id, delay: self.now - sent, is_damaged });
            }
        }
    }

    /// Removes the rules with a key, also those of disks. What a cut kept from arriving comes with its next retransmission.
    pub fn mend(&mut self, key: Key) {
        self.links.mend(key);
        self.stop_failing(key);
        self.slow.retain(|slow| slow.key != key);
        self.send_held_again();
    }

    /// Sends the messages again whose way is free now.
    pub(super) fn send_held_again(&mut self) {
        self.hear_again();
        let (free, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.links.held).into_iter().partition(|held| {
            !self.links.has_cut(held.from, held.to)
                && !self.nodes[held.to].is_down
                && !held.of.is_some_and(|(stream, _)| self.is_over(stream))
        });
        self.links.held = held;
        for (place, held) in free.into_iter().enumerate() {
            let at = retransmission(held.sent, self.now, held.message.first_pause()) + place as Nanos;
            self.at(at, Event::Message { message: held.message, of: held.of });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        retransmission, Disturbance, Links, Message, Order, Sent, FIRST_RETRANSMISSION, MILLISECOND, SECOND,
    };

    const SEGMENT_SENT: Sent = Sent { at: 0, bytes: 1_000, is_datagram: false };

    #[test]
    fn a_retransmission_doubles_its_pause() {
        let at = |now| retransmission(0, now * MILLISECOND, FIRST_RETRANSMISSION) / MILLISECOND;
        assert_eq!([at(0), at(1), at(200), at(201), at(601)], [0, 200, 200, 600, 1400]);
    }

    #[test]
    fn a_disturbance_has_its_shares() {
        let mut links = Links::new(1, 2);
        let (delay, jitter) = (50e6, 5e6);
        links.disturb(1, 0, 1, Disturbance { duplicate: 0.25, delay, jitter, hurry: 0.5, ..Disturbance::default() });
        let passages: Vec<_> = (0..4_000).map(|_| links.passage(0, 1, SEGMENT_SENT)).collect();
        let share = |count: usize| count * 100 / passages.len();
        assert!((22..28).contains(&share(passages.iter().filter(|passage| passage.again.is_some()).count())));
        assert!((47..53).contains(&share(passages.iter().filter(|passage| passage.delay > 25 * MILLISECOND).count())));
        assert!(passages.iter().all(|passage| passage.delay < 85 * MILLISECOND));
    }

    #[test]
    fn a_rate_is_that_of_all_links_of_a_node() {
        let mut links = Links::new(1, 3);
        for to in [1, 2] {
            links.disturb(1, 0, to, Disturbance { rate: 1e6, queue: 40 * MILLISECOND, ..Disturbance::default() });
        }
        // A message of 1,000 bytes takes 8 ms.
        let delays: Vec<_> = (0..10).map(|number| links.passage(0, 1 + number % 2, SEGMENT_SENT).delay).collect();
        assert!(delays
            .iter()
            .zip(1..)
            .all(|(delay, number)| (8 * number..8 * number + 3).contains(&(delay / MILLISECOND))));
        let datagram = |at| Sent { at, bytes: 1_000, is_datagram: true };
        assert!(links.passage(0, 1, datagram(0)).is_lost);
        let later = links.passage(0, 1, datagram(SECOND));
        assert!(!later.is_lost && later.delay < 11 * MILLISECOND);
        links.mend(1);
        assert!(links.passage(0, 1, SEGMENT_SENT).delay < 3 * MILLISECOND);
    }

    #[test]
    fn what_comes_early_waits_for_what_was_sent_before() {
        let mut order = Order::default();
        let places: Vec<_> = (0..3).map(|_| order.next_place()).collect();
        let message = |from| Message::End { to: 0, from };
        let is_from =
            |message: Option<Message>, node| matches!(message, Some(Message::End { from, .. }) if from == node);
        assert!(order.arrived(places[1], message(1)).is_none());
        assert!(order.arrived(places[2], message(2)).is_none());
        assert!(is_from(order.arrived(places[0], message(0)), 0));
        assert!(is_from(order.next_arrived(), 1));
        assert!(is_from(order.next_arrived(), 2));
        assert!(order.next_arrived().is_none());
    }

    #[test]
    fn cuts_count_what_they_keep_from_arriving() {
        let mut links = Links::new(1, 3);
        links.cut(1, 0, 1);
        links.cut(2, 0, 1);
        assert!(links.is_cut(0, 1) && !links.is_cut(1, 0));
        links.mend(1);
        assert!(links.is_cut(0, 1));
        assert_eq!(links.dropped(1).collect::<Vec<_>>(), [(0, 1, 1)]);
        assert_eq!(links.dropped(2).collect::<Vec<_>>(), [(0, 1, 2)]);
    }
}
