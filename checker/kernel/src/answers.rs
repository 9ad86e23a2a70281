//! The answers of the kernel as Python sees them: frozen objects with fields, whose types are in `checker/_kernel.pyi`.
//!
//! Python makes some of them too: the outcome of an algorithm in Python, and the findings that Spark joins from the parts of a
//! history.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::judging::Transactions;
use crate::ops::NONE;
use crate::search::Progress;
use crate::solve;

/// Defines classes with read-only fields, and a constructor that takes all of them by their names.
macro_rules! answers {
    ($($(#[doc = $doc:literal])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[doc = $doc])*
        #[pyclass(frozen, get_all, from_py_object, module = "checker._kernel")]
        #[derive(Clone, Debug)]
        pub struct $name { $(pub $field: $type),* }

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (*, $($field),*))]
            fn new($($field: $type),*) -> Self {
                Self { $($field),* }
            }

            fn __repr__(&self) -> String {
                format!("{self:?}")
            }
        }
    )*};
}

answers! {
    /// A state that is possible at a moment.
    Config { path: Vec<u32>, last: Option<u32>, pending: Vec<u32> }

    /// How often each reduction of a search applied.
    Counts { segments: u64, absorbed: u64, commuted: u64, merged: u64, dead_ends: u64 }

    /// A transaction that has another form than its workload.
    Malformed { row: usize, answer: bool, place: Option<usize>, what: String }

    /// Two writes of a key that have one position in the system's own order.
    SamePosition { key: String, rows: [u32; 2] }

    /// Two writes of one value to a key, or one of the initial value.
    WrittenTwice { key: String, element: String, rows: [u32; 2], places: [u32; 2] }

    /// The first value that was written twice, and what was left out because of such values.
    LeftOut { first: WrittenTwice, values: usize, reads: usize }

    /// An anomaly that is no cycle.
    Finding { kind: String, key: String, rows: Vec<u32>, places: Vec<u32>, elements: Vec<Option<String>> }

    /// An anomaly of a key that is no cycle.
    PartFinding { kind: String, key: u32, rows: Vec<u32>, places: Vec<u32>, elements: Vec<Option<String>> }

    /// An edge: what orders two transactions.
    Link {
        first: u32,
        second: u32,
        kind: String,
        key: Option<String>,
        before: Option<String>,
        after: Option<String>,
    }

    /// A cycle of dependencies.
    Cycle { kind: String, component: usize, links: Vec<Link> }

    /// Writers that no order keeps apart.
    Overlap { kind: String, component: usize, decided: bool, writers: Vec<(u32, String)> }

    /// The source that the order of two versions follows from.
    VersionReason { key: String, before: String, after: String, source: String }

    /// Two versions of a key, in an order.
    VersionPair { key: String, before: Option<String>, after: Option<String> }

    /// The order of two versions, and what it follows from.
    VersionOrder { key: String, before: Option<String>, after: Option<String>, why: String, links: Vec<Link> }

    /// A cycle, the orders of versions that it needs, and how many more there are.
    ShownCycle { links: Vec<Link>, orders: Vec<VersionOrder>, left: usize }

    /// One case of a contradiction: the order of two versions that it begins with, and the cycle.
    Case { chosen: Option<VersionPair>, shown: Option<ShownCycle> }

    /// Whether the versions of registers have an order that a class of models allows.
    Ordering { answer: String, cases: Vec<Case>, rows: Vec<u32> }

    /// An edge in a part of a graph.
    PartLink { first: u32, second: u32, kind: String, before: Option<u32>, after: Option<u32> }

    /// A cycle in a part of a graph.
    PartCycle { kind: String, component: usize, start: u32, links: Vec<PartLink> }

    /// Writers in a part of a graph that no order keeps apart.
    PartOverlap { kind: String, component: usize, start: u32, decided: bool, writers: Vec<(u32, u32)> }

    /// What a part of a graph shows.
    PartFindings { cycles: Vec<PartCycle>, overlaps: Vec<PartOverlap>, counts: BTreeMap<String, usize> }
}

/// What an algorithm says of a history; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, from_py_object, module = "checker._kernel")]
#[derive(Clone, Debug)]
pub struct Outcome {
    pub verdict: String,
    pub analyzer: String,
    pub cause: Option<String>,
    pub op: Option<u32>,
    pub kind: Option<String>,
    pub core: Vec<u32>,
    pub unsuited: Option<String>,
    pub steps: u64,
    pub seconds: f64,
    pub order: Option<Vec<u8>>,
    pub configs: Vec<Config>,
    pub has_all_configs: bool,
    pub counts: Option<Counts>,
}

#[pymethods]
impl Outcome {
    #[new]
    #[pyo3(signature = (*, verdict, analyzer, cause = None, op = None, kind = None, core = Vec::new(), unsuited = None, steps = 0, seconds = 0.0, order = None, configs = Vec::new(), has_all_configs = false, counts = None))]
    fn new(
        verdict: String,
        analyzer: String,
        cause: Option<String>,
        op: Option<u32>,
        kind: Option<String>,
        core: Vec<u32>,
        unsuited: Option<String>,
        steps: u64,
        seconds: f64,
        order: Option<Vec<u8>>,
        configs: Vec<Config>,
        has_all_configs: bool,
        counts: Option<Counts>,
    ) -> Self {
        Self {
            verdict,
            analyzer,
            cause,
            op,
            kind,
            core,
            unsuited,
            steps,
            seconds,
            order,
            configs,
            has_all_configs,
            counts,
        }
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

impl From<solve::Outcome> for Outcome {
    fn from(outcome: solve::Outcome) -> Self {
        let (verdict, cause) = match outcome.progress {
            Progress::Valid => ("valid", None),
            Progress::Invalid => ("invalid", None),
            Progress::Pending => ("unknown", Some("pending")),
            Progress::Stopped(cause) => ("unknown", Some(cause.name())),
        };
        let number = |i: u32| (i != NONE).then_some(i);
        let counts = outcome.counts;
        let merged = if counts.blocks > 0 { counts.states - counts.blocks } else { 0 };
        let config = |config: crate::search::Config| Config {
            path: config.path,
            last: number(config.last),
            pending: config.pending,
        };
        Self {
            verdict: verdict.into(),
            analyzer: outcome.analyzer.into(),
            cause: cause.map(Into::into),
            op: number(outcome.op),
            kind: outcome.kind.map(|kind| kind.name().into()),
            core: outcome.core,
            unsuited: outcome.unsuited.map(Into::into),
            steps: outcome.steps,
            seconds: outcome.seconds,
            order: outcome.order.map(|order| order.iter().flat_map(|i| i.to_ne_bytes()).collect()),
            configs: outcome.configs.into_iter().map(config).collect(),
            has_all_configs: outcome.has_all_configs,
            counts: Some(Counts {
                segments: counts.segments,
                absorbed: counts.idle,
                commuted: counts.commuting,
                merged,
                dead_ends: counts.dead_ends,
            }),
        }
    }
}

/// What the kernel finds in a history of transactions; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, from_py_object, module = "checker._kernel")]
#[derive(Clone, Debug)]
pub struct TransactionFindings {
    pub findings: Vec<Finding>,
    pub cycles: Vec<Cycle>,
    pub overlaps: Vec<Overlap>,
    pub counts: BTreeMap<String, usize>,
    pub data_edges: usize,
    pub reasons: Vec<VersionReason>,
    pub ordering: Option<Ordering>,
    pub placed: Option<(usize, usize)>,
    pub twice: Option<LeftOut>,
    pub order: Option<Vec<u32>>,
}

#[pymethods]
impl TransactionFindings {
    #[new]
    #[pyo3(signature = (*, findings, cycles, overlaps, counts, data_edges, reasons, ordering = None, placed = None, twice = None, order = None))]
    fn new(
        findings: Vec<Finding>,
        cycles: Vec<Cycle>,
        overlaps: Vec<Overlap>,
        counts: BTreeMap<String, usize>,
        data_edges: usize,
        reasons: Vec<VersionReason>,
        ordering: Option<Ordering>,
        placed: Option<(usize, usize)>,
        twice: Option<LeftOut>,
        order: Option<Vec<u32>>,
    ) -> Self {
        Self { findings, cycles, overlaps, counts, data_edges, reasons, ordering, placed, twice, order }
    }

    fn __repr__(&self) -> String {
        format!("{self:?}")
    }
}

/// A column, as bytes of the machine's order.
pub type Bytes = Py<PyBytes>;

/// A completion that is not ok, and whose value may differ from that of its invoke; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, module = "checker._kernel")]
pub struct ChangedValue {
    pub row: usize,
    pub line: usize,
    pub failed: bool,
    pub kind: u8,
    pub first: i64,
    pub second: i64,
}

/// What a part of a history needs of the others; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, module = "checker._kernel")]
pub struct PartOfEvents {
    pub lines: Vec<(usize, Bytes)>,
    pub first: i64,
    pub workers: (Bytes, Bytes, Bytes, Bytes),
}

/// The operations of a plain history as columns; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, module = "checker._kernel")]
pub struct EventColumns {
    pub events: i64,
    pub around: bool,
    pub timed: bool,
    pub back_line: Option<usize>,
    pub changed: Vec<Py<ChangedValue>>,
    pub keys: Vec<String>,
    pub functions: Vec<String>,
    pub values: Vec<String>,
    pub names: Vec<String>,
    pub unused: Vec<String>,
    pub r#type: Bytes,
    pub key: Bytes,
    pub function: Bytes,
    pub node: Bytes,
    pub error: Bytes,
    pub phase: Bytes,
    pub via: Bytes,
    pub process: Bytes,
    pub start: Bytes,
    pub end: Bytes,
    pub start_ns: Bytes,
    pub end_ns: Bytes,
    pub scheduled_ns: Bytes,
    pub value: (Bytes, Bytes, Bytes),
    pub result: (Bytes, Bytes, Bytes),
    pub order: Vec<(i64, i64)>,
    pub transactions: Option<Py<Transactions>>,
    pub part: Option<Py<PartOfEvents>>,
}

/// Transactions, divided by their keys; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, module = "checker._kernel")]
pub struct TransactionParts {
    pub row: Bytes,
    pub places: (Bytes, Bytes),
    pub key: (Bytes, Bytes),
    pub text: (Bytes, Bytes),
    pub address: Bytes,
}

/// The answer to `transaction_parts`.
#[derive(IntoPyObject)]
pub enum OfParts {
    Found(TransactionParts),
    Malformed(Malformed),
}

/// What keys show by themselves; see `checker/_kernel.pyi`.
#[pyclass(frozen, get_all, module = "checker._kernel")]
pub struct KeyDependencies {
    pub edges: [Bytes; 7],
    pub fans: [Bytes; 4],
    pub groups: [Bytes; 3],
    pub first: Bytes,
    pub keys: (Bytes, Bytes),
    pub elements: (Bytes, Bytes),
    pub findings: Vec<Py<PartFinding>>,
    pub contradicted: Vec<u8>,
    pub data_edges: usize,
    pub at: Option<(Bytes, Bytes)>,
    pub reads: Option<[Bytes; 5]>,
    pub writes: Option<[Bytes; 5]>,
}

/// The answer to `transaction_dependencies`.
#[derive(IntoPyObject)]
pub enum OfKeys {
    Found(Py<KeyDependencies>),
    Twice(WrittenTwice),
}

/// The answer to `transactions`.
#[derive(IntoPyObject)]
pub enum OfTransactions {
    Found(Py<TransactionFindings>),
    Malformed(Malformed),
    SamePosition(SamePosition),
}

pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Outcome>()?;
    module.add_class::<Config>()?;
    module.add_class::<Counts>()?;
    module.add_class::<TransactionFindings>()?;
    module.add_class::<Malformed>()?;
    module.add_class::<SamePosition>()?;
    module.add_class::<WrittenTwice>()?;
    module.add_class::<LeftOut>()?;
    module.add_class::<EventColumns>()?;
    module.add_class::<PartOfEvents>()?;
    module.add_class::<ChangedValue>()?;
    module.add_class::<TransactionParts>()?;
    module.add_class::<KeyDependencies>()?;
    module.add_class::<Finding>()?;
    module.add_class::<PartFinding>()?;
    module.add_class::<Link>()?;
    module.add_class::<Cycle>()?;
    module.add_class::<Overlap>()?;
    module.add_class::<VersionReason>()?;
    module.add_class::<VersionPair>()?;
    module.add_class::<VersionOrder>()?;
    module.add_class::<ShownCycle>()?;
    module.add_class::<Case>()?;
    module.add_class::<Ordering>()?;
    module.add_class::<PartLink>()?;
    module.add_class::<PartCycle>()?;
    module.add_class::<PartOverlap>()?;
    module.add_class::<PartFindings>()
}
