//! Register with cas whose new values are unique: chains of cas from a write or the initial value, then blocks.

use super::blocks::{self, Conflict, Item};
use super::Map;
use crate::ops::{op, Kind, Near, Ops, INF, NONE};

struct Value {
    /// The operation that wrote it; `NONE` for the initial value.
    writer: u32,
    effective: bool,
    /// The effective cas that replaced it.
    replaced_by: u32,
    /// An operation that observed it.
    seen_by: u32,
    block: u32,
    depth: u32,
}

/// Decides; unsuited if a value is written twice, or the initial value is written, or if a failed cas observes.
pub fn check(ops: &Ops, initial: i64, want_order: bool) -> Near {
    let n = ops.len();
    let mut values: Map<u32> = Map::default();
    let mut table: Vec<Value> = Vec::new();
    let fresh = |writer: u32, effective: bool| Value {
        writer,
        effective,
        replaced_by: NONE,
        seen_by: NONE,
        block: NONE,
        depth: 0,
    };
    values.insert(initial, 0);
    table.push(fresh(NONE, true));
    for i in 0..n {
        let new = match ops.f[i] {
            op::CAS_FAIL => return Near::Unsuited("a failed cas is taken as an observation"),
            op::WRITE => ops.a[i],
            op::CAS => ops.b[i],
            _ => continue,
        };
        if values.insert(new, table.len() as u32).is_some() {
            return Near::Unsuited("a value is written twice, or the initial value is written");
        }
        table.push(fresh(i as u32, ops.e[i] != INF));
    }
    // An observed operation took effect, and so did those that it depends on.
    let mut work: Vec<u32> = Vec::new();
    let mut phantom: Option<u32> = None;
    for i in 0..n {
        let seen = match ops.f[i] {
            op::READ | op::CAS if ops.e[i] != INF => ops.a[i],
            _ => continue,
        };
        match values.get(&seen) {
            Some(&v) => {
                table[v as usize].seen_by = i as u32;
                work.push(v);
            }
            None if phantom.is_none_or(|p| ops.e[i] < ops.e[p as usize]) => phantom = Some(i as u32),
            None => {}
        }
    }
    if let Some(seer) = phantom {
        return Near::invalid(Kind::Phantom, &[seer]);
    }
    while let Some(v) = work.pop() {
        let writer = table[v as usize].writer;
        if table[v as usize].effective && (writer == NONE || ops.e[writer as usize] != INF) {
            continue;
        }
        if table[v as usize].effective {
            continue;
        }
        table[v as usize].effective = true;
        if ops.f[writer as usize] == op::CAS {
            match values.get(&ops.a[writer as usize]) {
                Some(&source) => {
                    if table[source as usize].seen_by == NONE {
                        table[source as usize].seen_by = writer;
                    }
                    work.push(source);
                }
                None => return Near::invalid(Kind::Phantom, &[writer, table[v as usize].seen_by]),
            }
        }
    }
    for v in 1..table.len() {
        let writer = table[v].writer as usize;
        if !table[v].effective || ops.f[writer] != op::CAS {
            continue;
        }
        let source = values[&ops.a[writer]] as usize;
        let other = table[source].replaced_by;
        if other != NONE {
            let (one, two) = (table[other as usize].writer, table[v].writer);
            let seers = [table[other as usize].seen_by, table[v].seen_by, table[source].writer];
            return Near::invalid(Kind::LostUpdate, &[seers[2], one, two, seers[0], seers[1]]);
        }
        table[source].replaced_by = v as u32;
    }
    chains(ops, &values, &mut table, want_order)
}

fn chains(ops: &Ops, values: &Map<u32>, table: &mut [Value], want_order: bool) -> Near {
    // Walks every chain from its root; the remaining values have no root.
    for root in 0..table.len() {
        let writer = table[root].writer;
        let is_root = writer == NONE || (table[root].effective && ops.f[writer as usize] == op::WRITE);
        if !is_root {
            continue;
        }
        let (mut v, mut depth) = (root as u32, 0);
        while v != NONE {
            table[v as usize].block = root as u32;
            table[v as usize].depth = depth;
            depth += 1;
            v = table[v as usize].replaced_by;
        }
    }
    if let Some(start) = (0..table.len()).find(|&v| table[v].effective && table[v].block == NONE) {
        let mut core = Vec::new();
        let mut v = start;
        loop {
            let writer = table[v].writer;
            if core.contains(&writer) {
                break;
            }
            core.push(writer);
            v = values[&ops.a[writer as usize]] as usize;
        }
        return Near::invalid(Kind::Cycle, &core);
    }
    let mut items = Vec::with_capacity(ops.len());
    for i in 0..ops.len() {
        let (seen, after) = match ops.f[i] {
            op::READ if ops.e[i] != INF => (ops.a[i], 1),
            op::WRITE => (ops.a[i], 0),
            op::CAS => (ops.b[i], 0),
            _ => continue,
        };
        let value = &table[values[&seen] as usize];
        // A crashed write whose value was never observed can be left out.
        if !value.effective {
            continue;
        }
        items.push(Item { block: value.block, position: 2 * value.depth + after, op: i as u32 });
    }
    let number = |i: u32| values[&if ops.f[i as usize] == op::CAS { ops.b[i as usize] } else { ops.a[i as usize] }];
    match blocks::order(ops, &mut items, 0, want_order) {
        Ok(order) => Near::Valid(order),
        Err(Conflict::Chain(early, late)) => {
            // The operation that must come first, the one that ended before it began, and the chain between them.
            let mut core = vec![early];
            core.extend(links(ops, values, table, number(early), number(late)));
            core.push(late);
            let future = number(early) == number(late) && ops.f[late as usize] == op::READ;
            Near::invalid(if future { Kind::Future } else { Kind::Order }, &core)
        }
        Err(Conflict::Blocks(ue, vs, ve, us)) => {
            let mut core = vec![ue, vs, ve, us];
            for i in [ue, vs, ve, us] {
                if i != NONE {
                    let v = number(i);
                    core.extend(links(ops, values, table, table[v as usize].block, v));
                }
            }
            Near::invalid(Kind::Stale, &core)
        }
    }
}

/// The writers along a chain from one value to another, both included.
fn links(ops: &Ops, values: &Map<u32>, table: &[Value], from: u32, to: u32) -> Vec<u32> {
    let mut links = Vec::new();
    let mut v = to;
    loop {
        let writer = table[v as usize].writer;
        if writer == NONE {
            break;
        }
        links.push(writer);
        if v == from || ops.f[writer as usize] == op::WRITE {
            break;
        }
        v = values[&ops.a[writer as usize]];
    }
    links.reverse();
    links
}
