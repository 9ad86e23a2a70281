//! Finds the writers of read pieces, if the same piece was appended or put more than once.
//!
//! Assign a writer to each piece in each read, among the operations that made this piece. A history is linearizable
//! iff it is for some assignment; with an assignment, pieces are unique. Real time alone excludes most assignments: a
//! piece comes after those that were there before, and before those that came later. The few remaining assignments
//! are tried one by one.

use std::collections::{BTreeMap, HashSet};

use super::list::{decide, Found};
use crate::hash::FastHasher;
use crate::ops::{op, Kind, Near, Ops, INF, NEG};

/// The maximum number of assignments that are tried.
const MAX_WAYS: usize = 64;

/// For each piece that was read: its possible writers.
type Candidates = Vec<Vec<u32>>;

/// Decides, given the writers of each piece and the pieces of each read; unsuited if too many assignments are
/// possible.
pub fn check(ops: &Ops, writers: &[Vec<u32>], reads: &[Found], want_order: bool) -> Near {
    let puts = (0..ops.len()).filter(|&i| ops.f[i] == op::PUT);
    // The content before any put comes before every put that took effect.
    let first_put = puts.map(|i| ops.e[i]).min().unwrap_or(INF);
    let mut seen: Vec<Candidates> = Vec::with_capacity(reads.len());
    for (read, pieces) in reads {
        let (s, e) = (ops.s[*read as usize], ops.e[*read as usize]);
        let can_be = |place: usize, w: u32| match ops.f[w as usize] {
            op::PUT => place == 0,
            _ => place > 0 || first_put >= s.max(ops.s[w as usize]),
        };
        let each = pieces.iter().enumerate();
        let mut candidates: Candidates = each
            .map(|(place, &piece)| writers[piece as usize].iter().copied().filter(|&w| can_be(place, w)).collect())
            .collect();
        if !narrow(ops, e, &mut candidates) {
            let makers = pieces.iter().flat_map(|&piece| &writers[piece as usize]);
            let core: Vec<u32> = makers.chain([read]).copied().collect();
            return Near::invalid(Kind::Search, &core);
        }
        seen.push(candidates);
    }
    let mut ways = Ways { ops, reads, want_order, left: MAX_WAYS, core: Vec::new() };
    ways.blocks(0, &mut seen).unwrap_or_else(|| Near::invalid(Kind::Search, &ways.core))
}

/// Removes impossible writers of a piece, by real time and because no operation makes two pieces; returns whether
/// each piece has one left. `until` is the moment at which the last piece was there.
fn narrow(ops: &Ops, until: i64, candidates: &mut Candidates) -> bool {
    loop {
        let count = |candidates: &Candidates| candidates.iter().map(Vec::len).sum::<usize>();
        let before = count(candidates);
        let mut latest = NEG;
        for makers in candidates.iter_mut() {
            makers.retain(|&w| ops.e[w as usize] >= latest);
            latest = latest.max(makers.iter().map(|&w| ops.s[w as usize]).min().unwrap_or(NEG));
        }
        let mut earliest = until;
        for makers in candidates.iter_mut().rev() {
            makers.retain(|&w| ops.s[w as usize] <= earliest);
            earliest = earliest.min(makers.iter().map(|&w| ops.e[w as usize]).max().unwrap_or(INF));
        }
        let mut sure: HashSet<u32, FastHasher> = HashSet::default();
        for makers in candidates.iter().filter(|makers| makers.len() == 1) {
            if !sure.insert(makers[0]) {
                return false;
            }
        }
        for makers in candidates.iter_mut().filter(|makers| makers.len() > 1) {
            makers.retain(|w| !sure.contains(w));
        }
        if candidates.iter().any(Vec::is_empty) {
            return false;
        }
        if count(candidates) == before {
            return true;
        }
    }
}

struct Ways<'a> {
    ops: &'a Ops<'a>,
    reads: &'a [Found],
    want_order: bool,
    left: usize,
    /// Why the last assignment is impossible.
    core: Vec<u32>,
}

impl Ways<'_> {
    fn puts(&self, w: u32) -> bool {
        self.ops.f[w as usize] == op::PUT
    }

    /// Assigns to each read from one on its beginning: a put, or the content before any put. None: there is no
    /// assignment.
    fn blocks(&mut self, from: usize, seen: &mut Vec<Candidates>) -> Option<Near> {
        let open = |candidates: &Candidates| {
            candidates.first().is_some_and(|makers| makers.len() > 1 && makers.iter().any(|&w| self.puts(w)))
        };
        let Some(r) = (from..seen.len()).find(|&r| open(&seen[r])) else { return self.places(seen) };
        let candidates = seen[r].clone();
        let (puts, appends): (Vec<u32>, Vec<u32>) = candidates[0].iter().partition(|&&w| self.puts(w));
        let choices = puts.into_iter().map(|put| vec![put]).chain((!appends.is_empty()).then_some(appends));
        for choice in choices {
            seen[r].clone_from(&candidates);
            seen[r][0] = choice;
            let fits = narrow(self.ops, self.ops.e[self.reads[r].0 as usize], &mut seen[r]);
            let answer = self.further(fits, |ways| ways.blocks(r + 1, seen));
            if answer.is_some() {
                return answer;
            }
        }
        seen[r] = candidates;
        None
    }

    /// Reads of one block see the same pieces: combines what is known of each place in a block.
    fn places(&mut self, seen: &[Candidates]) -> Option<Near> {
        let mut places: BTreeMap<u32, Candidates> = BTreeMap::new();
        for (candidates, (read, _)) in seen.iter().zip(self.reads) {
            let together = places.entry(self.block(candidates)).or_default();
            for (place, makers) in candidates.iter().enumerate() {
                match together.get_mut(place) {
                    Some(known) => known.retain(|w| makers.contains(w)),
                    None => together.push(makers.clone()),
                }
                if together[place].is_empty() {
                    self.left = self.left.saturating_sub(1);
                    self.core = vec![*read];
                    return None;
                }
            }
        }
        if !places.values_mut().all(|together| narrow(self.ops, INF, together)) {
            self.left = self.left.saturating_sub(1);
            return None;
        }
        self.pick(&mut places, seen)
    }

    fn block(&self, candidates: &Candidates) -> u32 {
        candidates.first().map(|makers| makers[0]).filter(|&w| self.puts(w)).map_or(0, |w| w + 1)
    }

    /// Tries each writer for each place with several.
    fn pick(&mut self, places: &mut BTreeMap<u32, Candidates>, seen: &[Candidates]) -> Option<Near> {
        let open = |(&block, makers): (&u32, &Candidates)| {
            makers.iter().position(|makers| makers.len() > 1).map(|place| (block, place))
        };
        let Some((block, place)) = places.iter().find_map(open) else { return self.attempt(places, seen) };
        let known = places[&block].clone();
        for &w in &known[place] {
            let together = places.get_mut(&block).expect("it was found above");
            together[place] = vec![w];
            let fits = narrow(self.ops, INF, together);
            let answer = self.further(fits, |ways| ways.pick(places, seen));
            if answer.is_some() {
                return answer;
            }
            places.insert(block, known.clone());
        }
        None
    }

    /// Continues with an assignment that fits, or counts it as tried; gives up after too many.
    fn further(&mut self, fits: bool, go: impl FnOnce(&mut Self) -> Option<Near>) -> Option<Near> {
        let answer = if fits {
            go(self)
        } else {
            self.left = self.left.saturating_sub(1);
            None
        };
        if answer.is_none() && self.left == 0 {
            return Some(Near::Unsuited("the same is appended or put twice, and it is not clear who saw which"));
        }
        answer
    }

    /// Decides one assignment.
    fn attempt(&mut self, places: &BTreeMap<u32, Candidates>, seen: &[Candidates]) -> Option<Near> {
        self.left = self.left.saturating_sub(1);
        let reads: Vec<Found> = self
            .reads
            .iter()
            .zip(seen)
            .map(|((read, pieces), candidates)| {
                let makers = &places[&self.block(candidates)][..pieces.len()];
                (*read, makers.iter().map(|makers| makers[0]).collect())
            })
            .collect();
        match decide(self.ops, &reads, self.want_order) {
            Near::Invalid { core, .. } => {
                self.core = core;
                None
            }
            answer => Some(answer),
        }
    }
}
