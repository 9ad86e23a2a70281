//! The built-in models as functions over lists of integers; the search calls them once for each state and class.

use crate::ops::{op, Family, Ops};

/// Writes the state after operation `i` to `out`, which is empty; returns whether the operation is legal.
pub fn step(family: Family, ops: &Ops, i: usize, state: &[i64], out: &mut Vec<i64>) -> bool {
    let (f, a, b) = (ops.f[i], ops.a[i], ops.b[i]);
    let keep = |out: &mut Vec<i64>| out.extend_from_slice(state);
    match (family, f) {
        (_, op::READ) => {
            keep(out);
            state[0] == a
        }
        (_, op::WRITE) => {
            out.push(a);
            true
        }
        (_, op::CAS) => {
            out.push(b);
            state[0] == a
        }
        (_, op::CAS_FAIL) => {
            keep(out);
            state[0] != a
        }
        // The state of a free mutex is 0. A taken one is 1, or with an owner the owner's number + 1.
        (Family::Mutex, op::ACQUIRE) => {
            out.push(1);
            state[0] == 0
        }
        (Family::Mutex, _) => {
            out.push(0);
            state[0] != 0
        }
        (Family::OwnerMutex, op::ACQUIRE) => {
            out.push(a + 1);
            state[0] == 0
        }
        (Family::OwnerMutex, _) => {
            out.push(0);
            state[0] == a + 1
        }
        (_, op::TXN) => {
            keep(out);
            for micro in ops.list(i).chunks_exact(3) {
                let register = micro[1] as usize;
                if register >= out.len() {
                    return false;
                }
                match micro[0] {
                    0 if out[register] != micro[2] => return false,
                    1 => out[register] = micro[2],
                    _ => {}
                }
            }
            true
        }
        (_, op::ADD) => {
            insert(state, a, out);
            true
        }
        (_, op::REMOVE) => {
            out.extend(state.iter().filter(|&&x| x != a));
            true
        }
        (_, op::CONTAINS) => {
            keep(out);
            i64::from(state.binary_search(&a).is_ok()) == b
        }
        (_, op::READ_SET | op::READ_LIST) => {
            keep(out);
            state == ops.list(i)
        }
        (_, op::INCREMENT | op::FETCH_ADD) => match state[0].checked_add(a) {
            Some(sum) => {
                out.push(sum);
                f == op::INCREMENT || state[0] == b
            }
            None => false,
        },
        (_, op::READ_COUNT) => {
            keep(out);
            state[0] == a
        }
        (Family::Fifo, op::ENQUEUE) => {
            keep(out);
            out.push(a);
            true
        }
        // A bag is [number of elements that crashed dequeues took, element, ...]. Which elements they took is decided
        // only when a dequeue finds the bag empty: a crashed dequeue never ends, so it may always take effect that
        // late.
        (Family::Bag, op::ENQUEUE) => {
            let at = 1 + state[1..].partition_point(|&x| x < a);
            out.extend_from_slice(&state[..at]);
            out.push(a);
            out.extend_from_slice(&state[at..]);
            true
        }
        (Family::Bag, op::DEQUEUE) => match state[1..].binary_search(&a) {
            Ok(at) if state.len() as i64 - 2 >= state[0] => {
                out.extend_from_slice(&state[..=at]);
                out.extend_from_slice(&state[at + 2..]);
                true
            }
            _ => false,
        },
        (Family::Bag, op::DEQUEUE_ANY) => {
            keep(out);
            out[0] += 1;
            out[0] < out.len() as i64
        }
        (Family::Bag, op::DEQUEUE_EMPTY) => {
            out.push(0);
            state[0] == state.len() as i64 - 1
        }
        (Family::Fifo, op::DEQUEUE) => {
            out.extend(state.iter().skip(1));
            state.first() == Some(&a)
        }
        (Family::Fifo, op::DEQUEUE_ANY) => {
            out.extend(state.iter().skip(1));
            !state.is_empty()
        }
        (_, op::DEQUEUE_EMPTY) => {
            keep(out);
            state.is_empty()
        }
        (_, op::APPEND) => {
            keep(out);
            out.extend_from_slice(ops.list(i));
            true
        }
        (_, op::PUT) => {
            out.extend_from_slice(ops.list(i));
            true
        }
        (_, op::NOOP) => {
            keep(out);
            true
        }
        _ => false,
    }
}

fn insert(state: &[i64], a: i64, out: &mut Vec<i64>) {
    let at = state.partition_point(|&x| x < a);
    out.extend_from_slice(&state[..at]);
    if state.get(at) != Some(&a) {
        out.push(a);
    }
    out.extend_from_slice(&state[at..]);
}
