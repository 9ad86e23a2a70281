//! The boundary to Python of `events`: text goes in, columns come out as bytes of the machine's order.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::events::{Events as Inner, Names, Value, Worker};
use crate::judging::Transactions;
use crate::transactions::Workload;

/// Reads a plain history; see `checker/_kernel.pyi`.
#[pyclass(module = "checker._kernel")]
pub struct Events(Option<Inner>);

#[pymethods]
impl Events {
    #[new]
    #[pyo3(signature = (name, *, keyed = false, line = 1, transactions = None, part = false))]
    fn new(name: &str, keyed: bool, line: usize, transactions: Option<&str>, part: bool) -> PyResult<Self> {
        let workload = transactions
            .map(|name| {
                Workload::of(name)
                    .ok_or_else(|| PyValueError::new_err(format!("{name:?} is no workload of transactions")))
            })
            .transpose()?;
        let whole = Inner::new(name, keyed, line, workload);
        let inner = if part { whole.and_then(Inner::into_part) } else { whole };
        inner.map_or_else(
            || Err(PyValueError::new_err(format!("{name:?} is no format of events"))),
            |inner| Ok(Self(Some(inner))),
        )
    }

    #[getter]
    fn line(&self) -> Option<usize> {
        self.0.as_ref().map(|inner| inner.line)
    }

    fn feed(&mut self, text: &[u8]) -> Option<usize> {
        let taken = self.0.as_mut()?.feed(text);
        if taken.is_err() {
            self.0 = None;
        }
        taken.ok()
    }

    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(inner) = self.0.take().filter(Inner::may_end) else { return Ok(None) };
        let dict = PyDict::new(py);
        if let Some(part) = &inner.part {
            let lines: Vec<_> = part.lines.iter().map(|(number, line)| (*number, PyBytes::new(py, line))).collect();
            dict.set_item("lines", lines)?;
            dict.set_item("first", part.first)?;
            let workers = inner.workers();
            let flags =
                |each: &Worker| u8::from(each.is_begun) | u8::from(each.is_open) << 1 | u8::from(each.has_ended) << 2;
            let bytes: Vec<u8> = workers.iter().map(flags).collect();
            let columns = (
                int64s(py, workers.len(), workers.iter().map(|each| each.process))?,
                int64s(py, workers.len(), workers.iter().map(|each| each.first_ns))?,
                int64s(py, workers.len(), workers.iter().map(|each| each.free_ns))?,
                PyBytes::new(py, &bytes),
            );
            dict.set_item("workers", columns)?;
        }
        dict.set_item("events", inner.count)?;
        dict.set_item("around", inner.is_around())?;
        dict.set_item("timed", inner.timed.unwrap_or(false))?;
        dict.set_item("back_line", inner.back_line)?;
        let changed: Vec<_> = inner
            .changed
            .iter()
            .map(|each| (each.row, each.line, each.failed, each.value.kind, each.value.first, each.value.second))
            .collect();
        dict.set_item("changed", changed)?;
        for (name, names) in [
            ("keys", inner.keys),
            ("functions", inner.functions),
            ("values", inner.values),
            ("names", inner.names),
            ("unused", inner.unused),
        ] {
            dict.set_item(name, texts(names)?)?;
        }
        let rows = inner.rows;
        dict.set_item("type", PyBytes::new(py, &rows.kind))?;
        for (name, column) in [
            ("key", rows.key),
            ("function", rows.f),
            ("node", rows.node),
            ("error", rows.error),
            ("phase", rows.phase),
            ("via", rows.via),
        ] {
            dict.set_item(name, bytes_of(py, column.len(), column.iter().map(|number| number.to_ne_bytes()))?)?;
        }
        for (name, column) in [
            ("process", rows.process),
            ("start", rows.start),
            ("end", rows.end),
            ("start_ns", rows.start_ns),
            ("end_ns", rows.end_ns),
            ("scheduled_ns", rows.scheduled),
        ] {
            dict.set_item(name, int64s(py, column.len(), column.iter().copied())?)?;
        }
        for (name, column) in [("value", rows.value), ("result", rows.result)] {
            let kinds: Vec<u8> = column.iter().map(|value: &Value| value.kind as u8).collect();
            let parts = (
                PyBytes::new(py, &kinds),
                int64s(py, column.len(), column.iter().map(|value| value.first))?,
                int64s(py, column.len(), column.iter().map(|value| value.second))?,
            );
            dict.set_item(name, parts)?;
        }
        dict.set_item("order", rows.order)?;
        let transactions = inner.transactions.map(|parser| {
            let workload = parser.workload();
            Transactions { workload, table: parser.into_table() }
        });
        dict.set_item("transactions", transactions)?;
        Ok(Some(dict))
    }
}

fn int64s(py: Python<'_>, count: usize, numbers: impl Iterator<Item = i64>) -> PyResult<Bound<'_, PyBytes>> {
    bytes_of(py, count, numbers.map(i64::to_ne_bytes))
}

fn bytes_of<const SIZE: usize>(
    py: Python<'_>,
    count: usize,
    numbers: impl Iterator<Item = [u8; SIZE]>,
) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, count * SIZE, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(SIZE).zip(numbers) {
            place.copy_from_slice(&number);
        }
        Ok(())
    })
}

fn texts(names: Names) -> PyResult<Vec<String>> {
    let texts = names.into_texts().into_iter().map(|text| String::from_utf8(text.into_vec()));
    Ok(texts.collect::<Result<_, _>>()?)
}
