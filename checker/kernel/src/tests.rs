//! Compares every analyzer and every search with brute force over all orders, on random histories.

mod automata;

use crate::brute;
use crate::near;
use crate::ops::{op, Family, Near, Owned, INF};
use crate::search::budget::Limits;
use crate::search::reduce::{Allowed, Start};
use crate::search::Progress;
use crate::solve::{solve, Algorithm, Problem};

/// A small random number generator (splitmix64), so that every run has the same histories.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> i64 {
        (self.next() % n) as i64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// The style of random histories.
#[derive(Clone, Copy)]
struct Style {
    family: Family,
    /// Written values, elements and pieces are all different.
    unique: bool,
    /// Several positions may be equal.
    ties: bool,
}

struct Drawn {
    ops: Owned,
    initial: Vec<i64>,
}

/// Draws a history: mostly one of a real object, with some results changed.
fn draw(random: &mut Random, style: Style, longest: u64) -> Drawn {
    let n = random.below(longest + 1) as usize;
    let processes = 1 + random.below(4) as usize;
    let initial = match style.family {
        Family::Register | Family::Counter | Family::Bag => vec![0],
        Family::Mutex | Family::OwnerMutex => vec![i64::from(!style.unique && random.chance(10))],
        Family::MultiRegister => vec![0, 0],
        _ => vec![],
    };
    let mut state = initial.clone();
    let mut time = 0;
    let mut ops = Owned::default();
    // By process: when it is free again; None after a crash.
    let mut free: Vec<Option<i64>> = vec![Some(0); processes];
    let mut held = vec![false; processes];
    for k in 0..n {
        let p = random.below(processes as u64) as usize;
        let Some(since) = free[p] else { continue };
        time += random.below(3);
        let s = time.max(since) - random.below(4).min(time.max(since) - since);
        let mut e = time.max(since) + random.below(6);
        if style.ties {
            push(random, style, &mut ops, &mut state, &mut held, p, k as i64, s, e, &mut free, 1);
        } else {
            // Make all positions different.
            let unit = 64;
            let start = s * unit + 2 * k as i64;
            e = e * unit + 2 * k as i64 + 1;
            push(random, style, &mut ops, &mut state, &mut held, p, k as i64, start, e, &mut free, unit);
        }
    }
    Drawn { ops, initial }
}

fn push(
    random: &mut Random,
    style: Style,
    ops: &mut Owned,
    state: &mut Vec<i64>,
    held: &mut [bool],
    p: usize,
    k: i64,
    s: i64,
    e: i64,
    free: &mut [Option<i64>],
    unit: i64,
) {
    let domain = 3;
    let fresh = if style.unique { k + 1 } else { random.below(domain) };
    let some = random.below(if style.unique { k as u64 + 2 } else { domain });
    let honest = random.chance(80);
    let crashed = random.chance(20);
    let mut list: Vec<i64> = Vec::new();
    let (mut a, mut b) = (0, 0);
    let f = match style.family {
        Family::Register => match random.below(if style.unique { 6 } else { 8 }) {
            0..=2 => {
                a = if honest { state[0] } else { some };
                op::READ
            }
            3..=4 => {
                a = fresh;
                op::WRITE
            }
            5..=6 => {
                a = if honest { state[0] } else { some };
                b = fresh;
                op::CAS
            }
            _ => {
                a = some;
                op::CAS_FAIL
            }
        },
        Family::Mutex | Family::OwnerMutex => {
            a = p as i64;
            let acquire = if style.unique { !held[p] } else { random.chance(50) };
            held[p] = acquire;
            if acquire {
                op::ACQUIRE
            } else {
                op::RELEASE
            }
        }
        Family::MultiRegister => {
            for _ in 0..=random.below(3) {
                let register = random.below(2);
                let kind = random.below(3);
                let value = match kind {
                    0 if honest => state[register as usize],
                    _ => random.below(3),
                };
                list.extend([kind, register, value]);
                if kind == 1 {
                    break;
                }
            }
            op::TXN
        }
        Family::Set | Family::GrowSet => match random.below(if style.family == Family::Set { 7 } else { 6 }) {
            0..=2 => {
                a = fresh;
                op::ADD
            }
            3 => {
                a = some;
                b = if honest { i64::from(state.contains(&a)) } else { random.below(2) };
                op::CONTAINS
            }
            4..=5 => {
                list.clone_from(state);
                if !honest && !list.is_empty() {
                    list.remove(random.below(list.len() as u64) as usize);
                }
                op::READ_SET
            }
            _ => {
                a = some;
                op::REMOVE
            }
        },
        Family::Counter => {
            let delta = if style.unique { 1 } else { 1 + random.below(2) };
            match random.below(4) {
                0 => {
                    a = delta;
                    op::INCREMENT
                }
                1 => {
                    a = delta;
                    b = if honest { state[0] } else { random.below(4) };
                    if crashed {
                        op::INCREMENT
                    } else {
                        op::FETCH_ADD
                    }
                }
                _ => {
                    a = if honest { state[0] } else { random.below(5) };
                    op::READ_COUNT
                }
            }
        }
        Family::Fifo | Family::Bag => {
            if random.chance(60) {
                a = fresh;
                op::ENQUEUE
            } else {
                let first = usize::from(style.family == Family::Bag);
                let front = if style.family == Family::Bag && state.len() > 1 {
                    state.get(1 + random.below(state.len() as u64 - 1) as usize)
                } else {
                    state.get(first)
                };
                match front.filter(|_| honest) {
                    _ if crashed => op::DEQUEUE_ANY,
                    Some(&x) => {
                        a = x;
                        op::DEQUEUE
                    }
                    None if random.chance(60) => op::DEQUEUE_EMPTY,
                    None => {
                        a = some;
                        op::DEQUEUE
                    }
                }
            }
        }
        Family::Sequence => match random.below(6) {
            0..=1 => {
                list.push(fresh);
                if !style.unique && random.chance(30) {
                    list.push(random.below(3));
                }
                op::APPEND
            }
            2 => {
                list.push(fresh);
                op::PUT
            }
            _ => {
                list.clone_from(state);
                if !honest && !list.is_empty() {
                    list.remove(random.below(list.len() as u64) as usize);
                }
                op::READ_LIST
            }
        },
        Family::Noop | Family::Custom => op::NOOP,
    };
    free[p] = if crashed { None } else { Some(e / unit) };
    ops.push(f, a, b, &list, s, if crashed { INF } else { e });
    // The object continues as if this had happened now, if it is possible; half of the time if it crashed.
    if !crashed || random.chance(50) {
        let mut next = Vec::new();
        if crate::models::step(style.family, &ops.view(), ops.f.len() - 1, state, &mut next) {
            *state = next;
        }
    }
}

/// Whether an order is legal, respects real time and is complete.
fn replays(family: Family, ops: &Owned, initial: &[i64], order: &[u32]) -> bool {
    let view = ops.view();
    let mut done = vec![false; view.len()];
    let mut state = initial.to_vec();
    let mut latest = i64::MIN;
    for &i in order {
        let i = i as usize;
        let mut next = Vec::new();
        if done[i] || view.e[i] < latest || !crate::models::step(family, &view, i, &state, &mut next) {
            return false;
        }
        latest = latest.max(view.s[i]);
        done[i] = true;
        state = next;
    }
    (0..view.len()).all(|i| done[i] || view.e[i] == INF)
}

/// Runs every algorithm. Returns whether the history is linearizable.
fn verify(family: Family, ops: &Owned, initial: &[i64], number: u64) -> bool {
    let view = ops.view();
    let truth = brute::linearizable(family, &view, initial);
    let first = if truth { None } else { brute::first_failure(family, &view, initial) };
    let problem = Problem { family, ops: view, initial, oracle: None, allowed: Allowed::ALL };
    let context = || format!("history {number} of {family:?}, truth {truth}: {ops:?} from {initial:?}");
    match near::check(family, &view, initial, false).1 {
        Near::Valid(_) => assert!(truth, "near says valid: {}", context()),
        Near::Invalid { kind, .. } => assert!(!truth, "near says {kind:?}: {}", context()),
        Near::Unsuited(_) => {}
    }
    let start = |start| Problem { allowed: Allowed { start, ..Allowed::ALL }, ..problem };
    // A table of the model takes longer than such a short history.
    let eager = match number % 64 {
        0 => Some((Algorithm::Search, start(Start::Whole))),
        32 => Some((Algorithm::Search, start(Start::Local))),
        _ => None,
    };
    let asked = [Algorithm::Auto, Algorithm::Search, Algorithm::Linear, Algorithm::Wgl].map(|one| (one, problem));
    for (algorithm, problem) in asked.into_iter().chain(eager) {
        let outcome = solve(&problem, algorithm, truth, &Limits::none(), None);
        let expected = if truth { Progress::Valid } else { Progress::Invalid };
        assert_eq!(outcome.progress, expected, "{algorithm:?}: {}", context());
        if truth {
            let order = outcome.order.expect("an order was asked for");
            assert!(replays(family, ops, initial, &order), "{algorithm:?} gives {order:?}: {}", context());
        } else {
            assert_eq!(Some(outcome.op), first, "{algorithm:?} by {}: {}", outcome.analyzer, context());
        }
    }
    truth
}

fn confirm(style: Style, count: u64, longest: u64) {
    let mut random = Random(style.family as u64 * 1000 + u64::from(style.unique) * 10 + u64::from(style.ties));
    let (mut valid, mut near_decided) = (0, 0);
    for number in 0..count {
        let Drawn { ops, initial } = draw(&mut random, style, longest);
        let view = ops.view();
        view.validate(style.family, &initial).expect("drawn histories are well-formed");
        let truth = verify(style.family, &ops, &initial, number);
        valid += u64::from(truth);
        near_decided += u64::from(!matches!(near::check(style.family, &view, &initial, false).1, Near::Unsuited(_)));
    }
    println!("{:?}: {count} histories, {valid} valid, {near_decided} decided in near-linear time", style.family);
    assert!(
        valid > count / 10 && valid < count * 99 / 100,
        "{valid} of {count} are valid: the histories are one-sided"
    );
}

/// Draws arbitrary columns: any opcodes and numbers, some extreme, and lists and bounds that may not fit.
fn draw_raw(random: &mut Random, family: Family) -> Drawn {
    const EXTREME: [i64; 6] = [i64::MIN, i64::MIN + 1, -1, i64::MAX / 2, i64::MAX - 1, INF];
    let some = |random: &mut Random, below: u64, extreme: u64| {
        if random.chance(extreme) {
            EXTREME[random.below(6) as usize]
        } else {
            random.below(below)
        }
    };
    let opcodes: Vec<u8> = (0..=op::LAST).filter(|&f| family.allows(f)).collect();
    let mut ops = Owned::default();
    for _ in 0..random.below(6) {
        let f = if random.chance(1) {
            random.below(256) as u8
        } else {
            opcodes[random.below(opcodes.len() as u64) as usize]
        };
        let mut list: Vec<i64> = (0..random.below(4)).map(|_| some(random, 3, 1)).collect();
        if random.chance(50) {
            list.sort_unstable();
            list.dedup();
        }
        let s = some(random, 8, 2);
        let never = random.chance(25) || f == op::DEQUEUE_ANY && random.chance(90);
        let e = match random.below(50) {
            _ if never => INF,
            0 => some(random, 8, 30),
            _ => s.saturating_add(random.below(5)),
        };
        ops.push(f, some(random, 3, 2), some(random, 2, 2), &list, s, e);
    }
    match random.below(50) {
        0 => drop(ops.off.pop()),
        1 => drop(ops.b.pop()),
        2 if !ops.off.is_empty() => {
            let place = random.below(ops.off.len() as u64) as usize;
            ops.off[place] = some(random, 5, 30);
        }
        3..=10 => (ops.off, ops.flat) = (Vec::new(), Vec::new()),
        _ => {}
    }
    let one = matches!(family, Family::Register | Family::Mutex | Family::OwnerMutex | Family::Counter);
    let length = if one && random.chance(98) { 1 } else { random.below(4) };
    let mut initial: Vec<i64> = (0..length).map(|_| some(random, 2, 2)).collect();
    if random.chance(95) {
        initial.sort_unstable();
        if family == Family::Bag {
            initial.insert(0, 0);
        }
    }
    Drawn { ops, initial }
}

/// Either the columns are refused with a message, or all algorithms agree with brute force.
fn confuse(family: Family, count: u64) {
    let mut random = Random(0xf022 + family as u64);
    let (mut accepted, mut valid) = (0, 0);
    for number in 0..count {
        let Drawn { ops, initial } = draw_raw(&mut random, family);
        let view = ops.view();
        if let Err(why) = view.validate(family, &initial) {
            assert!(why.len() > 10, "{why}");
            continue;
        }
        let truth = verify(family, &ops, &initial, number);
        accepted += 1;
        valid += u64::from(truth);
    }
    println!("{family:?}: {count} raw, {accepted} accepted, {valid} valid");
    assert!(accepted > count / 10, "only {accepted} of {count} were accepted");
}

#[test]
fn raw_columns() {
    for family in FAMILIES {
        confuse(family, 20_000);
    }
}

const FAMILIES: [Family; 11] = [
    Family::Register,
    Family::Mutex,
    Family::OwnerMutex,
    Family::MultiRegister,
    Family::Set,
    Family::GrowSet,
    Family::Counter,
    Family::Fifo,
    Family::Bag,
    Family::Sequence,
    Family::Noop,
];

/// Tests every family with unique and repeated values, with and without equal positions.
macro_rules! family {
    ($name:ident, $family:expr) => {
        #[test]
        fn $name() {
            for (unique, ties, count) in
                [(true, false, 35_000), (true, true, 25_000), (false, false, 25_000), (false, true, 20_000)]
            {
                confirm(Style { family: $family, unique, ties }, count, 7);
            }
        }
    };
}

family!(registers, Family::Register);
family!(mutexes, Family::Mutex);
family!(owner_mutexes, Family::OwnerMutex);
family!(multi_registers, Family::MultiRegister);
family!(sets, Family::Set);
family!(grow_sets, Family::GrowSet);
family!(counters, Family::Counter);
family!(fifo_queues, Family::Fifo);
family!(unordered_queues, Family::Bag);
family!(sequences, Family::Sequence);
