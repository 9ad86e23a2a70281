//! Models of transactions over registers, decided by definition: by all orders of the transactions that may have happened, or all
//! orders of the versions of each key. Nothing here is shared with the kernel.

/// A read or a write; values of a key are numbers from 1 on, and 0 is its initial value.
#[derive(Clone, Copy, Debug)]
pub struct Mop {
    pub is_read: bool,
    pub key: usize,
    pub value: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ok,
    Fail,
    Info,
}

#[derive(Clone, Debug)]
pub struct Txn {
    pub kind: Kind,
    pub process: usize,
    pub start: i64,
    pub end: i64,
    pub mops: Vec<Mop>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    None,
    Process,
    Realtime,
}

impl std::fmt::Display for Txn {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?} process {} {}-{}:", self.kind, self.process, self.start, self.end)?;
        let mut mops = self.mops.iter();
        mops.try_for_each(|mop| write!(out, " {}{}={}", if mop.is_read { 'r' } else { 'w' }, mop.key, mop.value))
    }
}

impl Txn {
    /// Returns the reads that show another transaction: the place, the key and the value. Only those with an answer are known.
    fn reads(&self) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (place, mop) in self.mops.iter().enumerate().filter(|(_, mop)| mop.is_read && self.kind == Kind::Ok) {
            if !self.mops[..place].iter().any(|other| !other.is_read && other.key == mop.key) {
                found.push((place, mop.key, mop.value));
            }
        }
        found
    }

    /// Returns the last value of each key that it writes.
    fn writes(&self) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        for mop in self.mops.iter().filter(|mop| !mop.is_read) {
            found.retain(|(key, _)| *key != mop.key);
            found.push((mop.key, mop.value));
        }
        found
    }

    fn write(&self, key: usize) -> Option<usize> {
        self.writes().into_iter().find(|(of, _)| *of == key).map(|(_, value)| value)
    }

    /// Returns whether it contradicts its own earlier reads and writes.
    pub fn contradicts_itself(&self) -> bool {
        self.kind == Kind::Ok
            && self.mops.iter().enumerate().any(|(place, mop)| {
                let before = self.mops[..place].iter().rev().find(|other| other.key == mop.key);
                mop.is_read && before.is_some_and(|before| before.value != mop.value)
            })
    }
}

fn precedes(extra: Extra, one: &Txn, other: &Txn) -> bool {
    match extra {
        Extra::None => false,
        Extra::Process => {
            one.kind == Kind::Ok && other.kind == Kind::Ok && one.process == other.process && one.start < other.start
        }
        Extra::Realtime => one.kind == Kind::Ok && one.end < other.start,
    }
}

/// Returns each set of transactions that may have happened.
fn possible(txns: &[Txn]) -> Vec<Vec<&Txn>> {
    let mut found: Vec<Vec<&Txn>> = vec![Vec::new()];
    for txn in txns.iter().filter(|txn| txn.kind != Kind::Fail) {
        let without = if txn.kind == Kind::Info { found.clone() } else { Vec::new() };
        for some in &mut found {
            some.push(txn);
        }
        found.extend(without);
    }
    found
}

/// Returns whether one of all orders of some numbers fits.
fn any_order(count: usize, fits: &mut dyn FnMut(&[usize]) -> bool) -> bool {
    fn next(order: &mut Vec<usize>, count: usize, fits: &mut dyn FnMut(&[usize]) -> bool) -> bool {
        if order.len() == count {
            return fits(order);
        }
        for number in 0..count {
            if !order.contains(&number) {
                order.push(number);
                if next(order, count, fits) {
                    return true;
                }
                order.pop();
            }
        }
        false
    }
    next(&mut Vec::new(), count, fits)
}

/// Returns whether an order of the transactions that keeps what is extra fits.
fn by_orders(txns: &[Txn], extra: Extra, fits: &dyn Fn(&[&Txn]) -> bool) -> bool {
    possible(txns).iter().any(|some| {
        any_order(some.len(), &mut |order| {
            let in_order: Vec<&Txn> = order.iter().map(|&number| some[number]).collect();
            let keeps =
                (0..in_order.len()).all(|later| (0..later).all(|at| !precedes(extra, in_order[later], in_order[at])));
            keeps && fits(&in_order)
        })
    })
}

/// Returns the value of a key after some transactions.
fn value<'a>(seen: impl DoubleEndedIterator<Item = &'a &'a Txn>, key: usize) -> usize {
    seen.rev().find_map(|txn| txn.write(key)).unwrap_or(0)
}

fn agrees(txn: &Txn, seen: &[&Txn]) -> bool {
    !txn.contradicts_itself() && txn.reads().iter().all(|&(_, key, read)| value(seen.iter(), key) == read)
}

fn share(one: &Txn, other: &Txn) -> bool {
    one.writes().iter().any(|(key, _)| other.write(*key).is_some())
}

pub fn serial(txns: &[Txn], extra: Extra) -> bool {
    by_orders(txns, extra, &|order| (0..order.len()).all(|at| agrees(order[at], &order[..at])))
}

/// Each transaction sees a beginning of the order; with `apart`, all earlier ones that write one of its keys.
pub fn snapshot(txns: &[Txn], extra: Extra, apart: bool) -> bool {
    by_orders(txns, Extra::None, &|order| {
        (0..order.len()).all(|at| {
            (0..=at).any(|seen| {
                agrees(order[at], &order[..seen])
                    && order[seen..].iter().all(|other| !precedes(extra, other, order[at]))
                    && !(apart && order[seen..at].iter().any(|other| share(other, order[at])))
            })
        })
    })
}

/// Each transaction sees some earlier ones, and with `transitive` all that these see.
pub fn visible(txns: &[Txn], transitive: bool, apart: bool) -> bool {
    fn sees(order: &[&Txn], sets: &mut Vec<usize>, transitive: bool, apart: bool) -> bool {
        let at = sets.len();
        if at == order.len() {
            return true;
        }
        for set in 0..1usize << at {
            let has = |place: &usize| set >> place & 1 == 1;
            let seen: Vec<&Txn> = (0..at).filter(has).map(|place| order[place]).collect();
            let closed = !transitive || (0..at).filter(has).all(|place| sets[place] & !set == 0);
            let meets = apart && (0..at).any(|place| !has(&place) && share(order[place], order[at]));
            if closed && !meets && agrees(order[at], &seen) {
                sets.push(set);
                if sees(order, sets, transitive, apart) {
                    return true;
                }
                sets.pop();
            }
        }
        false
    }
    by_orders(txns, Extra::None, &|order| sees(order, &mut Vec::new(), transitive, apart))
}

/// Each read returns what some earlier transaction left, or nothing was left.
pub fn read_committed(txns: &[Txn], extra: Extra) -> bool {
    by_orders(txns, extra, &|order| {
        (0..order.len()).all(|at| {
            let left =
                |key: usize, read: usize| read == 0 || order[..at].iter().any(|other| other.write(key) == Some(read));
            order[at].reads().iter().all(|&(_, key, read)| left(key, read))
        })
    })
}

/// All writes follow one order of the transactions, and a write comes after what its transaction read before.
pub fn read_uncommitted(txns: &[Txn], extra: Extra) -> bool {
    let is_written = |mop: &Mop| {
        mop.value == 0
            || txns
                .iter()
                .flat_map(|txn| &txn.mops)
                .any(|other| !other.is_read && (other.key, other.value) == (mop.key, mop.value))
    };
    let known = txns.iter().filter(|txn| txn.kind == Kind::Ok).flat_map(|txn| &txn.mops);
    if !known.filter(|mop| mop.is_read).all(is_written) {
        return false;
    }
    let all = |order: &[&Txn]| {
        let shown = |txn: &&Txn| {
            txn.kind == Kind::Ok
                || txns.iter().filter(|other| other.kind == Kind::Ok).any(|other| {
                    let wrote =
                        |mop: &Mop| txn.mops.iter().any(|w| !w.is_read && (w.key, w.value) == (mop.key, mop.value));
                    other.mops.iter().any(|mop| mop.is_read && wrote(mop))
                })
        };
        txns.iter()
            .filter(|txn| txn.kind != Kind::Fail)
            .filter(|txn| shown(txn))
            .all(|txn| order.iter().any(|other| std::ptr::eq(*other, txn)))
    };
    by_orders(txns, extra, &|order| {
        all(order)
            && (0..order.len()).all(|at| {
                order[at].reads().iter().all(|&(place, key, read)| {
                    let is_first = order[at].mops[..place].iter().all(|mop| mop.key != key);
                    let writes = order[at].write(key).is_some();
                    !(is_first && writes && order[at + 1..].iter().any(|other| other.write(key) == Some(read)))
                })
            })
    })
}

/// What a transaction saw in part, it sees in whole from then on.
pub fn monotonic_atomic(txns: &[Txn]) -> bool {
    by_orders(txns, Extra::None, &|order| {
        (0..order.len()).all(|at| {
            let mut needed: Vec<usize> = Vec::new();
            order[at].reads().iter().all(|&(_, key, read)| {
                let from = (0..at).find(|&place| order[place].write(key) == Some(read));
                let newer =
                    |&place: &usize| order[place].write(key).is_some() && from.is_none_or(|from| place > from);
                let fits = (read == 0 || from.is_some()) && !needed.iter().any(newer);
                needed.extend(from);
                fits
            })
        })
    })
}

/// All reads and commits have one order, and each read shows what was committed before it.
pub fn snapshot_reads(txns: &[Txn]) -> bool {
    by_orders(txns, Extra::None, &|order| {
        (0..order.len()).all(|at| {
            let mut from = 0;
            order[at].reads().iter().all(|&(_, key, read)| {
                let seen = (from..=at).find(|&seen| value(order[..seen].iter(), key) == read);
                from = seen.unwrap_or(from);
                seen.is_some()
            })
        })
    })
}

/// Dependencies between transactions by an order of the versions of each key: ww and wr, and rw with the place of the read.
struct Graph {
    flow: Vec<Vec<bool>>,
    wr: Vec<(usize, usize, usize)>,
    rw: Vec<(usize, usize, usize)>,
}

fn closed(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; count]; count];
    edges.for_each(|(one, other)| reach[one][other] |= one != other);
    for middle in 0..count {
        for one in 0..count {
            for other in 0..count {
                reach[one][other] |= reach[one][middle] && reach[middle][other];
            }
        }
    }
    reach
}

/// Returns whether an order of the versions of each key fits.
fn by_versions(txns: &[Txn], keys: usize, fits: &dyn Fn(&[&Txn], &Graph) -> bool) -> bool {
    fn next(
        some: &[&Txn],
        orders: &mut Vec<Vec<usize>>,
        keys: usize,
        fits: &dyn Fn(&[&Txn], &Graph) -> bool,
    ) -> bool {
        let key = orders.len();
        if key == keys {
            return graph(some, orders).is_some_and(|graph| fits(some, &graph));
        }
        let writers: Vec<usize> = (0..some.len()).filter(|&at| some[at].write(key).is_some()).collect();
        any_order(writers.len(), &mut |order| {
            orders.push(order.iter().map(|&number| writers[number]).collect());
            let found = next(some, orders, keys, fits);
            orders.pop();
            found
        })
    }
    possible(txns).iter().any(|some| next(some, &mut Vec::new(), keys, fits))
}

/// Returns the dependencies; None if ww and wr have a cycle, or a read shows nothing that was committed.
fn graph(some: &[&Txn], orders: &[Vec<usize>]) -> Option<Graph> {
    let (mut ww, mut wr, mut rw) = (Vec::new(), Vec::new(), Vec::new());
    for order in orders {
        ww.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
    }
    for (reader, txn) in some.iter().enumerate() {
        for (place, key, read) in txn.reads() {
            let at = orders[key].iter().position(|&writer| some[writer].write(key) == Some(read));
            if read != 0 {
                wr.push((orders[key][at?], reader, place));
            }
            let later = orders[key].get(at.map_or(0, |at| at + 1));
            rw.extend(later.map(|&writer| (reader, writer, place)));
        }
    }
    if wr.iter().any(|&(writer, reader, _)| writer == reader) {
        return None;
    }
    let flow = closed(some.len(), ww.into_iter().chain(wr.iter().map(|&(one, other, _)| (one, other))));
    let is_acyclic = (0..some.len()).all(|at| !flow[at][at]);
    is_acyclic.then_some(Graph { flow, wr, rw })
}

/// No cycle has one anti-dependency.
pub fn consistent_view(txns: &[Txn], keys: usize) -> bool {
    by_versions(txns, keys, &|_, graph| graph.rw.iter().all(|&(one, other, _)| !graph.flow[other][one]))
}

/// No transaction misses by a read what it depends on by that read or an earlier one.
pub fn monotonic_view(txns: &[Txn], keys: usize) -> bool {
    by_versions(txns, keys, &|_, graph| {
        graph.rw.iter().all(|&(one, other, place)| {
            graph.wr.iter().all(|&(from, to, at)| {
                to != one || at > place || one == other || (from != other && !graph.flow[other][from])
            })
        })
    })
}

/// No cycle has transactions that write, and at most one that only reads.
pub fn update_serializable(txns: &[Txn], keys: usize) -> bool {
    by_versions(txns, keys, &|some, graph| {
        let writes: Vec<bool> = some.iter().map(|txn| !txn.writes().is_empty()).collect();
        (0..some.len()).all(|reader| {
            let inside = |at: usize| writes[at] || at == reader;
            let flow = (0..some.len()).flat_map(|one| (0..some.len()).map(move |other| (one, other)));
            let edges = flow.filter(|&(one, other)| graph.flow[one][other]);
            let anti = graph.rw.iter().map(|&(one, other, _)| (one, other));
            let all = closed(some.len(), edges.chain(anti).filter(|&(one, other)| inside(one) && inside(other)));
            (0..some.len()).all(|at| !all[at][at])
        })
    })
}

/// No cycle at all.
pub fn repeatable_read(txns: &[Txn], keys: usize) -> bool {
    by_versions(txns, keys, &|some, graph| {
        let flow = (0..some.len()).flat_map(|one| (0..some.len()).map(move |other| (one, other)));
        let edges = flow.filter(|&(one, other)| graph.flow[one][other]);
        let all = closed(some.len(), edges.chain(graph.rw.iter().map(|&(one, other, _)| (one, other))));
        (0..some.len()).all(|at| !all[at][at])
    })
}

/// No two transactions read one version of a key first, and both write it.
pub fn keeps_updates(txns: &[Txn]) -> bool {
    let updates: Vec<(usize, usize)> = txns
        .iter()
        .filter(|txn| txn.kind == Kind::Ok)
        .flat_map(|txn| {
            let first = |&(place, key, _): &(usize, usize, usize)| txn.mops[..place].iter().all(|mop| mop.key != key);
            let both = txn.reads().into_iter().filter(first).filter(|&(_, key, _)| txn.write(key).is_some());
            both.map(|(_, key, read)| (key, read)).collect::<Vec<_>>()
        })
        .collect();
    (0..updates.len()).all(|at| !updates[..at].contains(&updates[at]))
}

/// Returns the histories in which each write has a value of its own, one for each choice of the write that each read of a value is of.
///
/// A read of 0 is one of the initial value or of a write of 0. A value that nobody wrote stays one. None: there are too many.
pub fn readings(txns: &[Txn], most: usize) -> Option<Vec<Vec<Txn>>> {
    let mut own = txns.to_vec();
    let mut written: Vec<(usize, usize, usize)> = Vec::new(); // a key, a value, and its number
    for mop in own.iter_mut().flat_map(|txn| &mut txn.mops).filter(|mop| !mop.is_read) {
        let number = written.len() + 1;
        written.push((mop.key, mop.value, number));
        mop.value = number;
    }
    let mut found = vec![own];
    for (at, txn) in txns.iter().enumerate().filter(|(_, txn)| txn.kind == Kind::Ok) {
        for (place, mop) in txn.mops.iter().enumerate().filter(|(_, mop)| mop.is_read) {
            let of = written.iter().filter(|(key, value, _)| (*key, *value) == (mop.key, mop.value));
            let mut options: Vec<usize> = of.map(|(.., number)| *number).collect();
            if mop.value == 0 {
                options.push(0);
            }
            if options.is_empty() {
                options.push(written.len() + 1 + mop.value);
            }
            if found.len() * options.len() > most {
                return None;
            }
            let with = |value: usize| {
                found.iter().cloned().map(move |mut txns| {
                    txns[at].mops[place].value = value;
                    txns
                })
            };
            found = options.into_iter().flat_map(with).collect();
        }
    }
    Some(found)
}

/// Whether a definition looks at values alone, so that it decides a history with equal values too.
pub fn is_of_values(model: &str) -> bool {
    let prefixes = ["read-atomic", "causal", "update-atomic", "prefix", "parallel", "monotonic-snapshot", "serial"];
    prefixes.iter().any(|prefix| model.starts_with(prefix))
        || model.ends_with("snapshot-isolation")
        || model.ends_with("serializable") && model != "update-serializable"
}

/// Returns whether an execution of a model explains all answers.
pub fn legal(model: &str, txns: &[Txn], keys: usize) -> bool {
    let extra = if model.starts_with("strong-session") {
        Extra::Process
    } else if model.starts_with("strong-") || model == "strict-serializable" {
        Extra::Realtime
    } else {
        Extra::None
    };
    match model {
        "read-uncommitted" | "strong-session-read-uncommitted" | "strong-read-uncommitted" => {
            read_uncommitted(txns, extra)
        }
        "read-committed" | "strong-session-read-committed" | "strong-read-committed" => read_committed(txns, extra),
        "cursor-stability" => read_committed(txns, extra) && keeps_updates(txns),
        "monotonic-atomic-view" => monotonic_atomic(txns),
        "read-atomic" => visible(txns, false, false),
        "causal-cerone" => visible(txns, true, false),
        "update-atomic" => visible(txns, false, true),
        "prefix" => snapshot(txns, extra, false),
        "parallel-snapshot-isolation" => visible(txns, true, true),
        "monotonic-view" => monotonic_view(txns, keys),
        "monotonic-snapshot-read" => snapshot_reads(txns),
        "consistent-view" | "forward-consistent-view" => consistent_view(txns, keys),
        "update-serializable" => update_serializable(txns, keys),
        "repeatable-read" => repeatable_read(txns, keys),
        "snapshot-isolation" | "strong-session-snapshot-isolation" | "strong-snapshot-isolation" => {
            snapshot(txns, extra, true)
        }
        "serializable" | "strong-session-serializable" | "strict-serializable" => serial(txns, extra),
        _ => panic!("{model} has no definition"),
    }
}
