//! The switch itself: learns addresses, and carries each frame over its link.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::flows::Flows;
use crate::frame;
use crate::kernel::{now_ns, wall_ns, Port};
use crate::link::{Counts, Link, Rule};
use crate::recording::Recording;
use crate::segment;
use crate::watch::{Waited, Watch};

const MOST_ADDRESSES: usize = 1024;
const MOST_WAITING_BYTES: usize = 64 << 20;
const LARGEST_FRAME: usize = 128 << 10;
const FRAMES_IN_A_ROW: usize = 32;
/// The port of this machine, whose packets never stand still.
const HOST: usize = 0;

/// A packet that waits. The order is that of its time, and then of its arrival.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    due_ns: u64,
    order: u64,
    link: usize,
    number: u64,
    arrived_ns: u64,
    frame: Vec<u8>,
}

pub struct Carrier {
    pub recording: Recording,
    pub flows: Flows,
    names: Vec<String>,
    ports: Vec<Port>,
    links: Vec<Link>,
    addresses: HashMap<[u8; 6], usize>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: usize,
    order: u64,
    buffer: Vec<u8>,
    watches: BTreeMap<u64, Waited>,
    /// Until when the packets between nodes stand still; 0: they do not.
    still_until_ns: u64,
}

impl Carrier {
    pub fn new(names: Vec<String>, ports: Vec<Port>) -> Self {
        let links = (0..ports.len() * ports.len()).map(|_| Link::default()).collect();
        let addresses = HashMap::new();
        let buffer = vec![0; LARGEST_FRAME];
        let recording = Recording::default();
        Self {
            recording,
            flows: Flows::default(),
            names,
            ports,
            links,
            addresses,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            order: 0,
            buffer,
            watches: BTreeMap::new(),
            still_until_ns: 0,
        }
    }

    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn link(&self, source: usize, target: usize) -> usize {
        source * self.ports.len() + target
    }

    pub fn set(&mut self, source: usize, target: usize, rule: Option<Rule>) {
        let link = self.link(source, target);
        if rule.is_none() {
            self.let_go(Some(link));
        }
        self.links[link].set(rule);
    }

    pub fn clear(&mut self) {
        self.let_go(None);
        self.links.iter_mut().for_each(|link| link.set(None));
    }

    /// Sends what waits on a link, or on all links, in its order.
    fn let_go(&mut self, link: Option<usize>) {
        let mut all = std::mem::take(&mut self.waiting).into_sorted_vec();
        while let Some(Reverse(one)) = all.pop() {
            if link.is_none_or(|link| link == one.link) {
                self.send(&one, now_ns());
            } else {
                self.waiting.push(Reverse(one));
            }
        }
    }

    /// How long the first waiting packet still waits. None: no packet waits.
    pub fn patience_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse(first)| first.due_ns.saturating_sub(now_ns()))
    }

    pub fn send_due(&mut self) {
        let now_ns = now_ns();
        while self.waiting.peek().is_some_and(|Reverse(first)| first.due_ns <= now_ns) {
            if let Some(Reverse(first)) = self.waiting.pop() {
                self.send(&first, now_ns);
            }
        }
    }

    fn send(&mut self, packet: &Waiting, now_ns: u64) {
        self.waiting_bytes -= packet.frame.len();
        self.links[packet.link].leave(packet.number, now_ns.saturating_sub(packet.arrived_ns));
        self.write(packet.link, &packet.frame);
    }

    fn write(&mut self, link: usize, bytes: &[u8]) {
        if self.ports[link % self.ports.len()].write(bytes) {
            self.recording.add(bytes, wall_ns());
        } else {
            self.links[link].counts.refused += 1;
        }
    }

    /// Reads what has come to a port and carries it.
    pub fn carry_from(&mut self, source: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..FRAMES_IN_A_ROW {
            let Some(count) = self.ports[source].read(&mut buffer) else { break };
            if count >= frame::HEADER + frame::ETHERNET && count < buffer.len() {
                self.carry(source, &buffer[..count]);
            }
        }
        self.buffer = buffer;
    }

    fn carry(&mut self, source: usize, bytes: &[u8]) {
        let (Some(from), Some(to)) = (frame::source(bytes), frame::target(bytes)) else { return };
        if !frame::is_group(from) && (self.addresses.len() < MOST_ADDRESSES || self.addresses.contains_key(&from)) {
            self.addresses.insert(from, source);
        }
        match self.addresses.get(&to) {
            Some(target) if *target == source => {}
            Some(target) => self.carry_over(source, *target, bytes),
            None => (0..self.ports.len())
                .filter(|target| *target != source)
                .for_each(|target| self.carry_over(source, target, bytes)),
        }
    }

    fn carry_over(&mut self, source: usize, target: usize, bytes: &[u8]) {
        let link = self.link(source, target);
        let counts = &mut self.links[link].counts;
        counts.frames += 1;
        counts.bytes += (bytes.len() - frame::HEADER) as u64;
        let stands = self.stands(source, target);
        if source != HOST && target != HOST {
            self.see(link, bytes);
        }
        if !stands && !self.links[link].has_rule() {
            self.write(link, bytes);
            return;
        }
        let not_before_ns = if stands { self.still_until_ns } else { 0 };
        if self.links[link].has_rule() {
            for packet in frame::packets(bytes) {
                self.disturb(link, packet, not_before_ns);
            }
        } else {
            self.keep(link, bytes.to_vec(), now_ns(), not_before_ns);
        }
    }

    /// Whether a frame must wait because the packets between nodes stand still. After that time, those that waited go first.
    fn stands(&mut self, source: usize, target: usize) -> bool {
        if self.still_until_ns == 0 || source == HOST || target == HOST {
            return false;
        }
        let now_ns = now_ns();
        if now_ns >= self.still_until_ns {
            self.still_until_ns = 0;
            self.send_due();
            return false;
        }
        self.watches.values_mut().for_each(|waited| waited.stands(now_ns));
        true
    }

    /// Shows a frame between nodes to those who wait for one, and notes what it tells about its connection.
    fn see(&mut self, link: usize, bytes: &[u8]) {
        if let Some(segment) = segment::read(bytes) {
            let now_ns = now_ns();
            self.flows.see(link, &segment, now_ns);
            for waited in self.watches.values_mut() {
                let until_ns = waited.see(link, &segment, now_ns).unwrap_or(0);
                self.still_until_ns = self.still_until_ns.max(until_ns);
            }
        }
    }

    pub fn watch(&mut self, number: u64, watch: Watch) {
        self.watches.insert(number, Waited::new(watch));
    }

    pub fn watched(&self, number: u64) -> Option<&Waited> {
        self.watches.get(&number)
    }

    pub fn forget(&mut self, number: u64) {
        self.watches.remove(&number);
    }

    /// The names of the ports of a link.
    pub fn ends(&self, link: usize) -> (&str, &str) {
        (&self.names[link / self.ports.len()], &self.names[link % self.ports.len()])
    }

    fn disturb(&mut self, link: usize, mut packet: Vec<u8>, not_before_ns: u64) {
        let now_ns = now_ns();
        let size = packet.len() - frame::HEADER;
        let copies = self.links[link].fate(size, frame::is_protected(&packet), now_ns);
        let last = copies.len().wrapping_sub(1);
        for (place, copy) in copies.into_iter().enumerate() {
            let mut frame = if place == last { std::mem::take(&mut packet) } else { packet.clone() };
            if let Some(drawn) = copy.damage {
                damage(&mut frame, drawn);
            }
            self.keep(link, frame, now_ns, copy.due_ns.max(not_before_ns));
        }
        self.send_due();
    }

    /// Keeps a frame up to its time, if there is room for it.
    fn keep(&mut self, link: usize, frame: Vec<u8>, arrived_ns: u64, due_ns: u64) {
        if self.waiting_bytes + frame.len() > MOST_WAITING_BYTES {
            self.links[link].counts.full += 1;
            return;
        }
        self.order += 1;
        self.waiting_bytes += frame.len();
        let number = self.links[link].wait();
        self.waiting.push(Reverse(Waiting { due_ns, order: self.order, link, number, arrived_ns, frame }));
    }

    /// The counts of each link, with the names of its ports.
    pub fn counts(&self) -> impl Iterator<Item = (&str, &str, &Counts)> {
        self.links.iter().enumerate().map(|(link, one)| {
            let (source, target) = self.ends(link);
            (source, target, &one.counts)
        })
    }

    /// The frames of each port that came while the switch had no room for them.
    pub fn missed(&mut self) -> Vec<(String, u64)> {
        self.names.iter().cloned().zip(self.ports.iter_mut().map(Port::missed)).collect()
    }
}

/// Flips a bit behind the Ethernet header. The checksums are finished before, so a receiver sees it.
fn damage(packet: &mut [u8], drawn: u64) {
    frame::finish(packet);
    let body = &mut packet[frame::HEADER + frame::ETHERNET..];
    if !body.is_empty() {
        let bit = drawn as usize % (body.len() * 8);
        body[bit / 8] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_flips_one_bit_behind_the_header() {
        for drawn in [0, 5, 12_345, u64::MAX] {
            let mut packet: Vec<u8> = (0..100).collect();
            packet[..frame::HEADER].fill(0);
            let before = packet.clone();
            damage(&mut packet, drawn);
            let flipped: u32 = packet.iter().zip(&before).map(|(one, other)| (one ^ other).count_ones()).sum();
            assert_eq!(flipped, 1);
            assert_eq!(packet[..frame::HEADER + frame::ETHERNET], before[..frame::HEADER + frame::ETHERNET]);
        }
    }
}
