//! The boundary of `transactions` to Python: columns and texts come in, objects of `answers` go out.

use std::borrow::Cow;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::answers::{self, LeftOut, OfTransactions, TransactionFindings};
use crate::python::Column;
use crate::transactions::cycles::{order, Cycle};
use crate::transactions::forced;
use crate::transactions::graph::{Edge, Extra, Graph, CONFLICT, PROCESS, RW, SOURCES, WR, WW};
use crate::transactions::judge::{judged, Judged, Question, Twice};
use crate::transactions::ordering::class::Class;
use crate::transactions::ordering::shown::{How, Order, Shown};
use crate::transactions::ordering::{Asked, Case, Ordering, LIMITS};
use crate::transactions::overlaps::Overlap;
use crate::transactions::parse::{parse, Malformed};
use crate::transactions::positions::{SamePosition, UNPLACED};
use crate::transactions::registers::Sources;
use crate::transactions::updates::UPDATE;
use crate::transactions::views;
use crate::transactions::visibility::{Walk, NAMES};
use crate::transactions::witness::Link;
use crate::transactions::{Finding, History, Table, Workload, WrittenTwice, INFO, NONE, OK};

/// The transactions of a file; see `checker/_kernel.pyi`.
#[pyclass(frozen, module = "checker._kernel")]
pub struct Transactions {
    pub workload: Workload,
    pub table: Table,
}

#[pymethods]
impl Transactions {
    fn __len__(&self) -> usize {
        self.table.len() * 2
    }

    fn __getitem__(&self, place: usize) -> PyResult<String> {
        if place / 2 >= self.table.len() {
            return Err(PyIndexError::new_err(place));
        }
        Ok(self.table.text(place / 2, self.workload, place % 2 == 1))
    }
}

/// Returns the transactions of the rows of columns in a table, by the places of their requests and answers.
fn places_in(table: &Table, kinds: &[i8], requests: &[i64], answers: &[i64]) -> PyResult<Vec<u32>> {
    let place = |row: usize| {
        let (request, answer) = (requests[row], answers[row]);
        let fits = request >= 0 && request % 2 == 0 && request / 2 < table.len() as i64;
        (fits && (kinds[row] != OK || answer == request + 1)).then_some((request / 2) as u32)
    };
    (0..kinds.len())
        .map(|row| place(row).ok_or_else(|| PyValueError::new_err(format!("row {row} is not in the table"))))
        .collect()
}

pub(crate) fn workload_of(name: &str) -> PyResult<Workload> {
    Workload::of(name).ok_or_else(|| PyValueError::new_err(format!("{name:?} is no workload of transactions")))
}

pub(crate) fn extra_of(name: &str) -> PyResult<Extra> {
    match name {
        "none" => Ok(Extra::None),
        "process" => Ok(Extra::Process),
        "realtime" => Ok(Extra::Realtime),
        _ => Err(PyValueError::new_err(format!("{name:?} is no order besides the data"))),
    }
}

pub(crate) fn sources_of(names: &[String]) -> PyResult<Sources> {
    let mut assumed = Sources::default();
    for name in names {
        match name.as_str() {
            "writes-follow-reads" => assumed.writes_follow_reads = true,
            "sequential-keys" => assumed.sequential_keys = true,
            "linearizable-keys" => assumed.linearizable_keys = true,
            "transaction-order" => assumed.transaction_order = true,
            "atomic-visibility" => assumed.atomic_visibility = true,
            _ => return Err(PyValueError::new_err(format!("{name:?} is no source of an order of versions"))),
        }
    }
    Ok(assumed)
}

/// Does work without the lock of Python; a panic becomes an error that says what the kernel did to transactions, e.g. `judged`.
pub(crate) fn careful<T: Send>(py: Python<'_>, done: &str, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work)))
        .map_err(|_| PyRuntimeError::new_err(format!("the kernel failed while it {done} transactions")))
}

pub(crate) fn hold_kinds(kinds: &[i8]) -> PyResult<()> {
    if kinds.iter().any(|kind| !(OK..=INFO).contains(kind)) {
        return Err(PyValueError::new_err("expected a kind 0, 1 or 2"));
    }
    Ok(())
}

/// Judges transactions; see `checker/_kernel.pyi`.
#[pyfunction]
#[pyo3(signature = (workload, *, kind, process, start, end, request, answer, texts, extra, sources = Vec::new(), more = Vec::new(), want_order = false, position = None, initial = None, asked = None))]
#[allow(clippy::needless_pass_by_value)]
pub fn transactions<'py>(
    py: Python<'py>,
    workload: &str,
    kind: &Bound<'py, PyAny>,
    process: &Bound<'py, PyAny>,
    start: &Bound<'py, PyAny>,
    end: &Bound<'py, PyAny>,
    request: &Bound<'py, PyAny>,
    answer: &Bound<'py, PyAny>,
    texts: &Bound<'py, PyAny>,
    extra: &str,
    sources: Vec<String>,
    more: Vec<String>,
    want_order: bool,
    position: Option<&Bound<'py, PyAny>>,
    initial: Option<&str>,
    asked: Option<(String, String, Vec<String>)>,
) -> PyResult<OfTransactions> {
    let workload = workload_of(workload)?;
    let extra = extra_of(extra)?;
    let assumed = sources_of(&sources)?;
    let known = [&NAMES[..], &views::NAMES, &[UPDATE], &forced::NAMES].concat();
    if let Some(name) = more.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(PyValueError::new_err(format!("{name:?} is no anomaly that is searched on demand")));
    }
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let prohibited: Vec<&str> = asked.iter().flat_map(|asked| &asked.2).map(String::as_str).collect();
    let asked = match &asked {
        Some((class, extra, _)) => {
            let class = Class::of(class).ok_or_else(|| PyValueError::new_err(format!("{class:?} is no class")))?;
            Some(Asked { class, extra: extra_of(extra)?, prohibited: &prohibited, limits: LIMITS })
        }
        None => None,
    };
    let kinds: Column<i8> = Column::new("kind", kind)?;
    let columns: [Column<i64>; 3] =
        [Column::new("process", process)?, Column::new("start", start)?, Column::new("end", end)?];
    let values: [Column<i64>; 2] = [Column::new("request", request)?, Column::new("answer", answer)?];
    let positions: Option<Column<i64>> = position.map(|position| Column::new("position", position)).transpose()?;
    let rows = kinds.slice().len();
    if columns.iter().chain(&values).any(|column| column.slice().len() != rows) || rows >= (NONE / 4) as usize {
        return Err(PyValueError::new_err("expected columns of one length, below 2^30"));
    }
    let position = positions.as_ref().map_or(&[][..], Column::slice);
    if (assumed.transaction_order || positions.is_some())
        && (position.len() != rows || position.iter().any(|&each| each < UNPLACED))
    {
        return Err(PyValueError::new_err("expected a position of -1 or more for each row"));
    }
    hold_kinds(kinds.slice())?;
    if columns[1].slice().windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(PyValueError::new_err("expected starts in ascending order"));
    }
    let [process, start, end] = columns.each_ref().map(Column::slice);
    let kind = kinds.slice();
    let work = |table: &Table, place: Vec<u32>| {
        let table = &initial.map_or(Cow::Borrowed(table), |value| Cow::Owned(table.beginning_with(value)));
        let history = History { kind, process, start, end, table, place, position };
        let question = Question { workload, sources: assumed, extra, more: &more, asked };
        let result = careful(py, "judged", || judged(&question, &history))?;
        Ok(match result {
            Ok(judged) => {
                let mut found = found(judged.twice.as_ref().map_or(table, |twice| &twice.table), &judged);
                found.twice = judged.twice.map(|twice| {
                    let Twice { first: WrittenTwice { elem, rows, places }, values, reads, .. } = twice;
                    let key = table.key_text(table.elems[elem as usize].0);
                    {
                        let element = table.elem_text(elem);
                        LeftOut { first: answers::WrittenTwice { key, element, rows, places }, values, reads }
                    }
                });
                found.order = if want_order { order(&judged.graph) } else { None };
                OfTransactions::Found(Py::new(py, found)?)
            }
            Err(SamePosition { key, rows }) => {
                OfTransactions::SamePosition(answers::SamePosition { key: table.key_text(key), rows })
            }
        })
    };
    if let Ok(known) = texts.cast::<Transactions>() {
        let known = known.get();
        if known.workload != workload {
            return Err(PyValueError::new_err("expected the workload of the transactions"));
        }
        return work(&known.table, places_in(&known.table, kind, values[0].slice(), values[1].slice())?);
    }
    let held: Vec<Bound<'py, PyString>> =
        texts.cast::<PyList>()?.iter().map(Bound::cast_into).collect::<Result<_, _>>()?;
    let texts: Vec<&str> = held.iter().map(|text| text.to_str()).collect::<PyResult<_>>()?;
    let [requests, answers] = values.each_ref().map(|column| {
        let text = |&place: &i64| usize::try_from(place).ok().and_then(|place| texts.get(place).copied());
        column.slice().iter().map(text).collect::<Vec<Option<&str>>>()
    });
    match careful(py, "read", || parse(workload, kind, &requests, &answers))? {
        Ok(table) => work(&table, (0..rows as u32).collect()),
        Err(Malformed { row, answer, place, what }) => {
            Ok(OfTransactions::Malformed(answers::Malformed { row, answer, place, what: what.into() }))
        }
    }
}

/// Returns the name of a kind of edge.
pub(crate) fn name_of(kind: u8) -> &'static str {
    match kind {
        WW => "ww",
        WR => "wr",
        RW => "rw",
        CONFLICT => "conflict",
        PROCESS => "process",
        _ => "realtime",
    }
}

/// Returns what was found as Python sees it.
fn found(table: &Table, judged: &Judged) -> TransactionFindings {
    let Judged { findings, graph, reasons, data_edges, cycles, walks, placed, ordering, .. } = judged;
    let mut told: Vec<(String, String, String, &str)> = Vec::new();
    let links = cycles.kept.iter().flat_map(|cycle| &cycle.links);
    let of_cycles = links.filter_map(|link| graph.edges.get(link.edge as usize));
    for edge in of_cycles.chain(walks.kept.iter().flat_map(|walk| &walk.edges)) {
        if edge.kind & (WW | RW | CONFLICT) == 0 || edge.before == NONE {
            continue;
        }
        let known = reasons.binary_search_by_key(&(edge.before, edge.after), |reason| (reason.0, reason.1));
        let Ok(place) = known else { continue };
        let source = SOURCES[reasons[place].2 as usize];
        told.push((table.key_text(edge.key), table.elem_text(edge.before), table.elem_text(edge.after), source));
    }
    told.sort_unstable();
    told.dedup();
    let reason = |(key, before, after, source): (String, String, String, &str)| answers::VersionReason {
        key,
        before,
        after,
        source: source.into(),
    };
    let drawing = Drawing { table, graph };
    let of_overlap = |(kind, component, overlap): &(&str, usize, Overlap)| answers::Overlap {
        kind: (*kind).into(),
        component: *component,
        decided: overlap.decided,
        writers: overlap.writers.iter().map(|&(row, key)| (row, table.key_text(key))).collect(),
    };
    let of_walk = |walk: &Walk| answers::Cycle {
        kind: walk.name.into(),
        component: walk.component,
        links: drawing.edges(&walk.edges),
    };
    let cycles_shown = cycles.kept.iter().map(|cycle| drawing.cycle(cycle)).chain(walks.kept.iter().map(of_walk));
    let counts = findings.counts.iter().chain(&cycles.counts).chain(&walks.counts);
    TransactionFindings {
        findings: findings.kept.iter().map(|finding| drawing.finding(finding)).collect(),
        cycles: cycles_shown.collect(),
        overlaps: cycles.overlaps.iter().map(of_overlap).collect(),
        counts: counts.map(|(name, count)| ((*name).into(), *count)).collect(),
        data_edges: *data_edges,
        reasons: told.into_iter().map(reason).collect(),
        ordering: ordering.as_ref().map(|ordering| drawing.ordering(ordering)),
        placed: *placed,
        twice: None,
        order: None,
    }
}

/// Draws what was found in a graph.
struct Drawing<'a> {
    table: &'a Table,
    graph: &'a Graph,
}

impl Drawing<'_> {
    fn elem(&self, elem: u32) -> Option<String> {
        (elem != NONE).then(|| self.table.elem_text(elem))
    }

    fn finding(&self, finding: &Finding) -> answers::Finding {
        answers::Finding {
            kind: finding.kind.into(),
            key: self.table.key_text(finding.key),
            rows: finding.rows.clone(),
            places: finding.places.clone(),
            elements: finding.elems.iter().map(|&elem| self.elem(elem)).collect(),
        }
    }

    fn link(&self, edge: Option<Edge>, link: Link) -> answers::Link {
        answers::Link {
            first: link.from,
            second: link.to,
            kind: name_of(link.kind).into(),
            key: edge.filter(|edge| edge.key != NONE).map(|edge| self.table.key_text(edge.key)),
            before: edge.and_then(|edge| self.elem(edge.before)),
            after: self.elem(link.written).or(edge.and_then(|edge| self.elem(edge.after))),
        }
    }

    fn cycle(&self, cycle: &Cycle) -> answers::Cycle {
        let edge = |link: &Link| (link.edge != NONE).then(|| self.graph.edges[link.edge as usize]);
        answers::Cycle {
            kind: cycle.name.into(),
            component: cycle.component,
            links: cycle.links.iter().map(|link| self.link(edge(link), *link)).collect(),
        }
    }

    fn edges(&self, edges: &[Edge]) -> Vec<answers::Link> {
        let link = |edge: &Edge| Link { from: edge.from, to: edge.to, kind: edge.kind, edge: NONE, written: NONE };
        edges.iter().map(|edge| self.link(Some(*edge), link(edge))).collect()
    }

    fn ordering(&self, ordering: &Ordering) -> answers::Ordering {
        let (answer, cases, rows) = match ordering {
            Ordering::Order => ("order", &[][..], &[][..]),
            Ordering::Contradiction(cases, rows) => ("contradiction", &cases[..], &rows[..]),
            Ordering::TooLarge => ("too-large", &[][..], &[][..]),
            Ordering::Limit => ("limit", &[][..], &[][..]),
        };
        answers::Ordering {
            answer: answer.into(),
            cases: cases.iter().map(|case| self.case(case)).collect(),
            rows: rows.to_vec(),
        }
    }

    fn case(&self, case: &Case) -> answers::Case {
        let chosen = case.chosen.map(|(key, before, after)| answers::VersionPair {
            key: self.table.key_text(key),
            before: self.elem(before),
            after: self.elem(after),
        });
        let shown = |shown: &Shown| answers::ShownCycle {
            links: self.edges(&shown.cycle),
            orders: shown.orders.iter().map(|order| self.order(order)).collect(),
            left: shown.left,
        };
        answers::Case { chosen, shown: case.shown.as_ref().map(shown) }
    }

    fn order(&self, order: &Order) -> answers::VersionOrder {
        let why = match order.why {
            How::Source(source) => SOURCES[source as usize],
            How::Path => "path",
            How::Seen => "seen",
            How::Chosen => "chosen",
        };
        answers::VersionOrder {
            key: self.table.key_text(order.key),
            before: self.elem(order.before),
            after: self.elem(order.after),
            why: why.into(),
            links: self.edges(&order.links),
        }
    }
}
