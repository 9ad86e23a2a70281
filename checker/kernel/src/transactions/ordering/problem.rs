//! The events of a history of registers, what orders them, and for each key its writers and the reads of its versions.

use super::super::graph::{Extra, PROCESS, REALTIME, RW, WR, WW};
use super::super::registers::{Pair, Versions};
use super::super::{History, Writers, FAIL, INFO, NONE, OK};
use super::class::{Class, Events, Rule};

/// Why one version precedes another one, or why a reader precedes a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It follows from the data, from a process or from real time.
    Data,
    /// The versions are in this order by a place of `SOURCES`.
    Source(u8),
    /// The first event leads to the second one, so the versions are in this order.
    Path(u32, u32),
    /// The first event leads to the second one, which is a read of the later version.
    Seen(u32, u32),
    /// The same by edges wr alone.
    Visible(u32, u32),
    /// One of both orders was tried.
    Chosen,
}

/// An event before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arc {
    pub from: u32,
    pub to: u32,
    /// The kind of an edge of the graph; 0 between events of one transaction.
    pub kind: u8,
    pub key: u32,
    pub before: u32,
    pub after: u32,
    pub why: Why,
    /// An arc follows from those with lower numbers alone.
    pub round: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Writer {
    pub row: u32,
    /// The event before which the writers of earlier versions commit.
    pub begin: u32,
    pub commit: u32,
    pub version: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Read {
    pub row: u32,
    /// The event that precedes the writers of later versions.
    pub event: u32,
    /// The place of the writer among those of the key; `NONE` for the initial version.
    pub from: u32,
    /// What was read.
    pub version: u32,
    pub rule: Rule,
}

#[derive(Clone, Debug, Default)]
pub struct Key {
    pub key: u32,
    /// In the order of their rows.
    pub writers: Vec<Writer>,
    pub reads: Vec<Read>,
}

#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// By event: its transaction.
    pub row: Vec<u32>,
    pub arcs: Vec<Arc>,
    /// Those with a writer.
    pub keys: Vec<Key>,
    /// By transaction: the keys that it writes, in ascending order, if the class needs them.
    pub written: Vec<Vec<u32>>,
}

impl Problem {
    pub fn events(&self) -> usize {
        self.row.len()
    }

    /// Returns what a read asks of the writer of a later version.
    pub fn rule(&self, read: &Read, writer: &Writer) -> Rule {
        if read.rule != Rule::BeforeRival {
            return read.rule;
        }
        let theirs = &self.written[writer.row as usize];
        let shares = self.written[read.row as usize].iter().any(|key| theirs.binary_search(key).is_ok());
        if shares {
            Rule::Before
        } else {
            Rule::Nothing
        }
    }
}

/// The places of the first and the last read of one version in a transaction.
struct Span {
    key: u32,
    version: u32,
    first: u32,
    last: u32,
}

/// Makes the problem of a history.
pub struct Maker<'a> {
    history: &'a History<'a>,
    writers: &'a Writers,
    versions: Versions,
    class: Class,
    /// By row: whether it happened. What nobody read from may be left out.
    counts: Vec<bool>,
    found: Problem,
    /// By key: the last row that used it, and the place of its span.
    slot: Vec<(u32, u32)>,
    begin: Vec<u32>,
    commit: Vec<u32>,
}

impl<'a> Maker<'a> {
    pub fn new(history: &'a History<'a>, writers: &'a Writers, class: Class) -> Self {
        let rows = history.len();
        let versions = Versions { elems: history.elems() as u32 };
        let mut counts: Vec<bool> = history.kind.iter().map(|&kind| kind == OK).collect();
        for row in (0..rows).filter(|&row| history.kind[row] != FAIL) {
            for mop in history.of(row).iter().filter(|mop| mop.is_read && mop.known && mop.elem != NONE) {
                if let Some(writer) = writers.live(history, mop.elem) {
                    counts[writer as usize] |= writer != row as u32;
                }
            }
            counts[row] |= history.kind[row] == INFO && !history.position.is_empty() && history.position[row] >= 0;
        }
        let found = Problem::default();
        Self {
            history,
            writers,
            versions,
            class,
            counts,
            found,
            slot: vec![(NONE, NONE); history.keys()],
            begin: vec![NONE; rows],
            commit: vec![NONE; rows],
        }
    }

    fn event(&mut self, row: usize) -> u32 {
        self.found.row.push(row as u32);
        self.found.row.len() as u32 - 1
    }

    fn arc(&mut self, from: u32, to: u32, kind: u8, key: u32, before: u32, after: u32, why: Why) {
        if from != to {
            self.found.arcs.push(Arc { from, to, kind, key, before, after, why, round: 0 });
        }
    }

    fn inner(&mut self, from: u32, to: u32) {
        self.arc(from, to, 0, NONE, NONE, NONE, Why::Data);
    }

    /// Returns the version of the first read of each key that the transaction did not write before, with its places.
    fn spans(&mut self, row: usize) -> Vec<Span> {
        let mut found: Vec<Span> = Vec::new();
        for (place, mop) in self.history.of(row).iter().enumerate().filter(|(_, mop)| mop.known || !mop.is_read) {
            let version = self.versions.of_read(mop);
            let slot = &mut self.slot[mop.key as usize];
            if slot.0 != row as u32 {
                *slot = (row as u32, if mop.is_read { found.len() as u32 } else { NONE });
                if mop.is_read {
                    found.push(Span { key: mop.key, version, first: place as u32, last: place as u32 });
                }
            } else if let Some(span) = found.get_mut(slot.1 as usize).filter(|_| mop.is_read) {
                if span.version == version {
                    span.last = place as u32;
                }
            }
        }
        found
    }

    /// Returns the row of the final writer of a version that did not fail.
    fn writer(&self, version: u32) -> Option<u32> {
        let is_final = version < self.versions.elems && !self.writers.intermediate[version as usize];
        is_final.then(|| self.writers.live(self.history, version)).flatten()
    }

    /// Returns the problem; each source has orders of versions that hold besides.
    pub fn make(mut self, extra: Extra, sources: &[(u8, Vec<Pair>)]) -> Problem {
        let rows = self.history.len();
        let mut keys: Vec<Key> = (0..self.history.keys() as u32).map(|key| Key { key, ..Key::default() }).collect();
        let mut place_of = vec![NONE; self.history.elems()]; // by final version: the place of its writer in its key
        let mut spans: Vec<Vec<Span>> = Vec::with_capacity(rows);
        let mut events: Vec<Vec<u32>> = Vec::with_capacity(rows); // by row: two events for each of its spans
        for row in 0..rows {
            if !self.counts[row] {
                spans.push(Vec::new());
                events.push(Vec::new());
                continue;
            }
            let own = self.spans(row);
            let writes = self.history.of(row).iter().any(|mop| !mop.is_read);
            events.push(self.events_of(row, &own, writes));
            spans.push(own);
            for mop in self.history.of(row).iter().filter(|mop| !mop.is_read) {
                if !self.writers.intermediate[mop.elem as usize] {
                    let some = &mut keys[mop.key as usize].writers;
                    place_of[mop.elem as usize] = some.len() as u32;
                    let (begin, commit) = (self.begin[row], self.commit[row]);
                    let begin = if self.class.holds_apart() { begin } else { commit };
                    some.push(Writer { row: row as u32, begin, commit, version: mop.elem });
                }
            }
        }
        for row in 0..rows {
            let writes = self.history.of(row).iter().any(|mop| !mop.is_read);
            for (number, span) in spans[row].iter().enumerate() {
                let (first, event) = (events[row][2 * number], events[row][2 * number + 1]);
                let of_initial = span.version >= self.versions.elems;
                let writer = self.writer(span.version).filter(|&writer| writer != row as u32);
                if let (Some(writer), true) = (writer, self.class.counts_reads()) {
                    let from = self.commit[writer as usize];
                    self.arc(from, first, WR, span.key, NONE, span.version, Why::Data);
                }
                let from = if of_initial { NONE } else { writer.map_or(NONE, |_| place_of[span.version as usize]) };
                if of_initial || writer.is_some() {
                    let rule = self.class.rule(writes);
                    let version = if of_initial { NONE } else { span.version };
                    keys[span.key as usize].reads.push(Read { row: row as u32, event, from, version, rule });
                }
            }
        }
        if self.class == Class::UpdateAtomic {
            self.found.written = vec![Vec::new(); rows];
            for key in &keys {
                for writer in &key.writers {
                    self.found.written[writer.row as usize].push(key.key);
                }
            }
        }
        self.visible(&spans);
        for (source, pairs) in sources {
            for &(before, after) in pairs {
                let rows = (self.writer(before), self.writer(after));
                if let (Some(one), Some(other)) = rows {
                    if self.counts[one as usize] && self.counts[other as usize] {
                        let key = self.history.key_of(before);
                        let place = place_of[after as usize];
                        let to = keys[key as usize].writers[place as usize].begin;
                        self.arc(self.commit[one as usize], to, WW, key, before, after, Why::Source(*source));
                    }
                }
            }
        }
        self.extra(extra);
        keys.retain(|key| !key.writers.is_empty());
        self.found.keys = keys;
        self.found
    }

    /// Adds the events of a transaction, and returns those that begin and end each span of its reads.
    fn events_of(&mut self, row: usize, spans: &[Span], writes: bool) -> Vec<u32> {
        match self.class.events() {
            Events::One => {
                let one = self.event(row);
                (self.begin[row], self.commit[row]) = (one, one);
                vec![one; spans.len() * 2]
            }
            Events::Two => {
                let start = self.event(row);
                let commit = if writes { self.event(row) } else { start };
                self.inner(start, commit);
                (self.begin[row], self.commit[row]) = (start, commit);
                vec![start; spans.len() * 2]
            }
            Events::Reads => {
                let mut places: Vec<u32> = spans.iter().flat_map(|span| [span.first, span.last]).collect();
                places.sort_unstable();
                places.dedup();
                let of: Vec<u32> = places.iter().map(|_| self.event(row)).collect();
                for pair in of.windows(2) {
                    self.inner(pair[0], pair[1]);
                }
                let commit = if writes || of.is_empty() { self.event(row) } else { of[of.len() - 1] };
                if let Some(&last) = of.last() {
                    self.inner(last, commit);
                }
                (self.begin[row], self.commit[row]) = (of.first().copied().unwrap_or(commit), commit);
                let event = |place: u32| of[places.partition_point(|&other| other < place)];
                spans.iter().flat_map(|span| [event(span.first), event(span.last)]).collect()
            }
        }
    }

    /// Adds the orders of versions that follow from what a transaction read from directly.
    fn visible(&mut self, spans: &[Vec<Span>]) {
        if !matches!(self.class, Class::MonotonicAtomic | Class::Atomic | Class::UpdateAtomic) {
            return;
        }
        let mut more = Vec::new();
        self.slot.fill((NONE, NONE));
        for (row, own) in spans.iter().enumerate() {
            for (number, span) in (0..).zip(own) {
                self.slot[span.key as usize] = (row as u32, number);
            }
            for seen in own {
                let Some(of) = self.writer(seen.version).filter(|&of| of != row as u32) else { continue };
                for mop in self.history.of(of as usize).iter().filter(|mop| !mop.is_read) {
                    if self.writers.intermediate[mop.elem as usize] || mop.elem == seen.version {
                        continue;
                    }
                    let (of_row, number) = self.slot[mop.key as usize];
                    let Some(read) = own.get(number as usize).filter(|_| of_row == row as u32) else { continue };
                    let is_late = self.class != Class::MonotonicAtomic || read.last > seen.first;
                    let is_other = read.version != mop.elem;
                    let of_initial = read.version >= self.versions.elems;
                    let to = self.writer(read.version).filter(|&to| to != row as u32);
                    if !is_late || !is_other || (!of_initial && to.is_none()) {
                        continue;
                    }
                    let (from, event) = (self.commit[of as usize], self.begin[row]);
                    let why = Why::Visible(from, event);
                    match to {
                        Some(to) => {
                            more.push((from, self.commit[to as usize], WW, mop.key, mop.elem, read.version, why));
                        }
                        None => more.push((event, from, RW, mop.key, NONE, mop.elem, Why::Data)),
                    }
                }
            }
        }
        for (from, to, kind, key, before, after, why) in more {
            self.arc(from, to, kind, key, before, after, why);
        }
    }

    /// Adds the order of processes or of real time, without pairs that follow from others.
    fn extra(&mut self, extra: Extra) {
        let history = self.history;
        if extra == Extra::Process {
            let mut ended = ended(history);
            ended.sort_by_key(|&row| history.process[row as usize]);
            for pair in ended.windows(2) {
                let (one, other) = (pair[0] as usize, pair[1] as usize);
                if history.process[one] == history.process[other] {
                    self.arc(self.commit[one], self.begin[other], PROCESS, NONE, NONE, NONE, Why::Data);
                }
            }
        }
        if extra == Extra::Realtime {
            for (before, after) in in_real_time(history, |row| self.counts[row as usize]) {
                let (from, to) = (self.commit[before as usize], self.begin[after as usize]);
                self.arc(from, to, REALTIME, NONE, NONE, NONE, Why::Data);
            }
        }
    }
}

/// Returns the rows that succeeded.
fn ended(history: &History<'_>) -> Vec<u32> {
    (0..history.len() as u32).filter(|&row| history.kind[row as usize] == OK).collect()
}

/// Returns each two of some rows of which the first one ended before the second one began, without pairs that follow from others.
pub fn in_real_time(history: &History<'_>, counts: impl Fn(u32) -> bool) -> Vec<(u32, u32)> {
    let mut ended = ended(history);
    ended.retain(|&row| counts(row));
    ended.sort_by_key(|&row| history.end[row as usize]);
    let mut ended = ended.into_iter().peekable();
    let mut frontier: Vec<u32> = Vec::new(); // as wide as the concurrency
    let mut pairs = Vec::new();
    for row in (0..history.len() as u32).filter(|&row| counts(row)) {
        while let Some(next) = ended.next_if(|&next| history.end[next as usize] < history.start[row as usize]) {
            let began = history.start[next as usize];
            frontier.retain(|&other| history.end[other as usize] >= began);
            frontier.push(next);
        }
        pairs.extend(frontier.iter().map(|&before| (before, row)));
    }
    pairs
}
