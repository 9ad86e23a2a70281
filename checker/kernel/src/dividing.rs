//! The boundary of `transactions` to Python for histories that are larger than memory: their keys and their graph in parts.
//!
//! What a key shows by itself needs only the micro-operations of this key, so a history is divided by keys first. Its
//! dependencies are then divided by time. `results/pipeline/spark/large_transactions` says why that gives the same cycles.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use std::collections::HashMap;

use crate::answers::{
    self, Bytes, KeyDependencies, OfKeys, OfParts, PartCycle, PartFinding, PartFindings, PartLink, PartOverlap,
    TransactionParts,
};
use crate::judging::{careful, extra_of, hold_kinds, name_of, sources_of, workload_of};
use crate::python::Column;
use crate::texts::{address, Texts};
use crate::transactions::accesses::{Accesses, Read, Write};
use crate::transactions::conflicts::conflicts;
use crate::transactions::graph::{Dependencies, Edge, Extra, Fan, Graph, RW, WR, WW};
use crate::transactions::inside::Inside;
use crate::transactions::judge::{accesses, needs_accesses, needs_views, searched};
use crate::transactions::lists::lists;
use crate::transactions::overlaps::Overlap;
use crate::transactions::parse::{parse, Malformed};
use crate::transactions::reach::{reached, reaching};
use crate::transactions::registers::registers;
use crate::transactions::views::{seen_in, Events, Seen, SeenFan};
use crate::transactions::witness::Link;
use crate::transactions::{Finding, Findings, History, Workload, Writers, WrittenTwice, FAIL, NONE};

fn bytes(py: Python<'_>, numbers: &[u32]) -> Bytes {
    let all: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
    PyBytes::new(py, &all).unbind()
}

/// Texts one after the other, with the end of each.
#[derive(Default)]
struct Joined {
    text: String,
    ends: Vec<u32>,
}

impl Joined {
    fn add(&mut self, text: &str) -> PyResult<()> {
        self.text.push_str(text);
        let end = u32::try_from(self.text.len()).ok().filter(|&end| end < NONE / 2);
        self.ends.push(end.ok_or_else(|| PyValueError::new_err("expected less than 2 GiB of text in one part"))?);
        Ok(())
    }

    fn into_py(self, py: Python<'_>) -> (Bytes, Bytes) {
        let mut ends = vec![0];
        ends.extend(self.ends);
        (PyBytes::new(py, self.text.as_bytes()).unbind(), bytes(py, &ends))
    }
}

/// Divides transactions by keys; see `checker/_kernel.pyi`.
#[pyfunction]
#[pyo3(signature = (workload, *, kind, request, answer))]
#[allow(clippy::needless_pass_by_value)]
pub fn transaction_parts<'py>(
    py: Python<'py>,
    workload: &str,
    kind: &Bound<'py, PyAny>,
    request: [Bound<'py, PyAny>; 3],
    answer: [Bound<'py, PyAny>; 3],
) -> PyResult<OfParts> {
    let workload = workload_of(workload)?;
    let kinds: Column<i8> = Column::new("kind", kind)?;
    let kinds = kinds.slice();
    hold_kinds(kinds)?;
    let (request, answer) = (Texts::new("request", &request)?, Texts::new("answer", &answer)?);
    if request.len() != kinds.len() || answer.len() != kinds.len() {
        return Err(PyValueError::new_err("expected columns of one length"));
    }
    let (requests, answers) = (request.get()?, answer.get()?);
    let table = match careful(py, "read", || parse(workload, kinds, &requests, &answers))? {
        Ok(table) => table,
        Err(Malformed { row, answer, place, what }) => {
            return Ok(OfParts::Malformed(answers::Malformed { row, answer, place, what: what.into() }));
        }
    };
    let (mut rows, mut places, mut ends) = (Vec::new(), Vec::new(), vec![0u32]);
    let (mut keys, mut texts) = (Joined::default(), Joined::default());
    let mut addresses = Vec::new();
    let mut done = Vec::new();
    let mut text = String::new();
    for (row, &kind) in kinds.iter().enumerate() {
        let mops = table.of(row);
        done.clear();
        if mops.is_empty() {
            rows.push(row as u32);
            ends.push(places.len() as u32);
            keys.add("")?;
            addresses.push(address(""));
            texts.add("[]")?;
        }
        for mop in mops {
            if done.contains(&mop.key) {
                continue;
            }
            done.push(mop.key);
            text.clear();
            for (place, other) in mops.iter().enumerate().filter(|(_, other)| other.key == mop.key) {
                text.push(if text.is_empty() { '[' } else { ',' });
                text.push_str(&table.mop_text(other, workload, kind != FAIL));
                places.push(place as u32);
            }
            text.push(']');
            rows.push(row as u32);
            ends.push(places.len() as u32);
            let key = table.key_text(mop.key);
            addresses.push(address(&key));
            keys.add(&key)?;
            texts.add(&text)?;
        }
    }
    Ok(OfParts::Found(TransactionParts {
        row: bytes(py, &rows),
        places: (bytes(py, &places), bytes(py, &ends)),
        key: keys.into_py(py),
        text: texts.into_py(py),
        address: bytes(py, &addresses),
    }))
}

/// Finds what keys show by themselves; see `checker/_kernel.pyi`.
#[pyfunction]
#[pyo3(signature = (workload, *, kind, process, start, end, text, sources, left_out, more = Vec::new(), initial = None))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
pub fn transaction_dependencies<'py>(
    py: Python<'py>,
    workload: &str,
    kind: &Bound<'py, PyAny>,
    process: &Bound<'py, PyAny>,
    start: &Bound<'py, PyAny>,
    end: &Bound<'py, PyAny>,
    text: [Bound<'py, PyAny>; 3],
    sources: Vec<String>,
    left_out: Vec<u8>,
    more: Vec<String>,
    initial: Option<&str>,
) -> PyResult<OfKeys> {
    let workload = workload_of(workload)?;
    let mut assumed = sources_of(&sources)?;
    for place in left_out {
        let known = assumed.left_out.get_mut(place as usize);
        *known.ok_or_else(|| PyValueError::new_err("expected a source of an order of versions"))? = true;
    }
    let kinds: Column<i8> = Column::new("kind", kind)?;
    let columns: [Column<i64>; 3] =
        [Column::new("process", process)?, Column::new("start", start)?, Column::new("end", end)?];
    let kind = kinds.slice();
    hold_kinds(kind)?;
    let held = Texts::new("text", &text)?;
    let texts = held.get()?;
    if columns.iter().any(|column| column.slice().len() != kind.len()) || texts.len() != kind.len() {
        return Err(PyValueError::new_err("expected columns of one length"));
    }
    let [process, start, end] = columns.each_ref().map(Column::slice);
    let table = careful(py, "read", || parse(workload, kind, &texts, &texts))?
        .map_err(|wrong| PyValueError::new_err(format!("row {} is no part of a transaction", wrong.row)))?;
    let table = initial.map(|value| table.beginning_with(value)).unwrap_or(table);
    let history =
        History { kind, process, start, end, table: &table, place: (0..kind.len() as u32).collect(), position: &[] };
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let found = careful(py, "judged", || {
        let writers = Writers::of(&history)?;
        let mut findings = Findings::keeping(usize::MAX);
        let (dependencies, orders) = match workload {
            Workload::Lists => {
                let (dependencies, orders) = lists(&history, &writers, assumed, &mut findings);
                (dependencies, Some(orders))
            }
            Workload::Registers => (registers(&history, &writers, assumed, &mut findings), None),
        };
        let accesses =
            needs_accesses(&more).then(|| accesses(&history, &writers, orders.as_ref(), &dependencies.reasons));
        let views = needs_views(&more).then(|| seen_in(&history, workload, &dependencies));
        Ok((dependencies, findings, accesses, views))
    })?;
    let (dependencies, findings, accesses, views) = match found {
        Ok(found) => found,
        Err(WrittenTwice { elem, rows, places }) => {
            let key = table.key_text(history.key_of(elem));
            let element = table.elem_text(elem);
            return Ok(OfKeys::Twice(answers::WrittenTwice { key, element, rows, places }));
        }
    };
    let edges = &dependencies.edges;
    let column = |of: fn(&Edge) -> u32| bytes(py, &edges.iter().map(of).collect::<Vec<_>>());
    let reasons = &dependencies.reasons;
    let source = |edge: &Edge| {
        let place = reasons.binary_search_by_key(&(edge.before, edge.after), |reason| (reason.0, reason.1));
        place.map_or(NONE, |place| u32::from(reasons[place].2))
    };
    let columns = [
        column(|edge| edge.from),
        column(|edge| edge.to),
        column(|edge| u32::from(edge.kind)),
        column(|edge| edge.key),
        column(|edge| edge.before),
        column(|edge| edge.after),
        bytes(py, &edges.iter().map(source).collect::<Vec<_>>()),
    ];
    let mut fans: [Vec<u32>; 4] = Default::default();
    for fan in &dependencies.fans {
        for (part, writes) in [(&fan.readers, 0), (&fan.writers, 1)] {
            for &(row, version) in part {
                for (list, number) in fans.iter_mut().zip([fan.key, row, version, writes]) {
                    list.push(number);
                }
            }
        }
    }
    let fan_columns = fans.each_ref().map(|list| bytes(py, list));
    let at = views.map(|(seen, fans)| {
        let of_edges: Vec<u32> = seen.iter().map(|seen| seen.place).collect();
        let of_fans: Vec<u32> = fans
            .iter()
            .flat_map(|fan| fan.readers.iter().map(|reader| reader.2).chain(fan.writers.iter().map(|_| NONE)))
            .collect();
        (bytes(py, &of_edges), bytes(py, &of_fans))
    });
    let reads = accesses.as_ref().map(|accesses| {
        let reads = accesses.all_reads();
        let column = |of: fn(&Read) -> u32| bytes(py, &reads.iter().map(of).collect::<Vec<_>>());
        [
            column(|read| read.key),
            column(|read| read.row),
            column(|read| read.place),
            column(|read| read.count),
            column(|read| read.version),
        ]
    });
    let writes = accesses.as_ref().map(|accesses| {
        let writes = accesses.all_writes();
        let column = |of: fn(&Write) -> u32| bytes(py, &writes.iter().map(of).collect::<Vec<_>>());
        [
            column(|write| write.key),
            column(|write| write.row),
            column(|write| write.place),
            column(|write| write.at),
            column(|write| write.elem),
        ]
    });
    let mut groups: [Vec<u32>; 3] = Default::default();
    for (key, group) in dependencies.groups.iter().enumerate() {
        if group.iter().any(|(row, _)| *row != group[0].0) {
            for &(row, elem) in group {
                for (list, number) in groups.iter_mut().zip([key as u32, row, elem]) {
                    list.push(number);
                }
            }
        }
    }
    let mut first = vec![NONE; table.keys.len()];
    for row in 0..history.len() {
        for mop in history.of(row) {
            let known = &mut first[mop.key as usize];
            *known = (*known).min(row as u32);
        }
    }
    let (mut keys, mut elements) = (Joined::default(), Joined::default());
    for key in 0..table.keys.len() as u32 {
        keys.add(&table.key_text(key))?;
    }
    for elem in 0..table.elems.len() as u32 {
        elements.add(&table.elem_text(elem))?;
    }
    let elem = |elem: u32| (elem != NONE).then(|| table.elem_text(elem));
    let of_finding = |each: Finding| {
        let elements = each.elems.iter().map(|&each| elem(each)).collect();
        let (kind, key, rows, places) = (each.kind.into(), each.key, each.rows, each.places);
        Py::new(py, PartFinding { kind, key, rows, places, elements })
    };
    let found = KeyDependencies {
        edges: columns,
        fans: fan_columns,
        groups: groups.each_ref().map(|list| bytes(py, list)),
        first: bytes(py, &first),
        keys: keys.into_py(py),
        elements: elements.into_py(py),
        findings: findings.kept.into_iter().map(of_finding).collect::<PyResult<_>>()?,
        contradicted: dependencies.contradicted.clone(),
        data_edges: dependencies.len(),
        at,
        reads,
        writes,
    };
    Ok(OfKeys::Found(Py::new(py, found)?))
}

/// A part of the graph of a history; see `checker/_kernel.pyi`.
#[pyclass(frozen, module = "checker._kernel")]
pub struct TransactionGraph {
    graph: Graph,
    more: Vec<String>,
    accesses: Option<Accesses>,
    events: Option<Events>,
}

/// Returns the accesses of columns. The versions of writes have the names from `begin + reads` on, and those of reads the names before.
fn accesses_of(rows: usize, begin: u32, reads: &[Column<u32>], writes: &[Column<u32>]) -> Accesses {
    let columns = |of: &[Column<u32>], place: usize| [0, 1, 2, 3, 4].map(|column: usize| of[column].slice()[place]);
    let count = reads[0].slice().len();
    let first = begin + count as u32;
    let mut names: HashMap<(u32, u32), u32> = HashMap::new();
    let mut all_writes: Vec<Write> = Vec::new();
    for place in 0..writes[0].slice().len() {
        let [key, row, at_place, at, elem] = columns(writes, place);
        names.insert((key, elem), first + place as u32);
        all_writes.push(Write { row, place: at_place, key, at, elem: first + place as u32 });
    }
    let read = |place: usize| {
        let [key, row, at_place, count, version] = columns(reads, place);
        let last = names.get(&(key, version)).copied().unwrap_or(NONE);
        Read { row, place: at_place, key, count, last, version: begin + place as u32 }
    };
    let mut all_reads: Vec<Read> = (0..count).map(read).collect();
    all_reads.sort_unstable_by_key(|read| (read.row, read.place));
    all_writes.sort_unstable_by_key(|write| (write.row, write.place));
    Accesses::new(rows, all_reads, all_writes)
}

fn rows_below(list: &[u32], rows: usize) -> PyResult<()> {
    if list.iter().any(|&row| row as usize >= rows) {
        return Err(PyValueError::new_err("expected rows below the number of transactions"));
    }
    Ok(())
}

#[pymethods]
impl TransactionGraph {
    #[new]
    #[pyo3(signature = (*, kind, process, start, end, edges, fans, groups, reads, writes, unordered, extra, more))]
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
    fn new<'py>(
        py: Python<'py>,
        kind: &Bound<'py, PyAny>,
        process: &Bound<'py, PyAny>,
        start: &Bound<'py, PyAny>,
        end: &Bound<'py, PyAny>,
        edges: [Bound<'py, PyAny>; 5],
        fans: [Bound<'py, PyAny>; 4],
        groups: [Bound<'py, PyAny>; 2],
        reads: [Bound<'py, PyAny>; 5],
        writes: [Bound<'py, PyAny>; 5],
        unordered: bool,
        extra: &str,
        more: Vec<String>,
    ) -> PyResult<Self> {
        let extra: Extra = extra_of(extra)?;
        let kinds: Column<i8> = Column::new("kind", kind)?;
        let columns: [Column<i64>; 3] =
            [Column::new("process", process)?, Column::new("start", start)?, Column::new("end", end)?];
        let kind = kinds.slice();
        hold_kinds(kind)?;
        let numbers = |list: &[Bound<'py, PyAny>]| -> PyResult<Vec<Column<u32>>> {
            let found =
                list.iter().map(|column| Column::new("edges", column)).collect::<PyResult<Vec<Column<u32>>>>()?;
            if found.iter().any(|column| column.slice().len() != found[0].slice().len()) {
                return Err(PyValueError::new_err("expected columns of one length"));
            }
            Ok(found)
        };
        let (edges, fans, groups) = (numbers(&edges)?, numbers(&fans)?, numbers(&groups)?);
        let (reads, writes) = (numbers(&reads)?, numbers(&writes)?);
        let [process, start, end] = columns.each_ref().map(Column::slice);
        if [process, start, end].iter().any(|column| column.len() != kind.len()) {
            return Err(PyValueError::new_err("expected columns of one length"));
        }
        let rows = [&edges[0], &edges[1], &fans[1], &groups[1], &reads[1], &writes[1]];
        for list in rows.map(Column::slice) {
            rows_below(list, kind.len())?;
        }
        if start.windows(2).any(|pair| pair[0] >= pair[1]) || kind.contains(&FAIL) {
            return Err(PyValueError::new_err(
                "expected starts in ascending order, of transactions that did not fail",
            ));
        }
        let wanted: Vec<&str> = more.iter().map(String::as_str).collect();
        let made = careful(py, "judged", || {
            let mut found = Dependencies::default();
            let count = edges[0].slice().len() as u32;
            for place in 0..count {
                let [from, to, kind, key] = [0, 1, 2, 3].map(|column: usize| edges[column].slice()[place as usize]);
                found.add(Edge { from, to, kind: kind as u8, key, before: place, after: place });
            }
            // A fan stays one, even if one of its readers or writers is here: so witnesses are those of the whole graph.
            let mut keep = |fan: Fan| {
                if !fan.readers.is_empty() && !fan.writers.is_empty() {
                    found.fans.push(fan);
                }
            };
            let mut fan: Option<Fan> = None;
            for (place, ((&key, &row), &writes)) in
                (count..).zip(fans[0].slice().iter().zip(fans[1].slice()).zip(fans[2].slice()))
            {
                if fan.as_ref().is_some_and(|fan| fan.key != key) {
                    if let Some(whole) = fan.take() {
                        keep(whole);
                    }
                }
                let fan = fan.get_or_insert_with(|| Fan { kind: RW, key, readers: Vec::new(), writers: Vec::new() });
                if writes == 0 { &mut fan.readers } else { &mut fan.writers }.push((row, place));
            }
            if let Some(whole) = fan {
                keep(whole);
            }
            let mut several: Vec<Vec<(u32, u32)>> = Vec::new();
            for (&group, &row) in groups[0].slice().iter().zip(groups[1].slice()) {
                if several.len() <= group as usize {
                    several.resize_with(group as usize + 1, Vec::new);
                }
                several[group as usize].push((row, NONE));
            }
            let at = |place: u32| match place.checked_sub(count) {
                None => edges[4].slice()[place as usize],
                Some(place) => fans[3].slice()[place as usize],
            };
            let events = needs_views(&wanted).then(|| {
                let seen = found.edges.iter().filter(|edge| edge.kind & (WW | WR | RW) != 0);
                let reader = |&(row, place): &(u32, u32)| (row, place, at(place));
                let of_fans = found.fans.iter().map(|fan| SeenFan {
                    key: fan.key,
                    readers: fan.readers.iter().map(reader).collect(),
                    writers: fan.writers.clone(),
                });
                let seen = seen.map(|edge| Seen { edge: *edge, place: at(edge.before) });
                Events::new(kind.len() as u32, seen.collect(), of_fans.collect())
            });
            let begin = count + fans[0].slice().len() as u32;
            let accesses = needs_accesses(&wanted).then(|| accesses_of(kind.len(), begin, &reads, &writes));
            conflicts(kind.len(), &several, &mut found);
            if unordered {
                let all = (0..).zip(&several).filter(|(_, group)| group.iter().any(|(row, _)| *row != group[0].0));
                found.unordered =
                    all.map(|(key, group)| (key, group.iter().map(|&(row, _)| row).collect())).collect();
            }
            let table = crate::transactions::Table::new();
            let history = History { kind, process, start, end, table: &table, place: Vec::new(), position: &[] };
            (Graph::new(&history, found, extra), accesses, events)
        })?;
        let (graph, accesses, events) = made;
        Ok(Self { graph, more, accesses, events })
    }

    /// See `checker/_kernel.pyi`.
    #[allow(clippy::needless_pass_by_value)]
    fn reach<'py>(
        &self,
        py: Python<'py>,
        entries: Vec<u32>,
        exits: Vec<u32>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        rows_below(&entries, self.graph.rows as usize)?;
        rows_below(&exits, self.graph.rows as usize)?;
        let (from, to) = careful(py, "judged", || (reached(&self.graph, &entries), reaching(&self.graph, &exits)))?;
        let flags = |list: Vec<bool>| PyBytes::new(py, &list.into_iter().map(u8::from).collect::<Vec<_>>());
        Ok((flags(from), flags(to)))
    }

    /// See `checker/_kernel.pyi`.
    fn cycles(&self, py: Python<'_>) -> PyResult<PartFindings> {
        let graph = &self.graph;
        let more: Vec<&str> = self.more.iter().map(String::as_str).collect();
        let (found, walks, first, of) = careful(py, "judged", || {
            let (found, walks) = searched(graph, self.accesses.as_ref(), self.events.as_ref(), &more);
            let Inside { whole, first, .. } = Inside::new(graph);
            (found, walks, first, whole.of)
        })?;
        let place = |place: u32| (place != NONE).then_some(place);
        let of_edge = |edge: &Edge| PartLink {
            first: edge.from,
            second: edge.to,
            kind: name_of(edge.kind).into(),
            before: place(edge.before),
            after: place(edge.after),
        };
        let of_link = |link: &Link| {
            let edge = (link.edge != NONE).then(|| graph.edges[link.edge as usize]);
            PartLink {
                first: link.from,
                second: link.to,
                kind: name_of(link.kind).into(),
                before: edge.and_then(|edge| place(edge.before)),
                after: place(link.written).or(edge.and_then(|edge| place(edge.after))),
            }
        };
        let mut cycles: Vec<PartCycle> = found
            .kept
            .iter()
            .map(|cycle| PartCycle {
                kind: cycle.name.into(),
                component: cycle.component,
                start: first[of[cycle.links[0].from as usize] as usize],
                links: cycle.links.iter().map(of_link).collect(),
            })
            .collect();
        cycles.extend(walks.kept.iter().map(|walk| PartCycle {
            kind: walk.name.into(),
            component: walk.component,
            start: walk.first,
            links: walk.edges.iter().map(of_edge).collect(),
        }));
        let of_overlap = |(name, component, overlap): &(&str, usize, Overlap)| PartOverlap {
            kind: (*name).into(),
            component: *component,
            start: first[overlap.part as usize],
            decided: overlap.decided,
            writers: overlap.writers.clone(),
        };
        Ok(PartFindings {
            cycles,
            overlaps: found.overlaps.iter().map(of_overlap).collect(),
            counts: found.counts.iter().chain(&walks.counts).map(|(name, count)| ((*name).into(), *count)).collect(),
        })
    }
}
