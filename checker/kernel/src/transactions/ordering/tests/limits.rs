//! Histories without a table of their events: large ones are decided so.

use super::super::{Limits, LIMITS};
use super::definitions::{legal, Kind, Mop, Txn};
use super::{columns, looks_inside, models, number, random_history, verdict, Random};

const KEYS: usize = 20;
const WITHOUT_TABLE: Limits = Limits { table: 0, ..LIMITS };

/// Returns transactions of a serial store that takes each one while it is open, in another order than that of the answers.
fn serial_history(random: &mut Random, count: usize) -> Vec<Txn> {
    let (mut txns, mut latest, mut state): (Vec<Txn>, _, _) = (Vec::new(), [0; KEYS], [0; KEYS]);
    let mut open: Vec<(usize, i64, i64)> = Vec::new(); // a transaction, when it takes effect, and when its answer comes
    let mut now = 0;
    while txns.len() < count || !open.is_empty() {
        now += 1;
        for &(at, ..) in open.iter().filter(|(_, effect, _)| *effect == now) {
            let mut own: [Option<usize>; KEYS] = [None; KEYS];
            for mop in &mut txns[at].mops {
                if mop.is_read {
                    mop.value = own[mop.key].unwrap_or(state[mop.key]);
                } else {
                    own[mop.key] = Some(mop.value);
                }
            }
            for (value, own) in state.iter_mut().zip(own) {
                *value = own.unwrap_or(*value);
            }
        }
        for &(at, ..) in open.iter().filter(|(.., end)| *end == now) {
            txns[at].end = now;
        }
        open.retain(|(.., end)| *end > now);
        if txns.len() < count && open.len() < 10 {
            let mut mops = Vec::new();
            for _ in 0..=random.below(4) {
                let (is_read, key) = (random.chance(50), random.below(KEYS));
                latest[key] += usize::from(!is_read);
                mops.push(Mop { is_read, key, value: if is_read { 0 } else { latest[key] } });
            }
            let effect = now + 1 + random.below(12) as i64;
            open.push((txns.len(), effect, effect + 1 + random.below(12) as i64));
            txns.push(Txn { kind: Kind::Ok, process: txns.len(), start: now, end: 0, mops });
        }
    }
    txns
}

/// Adds a write skew to a history: two transactions read from one, and each of them misses the write of the other one.
fn with_skew(txns: &mut Vec<Txn>) {
    let now = txns.iter().map(|txn| txn.end).max().unwrap_or(0);
    let mop = |is_read, key, value| Mop { is_read, key: KEYS + key, value };
    let parts = [
        vec![mop(false, 0, 1), mop(false, 1, 1)],
        vec![mop(true, 0, 1), mop(false, 1, 2)],
        vec![mop(true, 1, 1), mop(false, 0, 2)],
    ];
    for ((mops, start), end) in parts.into_iter().zip([1, 3, 4]).zip([2, 5, 6]) {
        txns.push(Txn { kind: Kind::Ok, process: txns.len(), start: now + start, end: now + end, mops });
    }
}

#[test]
fn a_large_history_has_an_order_in_real_time_under_all_models() {
    for seed in 0..3 {
        let columns = columns(&serial_history(&mut Random(seed), 1000), KEYS);
        for model in models() {
            assert_eq!(verdict(&model, &columns, WITHOUT_TABLE), Some(true), "seed {seed}: {}", model.name);
        }
    }
}

#[test]
fn a_large_history_with_a_write_skew_is_not_valid() {
    let mut txns = serial_history(&mut Random(7), 1000);
    with_skew(&mut txns);
    let columns = columns(&txns, KEYS + 2);
    for model in models().iter().filter(|model| model.prohibited.contains(&"G2-item")) {
        assert_ne!(verdict(model, &columns, WITHOUT_TABLE), Some(true), "{}", model.name);
    }
}

#[test]
fn without_a_table_no_verdict_contradicts_its_definition() {
    let (count, seed) = (number("LABRYS_HISTORIES", 300), number("LABRYS_SEED", 0));
    for at in seed..seed + count {
        let (txns, keys) = random_history(&mut Random(at.wrapping_mul(0x0123_4567_89ab_cdef)));
        let columns = columns(&txns, keys);
        let internal = txns.iter().any(Txn::contradicts_itself);
        for model in models().iter().filter(|model| !internal || looks_inside(model)) {
            if let Some(found) = verdict(model, &columns, WITHOUT_TABLE) {
                assert_eq!(found, legal(model.name, &txns, keys), "seed {at}: {}", model.name);
            }
        }
    }
}
