//! What transactions read and write, for anomalies that compare several keys of two transactions (`visibility`, `missed`, `updates`).
//!
//! The accesses are those of a whole history, or of some components of its graph. A version of a key has a place in the order of
//! its versions, from 1 on. No read of a register shows this order, so there a version may have none.

use std::collections::HashMap;

use super::lists::Orders;
use super::{History, Mop, Writers, FAIL, NONE};

/// The place of a version of which only one thing is known: that it comes after the initial one.
pub const AFTER_INITIAL: u32 = 0;

/// The orders of the versions of keys.
pub enum Versions<'a> {
    OfLists(&'a Orders),
    /// By element: its place, or `AFTER_INITIAL`.
    OfRegisters(&'a [u32]),
}

impl Versions<'_> {
    /// Returns the places of all elements, `NONE` for those that no read shows.
    fn places(&self, elems: usize) -> Vec<u32> {
        match self {
            Self::OfLists(orders) => {
                let mut found = vec![NONE; elems];
                for order in &orders.of {
                    for (at, &elem) in (1..).zip(order) {
                        found[elem as usize] = at;
                    }
                }
                found
            }
            Self::OfRegisters(places) => places.to_vec(),
        }
    }

    /// Returns the last element of the version that a read returned, `NONE` for the initial one; None if it shows no version.
    fn read(&self, history: &History<'_>, row: usize, place: usize, mop: &Mop) -> Option<u32> {
        match self {
            Self::OfLists(orders) => {
                let last = || history.list(mop).last().copied().unwrap_or(NONE);
                orders.agrees(history, row, place).then(last)
            }
            Self::OfRegisters(_) => mop.known.then_some(mop.elem),
        }
    }

    /// Returns whether a write that the same transaction replaces has a place of its own.
    fn keep_intermediate(&self) -> bool {
        matches!(self, Self::OfLists(_))
    }
}

/// A read of a key that the transaction did not append to before.
#[derive(Clone, Copy)]
pub struct Read {
    pub row: u32,
    /// Its place in the transaction.
    pub place: u32,
    pub key: u32,
    /// The least place of the versions that are known to be later; `NONE` if there are none.
    pub count: u32,
    /// The last element that it returned, if a transaction here wrote it and did not fail; else `NONE`.
    pub last: u32,
    /// What names this version: the last element, or `NONE` for nil.
    pub version: u32,
}

/// An append of a transaction that did not fail.
#[derive(Clone, Copy)]
pub struct Write {
    pub row: u32,
    /// Its place in the transaction.
    pub place: u32,
    pub key: u32,
    /// Its place in the key's order, or `AFTER_INITIAL`; `NONE` if it comes after all versions that were read.
    pub at: u32,
    pub elem: u32,
}

/// Reads and writes by transaction, each in the order of their places.
pub struct Accesses {
    reads: Vec<Read>,
    first_read: Vec<u32>,
    writes: Vec<Write>,
    first_write: Vec<u32>,
    /// The places of the writes in the order of keys, of places in their orders, and of transactions.
    by_key: Vec<u32>,
    writer: HashMap<u32, u32>,
}

impl Accesses {
    /// Takes reads and writes in the order of rows and places.
    pub fn new(rows: usize, reads: Vec<Read>, writes: Vec<Write>) -> Self {
        let ends = |of: &mut dyn Iterator<Item = u32>| {
            let mut first = vec![0u32; rows + 1];
            of.for_each(|row| first[row as usize + 1] += 1);
            for row in 0..rows {
                first[row + 1] += first[row];
            }
            first
        };
        let first_read = ends(&mut reads.iter().map(|read| read.row));
        let first_write = ends(&mut writes.iter().map(|write| write.row));
        let mut by_key: Vec<u32> = (0..writes.len() as u32).collect();
        by_key.sort_unstable_by_key(|&number| {
            let write = &writes[number as usize];
            (write.key, write.at, write.row, write.place)
        });
        let writer = writes.iter().map(|write| (write.elem, write.row)).collect();
        Self { reads, first_read, writes, first_write, by_key, writer }
    }

    /// Returns the accesses of a whole history.
    pub fn of_history(history: &History<'_>, writers: &Writers, versions: &Versions<'_>) -> Self {
        let place_of = versions.places(history.elems());
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
            let mops = history.of(row);
            for (place, mop) in mops.iter().enumerate() {
                if !mop.is_read {
                    if versions.keep_intermediate() || !writers.intermediate[mop.elem as usize] {
                        let (at, elem) = (place_of[mop.elem as usize], mop.elem);
                        writes.push(Write { row: row as u32, place: place as u32, key: mop.key, at, elem });
                    }
                    continue;
                }
                let is_after = mops[..place].iter().any(|other| !other.is_read && other.key == mop.key);
                let Some(version) = versions.read(history, row, place, mop).filter(|_| !is_after) else { continue };
                let count = match version {
                    NONE => 0,
                    known => match place_of[known as usize] {
                        AFTER_INITIAL | NONE => NONE,
                        at => at + 1,
                    },
                };
                let is_live = version != NONE && writers.live(history, version).is_some();
                let last = if is_live { version } else { NONE };
                reads.push(Read { row: row as u32, place: place as u32, key: mop.key, count, last, version });
            }
        }
        Self::new(history.len(), reads, writes)
    }

    pub fn rows(&self) -> u32 {
        self.first_read.len() as u32 - 1
    }

    pub fn all_reads(&self) -> &[Read] {
        &self.reads
    }

    pub fn all_writes(&self) -> &[Write] {
        &self.writes
    }

    pub fn reads(&self, row: u32) -> &[Read] {
        &self.reads[self.first_read[row as usize] as usize..self.first_read[row as usize + 1] as usize]
    }

    pub fn writes(&self, row: u32) -> &[Write] {
        &self.writes[self.first_write[row as usize] as usize..self.first_write[row as usize + 1] as usize]
    }

    /// Returns the last append of a transaction to each key.
    pub fn last_writes(&self, row: u32) -> Vec<Write> {
        let mut found: Vec<Write> = self.writes(row).iter().rev().copied().collect();
        found.sort_by_key(|write| write.key);
        found.dedup_by_key(|write| write.key);
        found
    }

    /// Returns the row of the writer of an element that a read names; None for `NONE`.
    pub fn writer(&self, elem: u32) -> Option<u32> {
        self.writer.get(&elem).copied()
    }

    /// Yields the appends after the version of a read, those without a known order last.
    pub fn later(&self, read: &Read) -> impl Iterator<Item = &Write> {
        let at = |number: &u32| {
            let write = &self.writes[*number as usize];
            (write.key, write.at)
        };
        let begin = self.by_key.partition_point(|number| at(number) < (read.key, read.count));
        let of = &self.by_key[begin..];
        let end = of.partition_point(|number| at(number).0 == read.key);
        of[..end].iter().map(|&number| &self.writes[number as usize])
    }
}
