//! Exact checks that are little more than a sort, for histories whose values tell who wrote what.
//!
//! They rest on two facts (Gibbons and Korach, "Testing shared memories", 1997, generalized):
//!
//! - *Chain.* If the sequential order of operations is forced up to positions, it can be realized iff no operation ends
//!   before one of a lower position starts: one running maximum.
//! - *Threshold.* If every legal execution is a concatenation of blocks, each but the first beginning with an operation that
//!   is legal in every state, blocks can be ordered iff no two of them precede each other: with `m` the least end and `M` the
//!   greatest start of a block, iff no two have `m1 < M2` and `m2 < M1`.
//!
//! Each answer can be checked without trusting either: a valid one comes with an order to be replayed, an invalid one with a
//! few operations that contradict each other.

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

/// Runs the near-linear analyzer of a family, and says its name.
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

/// All operations in the order of their starts.
pub fn by_start(ops: &Ops) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ops.len() as u32).collect();
    order.sort_unstable_by_key(|&i| (ops.s[i as usize], i));
    order
}

/// The first operation by whose return a history cannot be linearized any more, and why; None if this analyzer cannot tell.
///
/// Linearizability is closed under prefixes, so this is a search over returns. What returned later is still open, with the
/// result that it is known to have had. The returns of a contradiction that is known give an upper bound, which is the
/// answer more often than not.
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
    // The contradiction may rest on what returned later, so its last return is a guess to be verified.
    let guess = core.iter().map(|&i| end_of(i as usize)).filter(|end| end.0 != INF).max().unwrap_or(last);
    if guess < last {
        if let Some((kind, core)) = fails(family, ops, initial, guess).ok()? {
            known = (guess, kind, core);
        }
    }
    // Mostly all was well one return before.
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

/// Checks the history up to and with one return; of returns at the same moment those of higher numbers are still to come.
fn fails(family: Family, ops: &Ops, initial: &[i64], end: (i64, u32)) -> Result<Option<(Kind, Vec<u32>)>, ()> {
    if family == Family::Register && zones::suits(ops) {
        // This one need not copy what may be many millions of operations.
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
