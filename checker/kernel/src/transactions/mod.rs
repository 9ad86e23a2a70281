//! Decides transactional histories by dependency graphs, after Adya, Liskov and O'Neil, *Generalized isolation level
//! definitions* (ICDE 2000), and Kingsbury and Alvaro, *Elle* (VLDB 2020).
//!
//! A history becomes columns of micro-operations (`parse`). A workload turns them into edges between transactions and
//! into anomalies that are no cycles (`lists`, `registers`). `cycles` decides which types of cycles exist, exactly and
//! without a time-out, and finds a short witness of each.

pub mod cycles;
pub mod graph;
pub mod lists;
pub mod parse;
pub mod registers;

/// No element, writer or key.
pub const NONE: u32 = u32::MAX;

pub const OK: i8 = 0;
pub const FAIL: i8 = 1;
pub const INFO: i8 = 2;

/// How many findings of one kind are kept in full; all are counted.
pub const KEPT: usize = 100;

/// A micro-operation: a read, or a write (an append in lists).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mop {
    pub is_read: bool,
    /// Whether a read has a result. A read of a transaction without an answer has none.
    pub known: bool,
    pub key: u32,
    /// The element that is written, or that a read of a register returned; `NONE` for nil.
    pub elem: u32,
    /// The elements that a read of a list returned, in `History::flat`.
    pub from: usize,
    pub to: usize,
}

/// Transactions as columns; one row for each transaction, in the order of the invokes.
pub struct History<'a> {
    pub kind: &'a [i8],
    pub process: &'a [i64],
    pub start: &'a [i64],
    pub end: &'a [i64],
    /// By row: the first micro-operation; one more at the end.
    pub offset: Vec<usize>,
    pub mops: Vec<Mop>,
    pub flat: Vec<u32>,
    /// The canonical JSON of each key.
    pub keys: Vec<&'a str>,
    /// By element: its key and its canonical JSON. Elements of different keys are different.
    pub elems: Vec<(u32, &'a str)>,
}

impl History<'_> {
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    pub fn of(&self, row: usize) -> &[Mop] {
        &self.mops[self.offset[row]..self.offset[row + 1]]
    }

    pub fn list(&self, mop: &Mop) -> &[u32] {
        &self.flat[mop.from..mop.to]
    }
}

/// Something that is no cycle and that a correct system cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: &'static str,
    pub key: u32,
    /// The transactions that show it.
    pub rows: Vec<u32>,
    /// For each row: the place of its micro-operation.
    pub places: Vec<u32>,
    pub elems: Vec<u32>,
}

/// Findings by kind: some in full, and the number of all.
#[derive(Default)]
pub struct Findings {
    pub kept: Vec<Finding>,
    pub counts: Vec<(&'static str, usize)>,
}

impl Findings {
    pub fn add(&mut self, finding: Finding) {
        let place = self.counts.iter().position(|(kind, _)| *kind == finding.kind).unwrap_or_else(|| {
            self.counts.push((finding.kind, 0));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
        if self.counts[place].1 <= KEPT {
            self.kept.push(finding);
        }
    }
}

/// What wrote each element.
pub struct Writers {
    /// By element: the row of its writer, or `NONE`.
    pub row: Vec<u32>,
    /// By element: the place of the write in its transaction.
    pub place: Vec<u32>,
    /// By element: whether its transaction writes the key again later.
    pub intermediate: Vec<bool>,
}

/// Two writes of one element; rows and places, in the order of the history.
pub struct WrittenTwice {
    pub elem: u32,
    pub rows: [u32; 2],
    pub places: [u32; 2],
}

impl Writers {
    /// Returns the writers, unless an element was written twice.
    pub fn of(history: &History<'_>) -> Result<Self, WrittenTwice> {
        let count = history.elems.len();
        let mut found = Self { row: vec![NONE; count], place: vec![NONE; count], intermediate: vec![false; count] };
        let mut last_of_key = vec![NONE; history.keys.len()];
        for row in 0..history.len() {
            let mops = history.of(row);
            for (place, mop) in mops.iter().enumerate().filter(|(_, mop)| !mop.is_read) {
                let elem = mop.elem as usize;
                if found.row[elem] != NONE {
                    return Err(WrittenTwice {
                        elem: mop.elem,
                        rows: [found.row[elem], row as u32],
                        places: [found.place[elem], place as u32],
                    });
                }
                found.row[elem] = row as u32;
                found.place[elem] = place as u32;
            }
            for mop in mops.iter().rev().filter(|mop| !mop.is_read) {
                let last = &mut last_of_key[mop.key as usize];
                found.intermediate[mop.elem as usize] = *last == row as u32;
                *last = row as u32;
            }
        }
        Ok(found)
    }

    /// Returns the writer of an element, if it did not fail.
    pub fn live(&self, history: &History<'_>, elem: u32) -> Option<u32> {
        let row = self.row[elem as usize];
        (row != NONE && history.kind[row as usize] != FAIL).then_some(row)
    }

    /// Returns whether the writer of an element failed.
    pub fn failed(&self, history: &History<'_>, elem: u32) -> bool {
        let row = self.row[elem as usize];
        row != NONE && history.kind[row as usize] == FAIL
    }
}
