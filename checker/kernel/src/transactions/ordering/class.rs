//! What a model asks of the order of the versions of registers, as events and as what a read forbids.
//!
//! A class is a set of models that differ only in what orders transactions besides their data. It has the name of the anomaly that
//! each order of the versions has if the class is contradicted. A model is a set of events with an order:
//!
//! - `G0`: transactions. Only ww orders them.
//! - `G1c`: transactions, which ww and wr order.
//! - `observed-transaction-vanishes`, `fractured-read`, `G-causal`: the same. What a transaction sees follows from wr alone: those that
//!   it read from earlier, those that it read from, and those that a path of wr leads from. Of the writers of a key that it sees,
//!   the one that it read is the last.
//! - `missed-update`: the same as `fractured-read`. Besides, of two transactions that write a common key, the later one sees the
//!   earlier one. So a reader is before the writer of a later version if both write a common key.
//! - `G-single-item`: a transaction sees what ww and wr lead from, so what leads to it wrote no later version than it read.
//! - `G-monotonic`: the same with each read as an event of its own, before the later reads and the commit.
//! - `G-update`: transactions that write are ordered by rw too; each transaction that only reads is judged by itself, as by `G-single-item`.
//! - `G-MSR`: commits and reads in one order, in which a read is before the writer of a later version.
//! - `G-prefix`: the same with one start of a transaction in place of its reads.
//! - `G-nonadjacent-item`: the same, and of two writers of a key one commits before the other one starts.
//! - `G2-item`: transactions, which ww, wr and rw order.

use super::super::missed::MISSED;
use super::super::updates::UPDATE;
use super::super::views::{MONOTONIC, MSR};
use super::super::visibility::{CAUSAL, FRACTURED, PREFIX, VANISHES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Uncommitted,
    Committed,
    MonotonicAtomic,
    Atomic,
    Causal,
    UpdateAtomic,
    Prefix,
    MonotonicView,
    SnapshotRead,
    Single,
    Update,
    Snapshot,
    Serial,
}

pub const CLASSES: [(&str, Class); 13] = [
    ("G0", Class::Uncommitted),
    ("G1c", Class::Committed),
    (VANISHES, Class::MonotonicAtomic),
    (FRACTURED, Class::Atomic),
    (CAUSAL, Class::Causal),
    (MISSED, Class::UpdateAtomic),
    (PREFIX, Class::Prefix),
    (MONOTONIC, Class::MonotonicView),
    (MSR, Class::SnapshotRead),
    ("G-single-item", Class::Single),
    (UPDATE, Class::Update),
    ("G-nonadjacent-item", Class::Snapshot),
    ("G2-item", Class::Serial),
];

/// What a read of a version asks of the writer of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The read is before it.
    Before,
    /// It does not lead to the read.
    Unseen,
    /// The read is before it, if the reader writes a key that it writes too.
    BeforeRival,
    /// Nothing; or what is asked is known beforehand.
    Nothing,
}

/// Which events a transaction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    One,
    /// A start and a commit.
    Two,
    /// Its reads and a commit.
    Reads,
}

impl Class {
    pub fn of(name: &str) -> Option<Self> {
        CLASSES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class)
    }

    pub fn events(self) -> Events {
        match self {
            Self::Prefix | Self::Snapshot => Events::Two,
            Self::MonotonicView | Self::SnapshotRead => Events::Reads,
            _ => Events::One,
        }
    }

    /// Returns what the reads of a transaction ask.
    pub fn rule(self, writes: bool) -> Rule {
        match self {
            Self::Serial | Self::Snapshot | Self::Prefix | Self::SnapshotRead => Rule::Before,
            Self::Update if writes => Rule::Before,
            Self::Update | Self::Single | Self::MonotonicView => Rule::Unseen,
            Self::UpdateAtomic => Rule::BeforeRival,
            _ => Rule::Nothing,
        }
    }

    /// Returns whether of two writers of a key one commits before the other one starts.
    pub fn holds_apart(self) -> bool {
        self == Self::Snapshot
    }

    /// Returns whether a read orders transactions.
    pub fn counts_reads(self) -> bool {
        self != Self::Uncommitted
    }
}
