//! Cycles of the versions of a register: assumed orders that contradict each other, with the transactions that show each step.
//!
//! Of each component of versions that precede each other, a short cycle is shown. A step of it follows from the initial version, or
//! from two accesses: those of one transaction, of two in a process, in real time or in the system's own order, or of two writers
//! that a third transaction saw.

use std::collections::{HashMap, HashSet, VecDeque};

use super::graph::{components, Reason};
use super::registers::{in_pair, processes, Touch, Versions};
use super::{Finding, Findings, History, OK};

const KIND: &str = "cyclic-versions";
/// From how many versions of a component a short cycle is searched.
const STARTS: usize = 16;
/// How many steps of a cycle are shown with their transactions.
const STEPS: usize = 6;

/// By version of a shown cycle: the accesses that a step may follow from.
#[derive(Default)]
struct Accesses {
    first: HashMap<u32, u32>,
    written: HashMap<u32, u32>,
    /// The one that ended first, with its end, and the one that began last, with its start.
    ended: HashMap<u32, (i64, u32)>,
    begun: HashMap<u32, (i64, u32)>,
    inside: HashMap<(u32, u32), u32>,
    in_process: HashMap<(u32, u32), [u32; 2]>,
}

/// Adds a cycle of each component of versions, and returns whether there is one.
pub fn add(
    history: &History<'_>,
    versions: &Versions,
    touches: &[Touch],
    order: &[Reason],
    findings: &mut Findings,
) -> bool {
    let count = versions.elems + history.keys() as u32;
    let mut next: Vec<Vec<(u32, u8)>> = vec![Vec::new(); count as usize];
    for &(before, after, source) in order {
        next[before as usize].push((after, source));
    }
    let parts = components(count, |node, number| next[node as usize].get(number as usize).map(|step| step.0));
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); parts.count as usize];
    for version in 0..count {
        members[parts.of[version as usize] as usize].push(version);
    }
    let cyclic: Vec<&Vec<u32>> = members.iter().filter(|some| some.len() > 1).collect();
    let kept = cyclic.len().min(findings.room(KIND));
    let cycles: Vec<Vec<u32>> = cyclic[..kept].iter().map(|some| short_cycle(some, &next, &parts.of)).collect();
    let accesses = accesses(history, versions, touches, &cycles);
    for cycle in &cycles {
        findings.add(finding(history, versions, cycle, &next, &accesses));
    }
    for _ in kept..cyclic.len() {
        findings.add(Finding { kind: KIND, key: 0, rows: Vec::new(), places: Vec::new(), elems: Vec::new() });
    }
    !cyclic.is_empty()
}

/// Returns a shortest cycle through one of the first versions of a component.
fn short_cycle(some: &[u32], next: &[Vec<(u32, u8)>], part: &[u32]) -> Vec<u32> {
    let of = part[some[0] as usize];
    let mut best: Vec<u32> = Vec::new();
    for &start in &some[..some.len().min(STARTS)] {
        let mut previous: HashMap<u32, u32> = HashMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(version) = waiting.pop_front() {
            for &(after, _) in next[version as usize].iter().filter(|step| part[step.0 as usize] == of) {
                previous.entry(after).or_insert_with(|| {
                    waiting.push_back(after);
                    version
                });
            }
            if previous.contains_key(&start) {
                break;
            }
        }
        let mut cycle = vec![start];
        let mut version = previous[&start];
        while version != start {
            cycle.push(version);
            version = previous[&version];
        }
        cycle[1..].reverse();
        if best.is_empty() || cycle.len() < best.len() {
            best = cycle;
        }
    }
    best
}

/// Returns what each step of some cycles may follow from, by one pass over the accesses of their keys.
fn accesses(history: &History<'_>, versions: &Versions, touches: &[Touch], cycles: &[Vec<u32>]) -> Accesses {
    let wanted: HashSet<u32> = cycles.iter().flatten().copied().collect();
    let keys: HashSet<u32> = wanted.iter().map(|&version| versions.key(history, version)).collect();
    let is_wanted = |pair: &(u32, u32)| wanted.contains(&pair.0) && wanted.contains(&pair.1);
    let mut found = Accesses::default();
    for some in touches.chunk_by(|one, other| one.key == other.key).filter(|some| keys.contains(&some[0].key)) {
        for touch in some {
            let row = touch.row;
            for version in touch.read.iter().chain(&touch.write).filter(|version| wanted.contains(version)) {
                found.first.entry(*version).or_insert(row);
            }
            if let Some(version) = touch.write.filter(|version| wanted.contains(version)) {
                found.written.insert(version, row);
            }
            if let Some(both) = touch.read.zip(touch.write).filter(is_wanted) {
                found.inside.entry(both).or_insert(row);
            }
            let (end, start) = (history.end[row as usize], history.start[row as usize]);
            if let Some(last) = touch.last().filter(|last| wanted.contains(last) && history.kind[row as usize] == OK)
            {
                let one = found.ended.entry(last).or_insert((end, row));
                *one = (*one).min((end, row));
            }
            if let Some(first) = touch.first().filter(|first| wanted.contains(first)) {
                let one = found.begun.entry(first).or_insert((start, row));
                *one = (*one).max((start, row));
            }
        }
        for (one, other) in processes(history, some) {
            if let Some(pair) = in_pair(one, other).filter(is_wanted) {
                found.in_process.entry(pair).or_insert([one.row, other.row]);
            }
        }
    }
    found
}

/// Returns a cycle: its versions, and for each step the two accesses that it follows from.
fn finding(
    history: &History<'_>,
    versions: &Versions,
    cycle: &[u32],
    next: &[Vec<(u32, u8)>],
    accesses: &Accesses,
) -> Finding {
    let key = versions.key(history, cycle[0]);
    let (mut rows, mut places) = (Vec::new(), Vec::new());
    for (at, &before) in cycle.iter().enumerate().take(STEPS) {
        let after = cycle[(at + 1) % cycle.len()];
        let sources = next[before as usize].iter().filter(|step| step.0 == after).map(|step| step.1);
        let pair = match sources.min() {
            Some(1) => [accesses.inside[&(before, after)]; 2],
            Some(2) => accesses.in_process[&(before, after)],
            Some(3) => [accesses.ended[&before].1, accesses.begun[&after].1],
            Some(4 | 5) => [accesses.written[&before], accesses.written[&after]],
            _ => [accesses.first[&after]; 2],
        };
        let is_initial = before >= versions.elems;
        let of = [if is_initial && pair[0] == pair[1] { after } else { before }, after];
        for (row, version) in pair.into_iter().zip(of) {
            let mops = history.of(row as usize).iter();
            let place = mops.enumerate().filter(|(_, mop)| mop.key == key && versions.of_read(mop) == version);
            places.push(place.map(|(place, _)| place as u32).next().unwrap_or_default());
            rows.push(row);
        }
    }
    let elems = cycle.iter().map(|&version| versions.shown(version)).collect();
    Finding { kind: KIND, key, rows, places, elems }
}
