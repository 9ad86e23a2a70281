//! Registers are decided as by definition: by every order of a few transactions or of their versions.
//!
//! `LABRYS_HISTORIES` and `LABRYS_SEED` choose how many histories and which ones, e.g. for a night; the test prints the verdicts of each
//! model with `cargo test --no-default-features registers_are -- --nocapture`.

mod definitions;
mod limits;

use std::collections::BTreeMap;

use super::super::graph;
use super::super::judge::{judged, Question};
use super::super::registers::Sources;
use super::super::{Atom, History, Mop, Table, Workload, FAIL, INFO, NONE, OK};
use super::class::Class;
use super::{contradicts, Asked, Limits, Ordering, LIMITS};
use definitions::{legal, Kind, Txn};

/// By model: what orders transactions, its class, what orders them in the class, what is searched, and what it prohibits.
/// `tests/unit/checker/test_orders_of_versions.py` compares it with the models of the checker.
const MODELS: &str = include_str!("models.txt");

struct Model {
    name: &'static str,
    extra: graph::Extra,
    class: Class,
    class_extra: graph::Extra,
    more: Vec<&'static str>,
    prohibited: Vec<&'static str>,
}

fn extra(name: &str) -> graph::Extra {
    match name {
        "process" => graph::Extra::Process,
        "realtime" => graph::Extra::Realtime,
        _ => graph::Extra::None,
    }
}

fn models() -> Vec<Model> {
    let list = |text: &'static str| text.split(',').filter(|name| !name.is_empty()).collect::<Vec<_>>();
    let model = |line: &'static str| {
        let parts: Vec<&str> = line.split(' ').collect();
        let [name, of, class, of_class, more, prohibited] = parts[..] else { panic!("{line}") };
        let (extra, class_extra) = (extra(of), extra(of_class));
        let class = Class::of(class).unwrap();
        Model { name, extra, class, class_extra, more: list(more), prohibited: list(prohibited) }
    };
    MODELS.lines().map(model).collect()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}

/// Returns transactions whose reads show versions of others, mostly the latest one of some order.
fn random_history(random: &mut Random) -> (Vec<Txn>, usize) {
    let most = if random.chance(5) { 5 } else { 4 };
    let (count, keys) = (2 + random.below(most), 2 + random.below(2));
    let stale = [0, 5, 20][random.below(3)]; // reads of any value, in percent
    let (old, torn) = ([0, 30, 70][random.below(3)], [0, 0, 30, 70][random.below(4)]); // reads of an old state, whole or by key
    let mut latest = vec![0usize; keys];
    let mut txns: Vec<Txn> = Vec::new();
    for _ in 0..count {
        let kind = match random.below(16) {
            0 => Kind::Fail,
            1 | 2 => Kind::Info,
            _ => Kind::Ok,
        };
        let mut mops = Vec::new();
        for _ in 0..=random.below(4) {
            let key = random.below(keys);
            let is_read = random.chance(50);
            if !is_read {
                latest[key] += 1;
            }
            mops.push(definitions::Mop { is_read, key, value: if is_read { 0 } else { latest[key] } });
        }
        txns.push(Txn { kind, process: 0, start: 0, end: 0, mops });
    }
    // The times: each transaction begins and ends, with some open at once; and a free process, or a new one.
    let mut waiting: Vec<usize> = (0..count).collect();
    let (mut open, mut free, mut fresh, mut now): (Vec<usize>, Vec<usize>, usize, i64) =
        (Vec::new(), Vec::new(), 0, 0);
    while !waiting.is_empty() || !open.is_empty() {
        now += 1;
        if !waiting.is_empty() && (open.is_empty() || (open.len() < 3 && random.chance(50))) {
            let next = waiting.remove(0);
            txns[next].start = now;
            txns[next].process = if free.is_empty() || random.chance(20) {
                fresh += 1;
                fresh
            } else {
                free.swap_remove(random.below(free.len()))
            };
            open.push(next);
        } else {
            let done = open.swap_remove(random.below(open.len()));
            txns[done].end = now;
            if txns[done].kind != Kind::Info {
                free.push(txns[done].process);
            }
        }
    }
    // The answers: by an order of the transactions, and sometimes any version.
    let mut states = vec![vec![0usize; keys]];
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&at| txns[at].start + random.below(5) as i64);
    for at in order {
        let back = if random.chance(old) { random.below(states.len()) } else { 0 };
        let mut own = states[states.len() - 1].clone();
        let snapshot = states[states.len() - 1 - back].clone();
        let mut wrote = vec![false; keys];
        let mut mops = txns[at].mops.clone();
        for place in 0..mops.len() {
            let mop = mops[place];
            if !mop.is_read {
                own[mop.key] = mop.value;
                wrote[mop.key] = true;
                continue;
            }
            let before = mops[..place].iter().rev().find(|other| other.key == mop.key).map(|other| other.value);
            let value = match before {
                Some(known) if !random.chance(3) => known,
                _ if random.chance(stale) => random.below(latest[mop.key] + 1),
                _ if wrote[mop.key] => own[mop.key],
                _ if random.chance(torn) => states[random.below(states.len())][mop.key],
                _ => snapshot[mop.key],
            };
            mops[place].value = if random.chance(1) { 99 } else { value };
        }
        if txns[at].kind == Kind::Ok || (txns[at].kind == Kind::Info && random.chance(60)) {
            states.push(own);
        }
        txns[at].mops = mops;
    }
    (txns, keys)
}

struct Columns {
    kind: Vec<i8>,
    process: Vec<i64>,
    start: Vec<i64>,
    end: Vec<i64>,
    table: Table,
}

fn columns(txns: &[Txn], keys: usize) -> Columns {
    let mut table = Table::new();
    table.keys = (0..keys as i64).map(Atom::Integer).collect();
    let mut found =
        Columns { kind: Vec::new(), process: Vec::new(), start: Vec::new(), end: Vec::new(), table: Table::new() };
    for txn in txns {
        found.kind.push(match txn.kind {
            Kind::Ok => OK,
            Kind::Fail => FAIL,
            Kind::Info => INFO,
        });
        found.process.push(txn.process as i64);
        found.start.push(txn.start);
        found.end.push(txn.end);
        for mop in &txn.mops {
            let known = !mop.is_read || txn.kind == Kind::Ok;
            let atom = (mop.key as u32, Atom::Integer(mop.value as i64));
            let elem = if !known || (mop.is_read && mop.value == 0) {
                NONE
            } else {
                table.elems.iter().position(|known| *known == atom).unwrap_or_else(|| {
                    table.elems.push(atom);
                    table.elems.len() - 1
                }) as u32
            };
            table.mops.push(Mop {
                is_read: mop.is_read,
                known,
                is_nil: elem == NONE || mop.value == 0,
                is_long: false,
                shared: false,
                key: mop.key as u32,
                elem,
                from: 0,
                to: 0,
            });
        }
        table.offset.push(table.mops.len());
    }
    found.table = table;
    found
}

/// Returns the verdict: valid, invalid or unknown.
fn verdict(model: &Model, columns: &Columns, limits: Limits) -> Option<bool> {
    let Columns { kind, process, start, end, table } = columns;
    let place = (0..kind.len() as u32).collect();
    let history = History { kind, process, start, end, table, place, position: &[] };
    let asked = Asked { class: model.class, extra: model.class_extra, prohibited: &model.prohibited, limits };
    let question = Question {
        workload: Workload::Registers,
        sources: Sources::default(),
        extra: model.extra,
        more: &model.more,
        asked: Some(asked),
    };
    let found = judged(&question, &history).ok()?;
    if contradicts(&found, &model.prohibited) {
        return Some(false);
    }
    let is_whole = found.twice.is_none_or(|twice| twice.reads == 0);
    match found.ordering {
        Some(Ordering::Order) if is_whole => Some(true),
        Some(Ordering::Contradiction(..)) => Some(false),
        _ => None,
    }
}

/// Returns a number of the environment, or another one.
fn number(name: &str, other: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(other)
}

/// These say nothing of transactions that contradict themselves.
fn looks_inside(model: &Model) -> bool {
    model.prohibited.contains(&"internal")
}

/// Makes values of a key equal, or writes of one equal to the initial value.
fn double(random: &mut Random, txns: &mut [Txn], keys: usize) {
    for _ in 0..=random.below(2) {
        let key = random.below(keys);
        let of_key = |mop: &&definitions::Mop| !mop.is_read && mop.key == key;
        let count = txns.iter().flat_map(|txn| &txn.mops).filter(of_key).count();
        if count == 0 {
            continue;
        }
        let (before, after) = (1 + random.below(count), random.below(count + 1));
        let mops = txns.iter_mut().flat_map(|txn| &mut txn.mops);
        for mop in mops.filter(|mop| mop.key == key && mop.value == before) {
            mop.value = after;
        }
    }
}

/// How many ways to read a history are tried at most; another one is left out.
const READINGS: usize = 256;

/// Decides random histories for all models, also by definition; returns how many verdicts of each kind a model has.
///
/// With `doubled`, some values are written twice or are the initial one. Then a history is legal if it is by some choice of the write
/// that each read is of.
fn compare(count: u64, seed: u64, doubled: bool) -> BTreeMap<(&'static str, &'static str), usize> {
    let models = models();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for at in seed..seed + count {
        let mut random = Random(at.wrapping_mul(0x0123_4567_89ab_cdef));
        let (mut txns, keys) = random_history(&mut random);
        if doubled {
            double(&mut random, &mut txns, keys);
        }
        let Some(readings) =
            (if doubled { definitions::readings(&txns, READINGS) } else { Some(vec![txns.clone()]) })
        else {
            *counts.entry(("all", "left out")).or_default() += 1;
            continue;
        };
        let columns = columns(&txns, keys);
        let internal = txns.iter().any(Txn::contradicts_itself);
        let by_any = |name: &str| readings.iter().any(|txns| legal(name, txns, keys));
        let [is_strict, is_committed] = ["strict-serializable", "read-committed"].map(by_any);
        for model in models.iter().filter(|model| !internal || looks_inside(model)) {
            // By definition, a serial order in real time is one of each model, and each but read uncommitted implies read committed.
            let is_legal = is_strict || ((is_committed || model.name.ends_with("uncommitted")) && by_any(model.name));
            if doubled && definitions::is_of_values(model.name) {
                assert_eq!(
                    is_legal,
                    legal(model.name, &txns, keys),
                    "seed {at}: {} by values and by writes",
                    model.name
                );
            }
            let found = verdict(model, &columns, LIMITS);
            let what = match found {
                Some(true) => "valid",
                Some(false) => "invalid",
                None if is_legal => "unknown, legal",
                None => "unknown, not legal",
            };
            *counts.entry((model.name, what)).or_default() += 1;
            if found.is_some_and(|found| found != is_legal) {
                *counts.entry((model.name, "wrong")).or_default() += 1;
                if wrong.len() < 5 {
                    let lines: Vec<String> = txns.iter().map(ToString::to_string).collect();
                    let name = model.name;
                    wrong.push(format!("seed {at}: {name} is {what}, legal {is_legal}:\n{}", lines.join("\n")));
                }
            }
        }
    }
    for model in &models {
        let of = |what| counts.get(&(model.name, what)).copied().unwrap_or_default();
        println!(
            "{}: {} valid, {} invalid, {} unknown but legal, {} unknown and not legal, {} wrong",
            model.name,
            of("valid"),
            of("invalid"),
            of("unknown, legal"),
            of("unknown, not legal"),
            of("wrong")
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for model in &models {
        let least = ["valid", "invalid"].map(|what| counts.get(&(model.name, what)).copied().unwrap_or_default());
        assert!(least[0].min(least[1]) > count as usize / 200, "both verdicts of {} occur", model.name);
    }
    counts
}

#[test]
fn registers_are_decided_as_by_definition() {
    compare(number("LABRYS_HISTORIES", 300), number("LABRYS_SEED", 0), false);
}

/// A verdict on values that were written twice, or that are nil, is right or unknown; and the other values of a key count.
#[test]
fn doubled_values_are_decided_as_by_definition() {
    let counts = compare(number("LABRYS_HISTORIES", 300), number("LABRYS_SEED", 0), true);
    assert!(counts.keys().any(|(_, what)| what.starts_with("unknown")));
}
