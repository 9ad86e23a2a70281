//! Lists: the order of the versions of a key is the longest list that a transaction read.

use std::collections::{HashMap, HashSet};

use super::appends::{dirty_updates, misplaced};
use super::graph::{Dependencies, Edge, Fan, RW, WR, WW};
use super::listed::assume;
use super::registers::Sources;
use super::{Finding, Findings, History, Mop, Writers, FAIL, NONE};

/// The order of the appends of each key, as far as reads show it.
pub struct Orders {
    /// By key: the elements in order, each once.
    pub of: Vec<Vec<u32>>,
    /// By key: the row and the place of the read that shows them.
    pub shown: Vec<Option<(u32, u32)>>,
    /// By micro-operation: whether it is a read of a beginning of the longest list.
    agrees: Vec<bool>,
}

impl Orders {
    /// Returns whether the read at a place of a row is known, and a beginning of the longest list.
    pub fn agrees(&self, history: &History<'_>, row: usize, place: usize) -> bool {
        history.of(row)[place].known && self.agrees[history.first(row) + place]
    }
}

/// Returns the dependencies and the orders, and adds the anomalies that are no cycles.
pub fn lists(
    history: &History<'_>,
    writers: &Writers,
    sources: Sources,
    findings: &mut Findings,
) -> (Dependencies, Orders) {
    let orders = orders(history, findings);
    elements(history, writers, findings);
    internal(history, findings);
    lost_updates(history, &orders, findings);
    dirty_updates(history, writers, &orders, findings);
    misplaced(history, writers, &orders, findings);
    let mut found = edges(history, writers, &orders);
    assume(history, writers, &orders, sources, &mut found, findings);
    (found, orders)
}

/// Yields each known read of a transaction that happened: its row, its place and its place among all.
fn reads<'a>(history: &'a History<'_>) -> impl Iterator<Item = (usize, usize, &'a Mop)> + 'a {
    (0..history.len()).filter(|&row| history.kind[row] != FAIL).flat_map(move |row| {
        let mops = history.of(row).iter().enumerate();
        mops.filter(|(_, mop)| mop.is_read && mop.known).map(move |(place, mop)| (row, place, mop))
    })
}

fn orders(history: &History<'_>, findings: &mut Findings) -> Orders {
    let keys = history.keys();
    let mut longest: Vec<Option<(usize, usize, &Mop)>> = vec![None; keys];
    for (row, place, mop) in reads(history) {
        let best = &mut longest[mop.key as usize];
        if best.is_none_or(|(_, _, best)| mop.to - mop.from > best.to - best.from) {
            *best = Some((row, place, mop));
        }
    }
    let mut agrees = vec![true; history.table.mops.len()];
    let mut broken = vec![false; keys];
    for (row, place, mop) in reads(history) {
        let Some((_, _, best)) = longest[mop.key as usize] else { continue };
        let agreed = mop.shared && best.shared && mop.to <= best.to;
        if !agreed && !history.list(best).starts_with(history.list(mop)) {
            agrees[history.first(row) + place] = false;
            broken[mop.key as usize] = true;
        }
    }
    incompatible(history, &broken, findings);
    let mut seen = vec![false; history.elems()];
    let of = longest.iter().map(|best| {
        let list = best.map_or(&[][..], |(_, _, mop)| history.list(mop));
        list.iter().copied().filter(|&elem| !std::mem::replace(&mut seen[elem as usize], true)).collect()
    });
    let of = of.collect();
    let shown = longest.iter().map(|best| best.map(|(row, place, _)| (row as u32, place as u32))).collect();
    Orders { of, shown, agrees }
}

/// Adds each two neighbours, in the order of length, of the distinct lists of a key of which none is a beginning of the other.
fn incompatible(history: &History<'_>, broken: &[bool], findings: &mut Findings) {
    let mut distinct: Vec<Vec<(usize, usize, &Mop)>> = vec![Vec::new(); broken.len()];
    let mut known: HashSet<(u32, &[u32])> = HashSet::new();
    for (row, place, mop) in reads(history).filter(|(_, _, mop)| broken[mop.key as usize] && mop.to > mop.from) {
        if known.insert((mop.key, history.list(mop))) {
            distinct[mop.key as usize].push((row, place, mop));
        }
    }
    for (key, mut some) in distinct.into_iter().enumerate() {
        some.sort_by_key(|(_, _, mop)| mop.to - mop.from);
        for pair in some.windows(2) {
            let [(row, place, short), (other, at, long)] = pair else { continue };
            if !history.list(long).starts_with(history.list(short)) {
                findings.add(Finding {
                    kind: "incompatible-order",
                    key: key as u32,
                    rows: vec![*row as u32, *other as u32],
                    places: vec![*place as u32, *at as u32],
                    elems: Vec::new(),
                });
            }
        }
    }
}

/// The lists that most reads return a beginning of, so that such a read needs no look at its elements.
struct Shared {
    /// By element: its place in the list of its key, or `NONE`.
    place: Vec<u32>,
    /// By key: how many elements at the beginning are there once, and were written by transactions that may have happened.
    sound: Vec<u32>,
}

impl Shared {
    fn of(history: &History<'_>, writers: &Writers) -> Self {
        let mut place = vec![NONE; history.elems()];
        let sound = history.table.lists.iter().map(|list| {
            let mut sound = list.len();
            for (at, &elem) in list.iter().enumerate() {
                let known = &mut place[elem as usize];
                if *known != NONE || writers.live(history, elem).is_none() {
                    sound = sound.min(at);
                }
                *known = (*known).min(at as u32);
            }
            sound as u32
        });
        let sound = sound.collect();
        Self { place, sound }
    }

    /// Returns whether no element of a read is wrong by itself, and the transaction writes none of them later.
    fn is_sound(&self, mop: &Mop, later: &[Mop]) -> bool {
        mop.shared
            && mop.to <= self.sound[mop.key as usize]
            && !later
                .iter()
                .any(|other| !other.is_read && other.key == mop.key && self.place[other.elem as usize] < mop.to)
    }
}

/// Adds what the elements of each read show: aborted, intermediate, future, repeated and unwritten ones.
fn elements(history: &History<'_>, writers: &Writers, findings: &mut Findings) {
    let shared = Shared::of(history, writers);
    let mut seen = vec![NONE; history.elems()];
    for (number, (row, place, mop)) in reads(history).enumerate() {
        let mut add = |kind, elem: u32| {
            let writer = writers.row[elem as usize];
            let mut finding =
                Finding { kind, key: mop.key, rows: vec![row as u32], places: vec![place as u32], elems: vec![elem] };
            if writer != NONE && writer != row as u32 {
                finding.rows.push(writer);
                finding.places.push(writers.place[elem as usize]);
            }
            findings.add(finding);
        };
        let list = history.list(mop);
        let suspects = if shared.is_sound(mop, &history.of(row)[place..]) { &[][..] } else { list };
        let mut reported = [false; 4];
        for &elem in suspects {
            let writer = writers.row[elem as usize];
            let kinds = [
                ("duplicate-elements", std::mem::replace(&mut seen[elem as usize], number as u32) == number as u32),
                ("garbage-read", writer == NONE),
                ("G1a", writer != NONE && history.kind[writer as usize] == FAIL),
                ("future-read", writer == row as u32 && writers.place[elem as usize] > place as u32),
            ];
            for (at, (kind, there)) in kinds.into_iter().enumerate() {
                if there && !std::mem::replace(&mut reported[at], true) {
                    add(kind, elem);
                }
            }
        }
        if let Some(&last) = list.last() {
            let writer = writers.row[last as usize];
            if writer != NONE && writer != row as u32 && writers.intermediate[last as usize] {
                add("G1b", last);
            }
        }
    }
}

/// What a transaction knows of a key: the list that it read, if it did, and its own appends after that.
struct Known {
    key: u32,
    read: Option<(Mop, u32)>,
    own: Vec<u32>,
}

/// Adds each transaction that contradicts itself, once.
fn internal(history: &History<'_>, findings: &mut Findings) {
    let mut slot = vec![NONE; history.keys()];
    let mut known: Vec<Known> = Vec::new();
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        known.clear();
        for (place, mop) in history.said(row).iter().enumerate().filter(|(_, mop)| mop.known) {
            let at = slot[mop.key as usize] as usize;
            let now = known.get_mut(at).filter(|known| known.key == mop.key);
            if !mop.is_read {
                if let Some(now) = now {
                    now.own.push(mop.elem);
                } else {
                    slot[mop.key as usize] = known.len() as u32;
                    known.push(Known { key: mop.key, read: None, own: vec![mop.elem] });
                }
                continue;
            }
            let list = history.list(mop);
            let read = Some((*mop, place as u32));
            let Some(now) = now else {
                slot[mop.key as usize] = known.len() as u32;
                known.push(Known { key: mop.key, read, own: Vec::new() });
                continue;
            };
            let fits = match now.read {
                Some((before, _)) => {
                    let begin = history.list(&before);
                    list.len() == begin.len() + now.own.len() && list.starts_with(begin) && list.ends_with(&now.own)
                }
                None => list.ends_with(&now.own),
            };
            if !fits {
                let places = now.read.map_or(vec![place as u32], |(_, before)| vec![place as u32, before]);
                findings.add(Finding {
                    kind: "internal",
                    key: mop.key,
                    rows: vec![row as u32; places.len()],
                    places,
                    elems: now.own.clone(),
                });
                break;
            }
            now.read = read;
            now.own.clear();
        }
    }
}

/// Transactions that read the same version of a key: each with the place of the read.
type Readers = Vec<(u32, u32)>;

/// Adds the transactions that first read the same version of a key, and then all append to it.
fn lost_updates(history: &History<'_>, orders: &Orders, findings: &mut Findings) {
    let mut agreeing: HashMap<(u32, u32), Readers> = HashMap::new();
    let mut others: HashMap<(u32, &[u32]), Readers> = HashMap::new();
    let mut first = vec![NONE; history.keys()];
    for row in (0..history.len()).filter(|&row| history.kind[row] != FAIL) {
        for (place, mop) in history.of(row).iter().enumerate() {
            let is_first = std::mem::replace(&mut first[mop.key as usize], row as u32) != row as u32;
            if !is_first || !mop.is_read || !mop.known {
                continue;
            }
            if !history.of(row)[place..].iter().any(|other| !other.is_read && other.key == mop.key) {
                continue;
            }
            let reader = (row as u32, place as u32);
            if orders.agrees[history.first(row) + place] {
                agreeing.entry((mop.key, mop.to - mop.from)).or_default().push(reader);
            } else {
                others.entry((mop.key, history.list(mop))).or_default().push(reader);
            }
        }
    }
    let all = agreeing.into_iter().map(|((key, _), some)| (key, some));
    let mut found: Vec<_> = all.chain(others.into_iter().map(|((key, _), some)| (key, some))).collect();
    found.retain(|(_, some)| some.len() > 1);
    found.sort_unstable_by(|one, other| one.1.cmp(&other.1));
    for (key, some) in found {
        let (rows, places) = some.into_iter().unzip();
        findings.add(Finding { kind: "lost-update", key, rows, places, elems: Vec::new() });
    }
}

/// Returns the dependencies between neighbours in the order of each key.
///
/// A version without a writer that may have happened is passed over: its readers precede the next append. An append that no read
/// returned comes after the last version.
fn edges(history: &History<'_>, writers: &Writers, orders: &Orders) -> Dependencies {
    let mut found = Dependencies::default();
    let mut of_elem: Vec<Vec<u32>> = vec![Vec::new(); history.elems()];
    let mut of_initial: Vec<Vec<u32>> = vec![Vec::new(); history.keys()];
    for (row, _, mop) in reads(history) {
        let Some(&last) = history.list(mop).last() else {
            of_initial[mop.key as usize].push(row as u32);
            continue;
        };
        of_elem[last as usize].push(row as u32);
        if let Some(from) = writers.live(history, last) {
            found.add(Edge { from, to: row as u32, kind: WR, key: mop.key, before: NONE, after: last });
        }
    }
    let mut ordered = vec![false; history.elems()];
    for &elem in orders.of.iter().flatten() {
        ordered[elem as usize] = true;
    }
    let mut unseen: Vec<Vec<(u32, u32)>> = vec![Vec::new(); history.keys()];
    for elem in (0..history.elems() as u32).filter(|&elem| !ordered[elem as usize]) {
        if let Some(row) = writers.live(history, elem) {
            unseen[history.key_of(elem) as usize].push((row, elem));
        }
    }
    for (number, order) in orders.of.iter().enumerate() {
        let key = number as u32;
        let mut last = None;
        let mut readers: Vec<(u32, u32)> = of_initial[number].iter().map(|&row| (row, NONE)).collect();
        for &elem in order {
            if let Some(row) = writers.live(history, elem) {
                if let Some((from, before)) = last {
                    found.add(Edge { from, to: row, kind: WW, key, before, after: elem });
                }
                for &(from, before) in &readers {
                    found.add(Edge { from, to: row, kind: RW, key, before, after: elem });
                }
                last = Some((row, elem));
                readers.clear();
            }
            readers.extend(of_elem[elem as usize].iter().map(|&row| (row, elem)));
        }
        if let Some((from, before)) = last {
            for &(to, after) in &unseen[number] {
                found.add(Edge { from, to, kind: WW, key, before, after });
            }
        }
        found.add_fan(Fan { kind: RW, key, readers, writers: unseen[number].clone() });
    }
    let several = |group: &[(u32, u32)]| group.iter().any(|(row, _)| *row != group[0].0);
    let unordered = (0..).zip(&unseen).filter(|(_, group)| several(group));
    found.unordered = unordered.map(|(key, group)| (key, group.iter().map(|&(row, _)| row).collect())).collect();
    found.groups = unseen;
    found
}
