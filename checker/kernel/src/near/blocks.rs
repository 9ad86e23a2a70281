//! The two facts of the parent module, for any family that can assign a block and a position to each operation.

use crate::ops::{Ops, NEG, NONE};

/// An operation and its forced place.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its block.
    pub block: u32,
    /// Its position in the block; operations of one position may come in any order.
    pub position: u32,
    /// The operation.
    pub op: u32,
}

/// Why blocks cannot be ordered.
#[derive(Clone, Copy, Debug)]
pub enum Conflict {
    /// Within one block, the second operation ends before the first starts, but has a higher position.
    Chain(u32, u32),
    /// The first operation ends before the second starts, and the third before the fourth. The first and the fourth
    /// are of one block, the second and the third of another.
    Blocks(u32, u32, u32, u32),
}

struct Zone {
    low: i64,
    high: i64,
    forward: bool,
    from: u32,
    to: u32,
    /// The operation that ends first, and the one that starts last.
    ends: u32,
    starts: u32,
}

/// Orders blocks, or returns why that is impossible. The block `first` begins before everything.
pub fn order(ops: &Ops, items: &mut [Item], first: u32, want_order: bool) -> Result<Option<Vec<u32>>, Conflict> {
    items.sort_unstable_by_key(|item| (item.block, item.position, ops.s[item.op as usize], item.op));
    let mut zones = Vec::new();
    let mut from = 0;
    while from < items.len() {
        let block = items[from].block;
        let to = from + items[from..].iter().take_while(|item| item.block == block).count();
        zones.push(zone(ops, &items[from..to], from as u32, block == first)?);
        from = to;
    }
    zones.sort_unstable_by_key(|zone| (zone.low, zone.forward));
    let mut best: Option<&Zone> = None;
    for zone in &zones {
        if let Some(before) = best {
            if before.high > if zone.forward { zone.low } else { zone.high } {
                return Err(Conflict::Blocks(before.ends, zone.starts, zone.ends, before.starts));
            }
        }
        if zone.forward && best.is_none_or(|before| zone.high > before.high) {
            best = Some(zone);
        }
    }
    let collect = || {
        let runs = zones.iter().map(|zone| &items[zone.from as usize..zone.to as usize]);
        runs.flatten().map(|item| item.op).collect()
    };
    Ok(want_order.then(collect))
}

fn zone(ops: &Ops, items: &[Item], from: u32, first: bool) -> Result<Zone, Conflict> {
    let (mut m, mut ends) = (i64::MAX, NONE);
    let (mut big, mut starts) = (NEG, NONE);
    // The maximum start at lower positions, and at this one.
    let (mut lower, mut lower_op) = (NEG, NONE);
    let mut position = None;
    let (mut here, mut here_op) = (NEG, NONE);
    for item in items {
        let i = item.op as usize;
        if position != Some(item.position) {
            position = Some(item.position);
            if here > lower || lower_op == NONE {
                (lower, lower_op) = (here, here_op);
            }
        }
        if ops.e[i] < lower {
            return Err(Conflict::Chain(lower_op, item.op));
        }
        if ops.s[i] > here {
            (here, here_op) = (ops.s[i], item.op);
        }
        if ops.e[i] < m || ends == NONE {
            (m, ends) = (ops.e[i], item.op);
        }
        if ops.s[i] > big {
            (big, starts) = (ops.s[i], item.op);
        }
    }
    if first {
        (m, ends) = (NEG, NONE);
    }
    let forward = m < big;
    let (low, high) = if forward { (m, big) } else { (big, m) };
    Ok(Zone { low, high, forward, from, to: from + items.len() as u32, ends, starts })
}
