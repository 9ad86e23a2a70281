//! Decides transactional histories by dependency graphs, after Adya, Liskov and O'Neil, *Generalized isolation level
//! definitions* (ICDE 2000), and Kingsbury and Alvaro, *Elle* (VLDB 2020).
//!
//! A history becomes columns of micro-operations (`parse`, with `tokens`). A workload turns them into edges between transactions and
//! into anomalies that are no cycles (`lists`, `registers`). `cycles` decides which types of cycles exist, exactly and
//! without a time-out, and finds a short witness of each.

pub mod accesses;
pub mod appends;
pub mod conflicts;
pub mod contradictions;
pub mod cycles;
pub mod doubled;
pub mod forced;
pub mod graph;
pub mod inside;
pub mod judge;
pub mod listed;
pub mod lists;
pub mod missed;
pub mod ordering;
pub mod overlaps;
pub mod pairs;
pub mod parse;
pub mod positions;
pub mod reach;
pub mod registers;
pub mod schedule;
#[cfg(test)]
mod tests;
pub mod together;
mod tokens;
pub mod updates;
pub mod views;
pub mod visibility;
pub mod witness;

use std::sync::Arc;

use crate::events::integer;

/// No element, writer or key.
pub const NONE: u32 = u32::MAX;

pub const OK: i8 = 0;
pub const FAIL: i8 = 1;
pub const INFO: i8 = 2;

/// How many findings of one kind are kept in full; all are counted.
pub const KEPT: usize = 100;

/// A micro-operation: a read, or a write (an append in lists).
// The flags are independent of each other, and there is a row for each micro-operation.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mop {
    pub is_read: bool,
    /// Whether a read has a result. A read of a transaction without an answer has none.
    pub known: bool,
    /// Whether the result of a read is nil, or what is written to a register.
    pub is_nil: bool,
    /// Whether its function has the long name, `read` or `write`.
    pub is_long: bool,
    /// Whether the list that a read returned is a beginning of the key's list in `Table::lists`; otherwise it is in `Table::flat`.
    pub shared: bool,
    pub key: u32,
    /// The element that is written, or that a read of a register returned; `NONE` for nil.
    pub elem: u32,
    /// The place of the elements that a read of a list returned; `from` is 0 in a shared list.
    pub from: u32,
    pub to: u32,
}

/// A key or an element: an integer, or the place of its canonical JSON in `Table::texts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    Integer(i64),
    Text(u32),
}

/// The micro-operations of transactions as columns.
///
/// Most reads of a key return a beginning of one list, so this list is kept once.
#[derive(Clone, Default)]
pub struct Table {
    pub mops: Vec<Mop>,
    /// By transaction: the first micro-operation; one more at the end.
    pub offset: Vec<usize>,
    pub flat: Vec<u32>,
    /// By key: the elements of the list that most reads return a beginning of.
    pub lists: Vec<Vec<u32>>,
    pub keys: Vec<Atom>,
    /// By element: its key and its value. Elements of different keys are different.
    pub elems: Vec<(u32, Atom)>,
    pub texts: Vec<Arc<str>>,
    /// The value that all registers have at the beginning; None: nil.
    pub initial: Option<Atom>,
    /// The micro-operations as they were recorded, if `doubled` changed `mops`; else empty. Of registers, a write of the initial value
    /// has the element of a read of it, so two of a key have one value exactly if they have one element.
    pub said: Vec<Mop>,
}

impl Table {
    pub fn new() -> Self {
        Self { offset: vec![0], ..Self::default() }
    }

    /// Returns the same transactions over registers that begin with a value in canonical JSON.
    ///
    /// A read of this value is one of the initial version, which no element stands for. A read of nil is one of a value like any
    /// other, and nobody wrote it.
    #[must_use]
    pub fn beginning_with(&self, initial: &str) -> Self {
        let mut found = self.clone();
        let initial = found.atom(initial);
        let nil = found.atom("null");
        let mut nils = vec![NONE; found.keys.len()];
        for mop in found.mops.iter().filter(|mop| !mop.is_read && mop.is_nil) {
            nils[mop.key as usize] = mop.elem;
        }
        let reads = found.mops.iter_mut().filter(|mop| mop.is_read && mop.known);
        for mop in reads {
            if mop.elem == NONE {
                let number = &mut nils[mop.key as usize];
                if *number == NONE {
                    *number = found.elems.len() as u32;
                    found.elems.push((mop.key, nil));
                }
                mop.elem = *number;
            } else if found.elems[mop.elem as usize].1 == initial {
                mop.elem = NONE;
            }
        }
        found.initial = Some(initial);
        found
    }

    /// Returns the atom of a text in canonical JSON.
    fn atom(&mut self, text: &str) -> Atom {
        if let Some(value) = integer(text.as_bytes()) {
            return Atom::Integer(value);
        }
        let place = self.texts.iter().position(|known| **known == *text).unwrap_or_else(|| {
            self.texts.push(text.into());
            self.texts.len() - 1
        });
        Atom::Text(place as u32)
    }

    /// Returns whether a write to a register has the initial value.
    pub fn is_initial(&self, write: &Mop) -> bool {
        self.initial.map_or(write.is_nil, |initial| self.elems[write.elem as usize].1 == initial)
    }

    /// Returns the number of transactions.
    pub fn len(&self) -> usize {
        self.offset.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn of(&self, transaction: usize) -> &[Mop] {
        &self.mops[self.offset[transaction]..self.offset[transaction + 1]]
    }

    pub fn list(&self, mop: &Mop) -> &[u32] {
        let all = if mop.shared { &self.lists[mop.key as usize] } else { &self.flat };
        &all[mop.from as usize..mop.to as usize]
    }

    /// Returns the canonical JSON of a key.
    pub fn key_text(&self, key: u32) -> String {
        self.atom_text(self.keys[key as usize])
    }

    /// Returns the canonical JSON of an element.
    pub fn elem_text(&self, elem: u32) -> String {
        self.atom_text(self.elems[elem as usize].1)
    }

    fn atom_text(&self, atom: Atom) -> String {
        match atom {
            Atom::Integer(value) => value.to_string(),
            Atom::Text(place) => self.texts[place as usize].to_string(),
        }
    }

    /// Returns the canonical JSON of a transaction: of its answer, or of its request, where a read has no result.
    pub fn text(&self, transaction: usize, workload: Workload, is_answer: bool) -> String {
        let mops = self.of(transaction).iter().map(|mop| self.mop_text(mop, workload, is_answer));
        format!("[{}]", mops.collect::<Vec<_>>().join(","))
    }

    /// Returns the canonical JSON of a micro-operation.
    pub fn mop_text(&self, mop: &Mop, workload: Workload, is_answer: bool) -> String {
        let name = match (mop.is_read, mop.is_long, workload) {
            (true, false, _) => "r",
            (true, true, _) => "read",
            (false, _, Workload::Lists) => "append",
            (false, false, Workload::Registers) => "w",
            (false, true, Workload::Registers) => "write",
        };
        let value = if mop.is_read && (!is_answer || !mop.known || mop.is_nil) {
            "null".to_owned()
        } else if mop.is_read && workload == Workload::Lists {
            let elems: Vec<String> = self.list(mop).iter().map(|&elem| self.elem_text(elem)).collect();
            format!("[{}]", elems.join(","))
        } else {
            self.elem_text(mop.elem)
        };
        format!("[\"{name}\",{},{value}]", self.key_text(mop.key))
    }
}

/// What a history has micro-operations of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    Lists,
    Registers,
}

impl Workload {
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "list-append" => Some(Self::Lists),
            "rw-register" => Some(Self::Registers),
            _ => None,
        }
    }
}

/// Transactions as columns; one row for each transaction, in the order of the invokes.
pub struct History<'a> {
    pub kind: &'a [i8],
    pub process: &'a [i64],
    pub start: &'a [i64],
    pub end: &'a [i64],
    pub table: &'a Table,
    /// By row: its transaction in the table.
    pub place: Vec<u32>,
    /// By row: its position in the system's own commit order, or `positions::UNPLACED`; empty if that is not used.
    pub position: &'a [i64],
}

impl History<'_> {
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    pub fn of(&self, row: usize) -> &[Mop] {
        self.table.of(self.place[row] as usize)
    }

    /// Returns the micro-operations of a row as they were recorded.
    pub fn said(&self, row: usize) -> &[Mop] {
        let (begin, count) = (self.first(row), self.of(row).len());
        self.table.said.get(begin..begin + count).unwrap_or(self.of(row))
    }

    /// Returns the place of the first micro-operation of a row among all.
    pub fn first(&self, row: usize) -> usize {
        self.table.offset[self.place[row] as usize]
    }

    pub fn list(&self, mop: &Mop) -> &[u32] {
        self.table.list(mop)
    }

    /// Returns the key of an element.
    pub fn key_of(&self, elem: u32) -> u32 {
        self.table.elems[elem as usize].0
    }

    pub fn keys(&self) -> usize {
        self.table.keys.len()
    }

    pub fn elems(&self) -> usize {
        self.table.elems.len()
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
pub struct Findings {
    pub kept: Vec<Finding>,
    pub counts: Vec<(&'static str, usize)>,
    /// How many findings of one kind are kept in full.
    most: usize,
}

impl Default for Findings {
    fn default() -> Self {
        Self::keeping(KEPT)
    }
}

impl Findings {
    pub fn keeping(most: usize) -> Self {
        Self { kept: Vec::new(), counts: Vec::new(), most }
    }

    /// Returns how many more findings of a kind are kept in full.
    pub fn room(&self, kind: &str) -> usize {
        let there = self.counts.iter().find(|(other, _)| *other == kind).map_or(0, |(_, count)| *count);
        self.most.saturating_sub(there)
    }

    pub fn add(&mut self, finding: Finding) {
        let place = self.counts.iter().position(|(kind, _)| *kind == finding.kind).unwrap_or_else(|| {
            self.counts.push((finding.kind, 0));
            self.counts.len() - 1
        });
        self.counts[place].1 += 1;
        if self.counts[place].1 <= self.most {
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
    /// By element: what its transaction wrote to the key just before, or `NONE`.
    pub previous: Vec<u32>,
}

/// Two writes of one element; rows and places, in the order of the history. Twice the same one if it is the initial value.
pub struct WrittenTwice {
    pub elem: u32,
    pub rows: [u32; 2],
    pub places: [u32; 2],
}

impl Writers {
    /// Returns the writers, unless an element was written twice. Two writes that were told apart have two elements.
    pub fn of(history: &History<'_>) -> Result<Self, WrittenTwice> {
        let count = history.elems();
        let mut found = Self {
            row: vec![NONE; count],
            place: vec![NONE; count],
            intermediate: vec![false; count],
            previous: vec![NONE; count],
        };
        let mut last_of_key = vec![NONE; history.keys()]; // the last element that was written
        for row in 0..history.len() {
            let mops = history.of(row);
            for (place, mop) in mops.iter().enumerate().filter(|(_, mop)| !mop.is_read) {
                let elem = mop.elem as usize;
                let here = (row as u32, place as u32);
                let is_initial = history.table.said.is_empty() && history.table.is_initial(mop);
                if is_initial || found.row[elem] != NONE {
                    let before = if is_initial { here } else { (found.row[elem], found.place[elem]) };
                    return Err(WrittenTwice {
                        elem: mop.elem,
                        rows: [before.0, here.0],
                        places: [before.1, here.1],
                    });
                }
                (found.row[elem], found.place[elem]) = here;
                let last = std::mem::replace(&mut last_of_key[mop.key as usize], mop.elem);
                if last != NONE && found.row[last as usize] == row as u32 {
                    found.intermediate[last as usize] = true;
                    found.previous[elem] = last;
                }
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
