//! Every order, tried one by one: what everything else is measured against.

use crate::models;
use crate::ops::{Family, Ops, INF};

/// Whether some order is legal, for at most 63 operations.
pub fn linearizable(family: Family, ops: &Ops, initial: &[i64]) -> bool {
    extend(family, ops, 0, initial)
}

fn extend(family: Family, ops: &Ops, done: u64, state: &[i64]) -> bool {
    let left = |&i: &usize| done >> i & 1 == 0;
    let must = |&i: &usize| left(&i) && ops.e[i] != INF;
    if !(0..ops.len()).any(|i| must(&i)) {
        return true;
    }
    // Whatever comes next starts before everything that must still come ends.
    let bound = (0..ops.len()).filter(must).map(|i| ops.e[i]).min().unwrap_or(INF);
    let mut next = Vec::new();
    (0..ops.len()).filter(left).filter(|&i| ops.s[i] <= bound).any(|i| {
        next.clear();
        models::step(family, ops, i, state, &mut next) && extend(family, ops, done | 1 << i, &next.clone())
    })
}

/// The first operation, by returns, whose prefix is not linearizable, where results of open operations are known.
pub fn first_failure(family: Family, ops: &Ops, initial: &[i64]) -> Option<u32> {
    let mut ends: Vec<(i64, u32)> =
        (0..ops.len()).filter(|&i| ops.e[i] != INF).map(|i| (ops.e[i], i as u32)).collect();
    ends.sort_unstable();
    ends.into_iter().find_map(|end| {
        let (prefix, _) = crate::ops::Owned::prefix(ops, end);
        (!linearizable(family, &prefix.view(), initial)).then_some(end.1)
    })
}
