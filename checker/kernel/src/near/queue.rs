//! Queues with unique elements: the bad patterns of Henzinger, Sezgin and Vafeiadis (CONCUR 2013), found by sorting:
//!
//! - an element that was dequeued but never enqueued, or dequeued twice, or before it was enqueued;
//! - in a FIFO queue, two elements that leave in the wrong order;
//! - an element that later ones overtook, unless a crashed dequeue took it in time;
//! - an empty answer although at each moment some element was certainly in the queue.

use super::Map;
use crate::ops::{op, Family, Kind, Near, Ops, INF, NEG, NONE};

struct Element {
    enqueue: u32,
    dequeue: u32,
    /// A dequeue of it that never returned, and so may not have happened.
    perhaps: u32,
}

/// Decides; unsuited if elements are not unique, or if there is an empty answer and some dequeues crashed.
pub fn check(family: Family, ops: &Ops, initial: &[i64], want_order: bool) -> Near {
    if !initial.is_empty() {
        return Near::Unsuited("there is something at the beginning");
    }
    if want_order {
        return Near::Unsuited("an order is found by the search");
    }
    let mut elements: Vec<Element> = Vec::new();
    let mut of: Map<u32> = Map::default();
    for i in (0..ops.len()).filter(|&i| ops.f[i] == op::ENQUEUE) {
        if of.insert(ops.a[i], elements.len() as u32).is_some() {
            return Near::Unsuited("an element is enqueued twice");
        }
        elements.push(Element { enqueue: i as u32, dequeue: NONE, perhaps: NONE });
    }
    let mut takers: Vec<u32> = Vec::new();
    let mut empties: Vec<u32> = Vec::new();
    let mut open = false;
    for i in 0..ops.len() {
        match ops.f[i] {
            op::DEQUEUE => {
                let Some(&x) = of.get(&ops.a[i]) else {
                    if ops.e[i] == INF {
                        continue;
                    }
                    return Near::invalid(Kind::Phantom, &[i as u32]);
                };
                let element = &mut elements[x as usize];
                if ops.e[i] == INF {
                    open = true;
                    if element.perhaps == NONE || ops.s[i] < ops.s[element.perhaps as usize] {
                        element.perhaps = i as u32;
                    }
                } else if element.dequeue != NONE {
                    return Near::invalid(Kind::Duplicate, &[element.enqueue, element.dequeue, i as u32]);
                } else {
                    element.dequeue = i as u32;
                    if ops.e[i] < ops.s[element.enqueue as usize] {
                        return Near::invalid(Kind::Future, &[element.enqueue, i as u32]);
                    }
                }
            }
            op::DEQUEUE_ANY => {
                open = true;
                takers.push(i as u32);
            }
            op::DEQUEUE_EMPTY if ops.e[i] != INF => empties.push(i as u32),
            _ => {}
        }
    }
    if open && !empties.is_empty() {
        return Near::Unsuited("something was found empty, and a dequeue crashed");
    }
    // A crashed enqueue whose element was never dequeued can be left out.
    elements.retain(|x| x.dequeue != NONE || ops.e[x.enqueue as usize] != INF);
    if family == Family::Fifo {
        if let Some(near) = wrong_order(ops, &elements).or_else(|| passed_over(ops, &elements, &takers)) {
            return near;
        }
    }
    let spans = spans(ops, &elements);
    let inside = |&i: &u32| {
        let place = spans.partition_point(|span| span.0 < ops.s[i as usize]);
        place > 0 && ops.e[i as usize] < spans[place - 1].1
    };
    empties.sort_unstable_by_key(|&i| ops.e[i as usize]);
    let found = empties.into_iter().find(inside).and_then(|i| covered(ops, &elements, i));
    found.unwrap_or(Near::Valid(None))
}

fn leaves(ops: &Ops, x: &Element) -> i64 {
    if x.dequeue == NONE {
        INF
    } else {
        ops.s[x.dequeue as usize]
    }
}

/// The open intervals in which some element is certainly in the queue; overlapping intervals are merged.
fn spans(ops: &Ops, elements: &[Element]) -> Vec<(i64, i64)> {
    let each = elements.iter().map(|x| (ops.e[x.enqueue as usize], leaves(ops, x)));
    let mut parts: Vec<(i64, i64)> = each.filter(|part| part.0 < part.1).collect();
    parts.sort_unstable();
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for (from, to) in parts {
        match spans.last_mut() {
            Some(last) if from < last.1 => last.1 = last.1.max(to),
            _ => spans.push((from, to)),
        }
    }
    spans
}

/// Two elements that certainly left in the wrong order.
fn wrong_order(ops: &Ops, elements: &[Element]) -> Option<Near> {
    let taken = || elements.iter().filter(|x| x.dequeue != NONE);
    let mut by_end: Vec<&Element> = taken().collect();
    by_end.sort_unstable_by_key(|x| ops.e[x.enqueue as usize]);
    let mut by_start: Vec<&Element> = taken().collect();
    by_start.sort_unstable_by_key(|x| ops.s[x.enqueue as usize]);
    let mut next = 0;
    let mut latest: Option<&Element> = None;
    for b in by_start {
        while next < by_end.len() && ops.e[by_end[next].enqueue as usize] < ops.s[b.enqueue as usize] {
            let a = by_end[next];
            if latest.is_none_or(|l| ops.s[a.dequeue as usize] > ops.s[l.dequeue as usize]) {
                latest = Some(a);
            }
            next += 1;
        }
        if let Some(a) = latest.filter(|a| ops.s[a.dequeue as usize] > ops.e[b.dequeue as usize]) {
            return Some(Near::invalid(Kind::Order, &[a.enqueue, b.enqueue, b.dequeue, a.dequeue]));
        }
    }
    None
}

/// An element that was never dequeued although a later one was, and that no crashed dequeue can have taken.
fn passed_over(ops: &Ops, elements: &[Element], takers: &[u32]) -> Option<Near> {
    let mut taken: Vec<&Element> = elements.iter().filter(|x| x.dequeue != NONE).collect();
    taken.sort_unstable_by_key(|x| ops.s[x.enqueue as usize]);
    // Among the elements from each place on, the one whose dequeue ended first.
    let mut earliest: Vec<Option<&Element>> = vec![None; taken.len() + 1];
    for place in (0..taken.len()).rev() {
        let here = taken[place];
        earliest[place] = match earliest[place + 1] {
            Some(x) if ops.e[x.dequeue as usize] <= ops.e[here.dequeue as usize] => Some(x),
            _ => Some(here),
        };
    }
    let mut deadlines: Vec<(i64, u32, u32)> = Vec::new();
    for a in elements.iter().filter(|x| x.dequeue == NONE) {
        let place = taken.partition_point(|b| ops.s[b.enqueue as usize] <= ops.e[a.enqueue as usize]);
        let Some(b) = earliest[place] else { continue };
        let deadline = ops.e[b.dequeue as usize];
        if a.perhaps == NONE || ops.s[a.perhaps as usize] > deadline {
            deadlines.push((deadline, a.enqueue, b.enqueue));
        }
    }
    deadlines.sort_unstable();
    let mut starts: Vec<i64> = takers.iter().map(|&i| ops.s[i as usize]).collect();
    starts.sort_unstable();
    for (k, &(deadline, a, b)) in deadlines.iter().enumerate() {
        if starts.get(k).is_none_or(|&start| start > deadline) {
            let dequeue = elements.iter().find(|x| x.enqueue == b).map_or(NONE, |x| x.dequeue);
            return Some(Near::invalid(Kind::Lost, &[a, b, dequeue]));
        }
    }
    None
}

/// Elements that cover the interval of an empty answer: at each moment, one of them was certainly in the queue.
fn covered(ops: &Ops, elements: &[Element], empty: u32) -> Option<Near> {
    let (s, e) = (ops.s[empty as usize], ops.e[empty as usize]);
    let mut at = NEG;
    let mut core = vec![empty];
    loop {
        // Among the elements that are certainly in the queue at this moment, the one that certainly stays longest.
        let moment = if at == NEG { s } else { at };
        let there = |x: &&Element| ops.e[x.enqueue as usize] < moment && moment < leaves(ops, x);
        let x = elements.iter().filter(there).max_by_key(|x| leaves(ops, x))?;
        core.push(x.enqueue);
        core.push(x.dequeue);
        at = leaves(ops, x);
        if at > e {
            return Some(Near::invalid(Kind::NotEmpty, &core));
        }
    }
}
