//! Lists and strings with unique pieces: append, put, read all.
//!
//! A read tells the order of all pieces since the last put. So a put and what was seen to be appended to it is a block, with
//! the piece of number i at position 2i + 1 and a read of k pieces at 2k; what was there before any put is the first block;
//! a piece that was never seen is a block of its own.

use std::collections::HashMap;

use super::blocks::{self, Conflict, Item};
use crate::hash::FastHasher;
use crate::ops::{op, Kind, Near, Ops, INF, NONE};

/// Finds pieces in what was read. No piece is the beginning of another, so there is one way to do that.
struct Pieces<'a> {
    whole: HashMap<&'a [i64], u32, FastHasher>,
    lengths: Vec<usize>,
}

impl<'a> Pieces<'a> {
    fn new(ops: &Ops<'a>) -> Result<Self, &'static str> {
        let mut whole: HashMap<&[i64], u32, FastHasher> = HashMap::default();
        for i in 0..ops.len() {
            if ops.f[i] == op::READ_LIST {
                continue;
            }
            if ops.list(i).is_empty() {
                return Err("something empty is appended or put");
            }
            if whole.insert(ops.list(i), i as u32).is_some() {
                return Err("the same is appended or put twice");
            }
        }
        let mut lengths: Vec<usize> = whole.keys().map(|piece| piece.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() > MAX_LENGTHS {
            return Err("pieces have too many different lengths");
        }
        for piece in whole.keys() {
            if lengths.iter().any(|&k| k < piece.len() && whole.contains_key(&piece[..k])) {
                return Err("a piece is the beginning of another");
            }
        }
        Ok(Self { whole, lengths })
    }

    /// The writers of the pieces, or None if something else was read.
    fn split(&self, read: &[i64]) -> Option<Vec<u32>> {
        let mut writers = Vec::new();
        let mut rest = read;
        while !rest.is_empty() {
            let fits = |&&k: &&usize| k <= rest.len() && self.whole.contains_key(&rest[..k]);
            let k = *self.lengths.iter().find(fits)?;
            writers.push(self.whole[&rest[..k]]);
            rest = &rest[k..];
        }
        Some(writers)
    }
}

const MAX_LENGTHS: usize = 16;

#[derive(Clone, Copy)]
struct Place {
    block: u32,
    index: u32,
    seen_by: u32,
}

/// Decides; unsuited if pieces are not unique.
pub fn check(ops: &Ops, initial: &[i64], want_order: bool) -> Near {
    if !initial.is_empty() {
        return Near::Unsuited("there is something at the beginning");
    }
    let pieces = match Pieces::new(ops) {
        Ok(pieces) => pieces,
        Err(why) => return Near::Unsuited(why),
    };
    // Block 0 is the first; that of a put is its number + 1, that of an unseen piece too.
    let mut longest: HashMap<u32, (u32, Vec<u32>), FastHasher> = HashMap::default();
    let mut reads: Vec<(u32, u32, Vec<u32>)> = Vec::new();
    for i in (0..ops.len()).filter(|&i| ops.f[i] == op::READ_LIST && ops.e[i] != INF) {
        let Some(writers) = pieces.split(ops.list(i)) else {
            return Near::invalid(Kind::Phantom, &[i as u32]);
        };
        if let Some(&put) = writers.iter().skip(1).find(|&&w| ops.f[w as usize] == op::PUT) {
            return Near::invalid(Kind::Order, &[put, i as u32]);
        }
        let block = writers.first().filter(|&&w| ops.f[w as usize] == op::PUT).map_or(0, |w| w + 1);
        let best = longest.entry(block).or_insert((i as u32, Vec::new()));
        if writers.len() > best.1.len() {
            *best = (i as u32, writers.clone());
        }
        reads.push((i as u32, block, writers));
    }
    let mut places = vec![Place { block: NONE, index: 0, seen_by: NONE }; ops.len()];
    let mut blocks: Vec<u32> = longest.keys().copied().collect();
    blocks.sort_unstable();
    for block in blocks {
        let (read, writers) = &longest[&block];
        for (index, &w) in writers.iter().enumerate() {
            let place = &mut places[w as usize];
            if place.block == block {
                return Near::invalid(Kind::Duplicate, &[w, *read]);
            }
            if place.block != NONE {
                return Near::invalid(Kind::Fork, &[w, place.seen_by, *read]);
            }
            *place = Place { block, index: index as u32, seen_by: *read };
        }
    }
    let mut items = Vec::with_capacity(ops.len());
    for (i, block, writers) in &reads {
        let (other, best) = &longest[block];
        if !best.starts_with(writers) {
            return Near::invalid(Kind::Fork, &[*i, *other]);
        }
        items.push(Item { block: *block, position: 2 * writers.len() as u32, op: *i });
    }
    for i in (0..ops.len()).filter(|&i| ops.f[i] != op::READ_LIST) {
        let place = places[i];
        if place.block != NONE {
            items.push(Item { block: place.block, position: 2 * place.index + 1, op: i as u32 });
        } else if ops.e[i] != INF {
            items.push(Item { block: i as u32 + 1, position: 1, op: i as u32 });
        }
    }
    match blocks::order(ops, &mut items, 0, want_order) {
        Ok(order) => Near::Valid(order),
        Err(conflict) => explain(ops, &places, conflict),
    }
}

fn explain(ops: &Ops, places: &[Place], conflict: Conflict) -> Near {
    let seer = |i: u32| if i == NONE || ops.f[i as usize] == op::READ_LIST { NONE } else { places[i as usize].seen_by };
    match conflict {
        Conflict::Chain(early, late) => {
            let future = ops.f[early as usize] != op::READ_LIST && ops.f[late as usize] == op::READ_LIST;
            let kind = if future { Kind::Future } else { Kind::Order };
            Near::invalid(kind, &[early, late, seer(early), seer(late)])
        }
        Conflict::Blocks(a, b, c, d) => {
            Near::invalid(Kind::Stale, &[a, b, c, d, seer(a), seer(b), seer(c), seer(d)])
        }
    }
}
