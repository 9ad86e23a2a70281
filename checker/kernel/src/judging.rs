//! The boundary of `transactions` to Python: columns and texts come in, a dictionary goes out.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::python::Column;
use crate::transactions::cycles::{cycles, Cycles};
use crate::transactions::graph::{Extra, Graph, PROCESS, RW, WR, WW};
use crate::transactions::lists::lists;
use crate::transactions::parse::{parse, Malformed, Workload};
use crate::transactions::registers::{registers, Sources};
use crate::transactions::{Findings, History, Writers, WrittenTwice, INFO, KEPT, NONE, OK};

/// The result for a history that could be judged.
struct Judged<'a> {
    history: History<'a>,
    findings: Findings,
    graph: Graph,
    data_edges: usize,
    cycles: Cycles,
}

/// Why a history cannot be judged.
enum Refused<'a> {
    Malformed(Malformed),
    WrittenTwice { key: &'a str, elem: &'a str, twice: WrittenTwice },
}

fn judge<'a>(
    workload: Workload,
    kinds: &'a [i8],
    columns: [&'a [i64]; 3],
    requests: &[Option<&'a str>],
    answers: &[Option<&'a str>],
    sources: Sources,
    extra: Extra,
) -> Result<Judged<'a>, Refused<'a>> {
    let history = parse(workload, columns, kinds, requests, answers).map_err(Refused::Malformed)?;
    let writers = match Writers::of(&history) {
        Ok(writers) => writers,
        Err(twice) => {
            let (key, elem) = history.elems[twice.elem as usize];
            return Err(Refused::WrittenTwice { key: history.keys[key as usize], elem, twice });
        }
    };
    let mut findings = Findings::default();
    let dependencies = match workload {
        Workload::Lists => lists(&history, &writers, &mut findings),
        Workload::Registers => registers(&history, &writers, sources, &mut findings),
    };
    let data_edges = dependencies.len();
    let graph = Graph::new(&history, dependencies, extra);
    let cycles = cycles(&graph, KEPT);
    Ok(Judged { history, findings, graph, data_edges, cycles })
}

/// Judges transactions; see `checker/_kernel.pyi`.
#[pyfunction]
#[pyo3(signature = (workload, *, kind, process, start, end, request, answer, texts, extra, sources = Vec::new()))]
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
    texts: &Bound<'py, PyList>,
    extra: &str,
    sources: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let workload = match workload {
        "list-append" => Workload::Lists,
        "rw-register" => Workload::Registers,
        _ => return Err(PyValueError::new_err(format!("{workload:?} is no workload of transactions"))),
    };
    let extra = match extra {
        "none" => Extra::None,
        "process" => Extra::Process,
        "realtime" => Extra::Realtime,
        _ => return Err(PyValueError::new_err(format!("{extra:?} is no order besides the data"))),
    };
    let mut assumed = Sources::default();
    for source in &sources {
        match source.as_str() {
            "writes-follow-reads" => assumed.writes_follow_reads = true,
            "sequential-keys" => assumed.sequential_keys = true,
            "linearizable-keys" => assumed.linearizable_keys = true,
            _ => return Err(PyValueError::new_err(format!("{source:?} is no source of an order of versions"))),
        }
    }
    let kinds: Column<i8> = Column::new("kind", kind)?;
    let columns: [Column<i64>; 3] =
        [Column::new("process", process)?, Column::new("start", start)?, Column::new("end", end)?];
    let values: [Column<i64>; 2] = [Column::new("request", request)?, Column::new("answer", answer)?];
    let rows = kinds.slice().len();
    if columns.iter().chain(&values).any(|column| column.slice().len() != rows) || rows >= (NONE / 4) as usize {
        return Err(PyValueError::new_err("expected columns of one length, below 2^30"));
    }
    if kinds.slice().iter().any(|kind| !(OK..=INFO).contains(kind)) {
        return Err(PyValueError::new_err("expected a kind 0, 1 or 2"));
    }
    if columns[1].slice().windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(PyValueError::new_err("expected starts in ascending order"));
    }
    let held: Vec<Bound<'py, PyString>> = texts.iter().map(Bound::cast_into).collect::<Result<_, _>>()?;
    let texts: Vec<&str> = held.iter().map(|text| text.to_str()).collect::<PyResult<_>>()?;
    let [requests, answers] = values.each_ref().map(|column| {
        let text = |&place: &i64| usize::try_from(place).ok().and_then(|place| texts.get(place).copied());
        column.slice().iter().map(text).collect::<Vec<Option<&str>>>()
    });
    let slices = columns.each_ref().map(Column::slice);
    let result = py
        .detach(|| {
            let judged = || judge(workload, kinds.slice(), slices, &requests, &answers, assumed, extra);
            catch_unwind(AssertUnwindSafe(judged))
        })
        .map_err(|_| PyRuntimeError::new_err("the kernel failed while it judged transactions"))?;
    let out = PyDict::new(py);
    match result {
        Ok(judged) => fill(&out, &judged)?,
        Err(Refused::Malformed(wrong)) => {
            out.set_item("malformed", (wrong.row, wrong.answer, wrong.place, wrong.what))?;
        }
        Err(Refused::WrittenTwice { key, elem, twice }) => {
            out.set_item("written_twice", (key, elem, twice.rows, twice.places))?;
        }
    }
    Ok(out)
}

fn fill(out: &Bound<'_, PyDict>, judged: &Judged<'_>) -> PyResult<()> {
    let Judged { history, findings, graph, data_edges, cycles } = judged;
    let elem = |elem: u32| (elem != NONE).then(|| history.elems[elem as usize].1);
    let shown: Vec<_> = findings
        .kept
        .iter()
        .map(|each| {
            let elems: Vec<_> = each.elems.iter().map(|&each| elem(each)).collect();
            (each.kind, history.keys[each.key as usize], each.rows.clone(), each.places.clone(), elems)
        })
        .collect();
    let drawn: Vec<_> = cycles
        .kept
        .iter()
        .map(|cycle| {
            let links: Vec<_> = cycle
                .links
                .iter()
                .map(|link| {
                    let name = match link.kind {
                        WW => "ww",
                        WR => "wr",
                        RW => "rw",
                        PROCESS => "process",
                        _ => "realtime",
                    };
                    let edge = (link.edge != NONE).then(|| graph.edges[link.edge as usize]);
                    let key = edge.filter(|edge| edge.key != NONE).map(|edge| history.keys[edge.key as usize]);
                    let before = edge.and_then(|edge| elem(edge.before));
                    let after = elem(link.written).or(edge.and_then(|edge| elem(edge.after)));
                    (link.from, link.to, name, key, before, after)
                })
                .collect();
            (cycle.name, cycle.component, links)
        })
        .collect();
    out.set_item("findings", shown)?;
    out.set_item("cycles", drawn)?;
    let counts = PyDict::new(out.py());
    for (name, count) in findings.counts.iter().chain(&cycles.counts) {
        counts.set_item(name, count)?;
    }
    out.set_item("counts", counts)?;
    out.set_item("keys", history.keys.len())?;
    out.set_item("data_edges", data_edges)
}
