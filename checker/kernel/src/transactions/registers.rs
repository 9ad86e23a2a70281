//! Registers: no read shows the order of the versions of a key, so it follows from assumptions about the store.
//!
//! The initial version precedes all others. The other sources of the order are chosen by the user: a transaction that reads a
//! version and writes another one (writes follow reads), the order of transactions on one key in a process or in real
//! time, the order in which the system says that it committed them (`positions`), and what a transaction saw together (`together`). Together they are a graph of versions for each key. A source that makes a cycle contradicts the others: this is
//! the anomaly cyclic-versions, and the source is left out.

use super::accesses::AFTER_INITIAL;
use super::contradictions;
use super::graph::{Dependencies, Edge, Fan, Reason, RW, WR, WW};
use super::positions::neighbours;
use super::together;
use super::{Finding, Findings, History, Mop, Writers, FAIL, NONE, OK};

/// Which orders of versions to assume.
// The flags are independent of each other.
#[allow(clippy::struct_excessive_bools)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    pub writes_follow_reads: bool,
    pub sequential_keys: bool,
    pub linearizable_keys: bool,
    /// The positions of the history.
    pub transaction_order: bool,
    pub atomic_visibility: bool,
    /// By source, as in `SOURCES`: whether it contradicts the others elsewhere, so that it is left out whatever it shows here.
    pub left_out: [bool; 6],
}

/// What a transaction does with one key as a whole.
#[derive(Clone, Copy)]
pub struct Touch {
    pub row: u32,
    pub key: u32,
    /// The version of its first access, if that is a read with a result.
    pub read: Option<u32>,
    /// Its last write.
    pub write: Option<u32>,
}

impl Touch {
    /// Returns the version that it leaves.
    pub fn last(&self) -> Option<u32> {
        self.write.or(self.read)
    }

    /// Returns the version that it begins with: a later transaction has this one or a later one.
    pub fn first(&self) -> Option<u32> {
        self.read.or(self.write)
    }
}

/// Versions have numbers: an element is itself, and the initial version of a key comes after all elements.
pub struct Versions {
    pub elems: u32,
}

impl Versions {
    /// Returns the version that a micro-operation reads or writes.
    pub fn of_read(&self, mop: &Mop) -> u32 {
        if mop.elem == NONE {
            self.elems + mop.key
        } else {
            mop.elem
        }
    }

    pub fn key(&self, history: &History<'_>, version: u32) -> u32 {
        version.checked_sub(self.elems).unwrap_or_else(|| history.key_of(version))
    }

    /// Returns the element of a version, or `NONE` for an initial one.
    pub fn shown(&self, version: u32) -> u32 {
        if version < self.elems {
            version
        } else {
            NONE
        }
    }
}

/// Returns the dependencies and the anomalies that are no cycles.
pub fn registers(
    history: &History<'_>,
    writers: &Writers,
    sources: Sources,
    findings: &mut Findings,
) -> Dependencies {
    let versions = Versions { elems: history.elems() as u32 };
    values(history, writers, findings);
    internal(history, findings);
    let touches = touches(history, &versions);
    lost_updates(history, &touches, findings);
    let (order, contradicted) = version_order(history, writers, &versions, &touches, sources, findings);
    let mut found = edges(history, writers, &versions, &touches, &order);
    (found.reasons, found.contradicted) = (order, contradicted);
    found
}

/// Returns the place of each element among the versions of its key, as far as their order is known; see `accesses`.
///
/// Of each key, the versions on a longest path of the order have a place, from 1 on, because the order of any two of them is known.
pub fn places(history: &History<'_>, order: &[Reason]) -> Vec<u32> {
    let elems = history.elems();
    let mut next: Vec<Vec<u32>> = vec![Vec::new(); elems];
    let mut left = vec![0u32; elems]; // how many versions directly before each one are still to come
    for &(before, after, _) in order.iter().filter(|reason| (reason.0 as usize) < elems) {
        next[before as usize].push(after);
        left[after as usize] += 1;
    }
    let mut length = vec![0u32; elems];
    let mut previous = vec![NONE; elems];
    let mut longest = vec![NONE; history.keys()]; // by key: the last version of a longest path
    let mut free: Vec<u32> = (0..elems as u32).filter(|&elem| left[elem as usize] == 0).collect();
    while let Some(elem) = free.pop() {
        let best = &mut longest[history.key_of(elem) as usize];
        if *best == NONE || length[*best as usize] < length[elem as usize] {
            *best = elem;
        }
        for &after in &next[elem as usize] {
            if length[after as usize] <= length[elem as usize] {
                (length[after as usize], previous[after as usize]) = (length[elem as usize] + 1, elem);
            }
            left[after as usize] -= 1;
            if left[after as usize] == 0 {
                free.push(after);
            }
        }
    }
    let mut found = vec![AFTER_INITIAL; elems];
    for mut elem in longest {
        while elem != NONE {
            found[elem as usize] = length[elem as usize] + 1;
            elem = previous[elem as usize];
        }
    }
    found
}

/// Returns what each transaction that may have happened does with each of its keys, by key and then by row.
fn touches(history: &History<'_>, versions: &Versions) -> Vec<Touch> {
    let mut found: Vec<Touch> = Vec::new();
    let mut last = vec![NONE; history.keys()];
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        let begin = found.len();
        for mop in history.of(row) {
            let at = last[mop.key as usize] as usize;
            let touch = if last[mop.key as usize] != NONE && at >= begin {
                &mut found[at]
            } else {
                last[mop.key as usize] = found.len() as u32;
                let read = (mop.is_read && mop.known).then(|| versions.of_read(mop));
                found.push(Touch { row: row as u32, key: mop.key, read, write: None });
                let at = found.len() - 1;
                &mut found[at]
            };
            if !mop.is_read {
                touch.write = Some(mop.elem);
            }
        }
    }
    found.sort_by_key(|touch| touch.key);
    found
}

/// Adds what the value of each read shows: aborted, intermediate, future and unwritten ones.
fn values(history: &History<'_>, writers: &Writers, findings: &mut Findings) {
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        for (place, mop) in history.of(row).iter().enumerate() {
            if !mop.is_read || !mop.known || mop.elem == NONE {
                continue;
            }
            let elem = mop.elem as usize;
            let writer = writers.row[elem];
            let of_other = writer != NONE && writer != row as u32;
            let kinds = [
                ("garbage-read", writer == NONE),
                ("future-read", writer == row as u32 && writers.place[elem] > place as u32),
                ("G1a", of_other && history.kind[writer as usize] == FAIL),
                ("G1b", of_other && writers.intermediate[elem]),
            ];
            for (kind, _) in kinds.into_iter().filter(|(_, there)| *there) {
                let mut finding = Finding {
                    kind,
                    key: mop.key,
                    rows: vec![row as u32],
                    places: vec![place as u32],
                    elems: vec![mop.elem],
                };
                if of_other {
                    finding.rows.push(writer);
                    finding.places.push(writers.place[elem]);
                }
                findings.add(finding);
            }
        }
    }
}

/// Adds each transaction that reads another value than its last access of the key left there, once.
fn internal(history: &History<'_>, findings: &mut Findings) {
    let mut last = vec![(NONE, 0u32); history.keys()]; // the row and the place of the last access
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        let mops = history.said(row);
        for (place, mop) in mops.iter().enumerate().filter(|(_, mop)| mop.known) {
            let (of, before) = std::mem::replace(&mut last[mop.key as usize], (row as u32, place as u32));
            if mop.is_read && of == row as u32 && mops[before as usize].elem != mop.elem {
                findings.add(Finding {
                    kind: "internal",
                    key: mop.key,
                    rows: vec![row as u32; 2],
                    places: vec![place as u32, before],
                    elems: Vec::new(),
                });
                break;
            }
        }
    }
}

/// Adds the transactions that first read the same version of a key, and then all write it.
fn lost_updates(history: &History<'_>, touches: &[Touch], findings: &mut Findings) {
    let mut some: Vec<(u32, u32, u32)> = touches
        .iter()
        .filter(|touch| touch.write.is_some())
        .filter_map(|touch| touch.read.map(|read| (touch.key, read, touch.row)))
        .collect();
    some.sort_unstable();
    for group in some.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)).filter(|group| group.len() > 1) {
        let rows: Vec<u32> = group.iter().map(|each| each.2).collect();
        let place = |row: &u32| {
            let first = history.of(*row as usize).iter().position(|mop| mop.key == group[0].0);
            first.unwrap_or_default() as u32
        };
        let places = rows.iter().map(place).collect();
        findings.add(Finding { kind: "lost-update", key: group[0].0, rows, places, elems: Vec::new() });
    }
}

pub type Pair = (u32, u32);

/// Returns which versions precede which others directly, each pair once, and why; and the sources that contradict the others.
fn version_order(
    history: &History<'_>,
    writers: &Writers,
    versions: &Versions,
    touches: &[Touch],
    sources: Sources,
    findings: &mut Findings,
) -> (Vec<Reason>, Vec<u8>) {
    let mut order: Vec<Reason> = Vec::new();
    let mut contradicted = Vec::new();
    for touch in touches {
        for version in touch.read.iter().chain(&touch.write).filter(|&&version| version < versions.elems) {
            order.push((versions.elems + touch.key, *version, 0));
        }
    }
    let once = |order: &mut Vec<Reason>| {
        order.sort_unstable();
        order.dedup_by_key(|reason| (reason.0, reason.1));
    };
    once(&mut order);
    for (source, pairs) in of_sources(history, writers, touches, sources) {
        let before = order.len();
        order.extend(pairs.into_iter().map(|(one, other)| (one, other, source)));
        let is_cyclic = contradictions::add(history, versions, touches, &order, findings);
        if is_cyclic {
            contradicted.push(source);
        }
        if is_cyclic || sources.left_out[source as usize] {
            order.truncate(before);
        } else {
            once(&mut order);
        }
    }
    (order, contradicted)
}

/// Returns the orders of versions that some sources show, each with the place of its source in `SOURCES`.
pub fn source_pairs(history: &History<'_>, writers: &Writers, sources: Sources) -> Vec<(u8, Vec<Pair>)> {
    let touches = touches(history, &Versions { elems: history.elems() as u32 });
    of_sources(history, writers, &touches, sources)
}

fn of_sources(history: &History<'_>, writers: &Writers, touches: &[Touch], sources: Sources) -> Vec<(u8, Vec<Pair>)> {
    let mut found: Vec<(u8, Vec<Pair>)> = Vec::new();
    if sources.writes_follow_reads {
        let pairs = touches.iter().filter_map(|touch| touch.read.zip(touch.write));
        found.push((1, pairs.filter(|(one, other)| one != other).collect()));
    }
    let by_key = || touches.chunk_by(|one, other| one.key == other.key);
    if sources.sequential_keys {
        let all = by_key().flat_map(|some| processes(history, some));
        found.push((2, all.filter_map(|(one, other)| in_pair(one, other)).collect()));
    }
    if sources.linearizable_keys {
        found.push((3, by_key().flat_map(|some| in_real_time(history, some)).collect()));
    }
    if sources.transaction_order {
        let written = |touch: &Touch| touch.write.map(|version| (touch.row, version));
        found.push((4, by_key().flat_map(|some| neighbours(history, some.iter().filter_map(written))).collect()));
    }
    if sources.atomic_visibility {
        found.push((5, together::pairs(history, writers, touches)));
    }
    found
}

/// Returns the order of the versions of two transactions on a key, one of which precedes the other.
pub fn in_pair(one: &Touch, other: &Touch) -> Option<Pair> {
    let (before, after) = (one.last()?, other.first()?);
    (before != after).then_some((before, after))
}

/// Returns each two transactions on a key that follow each other in a process.
pub fn processes<'a>(history: &History<'_>, touches: &'a [Touch]) -> Vec<(&'a Touch, &'a Touch)> {
    let mut some: Vec<&Touch> = touches.iter().filter(|touch| history.kind[touch.row as usize] == OK).collect();
    some.sort_by_key(|touch| history.process[touch.row as usize]);
    let same = |pair: &&[&Touch]| history.process[pair[0].row as usize] == history.process[pair[1].row as usize];
    some.windows(2).filter(same).map(|two| (two[0], two[1])).collect()
}

/// Returns the order of the versions of a key in real time, without pairs that follow from others.
///
/// The transactions that ended and that no later one that ended follows are the frontier; it is as wide as the concurrency.
pub fn in_real_time(history: &History<'_>, touches: &[Touch]) -> Vec<Pair> {
    let mut ended: Vec<&Touch> = touches.iter().filter(|touch| history.kind[touch.row as usize] == OK).collect();
    ended.sort_by_key(|touch| history.end[touch.row as usize]);
    let mut ended = ended.into_iter().peekable();
    let mut frontier: Vec<&Touch> = Vec::new();
    let mut found = Vec::new();
    for touch in touches {
        let start = history.start[touch.row as usize];
        while let Some(next) = ended.next_if(|next| history.end[next.row as usize] < start) {
            let began = history.start[next.row as usize];
            frontier.retain(|other| history.end[other.row as usize] >= began);
            frontier.push(next);
        }
        found.extend(frontier.iter().filter_map(|before| in_pair(before, touch)));
    }
    found
}

/// Returns the dependencies between the writers and the readers of versions; a version that its transaction replaced has no
/// writer here.
fn edges(
    history: &History<'_>,
    writers: &Writers,
    versions: &Versions,
    touches: &[Touch],
    order: &[Reason],
) -> Dependencies {
    let mut found = Dependencies::default();
    let writer = |version: u32| {
        let is_final = version < versions.elems && !writers.intermediate[version as usize];
        is_final.then(|| writers.live(history, version)).flatten()
    };
    let mut readers: Vec<Vec<u32>> = vec![Vec::new(); versions.elems as usize + history.keys()];
    for touch in touches {
        if let Some(read) = touch.read {
            readers[read as usize].push(touch.row);
            if let Some(from) = writer(read) {
                found.add(Edge { from, to: touch.row, kind: WR, key: touch.key, before: NONE, after: read });
            }
        }
    }
    let mut after_initial: Vec<Vec<(u32, u32)>> = vec![Vec::new(); history.keys()];
    for &(before, after, _) in order {
        let Some(to) = writer(after) else { continue };
        let key = history.key_of(after);
        if before >= versions.elems {
            after_initial[key as usize].push((to, after));
            continue;
        }
        if let Some(from) = writer(before) {
            found.add(Edge { from, to, kind: WW, key, before, after });
        }
        for &from in &readers[before as usize] {
            found.add(Edge { from, to, kind: RW, key, before, after });
        }
    }
    for (number, writers) in after_initial.into_iter().enumerate() {
        let of_initial = &readers[versions.elems as usize + number];
        let readers = of_initial.iter().map(|&row| (row, NONE)).collect();
        found.add_fan(Fan { kind: RW, key: number as u32, readers, writers });
    }
    let mut written: Vec<Vec<(u32, u32)>> = vec![Vec::new(); history.keys()];
    for touch in touches {
        if let Some(elem) = touch.write {
            written[touch.key as usize].push((touch.row, elem));
        }
    }
    found.groups = written;
    found
}
