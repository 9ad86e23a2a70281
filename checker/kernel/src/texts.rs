//! Columns of texts that come from Arrow without a copy, and without an object for each text.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::Column;

const MOST_NESTED: usize = 50;

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

/// Returns whether a value is canonical JSON for certain: null, a plain string, a small integer, or a list of such values.
fn is_evident(text: &[u8]) -> bool {
    let (mut at, mut depth) = (0, 0);
    loop {
        if text.get(at) == Some(&b'[') {
            at += 1;
            if text.get(at) != Some(&b']') {
                depth += 1;
                if depth > MOST_NESTED {
                    return false;
                }
                continue;
            }
            at += 1;
        } else {
            match scalar(&text[at..]) {
                0 => return false,
                length => at += length,
            }
        }
        while depth > 0 && text.get(at) == Some(&b']') {
            (at, depth) = (at + 1, depth - 1);
        }
        match text.get(at) {
            None => return depth == 0,
            Some(b',') if depth > 0 => at += 1,
            Some(_) => return false,
        }
    }
}

/// Returns the length of the value without members that begins a text; 0 if there is none whose form is evident.
fn scalar(text: &[u8]) -> usize {
    match text.first() {
        Some(b'"') => {
            let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.:+/ -".contains(byte);
            let length = text[1..].iter().take_while(plain).count();
            if text.get(length + 1) == Some(&b'"') {
                length + 2
            } else {
                0
            }
        }
        Some(b'n') if text.starts_with(b"null") => 4,
        Some(b'0') => 1,
        Some(&first) => {
            let sign = usize::from(first == b'-');
            let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 || digits > 18 || text[sign] == b'0' {
                0
            } else {
                sign + digits
            }
        }
        None => 0,
    }
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
