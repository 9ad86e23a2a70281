//! The order of versions that atomic visibility shows: a transaction that reads from another one sees all that it wrote.
//!
//! So of the versions of a key whose writers a transaction sees, the one that it read is the last. This holds under read atomic
//! and all stronger models. Source: Biswas and Enea, *On the complexity of checking transactional consistency* (OOPSLA 2019).

use super::registers::{Pair, Touch};
use super::{History, Writers};

/// Returns, for each read of a transaction, the versions of the key that others wrote from which it read too, each before the one
/// that was read.
///
/// Of two transactions, the shorter one is searched in the longer one, so that long transactions cost little more than their length.
pub fn pairs(history: &History<'_>, writers: &Writers, touches: &[Touch]) -> Vec<Pair> {
    let mut by_row: Vec<Touch> = touches.to_vec();
    by_row.sort_by_key(|touch| touch.row); // stable: by key within a row
    let mut begin = vec![0usize; history.len() + 1];
    for touch in &by_row {
        begin[touch.row as usize + 1] += 1;
    }
    for row in 0..history.len() {
        begin[row + 1] += begin[row];
    }
    let of = |row: u32| &by_row[begin[row as usize]..begin[row as usize + 1]];
    // A version that its transaction replaced is G1b, and shows no order.
    let writer = |version: u32| {
        let is_final = (version as usize) < history.elems() && !writers.intermediate[version as usize];
        is_final.then(|| writers.live(history, version)).flatten()
    };
    let mut found = Vec::new();
    for own in by_row.chunk_by(|one, other| one.row == other.row) {
        let mut seen: Vec<u32> = own.iter().filter_map(|touch| touch.read.and_then(writer)).collect();
        seen.sort_unstable();
        seen.dedup();
        for &from in seen.iter().filter(|&&from| from != own[0].row) {
            let theirs = of(from);
            let is_short = own.len() <= theirs.len();
            let (few, many) = if is_short { (own, theirs) } else { (theirs, own) };
            for one in few {
                let Ok(at) = many.binary_search_by_key(&one.key, |touch| touch.key) else { continue };
                let (mine, other) = if is_short { (one, &many[at]) } else { (&many[at], one) };
                let Some((read, written)) = mine.read.zip(other.write) else { continue };
                if writer(read).is_some_and(|of_read| of_read != from && of_read != mine.row) {
                    found.push((written, read));
                }
            }
        }
    }
    found
}
