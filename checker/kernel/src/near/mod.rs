//! Exact checks that take little more than a sort, for histories whose values determine who wrote what.
//!
//! They are based on two facts (Gibbons and Korach, "Testing shared memories", 1997, generalized):
//!
//! - *Chain.* Let the sequential order of operations be forced up to positions. It is possible iff no operation ends
//!   before one of a lower position starts: one running maximum.
//! - *Threshold.* Let every legal execution be a concatenation of blocks, where each block but the first begins with
//!   an operation that is legal in every state. Then the blocks can be ordered iff no two of them precede each other.
//!   With `m` the minimum end and `M` the maximum start of a block: iff no two have `m1 < M2` and `m2 < M1`.
//!
//! Each answer can be checked independently: a valid one has an order for a replay, an invalid one has a few
//! operations that contradict each other.

pub mod blocks;
pub mod counter;
pub mod list;
pub mod mutex;
pub mod queue;
pub mod register;
pub mod sets;
pub mod writers;
pub mod zones;

use std::collections::HashMap;

use crate::hash::FastHasher;
use crate::ops::{Family, Kind, Near, Ops, Owned, INF};

/// A map from values to something small.
pub type Map<T> = HashMap<i64, T, FastHasher>;

/// Runs the near-linear analyzer of a family, and returns its name and its answer.
pub fn check(family: Family, ops: &Ops, initial: &[i64], want_order: bool) -> (&'static str, Near) {
    match family {
        Family::Register if zones::suits(ops) => ("zones", zones::check(ops, initial[0], want_order)),
        Family::Register => ("chain", register::check(ops, initial[0], want_order)),
        Family::Mutex | Family::OwnerMutex => ("holds", mutex::check(ops, initial[0], want_order)),
        Family::GrowSet => ("levels", sets::check(ops, initial, want_order)),
        Family::Set if !ops.f.contains(&crate::ops::op::REMOVE) => ("levels", sets::check(ops, initial, want_order)),
        Family::Counter => ("slots", counter::check(ops, initial[0], want_order)),
        Family::Fifo => ("fifo", queue::check(family, ops, initial, want_order)),
        Family::Bag => ("bag", queue::check(family, ops, &initial[1..], want_order)),
        Family::Sequence => ("tokens", list::check(ops, initial, want_order)),
        Family::Noop => ("noop", Near::Valid(want_order.then(|| by_start(ops)))),
        Family::Set | Family::MultiRegister | Family::Custom => ("none", Near::Unsuited("no near-linear analyzer")),
    }
}

/// All operations, sorted by start.
pub fn by_start(ops: &Ops) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ops.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (ops.s[i as usize], i));
    order
}

/// The first operation at whose return a history is no longer linearizable, and the reason; None if this analyzer
/// cannot decide.
///
/// Linearizability is closed under prefixes, so this is a search over returns. Operations that returned later are
/// open, with their known results. The returns of a known contradiction give an upper bound, which is the answer in
/// most cases.
pub fn first_failure(
    family: Family,
    ops: &Ops,
    initial: &[i64],
    kind: Kind,
    core: &[u32],
) -> Option<(u32, Kind, Vec<u32>)> {
    let end_of = |i: usize| (ops.e[i], i as u32);
    let each = || (0..ops.len()).filter(|&i| ops.e[i] != INF).map(end_of);
    let last = each().max()?;
    let mut known = (last, kind, core.to_vec());
    // The contradiction may depend on operations that returned later, so its last return is a guess to verify.
    let guess = core.iter().map(|&i| end_of(i as usize)).filter(|end| end.0 != INF).max().unwrap_or(last);
    if guess < last {
        if let Some((kind, core)) = fails(family, ops, initial, guess).ok()? {
            known = (guess, kind, core);
        }
    }
    // In most cases, the prefix before this return is linearizable.
    let Some(before) = each().filter(|&end| end < known.0).max() else { return Some((known.0 .1, known.1, known.2)) };
    if let Some((kind, core)) = fails(family, ops, initial, before).ok()? {
        let mut ends: Vec<(i64, u32)> = each().filter(|&end| end <= before).collect();
        ends.sort_unstable();
        known = (before, kind, core);
        let (mut low, mut high) = (0, ends.len() - 1);
        while low < high {
            let probe = low + (high - low) / 2;
            match fails(family, ops, initial, ends[probe]).ok()? {
                Some((kind, core)) => {
                    known = (ends[probe], kind, core);
                    high = probe;
                }
                None => low = probe + 1,
            }
        }
    }
    Some((known.0 .1, known.1, known.2))
}

/// Checks the history up to and including one return; of returns at the same moment, those with higher numbers are
/// later.
fn fails(family: Family, ops: &Ops, initial: &[i64], end: (i64, u32)) -> Result<Option<(Kind, Vec<u32>)>, ()> {
    if family == Family::Register && zones::suits(ops) {
        // This analyzer need not copy the columns, which may have many millions of operations.
        return match zones::check_until(ops, initial[0], end, false) {
            Near::Invalid { kind, core } => Ok(Some((kind, core))),
            Near::Valid(_) => Ok(None),
            Near::Unsuited(_) => Err(()),
        };
    }
    let (prefix, index) = Owned::prefix(ops, end);
    match check(family, &prefix.view(), initial, false).1 {
        Near::Invalid { kind, core } => Ok(Some((kind, core.iter().map(|&i| index[i as usize]).collect()))),
        Near::Valid(_) => Ok(None),
        Near::Unsuited(_) => Err(()),
    }
}
