//! The boundary to Python: columns come in by the buffer protocol, outcomes go out as objects of `answers`.
//!
//! The interpreter lock is released during the search. A search of one history runs on the caller's thread; it checks
//! every 20 ms for a signal or a cancellation. Several run on threads of their own, and the caller's thread checks.
//! Columns are not trusted: lengths, bounds and opcodes are checked before use, and a panic becomes an ordinary error.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::answers::{self, Outcome};
use crate::hash::FastHasher;
use crate::ops::{Family, Ops};
use crate::search::budget::{Limits, Watch};
use crate::search::machine::{Oracle, ILLEGAL};
use crate::search::reduce::Allowed;
use crate::solve::{solve_all, solve_quickly, Algorithm, OracleSource, Problem as Question};
use crate::transitions::{Transitions, REFUSED};

/// How often the caller's thread checks for signals.
const POLL: Duration = Duration::from_millis(20);

/// A one-dimensional contiguous buffer that Python keeps alive.
pub(crate) struct Column<T: Element>(Option<PyBuffer<T>>);

impl<T: Element> Column<T> {
    pub(crate) fn new(name: &str, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // Python does not align empty buffers.
        if object.len()? == 0 {
            return Ok(Self(None));
        }
        let buffer = PyBuffer::<T>::get(object).map_err(|error| {
            PyTypeError::new_err(format!(
                "column {name}: expected a buffer of {}-byte integers: {error}",
                size_of::<T>()
            ))
        })?;
        if buffer.dimensions() != 1 || !buffer.is_c_contiguous() {
            return Err(PyTypeError::new_err(format!("column {name}: expected one contiguous dimension")));
        }
        Ok(Self(Some(buffer)))
    }

    pub(crate) fn slice(&self) -> &[T] {
        let Some(buffer) = &self.0 else { return &[] };
        // SAFETY: the buffer is contiguous, aligned and of this element type, as `PyBuffer::get` and `new` checked,
        // and the exporter may not move or free it while it is exported. The caller promises not to write to it
        // meanwhile; a write could give a wrong answer, but no access out of bounds, as every index that comes from a
        // column is checked.
        unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast::<T>(), buffer.item_count()) }
    }
}

/// A history of one object and its model.
#[pyclass(frozen, module = "checker._kernel")]
struct Problem {
    family: Family,
    f: Column<u8>,
    columns: [Column<i64>; 4],
    lists: Option<[Column<i64>; 2]>,
    initial: Vec<i64>,
    custom: Option<CustomModel>,
}

/// A model in Python.
struct CustomModel {
    steps: Steps,
    observers: Vec<u8>,
    failure: Arc<Mutex<Option<PyErr>>>,
}

/// Returns the number of the next state, or `REFUSED`, for the numbers of a state and a class.
enum Steps {
    Table(Py<Transitions>),
    Function(Py<PyAny>),
}

impl Steps {
    fn of(given: Bound<'_, PyAny>) -> Self {
        match given.cast_into::<Transitions>() {
            Ok(table) => Self::Table(table.unbind()),
            Err(other) => Self::Function(other.into_inner().unbind()),
        }
    }

    fn ask(&self, py: Python<'_>, state: i64, class: u32) -> PyResult<i64> {
        match self {
            Self::Table(table) => table.get().step(py, u32::try_from(state)?, class),
            Self::Function(step) => step.bind(py).call1((state, class))?.extract(),
        }
    }
}

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(signature = (family, f, a, b, s, e, *, initial, offsets = None, flat = None, step = None, observers = None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        family: &str,
        f: &Bound<'_, PyAny>,
        a: &Bound<'_, PyAny>,
        b: &Bound<'_, PyAny>,
        s: &Bound<'_, PyAny>,
        e: &Bound<'_, PyAny>,
        initial: Vec<i64>,
        offsets: Option<&Bound<'_, PyAny>>,
        flat: Option<&Bound<'_, PyAny>>,
        step: Option<Bound<'_, PyAny>>,
        observers: Option<Vec<u8>>,
    ) -> PyResult<Self> {
        let name = family;
        let family =
            Family::of(name).ok_or_else(|| PyValueError::new_err(format!("{name:?} is no family of models")))?;
        let columns = [Column::new("a", a)?, Column::new("b", b)?, Column::new("s", s)?, Column::new("e", e)?];
        let lists = match (offsets, flat) {
            (Some(offsets), Some(flat)) => Some([Column::new("offsets", offsets)?, Column::new("flat", flat)?]),
            (None, None) => None,
            _ => return Err(PyValueError::new_err("expected both offsets and flat, or neither")),
        };
        let custom = match step {
            Some(step) if family == Family::Custom => Some(CustomModel {
                steps: Steps::of(step),
                observers: observers.unwrap_or_default(),
                failure: Arc::default(),
            }),
            None if family != Family::Custom => None,
            _ => return Err(PyValueError::new_err("expected a step function for family custom, and for no other")),
        };
        let problem = Self { family, f: Column::new("f", f)?, columns, lists, initial, custom };
        problem.validate().map_err(PyValueError::new_err)?;
        Ok(problem)
    }

    fn __len__(&self) -> usize {
        self.f.slice().len()
    }
}

impl Problem {
    fn ops(&self) -> Ops<'_> {
        let [a, b, s, e] = &self.columns;
        let (off, flat): (&[i64], &[i64]) = match &self.lists {
            Some([off, flat]) => (off.slice(), flat.slice()),
            None => (&[], &[]),
        };
        Ops { f: self.f.slice(), a: a.slice(), b: b.slice(), s: s.slice(), e: e.slice(), off, flat }
    }

    fn validate(&self) -> Result<(), String> {
        if let Some(custom) = &self.custom {
            let classes = custom.observers.len() as i64;
            if let Some(&class) = self.columns[0].slice().iter().find(|&&class| class >= classes) {
                return Err(format!("class {class}: there are {classes}"));
            }
        }
        self.ops().validate(self.family, &self.initial)
    }
}

impl OracleSource for CustomModel {
    /// Python creates a thread's state when the thread first attaches, and frees it when it last detaches. So this
    /// thread stays attached, without the lock, which makes a step ten times as fast.
    fn with_oracle(&self, search: &mut (dyn FnMut(Box<dyn Oracle + '_>) + Send)) {
        Python::attach(|py| py.detach(|| search(Box::new(PythonOracle::new(self)))));
    }
}

/// The states by numbers of this search alone, which ascend in the order in which the search reaches them. Python's
/// numbers continue from one search of a model to the next, but `Table` expects that it knows the origin of each
/// known number.
struct PythonOracle<'a> {
    model: &'a CustomModel,
    /// By number: Python's number.
    theirs: Vec<i64>,
    /// By Python's number: our number.
    ours: HashMap<i64, u32, FastHasher>,
}

impl<'a> PythonOracle<'a> {
    fn new(model: &'a CustomModel) -> Self {
        Self { model, theirs: vec![0], ours: std::iter::once((0, 0)).collect() }
    }
}

impl Oracle for PythonOracle<'_> {
    fn ask(&mut self, state: u32, class: u32) -> Option<u32> {
        let known = self.theirs[state as usize];
        match Python::attach(|py| self.model.steps.ask(py, known, class)) {
            Ok(REFUSED) => Some(ILLEGAL),
            Ok(next) if (0..i64::from(ILLEGAL) - 1).contains(&next) => {
                let fresh = self.theirs.len() as u32;
                let number = *self.ours.entry(next).or_insert(fresh);
                if number == fresh {
                    self.theirs.push(next);
                }
                Some(number)
            }
            Ok(next) => {
                self.fail(PyValueError::new_err(format!("step: {next} is no state")));
                None
            }
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }
    fn observer(&self, class: u32) -> bool {
        self.model.observers.get(class as usize).is_some_and(|&flag| flag != 0)
    }
    fn cost(&self) -> u64 {
        16
    }
    fn bytes(&self) -> usize {
        self.theirs.capacity() * 8 + self.ours.capacity() * 16
    }
}

impl PythonOracle<'_> {
    fn fail(&self, error: PyErr) {
        self.model.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// Ends the searches of a `solve` in another thread.
#[pyclass(frozen, module = "checker._kernel")]
struct Cancellation(Arc<AtomicBool>);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Decides problems; see `checker/_kernel.pyi`.
#[pyfunction]
#[pyo3(signature = (problems, *, algorithm, time_limit_s, processor_limit_s, memory_limit, threads, want_order, fail_fast, cancellation = None))]
#[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)]
fn solve(
    py: Python<'_>,
    problems: Vec<Py<Problem>>,
    algorithm: &str,
    time_limit_s: Option<f64>,
    processor_limit_s: Option<f64>,
    memory_limit: Option<usize>,
    threads: usize,
    want_order: bool,
    fail_fast: bool,
    cancellation: Option<Py<Cancellation>>,
) -> PyResult<Vec<Outcome>> {
    let name = algorithm;
    let algorithm = Algorithm::of(name).ok_or_else(|| PyValueError::new_err(format!("{name:?} is no algorithm")))?;
    let deadline = duration(time_limit_s)?.and_then(|limit| Instant::now().checked_add(limit));
    let processor = duration(processor_limit_s)?;
    let borrowed: Vec<&Problem> = problems.iter().map(Py::get).collect();
    let flag = cancellation.as_ref().map(|cancellation| &cancellation.get().0);
    let wanted = Wanted { algorithm, want_order, fail_fast, threads, deadline, processor, memory_limit };
    let outcomes = py.detach(|| run(&borrowed, &wanted, flag))?;
    for problem in &borrowed {
        if let Some(custom) = &problem.custom {
            if let Some(error) = custom.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return Err(error);
            }
        }
    }
    outcomes.into_iter().map(|outcome| outcome.map(Outcome::from).map_err(PyRuntimeError::new_err)).collect()
}

type Outcomes = Vec<Result<crate::solve::Outcome, String>>;

/// The options of the caller.
struct Wanted {
    algorithm: Algorithm,
    want_order: bool,
    fail_fast: bool,
    threads: usize,
    deadline: Option<Instant>,
    processor: Option<Duration>,
    memory_limit: Option<usize>,
}

impl Wanted {
    fn limits<'a>(&self) -> Limits<'a> {
        Limits::new(self.deadline, self.memory_limit).with_processor_time(self.processor)
    }
}

fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let limit = seconds.map(Duration::try_from_secs_f64).transpose();
    limit.map_err(|_| PyValueError::new_err(format!("{} is no time limit in seconds", seconds.unwrap_or_default())))
}

fn run(problems: &[&Problem], wanted: &Wanted, flag: Option<&Arc<AtomicBool>>) -> PyResult<Outcomes> {
    let &Wanted { algorithm, want_order, fail_fast, threads, .. } = wanted;
    let questions: Vec<Question> = problems
        .iter()
        .map(|problem| Question {
            family: problem.family,
            ops: problem.ops(),
            initial: &problem.initial,
            oracle: problem.custom.as_ref().map(|custom| custom as &dyn OracleSource),
            allowed: Allowed::ALL,
        })
        .collect();
    if let ([question], false) = (&questions[..], algorithm == Algorithm::Competition) {
        let caller = Caller::new(flag);
        let limits = wanted.limits().with_watch(&caller);
        let outcomes = solve_all(&[*question], algorithm, want_order, &limits, 1, fail_fast);
        return caller.interruption().map_or(Ok(outcomes), Err);
    }
    let limits = wanted.limits();
    let mut outcomes = solve_quickly(&questions, algorithm, want_order, &limits, fail_fast);
    let missing: Vec<usize> = (0..questions.len()).filter(|&i| outcomes[i].is_none()).collect();
    if !missing.is_empty() {
        let rest: Vec<Question> = missing.iter().map(|&i| questions[i]).collect();
        let slow = watched(flag, &limits, || solve_all(&rest, algorithm, want_order, &limits, threads, fail_fast))?;
        for (i, outcome) in missing.into_iter().zip(slow) {
            outcomes[i] = Some(outcome);
        }
    }
    Ok(outcomes.into_iter().flatten().collect())
}

/// The caller's thread, as a search on this thread sees it.
struct Caller<'a> {
    flag: Option<&'a Arc<AtomicBool>>,
    /// When the next check for signals is due, and the error of a signal's handler.
    state: Mutex<(Instant, Option<PyErr>)>,
}

impl<'a> Caller<'a> {
    fn new(flag: Option<&'a Arc<AtomicBool>>) -> Self {
        Self { flag, state: Mutex::new((Instant::now() + POLL, None)) }
    }

    fn interruption(self) -> Option<PyErr> {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Watch for Caller<'_> {
    fn wants_end(&self) -> bool {
        if self.flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            return true;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() >= state.0 {
            state.1 = state.1.take().or(Python::attach(|py| py.check_signals().err()));
            state.0 = Instant::now() + POLL;
        }
        state.1.is_some()
    }
}

/// Works in another thread, while this one checks for signals and for cancellation.
// The method itself has too specific a lifetime for `attach`.
#[allow(clippy::redundant_closure_for_method_calls)]
fn watched(
    flag: Option<&Arc<AtomicBool>>,
    limits: &Limits,
    work: impl FnOnce() -> Outcomes + Send,
) -> PyResult<Outcomes> {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let result = catch_unwind(AssertUnwindSafe(work));
            // The receiver waits for this; if it is gone, nobody needs the result.
            drop(sender.send(result));
        });
        let mut interrupted = Ok(());
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(Ok(outcomes)) => return interrupted.map(|()| outcomes),
                Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("the kernel panicked; its message is on standard error"));
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    if interrupted.is_ok() {
                        interrupted = Python::attach(|py| py.check_signals());
                    }
                    if interrupted.is_err() || flag.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                        limits.cancel();
                    }
                }
            }
        }
    })
}

/// The seconds to sort that many random records of 16 bytes; the benchmarks use it as a reference.
#[pyfunction]
fn sort_seconds(py: Python<'_>, count: usize) -> f64 {
    py.detach(|| {
        let mut word = 1_u64;
        let mut draw = || {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            word
        };
        let mut records: Vec<(u64, u64)> = (0..count).map(|_| (draw() >> 8, draw())).collect();
        let began = Instant::now();
        records.sort_unstable();
        let seconds = began.elapsed().as_secs_f64();
        std::hint::black_box(&records);
        seconds
    })
}

/// The Python module `checker._kernel`.
#[pymodule]
fn _kernel(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    answers::add_to(module)?;
    module.add_class::<Problem>()?;
    module.add_class::<Cancellation>()?;
    module.add_class::<Transitions>()?;
    module.add_class::<crate::reading::Events>()?;
    module.add_class::<crate::judging::Transactions>()?;
    module.add("REFUSED", REFUSED)?;
    module.add_function(wrap_pyfunction!(solve, module)?)?;
    module.add_function(wrap_pyfunction!(sort_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(crate::judging::transactions, module)?)?;
    module.add_class::<crate::dividing::TransactionGraph>()?;
    module.add_function(wrap_pyfunction!(crate::texts::evident_texts, module)?)?;
    module.add_function(wrap_pyfunction!(crate::dividing::transaction_parts, module)?)?;
    module.add_function(wrap_pyfunction!(crate::dividing::transaction_dependencies, module)?)?;
    Ok(())
}
