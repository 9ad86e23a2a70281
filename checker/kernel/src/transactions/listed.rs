//! Lists: what follows if each key alone is sequentially consistent, or linearizable.
//!
//! Reads show the order of the appends of a key, but for those that no read returned: these come after the last element. Under
//! the assumption, a transaction begins with no older version of a key than one leaves that precedes it in its process, or in
//! real time. So the assumption orders the appends that no read returned. And it contradicts what reads show if a transaction
//! has an older version than one before it: this is the anomaly cyclic-versions, and the source is left out, as for registers.

use std::collections::HashMap;

use super::graph::{Dependencies, Edge, WW};
use super::lists::Orders;
use super::registers::{in_pair, in_real_time, processes, Pair, Sources, Touch};
use super::{Finding, Findings, History, Writers, FAIL, NONE, OK};

/// The rank of an append that no read returned: it comes after all others.
const UNSEEN: u32 = u32::MAX;
const SEQUENTIAL: u8 = 2;
const LINEARIZABLE: u8 = 3;

/// A version of a key that a transaction had.
#[derive(Clone, Copy)]
struct Version {
    /// How many elements the list has then.
    rank: u32,
    /// Its last element; `NONE` for the empty list.
    elem: u32,
    /// The place of the micro-operation that had it.
    place: u32,
}

/// What a transaction does with one key as a whole.
struct Access {
    row: u32,
    key: u32,
    /// The version that it begins with; None if it is not known.
    first: Option<Version>,
    /// The version that it leaves.
    last: Option<Version>,
}

/// Adds the dependencies that follow from what is assumed of each key, and its contradictions.
pub fn assume(
    history: &History<'_>,
    writers: &Writers,
    orders: &Orders,
    sources: Sources,
    found: &mut Dependencies,
    findings: &mut Findings,
) {
    if !sources.sequential_keys && !sources.linearizable_keys {
        return;
    }
    let accesses = accesses(history, orders);
    let by_key = || accesses.chunk_by(|one, other| one.key == other.key);
    let unseen: Vec<Touch> = accesses.iter().filter_map(unseen).collect();
    let unseen_by_key = || unseen.chunk_by(|one, other| one.key == other.key);
    let mut add = |source: u8, wrong: Vec<Finding>, pairs: Vec<Pair>| {
        if !wrong.is_empty() {
            found.contradicted.push(source);
            for finding in wrong {
                findings.add(finding);
            }
        } else if !sources.left_out[source as usize] {
            found.reasons.extend(pairs.into_iter().map(|(before, after)| (before, after, source)));
        }
    };
    if sources.sequential_keys {
        let pairs = unseen_by_key().flat_map(|some| processes(history, some));
        let pairs = pairs.filter_map(|(one, other)| in_pair(one, other)).collect();
        add(SEQUENTIAL, by_key().filter_map(|some| back_in_process(history, some)).collect(), pairs);
    }
    if sources.linearizable_keys {
        let pairs = unseen_by_key().flat_map(|some| in_real_time(history, some)).collect();
        add(LINEARIZABLE, by_key().filter_map(|some| back_in_real_time(history, some)).collect(), pairs);
    }
    found.reasons.sort_unstable();
    found.reasons.dedup_by_key(|reason| (reason.0, reason.1));
    for (before, after, _) in found.reasons.clone() {
        let (from, to) = (writers.row[before as usize], writers.row[after as usize]);
        found.add(Edge { from, to, kind: WW, key: history.key_of(before), before, after });
    }
}

/// Returns what each transaction that may have happened does with each of its keys, by key and then by row.
fn accesses(history: &History<'_>, orders: &Orders) -> Vec<Access> {
    let mut rank = vec![UNSEEN; history.elems()];
    for order in &orders.of {
        for (place, &elem) in (1..).zip(order) {
            rank[elem as usize] = place;
        }
    }
    let mut found: Vec<Access> = Vec::new();
    let mut at = vec![NONE; history.keys()];
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        let begin = found.len();
        for (place, mop) in history.of(row).iter().enumerate() {
            let version = if !mop.is_read {
                Some(Version { rank: rank[mop.elem as usize], elem: mop.elem, place: place as u32 })
            } else if orders.agrees(history, row, place) {
                let list = history.list(mop);
                let elem = list.last().copied().unwrap_or(NONE);
                Some(Version { rank: list.len() as u32, elem, place: place as u32 })
            } else {
                None
            };
            let known = at[mop.key as usize] as usize;
            if at[mop.key as usize] == NONE || known < begin {
                at[mop.key as usize] = found.len() as u32;
                found.push(Access { row: row as u32, key: mop.key, first: version, last: version });
            } else if !mop.is_read {
                found[known].last = version;
            }
        }
    }
    found.sort_by_key(|access| access.key);
    found
}

/// Returns a transaction whose last append no read returned, as one that writes.
fn unseen(access: &Access) -> Option<Touch> {
    let last = access.last.filter(|last| last.rank == UNSEEN)?;
    Some(Touch { row: access.row, key: access.key, read: None, write: Some(last.elem) })
}

/// Returns the first transaction that has an older version than an earlier one of its process.
fn back_in_process(history: &History<'_>, accesses: &[Access]) -> Option<Finding> {
    let mut latest: HashMap<i64, Option<(u32, Version)>> = HashMap::new();
    accesses.iter().filter(|access| history.kind[access.row as usize] == OK).find_map(|access| {
        let before = latest.entry(history.process[access.row as usize]).or_default();
        let found = before.and_then(|before| back(before, access));
        advance(before, access);
        found
    })
}

/// Returns the first transaction that has an older version than one that ended before it began.
fn back_in_real_time(history: &History<'_>, accesses: &[Access]) -> Option<Finding> {
    let mut ended: Vec<&Access> = accesses.iter().filter(|access| history.kind[access.row as usize] == OK).collect();
    ended.sort_by_key(|access| history.end[access.row as usize]);
    let mut ended = ended.into_iter().peekable();
    let mut latest: Option<(u32, Version)> = None;
    accesses.iter().find_map(|access| {
        let start = history.start[access.row as usize];
        while let Some(before) = ended.next_if(|before| history.end[before.row as usize] < start) {
            advance(&mut latest, before);
        }
        back(latest?, access)
    })
}

/// Takes the version that a transaction leaves, if it is a later one.
fn advance(latest: &mut Option<(u32, Version)>, access: &Access) {
    if let Some(last) = access.last.filter(|last| latest.is_none_or(|(_, before)| last.rank > before.rank)) {
        *latest = Some((access.row, last));
    }
}

/// Returns the contradiction if a transaction begins with an older version than one before it left.
fn back((row, before): (u32, Version), access: &Access) -> Option<Finding> {
    let first = access.first.filter(|first| first.rank < before.rank)?;
    Some(Finding {
        kind: "cyclic-versions",
        key: access.key,
        rows: vec![row, access.row],
        places: vec![before.place, first.place],
        elems: vec![before.elem, first.elem],
    })
}
