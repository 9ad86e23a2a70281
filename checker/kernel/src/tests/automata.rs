//! Compares the reductions with brute force and with the plain search, on random histories of random automata.

use super::Random;
use crate::brute;
use crate::ops::{op, Family, Ops, Owned, INF};
use crate::search::budget::Limits;
use crate::search::machine::{Oracle, ILLEGAL};
use crate::search::reduce::{Allowed, Counts, Start};
use crate::search::Progress;
use crate::solve::{solve, Algorithm, OracleSource, Outcome, Problem};

/// A model as a table. State 0 is the initial one.
struct Drawn {
    classes: usize,
    next: Vec<u32>,
}

impl Drawn {
    /// Draws a model of 2 to 12 states. Its classes are of the kinds of real models: random changes, observers,
    /// resets, one-way changes and cycles. A refusing class is possible where its operation is not.
    fn new(random: &mut Random) -> Self {
        let states = 2 + random.below(11) as u32;
        let mut columns: Vec<Vec<u32>> = Vec::new();
        let wanted = 2 + random.below(6) as usize;
        while columns.len() < wanted {
            let some = random.below(u64::from(states)) as u32;
            let often = 20 + random.below(80) as u64;
            let mut column: Vec<u32> = match random.below(6) {
                0 => (0..states).map(|_| random.below(u64::from(states)) as u32).collect(),
                1 => (0..states).collect(),
                2 => vec![some; states as usize],
                3 => (0..states).map(|state| state.max(some)).collect(),
                4 => (0..states).map(|state| (state + some) % states).collect(),
                _ => (0..states).map(|state| state ^ (1 & some)).map(|state| state.min(states - 1)).collect(),
            };
            if random.chance(60) {
                for next in &mut column {
                    if !random.chance(often) {
                        *next = ILLEGAL;
                    }
                }
            }
            if random.chance(30) {
                let refused = |(state, &next): (usize, &u32)| {
                    if next == ILLEGAL {
                        state as u32
                    } else {
                        ILLEGAL
                    }
                };
                columns.push(column.iter().enumerate().map(refused).collect());
            }
            columns.push(column);
        }
        let next = (0..states as usize).flat_map(|state| columns.iter().map(move |column| column[state])).collect();
        Self { classes: columns.len(), next }
    }

    fn step(&self, state: u32, class: i64) -> Option<u32> {
        Some(self.next[state as usize * self.classes + class as usize]).filter(|&next| next != ILLEGAL)
    }

    /// Draws a history of an object of this model, mostly with the object's true answers.
    fn history(&self, random: &mut Random, longest: u64) -> Owned {
        let mut ops = Owned::default();
        let mut state = 0;
        let concurrency = 1 + random.below(6) as u64;
        for k in 0..=random.below(longest) {
            let legal = |class: &i64| self.step(state, *class).is_some();
            let possible: Vec<i64> = (0..self.classes as i64).filter(legal).collect();
            let class = if possible.is_empty() || random.chance(40) {
                random.below(self.classes as u64)
            } else {
                possible[random.below(possible.len() as u64) as usize]
            };
            let crashed = random.chance(12);
            let happens = !crashed || random.chance(50);
            if happens {
                state = self.step(state, class).unwrap_or(state);
            }
            // The operation takes effect at 16 k. Its ends have different parity, so no two are equal.
            let s = 16 * k - 16 * random.below(concurrency + 1) - 2 * random.below(8);
            let e = 16 * k + 16 * random.below(concurrency + 1) + 2 * random.below(8) + 1;
            ops.push(op::CUSTOM, class, 0, &[], s, if crashed { INF } else { e });
        }
        ops
    }
}

impl OracleSource for Drawn {
    fn with_oracle(&self, search: &mut (dyn FnMut(Box<dyn Oracle + '_>) + Send)) {
        search(Box::new(Table(self)));
    }
}

struct Table<'a>(&'a Drawn);

impl Oracle for Table<'_> {
    fn ask(&mut self, state: u32, class: u32) -> Option<u32> {
        Some(self.0.step(state, i64::from(class)).unwrap_or(ILLEGAL))
    }
    fn observer(&self, class: u32) -> bool {
        (0..(self.0.next.len() / self.0.classes) as u32)
            .all(|s| self.0.step(s, i64::from(class)).is_none_or(|t| t == s))
    }
    fn cost(&self) -> u64 {
        1
    }
    fn bytes(&self) -> usize {
        0
    }
}

const WHOLE: Allowed = Allowed { start: Start::Whole, ..Allowed::ALL };
const LOCAL: Allowed = Allowed { start: Start::Local, ..Allowed::ALL };
const EACH: [Allowed; 10] = [
    Allowed { equal: false, ..WHOLE },
    Allowed { equal: true, start: Start::Whole, ..Allowed::NONE },
    Allowed { idle: true, start: Start::Whole, ..Allowed::NONE },
    Allowed { commuting: true, start: Start::Whole, ..Allowed::NONE },
    Allowed { dead_ends: true, start: Start::Whole, ..Allowed::NONE },
    Allowed { idle: true, start: Start::Local, ..Allowed::NONE },
    Allowed { commuting: true, start: Start::Local, ..Allowed::NONE },
    Allowed { dead_ends: true, start: Start::Local, ..Allowed::NONE },
    // All searches take turns, including the classical one.
    Allowed { first_turn: Some(3), ..Allowed::NONE },
    Allowed { first_turn: Some(5), ..Allowed::ALL },
];

fn ask(model: &Drawn, ops: &Owned, algorithm: Algorithm, allowed: Allowed, want_order: bool) -> Outcome {
    let problem = Problem { family: Family::Custom, ops: ops.view(), initial: &[], oracle: Some(model), allowed };
    solve(&problem, algorithm, want_order, &Limits::none(), None)
}

/// Whether an order is legal, complete and respects real time.
fn replays(model: &Drawn, ops: &Ops, order: &[u32]) -> bool {
    let mut done = vec![false; ops.len()];
    let mut state = Some(0);
    let mut latest = i64::MIN;
    for &i in order {
        let i = i as usize;
        if std::mem::replace(&mut done[i], true) || ops.e[i] < latest {
            return false;
        }
        latest = latest.max(ops.s[i]);
        state = state.and_then(|state| model.step(state, ops.a[i]));
    }
    state.is_some() && (0..ops.len()).all(|i| done[i] || ops.e[i] == INF)
}

fn expect(model: &Drawn, ops: &Owned, truth: bool, first: Option<u32>, allowed: Allowed, told: &mut Counts) {
    let outcome = expect_of(Algorithm::Search, model, ops, truth, first, allowed);
    told.blocks += u64::from(outcome.counts.blocks > 0 && outcome.counts.blocks < outcome.counts.states);
    told.segments += u64::from(outcome.counts.segments > 1);
    told.idle += u64::from(outcome.counts.idle > 0);
    told.commuting += u64::from(outcome.counts.commuting > 0);
    told.dead_ends += u64::from(outcome.counts.dead_ends > 0);
}

fn expect_of(
    algorithm: Algorithm,
    model: &Drawn,
    ops: &Owned,
    truth: bool,
    first: Option<u32>,
    allowed: Allowed,
) -> Outcome {
    let outcome = ask(model, ops, algorithm, allowed, truth);
    let context =
        || format!("{algorithm:?}, {allowed:?}, truth {truth}: {ops:?} of {:?} by {}", model.next, model.classes);
    assert_eq!(outcome.progress, if truth { Progress::Valid } else { Progress::Invalid }, "{}", context());
    if truth {
        let order = outcome.order.as_ref().expect("an order was asked for");
        assert!(replays(model, &ops.view(), order), "{order:?}: {}", context());
    } else {
        assert_eq!(Some(outcome.op), first, "{}", context());
    }
    outcome
}

#[test]
fn reductions_agree_with_every_order() {
    let mut random = Random(16);
    let mut valid = 0_u32;
    let (mut whole, mut local, mut told) = (Counts::default(), Counts::default(), Counts::default());
    let count = 120_000;
    for number in 0..count {
        let model = Drawn::new(&mut random);
        let ops = model.history(&mut random, 8);
        let passes = |ops: &Ops| brute::legal_order(ops, &0, &|i, &state| model.step(state, ops.a[i]));
        let truth = passes(&ops.view());
        let first = if truth { None } else { brute::first_failing(&ops.view(), passes) };
        valid += u32::from(truth);
        expect(&model, &ops, truth, first, WHOLE, &mut whole);
        expect(&model, &ops, truth, first, LOCAL, &mut local);
        expect(&model, &ops, truth, first, EACH[number % EACH.len()], &mut told);
        expect_of(Algorithm::Wgl, &model, &ops, truth, first, Allowed::NONE);
    }
    println!("{count} histories of automata, {valid} valid; with each reduction: {whole:?}; local: {local:?}");
    assert!(
        valid as usize > count / 5 && (valid as usize) < count * 4 / 5,
        "{valid} of {count} are valid: one-sided"
    );
    for told in [whole, Counts { blocks: u64::MAX, ..local }] {
        let least = [told.blocks, told.idle, told.commuting, told.dead_ends].into_iter().min();
        assert!(least > Some(count as u64 / 40), "a reduction hardly ever applied: {told:?}");
    }
}

#[test]
fn reductions_agree_with_the_plain_search() {
    let mut random = Random(1600);
    let (mut valid, mut told, mut local) = (0_u32, Counts::default(), Counts::default());
    let count = 12_000;
    for number in 0..count {
        let model = Drawn::new(&mut random);
        let ops = model.history(&mut random, 60);
        let plain = ask(&model, &ops, Algorithm::Linear, Allowed::NONE, false);
        let truth = plain.progress == Progress::Valid;
        valid += u32::from(truth);
        let first = (!truth).then_some(plain.op);
        expect(&model, &ops, truth, first, WHOLE, &mut told);
        expect(&model, &ops, truth, first, LOCAL, &mut local);
        expect(&model, &ops, truth, first, Allowed::ALL, &mut told);
        expect(&model, &ops, truth, first, EACH[number % EACH.len()], &mut told);
        expect_of(Algorithm::Wgl, &model, &ops, truth, first, Allowed::NONE);
    }
    println!("{count} longer histories of automata, {valid} valid; with each reduction: {told:?}; local: {local:?}");
    assert!(valid as usize > count / 10, "{valid} of {count} are valid: one-sided");
    assert!(local.segments as usize > count / 6, "hardly any history has several segments: {local:?}");
}
