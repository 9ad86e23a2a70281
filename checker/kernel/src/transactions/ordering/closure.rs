//! Which events lead to which others, as a table of bits.

use super::super::NONE;
use super::problem::Arc;

/// An event before another one.
pub type Link = (u32, u32);

/// By event: a bit for each event that it leads to.
#[derive(Clone, Debug)]
pub struct Closure {
    words: usize,
    bits: Vec<u64>,
    /// The events in an order that all arcs agree with.
    pub order: Vec<u32>,
}

pub fn links_of(arcs: &[Arc]) -> Vec<Link> {
    arcs.iter().map(|arc| (arc.from, arc.to)).collect()
}

/// Returns how many words the table of some events has.
pub fn words(events: usize) -> usize {
    events * events.div_ceil(64)
}

/// Returns the events in an order that some links agree with; None if they have a cycle.
pub fn order(events: usize, links: &[Link]) -> Option<Vec<u32>> {
    in_order(links, &Next::new(events, links))
}

/// Returns the same, given the places of the links that leave each event.
pub fn in_order(links: &[Link], next: &Next) -> Option<Vec<u32>> {
    let events = next.events();
    let mut waits = vec![0u32; events];
    for link in links {
        waits[link.1 as usize] += 1;
    }
    let mut order: Vec<u32> = (0..events as u32).filter(|&event| waits[event as usize] == 0).collect();
    let mut at = 0;
    while let Some(&event) = order.get(at) {
        at += 1;
        for &number in next.of(event) {
            let to = links[number as usize].1;
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                order.push(to);
            }
        }
    }
    (order.len() == events).then_some(order)
}

impl Closure {
    /// Makes the table; None if the arcs have a cycle.
    pub fn new(events: usize, arcs: &[Arc]) -> Option<Self> {
        let order = order(events, &links_of(arcs))?;
        let words = events.div_ceil(64);
        let next = Next::new(events, &links_of(arcs));
        let mut bits = vec![0u64; events * words];
        for &event in order.iter().rev() {
            for &arc in next.of(event) {
                let (own, to) = (event as usize * words, arcs[arc as usize].to as usize);
                bits[own + to / 64] |= 1 << (to % 64);
                for word in 0..words {
                    bits[own + word] |= bits[to * words + word];
                }
            }
        }
        Some(Self { words, bits, order })
    }

    /// Returns whether an event leads to another one.
    #[inline]
    pub fn leads(&self, from: u32, to: u32) -> bool {
        self.bits[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }
}

/// The places of the links that leave each event.
pub struct Next {
    first: Vec<u32>,
    of: Vec<u32>,
}

impl Next {
    pub fn new(events: usize, links: &[Link]) -> Self {
        let mut first = vec![0u32; events + 1];
        for link in links {
            first[link.0 as usize + 1] += 1;
        }
        for event in 0..events {
            first[event + 1] += first[event];
        }
        let mut next = first.clone();
        let mut of = vec![NONE; links.len()];
        for (place, link) in (0..).zip(links) {
            of[next[link.0 as usize] as usize] = place;
            next[link.0 as usize] += 1;
        }
        Self { first, of }
    }

    pub fn events(&self) -> usize {
        self.first.len() - 1
    }

    pub fn of(&self, event: u32) -> &[u32] {
        &self.of[self.first[event as usize] as usize..self.first[event as usize + 1] as usize]
    }
}
