//! The order in which the system says that it committed the transactions, as an order of the versions of registers.
//!
//! Each position is that of a whole transaction, so all keys have one order. Only transactions that write and did not fail are used. A
//! position on a transaction without an answer says that it took effect.

use super::{History, FAIL};

/// No position.
pub const UNPLACED: i64 = -1;

/// Two transactions that wrote a key and have one position; the rows in the order of the history.
#[derive(Debug, PartialEq, Eq)]
pub struct SamePosition {
    pub key: u32,
    pub rows: [u32; 2],
}

/// How many transactions that write and did not fail have a position, and how many there are.
pub type Placed = (usize, usize);

/// Counts the positions, unless two transactions that wrote a key have the same one.
pub fn placed(history: &History<'_>) -> Result<Placed, SamePosition> {
    let mut found = (0, 0);
    let mut writes: Vec<(u32, i64, u32)> = Vec::new();
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        let position = history.position[row];
        let keys = history.of(row).iter().filter(|mop| !mop.is_read).map(|mop| mop.key);
        let before = writes.len();
        let mut any = false;
        for key in keys {
            any = true;
            if position != UNPLACED && writes[before..].iter().all(|write| write.0 != key) {
                writes.push((key, position, row as u32));
            }
        }
        found.1 += usize::from(any);
        found.0 += usize::from(any && position != UNPLACED);
    }
    writes.sort_unstable();
    match writes.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        Some(pair) => Err(SamePosition { key: pair[0].0, rows: [pair[0].2, pair[1].2] }),
        None => Ok(found),
    }
}

/// Returns each two neighbours among some rows that have a position, in the order of the positions.
pub fn neighbours(history: &History<'_>, rows: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let of = |row: u32| history.position[row as usize];
    let mut some: Vec<(i64, u32)> =
        rows.filter(|&(row, _)| of(row) != UNPLACED).map(|(row, version)| (of(row), version)).collect();
    some.sort_unstable();
    some.windows(2).map(|pair| (pair[0].1, pair[1].1)).collect()
}
