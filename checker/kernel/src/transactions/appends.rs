//! What the order of the appends of a key shows about the transactions that appended.

use super::lists::Orders;
use super::{Finding, Findings, History, Writers, FAIL, NONE, OK};

/// Adds each version of a failed transaction that an ok one wrote after, with at most unanswered ones between them.
pub fn dirty_updates(history: &History<'_>, writers: &Writers, orders: &Orders, findings: &mut Findings) {
    for (key, order) in orders.of.iter().enumerate() {
        let mut dirty = NONE;
        for &elem in order {
            let writer = writers.row[elem as usize];
            if writer == NONE {
                continue;
            }
            match history.kind[writer as usize] {
                FAIL => dirty = elem,
                OK if dirty != NONE => {
                    findings.add(Finding {
                        kind: "dirty-update",
                        key: key as u32,
                        rows: vec![writers.row[dirty as usize], writer],
                        places: vec![writers.place[dirty as usize], writers.place[elem as usize]],
                        elems: vec![dirty, elem],
                    });
                    dirty = NONE;
                }
                _ => {}
            }
        }
    }
}

/// Adds each append in the order of a key that does not follow an earlier append of its transaction to the key.
///
/// The appends of a transaction to a key take effect in their order, so a list that has one of them has those before it.
/// Appends of others between them make a cycle of dependencies, or are anomalies by themselves.
pub fn misplaced(history: &History<'_>, writers: &Writers, orders: &Orders, findings: &mut Findings) {
    let mut passed = vec![false; history.elems()];
    for ((key, order), shown) in orders.of.iter().enumerate().zip(&orders.shown) {
        let Some((reader, at)) = *shown else { continue };
        for &elem in order {
            passed[elem as usize] = true;
            let before = writers.previous[elem as usize];
            if before != NONE && !passed[before as usize] {
                findings.add(Finding {
                    kind: "incompatible-order",
                    key: key as u32,
                    rows: vec![reader, writers.row[elem as usize]],
                    places: vec![at, writers.place[elem as usize]],
                    elems: vec![before, elem],
                });
            }
        }
    }
}
