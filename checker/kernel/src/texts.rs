//! Columns of texts that come from Arrow without a copy, and without an object for each text.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::Column;

/// A column of texts in the layout of Arrow: the ends, the bytes, and by row whether there is a text.
pub struct Texts {
    ends: Column<i32>,
    bytes: Column<u8>,
    valid: Column<u8>,
}

impl Texts {
    pub fn new(name: &str, [ends, bytes, valid]: &[Bound<'_, PyAny>; 3]) -> PyResult<Self> {
        let found = Self {
            ends: Column::new(name, ends)?,
            bytes: Column::new(name, bytes)?,
            valid: Column::new(name, valid)?,
        };
        if found.ends.slice().len() != found.len() + 1 {
            return Err(PyValueError::new_err(format!(
                "column {name}: expected an end for each text, and a beginning"
            )));
        }
        Ok(found)
    }

    pub fn len(&self) -> usize {
        self.valid.slice().len()
    }

    pub fn get(&self) -> PyResult<Vec<Option<&str>>> {
        let (ends, bytes, valid) = (self.ends.slice(), self.bytes.slice(), self.valid.slice());
        let text = |row: usize| {
            let [from, to] = [row, row + 1].map(|place| usize::try_from(ends[place]).unwrap_or(usize::MAX));
            bytes.get(from..to).and_then(|part| std::str::from_utf8(part).ok())
        };
        (0..self.len())
            .map(|row| match valid[row] {
                0 => Ok(None),
                _ => text(row).map(Some).ok_or_else(|| PyValueError::new_err(format!("row {row} is no text"))),
            })
            .collect()
    }
}

/// Returns whether a value is canonical JSON for certain: only null, plain strings, small integers and lists.
fn is_evident(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        at += match text[at] {
            b'[' | b']' | b',' => {
                at += 1;
                continue;
            }
            b'"' => {
                let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.:+/ -".contains(byte);
                let length = text[at + 1..].iter().take_while(plain).count();
                if text.get(at + 1 + length) != Some(&b'"') {
                    return false;
                }
                length + 2
            }
            b'n' if text[at..].starts_with(b"null") => 4,
            b'0' => 1,
            first => {
                let sign = usize::from(first == b'-');
                let digits = text[at + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                if digits == 0 || digits > 18 || text[at + sign] == b'0' {
                    return false;
                }
                sign + digits
            }
        };
        if !matches!(text.get(at), Some(b',' | b']')) {
            return false;
        }
    }
    true
}

/// Returns by row whether its text is certainly canonical; see `checker/_kernel.pyi`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)]
pub fn evident_texts<'py>(py: Python<'py>, texts: [Bound<'py, PyAny>; 3]) -> PyResult<Bound<'py, PyBytes>> {
    let texts = Texts::new("texts", &texts)?;
    let flags: Vec<u8> =
        texts.get()?.into_iter().map(|text| u8::from(text.is_none_or(|text| is_evident(text.as_bytes())))).collect();
    Ok(PyBytes::new(py, &flags))
}

/// Returns a number for a key, which spreads keys over buckets; the same in all processes.
pub fn address(key: &str) -> u32 {
    let hash = key
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ (hash >> 32)) as u32
}
