//! Lists and strings with unique pieces: append, put, read all.
//!
//! A read shows the order of all pieces since the last put. So a put and all pieces that were appended to it make a
//! block. In it, the piece with number i has position 2i + 1, and a read of k pieces 2k. The content before any put
//! is the first block. A piece that was never read is a block of its own. If a piece was made twice, `writers` finds
//! out who made which one.

use std::collections::HashMap;

use super::blocks::{self, Conflict, Item};
use super::writers;
use crate::hash::FastHasher;
use crate::ops::{op, Kind, Near, Ops, INF, NONE};

/// Splits what was read into pieces. No piece is the beginning of another, so there is only one way.
struct Pieces<'a> {
    numbers: HashMap<&'a [i64], u32, FastHasher>,
    /// By piece: the operations that appended or put it.
    writers: Vec<Vec<u32>>,
    lengths: Vec<usize>,
}

impl<'a> Pieces<'a> {
    fn new(ops: &Ops<'a>) -> Result<Self, &'static str> {
        let mut numbers: HashMap<&[i64], u32, FastHasher> = HashMap::default();
        let mut writers: Vec<Vec<u32>> = Vec::new();
        for i in (0..ops.len()).filter(|&i| ops.f[i] != op::READ_LIST) {
            if ops.list(i).is_empty() {
                return Err("something empty is appended or put");
            }
            let fresh = writers.len() as u32;
            let number = *numbers.entry(ops.list(i)).or_insert(fresh);
            if number == fresh {
                writers.push(Vec::with_capacity(1));
            }
            writers[number as usize].push(i as u32);
        }
        let mut lengths: Vec<usize> = numbers.keys().map(|piece| piece.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        if lengths.len() > MAX_LENGTHS {
            return Err("pieces have too many different lengths");
        }
        for piece in numbers.keys() {
            if lengths.iter().any(|&k| k < piece.len() && numbers.contains_key(&piece[..k])) {
                return Err("a piece is the beginning of another");
            }
        }
        Ok(Self { numbers, writers, lengths })
    }

    /// The numbers of the pieces, or None if something else was read.
    fn split(&self, read: &[i64]) -> Option<Vec<u32>> {
        let mut pieces = Vec::new();
        let mut rest = read;
        while !rest.is_empty() {
            let fits = |&&k: &&usize| k <= rest.len() && self.numbers.contains_key(&rest[..k]);
            let k = *self.lengths.iter().find(fits)?;
            pieces.push(self.numbers[&rest[..k]]);
            rest = &rest[k..];
        }
        Some(pieces)
    }
}

const MAX_LENGTHS: usize = 16;

#[derive(Clone, Copy)]
struct Place {
    block: u32,
    index: u32,
    seen_by: u32,
}

/// A read, with the pieces that it found, or with their writers.
pub type Found = (u32, Vec<u32>);

/// Decides; unsuited if a piece was made more than once and the writer of some read piece is unclear.
pub fn check(ops: &Ops, initial: &[i64], want_order: bool) -> Near {
    if !initial.is_empty() {
        return Near::Unsuited("there is something at the beginning");
    }
    let pieces = match Pieces::new(ops) {
        Ok(pieces) => pieces,
        Err(why) => return Near::Unsuited(why),
    };
    let mut reads: Vec<Found> = Vec::new();
    for i in (0..ops.len()).filter(|&i| ops.f[i] == op::READ_LIST && ops.e[i] != INF) {
        match pieces.split(ops.list(i)) {
            Some(found) => reads.push((i as u32, found)),
            None => return Near::invalid(Kind::Phantom, &[i as u32]),
        }
    }
    if pieces.writers.iter().any(|writers| writers.len() > 1) {
        return writers::check(ops, &pieces.writers, &reads, want_order);
    }
    for (_, found) in &mut reads {
        for piece in found {
            *piece = pieces.writers[*piece as usize][0];
        }
    }
    decide(ops, &reads, want_order)
}

/// Decides if the writer of each read piece is known.
pub fn decide(ops: &Ops, reads: &[Found], want_order: bool) -> Near {
    // Block 0 is the first one. The block of a put, or of a piece that was never read, is its number + 1.
    let block_of = |writers: &[u32]| writers.first().filter(|&&w| ops.f[w as usize] == op::PUT).map_or(0, |w| w + 1);
    let mut longest: HashMap<u32, &Found, FastHasher> = HashMap::default();
    for found in reads {
        let (i, writers) = found;
        if let Some(&put) = writers.iter().skip(1).find(|&&w| ops.f[w as usize] == op::PUT) {
            return Near::invalid(Kind::Order, &[put, *i]);
        }
        let best = longest.entry(block_of(writers)).or_insert(found);
        if writers.len() > best.1.len() {
            *best = found;
        }
    }
    let mut places = vec![Place { block: NONE, index: 0, seen_by: NONE }; ops.len()];
    let mut blocks: Vec<u32> = longest.keys().copied().collect();
    blocks.sort_unstable();
    for block in blocks {
        let (read, writers) = longest[&block];
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
    for (i, writers) in reads {
        let block = block_of(writers);
        let (other, best) = longest[&block];
        if !best.starts_with(writers) {
            return Near::invalid(Kind::Fork, &[*i, *other]);
        }
        items.push(Item { block, position: 2 * writers.len() as u32, op: *i });
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
    let seer =
        |i: u32| if i == NONE || ops.f[i as usize] == op::READ_LIST { NONE } else { places[i as usize].seen_by };
    match conflict {
        Conflict::Chain(early, late) => {
            let future = ops.f[early as usize] != op::READ_LIST && ops.f[late as usize] == op::READ_LIST;
            let kind = if future { Kind::Future } else { Kind::Order };
            Near::invalid(kind, &[early, late, seer(early), seer(late)])
        }
        Conflict::Blocks(a, b, c, d) => Near::invalid(Kind::Stale, &[a, b, c, d, seer(a), seer(b), seer(c), seer(d)]),
    }
}
