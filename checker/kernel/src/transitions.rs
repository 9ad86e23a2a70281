//! The table of a Python model: states and operations as numbers. Each transition is computed once.
//!
//! States are numbered by their identity, which `checker.identity` defines. Most states are numbers, strings, None,
//! and lists and tuples of these. Their keys are made here, and are often the states themselves. Python makes the
//! keys of all others; such a key begins with `OTHER`, so it equals no key of the first kind.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyBaseException, PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::hash::FastHasher;

/// The result of `step` if the model refuses the operation.
pub const REFUSED: i64 = -1;
/// The maximum nesting of a state whose key is made here.
const DEEPEST: usize = 32;

/// See `checker/_kernel.pyi`.
#[pyclass(frozen, module = "checker._kernel")]
pub struct Transitions {
    #[pyo3(get)]
    calls: Py<PyList>,
    name: Py<PyAny>,
    step: Py<PyAny>,
    refusal: Py<PyType>,
    identity: Py<PyAny>,
    /// Makes the error of a `step` whose states break a rule.
    wrong_state: Py<PyAny>,
    other: Py<PyAny>,
    /// A mutex, because two searches of one history may ask at once.
    known: Mutex<Known>,
}

struct Known {
    states: Vec<Py<PyAny>>,
    /// By state: whether it cannot change, because it is an atom or a tuple of atoms.
    fixed: Vec<bool>,
    /// By key: the number of the state.
    numbers: Py<PyDict>,
    /// By state and call.
    after: HashMap<u64, i64, FastHasher>,
}

#[pymethods]
impl Transitions {
    #[new]
    fn new(py: Python<'_>, model: &Bound<'_, PyAny>) -> PyResult<Self> {
        let found = |module: &str, name: &str| py.import(module)?.getattr(name);
        let known = Known {
            states: Vec::new(),
            fixed: Vec::new(),
            numbers: PyDict::new(py).unbind(),
            after: HashMap::default(),
        };
        let table = Self {
            calls: PyList::empty(py).unbind(),
            name: model.getattr("name")?.unbind(),
            step: model.getattr("step")?.unbind(),
            refusal: found("checker.models.base", "Inconsistent")?.cast_into::<PyType>()?.unbind(),
            identity: found("checker.identity", "identity")?.unbind(),
            wrong_state: found("checker.models.blaming", "wrong_state")?.unbind(),
            other: py.eval(c"object()", None, None)?.unbind(),
            known: Mutex::new(known),
        };
        table.number(py, &mut table.lock(py), &model.getattr("initial")?)?;
        Ok(table)
    }

    /// The number of states.
    #[getter]
    fn states(&self, py: Python<'_>) -> usize {
        self.lock(py).states.len()
    }

    /// The number of known transitions.
    #[getter]
    fn entries(&self, py: Python<'_>) -> usize {
        self.lock(py).after.len()
    }

    /// Returns the number of a new class of equal operations.
    fn add(&self, call: &Bound<'_, PyAny>) -> PyResult<usize> {
        let calls = self.calls.bind(call.py());
        calls.append(call)?;
        Ok(calls.len() - 1)
    }

    /// Returns the number of the next state, or `REFUSED`. Asks the model once per transition.
    pub fn step(&self, py: Python<'_>, state: u32, call: u32) -> PyResult<i64> {
        let known = &mut *self.lock(py);
        let key = u64::from(state) << 32 | u64::from(call);
        if let Some(&after) = known.after.get(&key) {
            return Ok(after);
        }
        let before = of(&known.states, state)?.clone_ref(py).into_bound(py);
        let after = self.step.bind(py).call1((&before, self.calls.bind(py).get_item(call as usize)?))?;
        if !known.fixed[state as usize] && self.known_number(py, known, &before)? != Some(i64::from(state)) {
            let found = "a state that `step` changed in place";
            return Err(self.wrong(
                py,
                "a new state, and the given one as it was",
                found.into_pyobject(py)?.as_any(),
            ));
        }
        let number = if self.refuses(&after)? {
            REFUSED
        } else if after.is(&before) {
            i64::from(state)
        } else {
            self.number(py, known, &after)?
        };
        known.after.insert(key, number);
        Ok(number)
    }

    /// Returns the state with a number.
    fn state(&self, py: Python<'_>, number: u32) -> PyResult<Py<PyAny>> {
        Ok(of(&self.lock(py).states, number)?.clone_ref(py))
    }

    /// Returns the reason why the model refuses an operation in a state; None if it accepts it.
    fn refusal<'py>(&self, py: Python<'py>, state: u32, call: u32) -> PyResult<Option<Bound<'py, PyAny>>> {
        let before = of(&self.lock(py).states, state)?.clone_ref(py);
        let after = self.step.bind(py).call1((before, self.calls.bind(py).get_item(call as usize)?))?;
        self.refuses(&after)?.then(|| after.getattr("message")).transpose()
    }
}

impl Transitions {
    /// Locks the table. A waiting thread releases the interpreter, because the thread with the lock may need it.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Known> {
        self.known.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn refuses(&self, after: &Bound<'_, PyAny>) -> PyResult<bool> {
        let refusal = self.refusal.bind(after.py());
        Ok(after.get_type().is(refusal) || after.is_instance(refusal)?)
    }

    /// Returns the number of a state, new or known.
    fn number(&self, py: Python<'_>, known: &mut Known, state: &Bound<'_, PyAny>) -> PyResult<i64> {
        let key = self.key(state, DEEPEST)?;
        let numbers = known.numbers.bind(py);
        let found = numbers.get_item(&key).map_err(|error| self.unhashable(error, state))?;
        if let Some(number) = found {
            return number.extract();
        }
        let number = known.states.len();
        let is_fixed = key.is(state);
        numbers.set_item(key, number)?;
        known.fixed.push(is_fixed);
        known.states.push(state.clone().unbind());
        Ok(number as i64)
    }

    /// Returns the number of a state; None if it has none.
    fn known_number(&self, py: Python<'_>, known: &Known, state: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        let key = self.key(state, DEEPEST)?;
        known.numbers.bind(py).get_item(&key)?.map(|number| number.extract()).transpose()
    }

    /// Returns a key that is equal for equal values and for no others.
    fn key<'py>(&self, value: &Bound<'py, PyAny>, deepest: usize) -> PyResult<Bound<'py, PyAny>> {
        if is_atom(value) {
            return Ok(value.clone());
        }
        if deepest > 0 {
            if let Ok(tuple) = value.cast::<PyTuple>() {
                let exact = tuple.is_exact_instance_of::<PyTuple>();
                if exact && tuple.iter_borrowed().all(|each| is_atom(&each)) {
                    return Ok(value.clone());
                }
                return self.key_of_each(value.py(), tuple.iter(), deepest);
            }
            if let Ok(list) = value.cast_exact::<PyList>() {
                return self.key_of_each(value.py(), list.iter(), deepest);
            }
        }
        if self.is_no_value(value)? {
            return Err(self.wrong(value.py(), "a state or an object `Inconsistent(reason)`", value));
        }
        let form = self.identity.bind(value.py()).call1((value,))?;
        if deepest > 0 && is_list(&form)? {
            // A sequence of another type equals a list.
            let values: Vec<_> = value.try_iter()?.collect::<PyResult<_>>()?;
            return self.key_of_each(value.py(), values.into_iter(), deepest);
        }
        Ok(PyTuple::new(value.py(), [self.other.bind(value.py()), &form])?.into_any())
    }

    fn key_of_each<'py>(
        &self,
        py: Python<'py>,
        values: impl Iterator<Item = Bound<'py, PyAny>>,
        deepest: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keys: Vec<_> = values.map(|each| self.key(&each, deepest - 1)).collect::<PyResult<_>>()?;
        Ok(PyTuple::new(py, keys)?.into_any())
    }

    /// Whether a value is what a model returns by mistake: a class, an error, or something that has to run first.
    fn is_no_value(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = value.py();
        Ok(value.is(self.refusal.bind(py))
            || value.is(py.NotImplemented())
            || value.is_instance_of::<PyBaseException>()
            || (value.hasattr("send")? && value.hasattr("throw")?))
    }

    fn unhashable(&self, error: PyErr, state: &Bound<'_, PyAny>) -> PyErr {
        let py = state.py();
        if !error.is_instance_of::<PyTypeError>(py) {
            return error;
        }
        let refused = self.wrong(py, "hashable states", state);
        refused.set_cause(py, Some(error));
        refused
    }

    fn wrong(&self, py: Python<'_>, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
        let error = self.wrong_state.bind(py).call1((self.name.bind(py), self.step.bind(py), expected, found));
        error.map_or_else(|failed| failed, PyErr::from_value)
    }
}

/// Whether a value equals no value of another type.
fn is_atom(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyInt>() || value.is_exact_instance_of::<PyString>() || value.is_none()
}

/// Whether a form of `identity` is that of a sequence.
fn is_list(form: &Bound<'_, PyAny>) -> PyResult<bool> {
    form.cast::<PyTuple>().map_or(Ok(false), |form| form.get_item(0)?.eq("list"))
}

fn of(states: &[Py<PyAny>], number: u32) -> PyResult<&Py<PyAny>> {
    let count = states.len();
    states.get(number as usize).ok_or_else(|| PyIndexError::new_err(format!("state {number}: there are {count}")))
}
