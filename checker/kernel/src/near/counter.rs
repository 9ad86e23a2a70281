//! Counter with equal increments: positions along the count, and an earliest-deadline match for the rest.
//!
//! A read of k has position 2k, the step from k to k + 1 has position 2k + 1. An increment that returned the count
//! before it owns its step. Other increments are matched to the open steps. A step must begin after all fixed
//! operations before it have begun, and all fixed operations after it must not end before it. Of the increments that
//! may take a step, the one that ends first takes it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::blocks::{self, Conflict, Item};
use super::Map;
use crate::ops::{op, Kind, Near, Ops, Owned, INF, NEG, NONE};

/// Decides; unsuited if the increments differ.
pub fn check(ops: &Ops, initial: i64, want_order: bool) -> Near {
    let known = |i: usize| ops.f[i] == op::FETCH_ADD && ops.e[i] == INF;
    if !(0..ops.len()).any(known) {
        return decide(ops, initial, want_order);
    }
    // An open increment with a known result may own one step. If the history is linearizable without it, it is
    // linearizable. If it is not even if the increment may take any step, it is not linearizable.
    let mut without = Owned::default();
    let mut with = Owned::default();
    let mut index = Vec::new();
    for i in 0..ops.len() {
        let f = if known(i) { op::INCREMENT } else { ops.f[i] };
        with.push(f, ops.a[i], ops.b[i], &[], ops.s[i], ops.e[i]);
        if !known(i) {
            without.push(f, ops.a[i], ops.b[i], &[], ops.s[i], ops.e[i]);
            index.push(i as u32);
        }
    }
    if let Near::Valid(order) = decide(&without.view(), initial, want_order) {
        return Near::Valid(order.map(|order| order.iter().map(|&i| index[i as usize]).collect()));
    }
    match decide(&with.view(), initial, false) {
        Near::Invalid { kind, core } => Near::Invalid { kind, core },
        _ => Near::Unsuited("an increment whose result is known did not return"),
    }
}

fn decide(ops: &Ops, initial: i64, want_order: bool) -> Near {
    let mut step = 0;
    for i in 0..ops.len() {
        if ops.f[i] != op::READ_COUNT {
            if ops.a[i] == 0 || (step != 0 && ops.a[i] != step) {
                return Near::Unsuited("increments are not all equal");
            }
            step = ops.a[i];
        }
    }
    let count_of = |value: i64| -> Option<i64> {
        let difference = i128::from(value) - i128::from(initial);
        if step == 0 {
            return (difference == 0).then_some(0);
        }
        let count = difference / i128::from(step);
        (difference % i128::from(step) == 0 && (0..=ops.len() as i128).contains(&count)).then_some(count as i64)
    };
    // Fixed operations as (position, operation), and unfixed ones.
    let mut fixed: Vec<(i64, u32)> = Vec::new();
    let mut floating: Vec<u32> = Vec::new();
    let mut owners: Map<u32> = Map::default();
    for i in 0..ops.len() {
        let open = ops.e[i] == INF;
        match ops.f[i] {
            op::INCREMENT => floating.push(i as u32),
            op::READ_COUNT if open => {}
            op::READ_COUNT => match count_of(ops.a[i]) {
                Some(k) => fixed.push((2 * k, i as u32)),
                None => return Near::invalid(too(ops.a[i], initial, step), &[i as u32]),
            },
            _ => match count_of(ops.b[i]) {
                Some(k) => {
                    if let Some(other) = owners.insert(k, i as u32) {
                        return Near::invalid(Kind::Duplicate, &[other, i as u32]);
                    }
                    fixed.push((2 * k + 1, i as u32));
                }
                None => return Near::invalid(too(ops.b[i], initial, step), &[i as u32]),
            },
        }
    }
    fixed.sort_unstable();
    let top = fixed.last().map_or(0, |&(position, _)| (position + 1) / 2);
    match assign(ops, &fixed, &mut floating, &owners, top) {
        Err(near) => near,
        Ok(assigned) => {
            let mut items: Vec<Item> = fixed
                .iter()
                .chain(&assigned)
                .map(|&(position, i)| Item { block: 0, position: position as u32, op: i })
                .collect();
            match blocks::order(ops, &mut items, 0, want_order) {
                Ok(order) => Near::Valid(order),
                Err(Conflict::Chain(x, y) | Conflict::Blocks(x, y, _, _)) => Near::invalid(Kind::Order, &[x, y]),
            }
        }
    }
}

fn too(value: i64, initial: i64, step: i64) -> Kind {
    if (value > initial) == (step > 0) {
        Kind::TooHigh
    } else {
        Kind::TooLow
    }
}

fn assign(
    ops: &Ops,
    fixed: &[(i64, u32)],
    floating: &mut [u32],
    owners: &Map<u32>,
    top: i64,
) -> Result<Vec<(i64, u32)>, Near> {
    // The minimum end of the fixed operations from each place on.
    let mut least: Vec<(i64, u32)> = vec![(INF, NONE); fixed.len() + 1];
    for place in (0..fixed.len()).rev() {
        let i = fixed[place].1;
        least[place] = least[place + 1].min((ops.e[i as usize], i));
    }
    floating.sort_unstable_by_key(|&i| (ops.s[i as usize], i));
    let mut waiting: BinaryHeap<Reverse<(i64, u32)>> = BinaryHeap::new();
    let mut next = 0;
    let mut place = 0;
    let mut greatest = (NEG, NONE);
    let mut assigned = Vec::new();
    for k in 0..top {
        while place < fixed.len() && fixed[place].0 < 2 * k + 1 {
            let i = fixed[place].1;
            greatest = greatest.max((ops.s[i as usize], i));
            place += 1;
        }
        if owners.contains_key(&k) {
            continue;
        }
        let until = least[place];
        while next < floating.len() && ops.s[floating[next] as usize] <= until.0 {
            let i = floating[next];
            waiting.push(Reverse((ops.e[i as usize], i)));
            next += 1;
        }
        let Some(Reverse((end, i))) = waiting.pop() else {
            return Err(Near::invalid(Kind::TooHigh, &[until.1]));
        };
        if end < greatest.0 {
            return Err(Near::invalid(Kind::TooLow, &[i, greatest.1]));
        }
        assigned.push((2 * k + 1, i));
    }
    for &(_, i) in &fixed[place..] {
        greatest = greatest.max((ops.s[i as usize], i));
    }
    let rest = waiting.into_iter().map(|Reverse((_, i))| i).chain(floating[next..].iter().copied());
    for i in rest {
        if ops.e[i as usize] < greatest.0 {
            return Err(Near::invalid(Kind::TooLow, &[i, greatest.1]));
        }
        if ops.e[i as usize] != INF {
            assigned.push((2 * top + 1, i));
        }
    }
    Ok(assigned)
}
