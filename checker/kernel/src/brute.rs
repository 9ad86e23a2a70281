//! Tries all orders, one by one. This is the reference for all other algorithms.

use crate::models;
use crate::ops::{Family, Ops, INF};

/// Whether some order is legal. For at most 63 operations.
pub fn linearizable(family: Family, ops: &Ops, initial: &[i64]) -> bool {
    let step = |i: usize, state: &Vec<i64>| {
        let mut next = Vec::new();
        models::step(family, ops, i, state, &mut next).then_some(next)
    };
    legal_order(ops, &initial.to_vec(), &step)
}

/// Whether some order is legal, for a model given as a function from an operation and a state to the next state.
pub fn legal_order<S>(ops: &Ops, initial: &S, step: &impl Fn(usize, &S) -> Option<S>) -> bool {
    extend(ops, 0, initial, step)
}

fn extend<S>(ops: &Ops, done: u64, state: &S, step: &impl Fn(usize, &S) -> Option<S>) -> bool {
    let left = |&i: &usize| done >> i & 1 == 0;
    let must = |&i: &usize| left(&i) && ops.e[i] != INF;
    if !(0..ops.len()).any(|i| must(&i)) {
        return true;
    }
    // The next operation starts before every remaining one that must happen has ended.
    let bound = (0..ops.len()).filter(must).map(|i| ops.e[i]).min().unwrap_or(INF);
    (0..ops.len())
        .filter(left)
        .filter(|&i| ops.s[i] <= bound)
        .any(|i| step(i, state).is_some_and(|next| extend(ops, done | 1 << i, &next, step)))
}

/// The first operation, by returns, whose prefix is not linearizable; the results of open operations are known.
pub fn first_failure(family: Family, ops: &Ops, initial: &[i64]) -> Option<u32> {
    first_failing(ops, |prefix| linearizable(family, prefix, initial))
}

/// The first operation, by returns, whose prefix fails.
pub fn first_failing(ops: &Ops, passes: impl Fn(&Ops) -> bool) -> Option<u32> {
    let mut ends: Vec<(i64, u32)> =
        (0..ops.len()).filter(|&i| ops.e[i] != INF).map(|i| (ops.e[i], i as u32)).collect();
    ends.sort_unstable();
    ends.into_iter().find_map(|end| {
        let (prefix, _) = crate::ops::Owned::prefix(ops, end);
        (!passes(&prefix.view())).then_some(end.1)
    })
}
