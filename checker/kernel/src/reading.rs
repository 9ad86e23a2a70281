//! The boundary to Python of `events`: text goes in, columns come out as bytes of the machine's order.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::answers::{Bytes, ChangedValue, EventColumns, PartOfEvents};
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

    fn finish(&mut self, py: Python<'_>) -> PyResult<Option<EventColumns>> {
        let Some(inner) = self.0.take().filter(Inner::may_end) else { return Ok(None) };
        let part = inner.part.as_ref().map(|part| {
            let lines = part.lines.iter().map(|(number, line)| (*number, PyBytes::new(py, line).unbind())).collect();
            let workers = inner.workers();
            let flags =
                |each: &Worker| u8::from(each.is_begun) | u8::from(each.is_open) << 1 | u8::from(each.has_ended) << 2;
            let bytes: Vec<u8> = workers.iter().map(flags).collect();
            let columns = (
                int64s(py, workers.len(), workers.iter().map(|each| each.process))?,
                int64s(py, workers.len(), workers.iter().map(|each| each.first_ns))?,
                int64s(py, workers.len(), workers.iter().map(|each| each.free_ns))?,
                PyBytes::new(py, &bytes).unbind(),
            );
            Py::new(py, PartOfEvents { lines, first: part.first, workers: columns })
        });
        let part = part.transpose()?;
        let around = inner.is_around();
        let changed = inner.changed.iter().map(|each| {
            let Value { kind, first, second, .. } = each.value;
            let kind = kind as u8;
            Py::new(py, ChangedValue { row: each.row, line: each.line, failed: each.failed, kind, first, second })
        });
        let changed = changed.collect::<PyResult<_>>()?;
        let rows = inner.rows;
        let numbers = |column: &[i32]| bytes_of(py, column.len(), column.iter().map(|number| number.to_ne_bytes()));
        let longs = |column: &[i64]| int64s(py, column.len(), column.iter().copied());
        let values = |column: &[Value]| -> PyResult<_> {
            let kinds: Vec<u8> = column.iter().map(|value| value.kind as u8).collect();
            Ok((
                PyBytes::new(py, &kinds).unbind(),
                int64s(py, column.len(), column.iter().map(|value| value.first))?,
                int64s(py, column.len(), column.iter().map(|value| value.second))?,
            ))
        };
        let transactions = inner.transactions.map(|parser| {
            let workload = parser.workload();
            Py::new(py, Transactions { workload, table: parser.into_table() })
        });
        Ok(Some(EventColumns {
            events: inner.count,
            around,
            timed: inner.timed.unwrap_or(false),
            back_line: inner.back_line,
            changed,
            keys: texts(inner.keys)?,
            functions: texts(inner.functions)?,
            values: texts(inner.values)?,
            names: texts(inner.names)?,
            unused: texts(inner.unused)?,
            r#type: PyBytes::new(py, &rows.kind).unbind(),
            key: numbers(&rows.key)?,
            function: numbers(&rows.f)?,
            node: numbers(&rows.node)?,
            error: numbers(&rows.error)?,
            phase: numbers(&rows.phase)?,
            via: numbers(&rows.via)?,
            process: longs(&rows.process)?,
            start: longs(&rows.start)?,
            end: longs(&rows.end)?,
            start_ns: longs(&rows.start_ns)?,
            end_ns: longs(&rows.end_ns)?,
            scheduled_ns: longs(&rows.scheduled)?,
            value: values(&rows.value)?,
            result: values(&rows.result)?,
            order: rows.order,
            transactions: transactions.transpose()?,
            part,
        }))
    }
}

fn int64s(py: Python<'_>, count: usize, numbers: impl Iterator<Item = i64>) -> PyResult<Bytes> {
    bytes_of(py, count, numbers.map(i64::to_ne_bytes))
}

fn bytes_of<const SIZE: usize>(
    py: Python<'_>,
    count: usize,
    numbers: impl Iterator<Item = [u8; SIZE]>,
) -> PyResult<Bytes> {
    let bytes = PyBytes::new_with(py, count * SIZE, |bytes| {
        for (place, number) in bytes.chunks_exact_mut(SIZE).zip(numbers) {
            place.copy_from_slice(&number);
        }
        Ok(())
    });
    bytes.map(Bound::unbind)
}

fn texts(names: Names) -> PyResult<Vec<String>> {
    let texts = names.into_texts().into_iter().map(|text| String::from_utf8(text.into_vec()));
    Ok(texts.collect::<Result<_, _>>()?)
}
