//! Reads transactions from canonical JSON: `[["r","x",[1,2]],["append","x",3]]`.
//!
//! Keys and elements keep their canonical text, so two of them are equal exactly if their texts are. A list that begins
//! with the elements that the last read of the key returned is not read again; its known part is copied.

use std::collections::HashMap;

use super::{History, Mop, FAIL, INFO, NONE, OK};
use crate::hash::FastHasher;

const LONGEST_INTEGER: usize = 18;

/// What a history has micro-operations of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    Lists,
    Registers,
}

/// A transaction that has another form than the workload expects.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    pub row: usize,
    /// Whether it is the answer and not the request.
    pub answer: bool,
    /// The place of the micro-operation; None: the whole value.
    pub place: Option<usize>,
    pub what: &'static str,
}

struct Parser<'a> {
    workload: Workload,
    keys: HashMap<&'a str, u32>,
    integers: HashMap<(u32, i64), u32, FastHasher>,
    others: HashMap<(u32, &'a str), u32>,
    /// By key: the text of the last list that was read, without its closing bracket, and its elements.
    last: Vec<(&'a str, usize, usize)>,
    history: History<'a>,
}

type Wrong = (Option<usize>, &'static str);

/// Reads the requests and the answers of all transactions.
///
/// # Arguments
///
/// * `requests`, `answers` - by row: the text of the value; None if it is not a list of micro-operations at all.
pub fn parse<'a>(
    workload: Workload,
    [process, start, end]: [&'a [i64]; 3],
    kinds: &'a [i8],
    requests: &[Option<&'a str>],
    answers: &[Option<&'a str>],
) -> Result<History<'a>, Malformed> {
    let mut parser = Parser {
        workload,
        keys: HashMap::new(),
        integers: HashMap::default(),
        others: HashMap::new(),
        last: Vec::new(),
        history: History {
            kind: kinds,
            process,
            start,
            end,
            offset: vec![0],
            mops: Vec::new(),
            flat: Vec::new(),
            keys: Vec::new(),
            elems: Vec::new(),
        },
    };
    let mut request = Vec::new();
    for row in 0..kinds.len() {
        let has_answer = kinds[row] == OK;
        debug_assert!(has_answer || kinds[row] == FAIL || kinds[row] == INFO);
        let text = if has_answer { answers[row] } else { requests[row] };
        let wrong = |(place, what): Wrong| Malformed { row, answer: has_answer, place, what };
        let begin = parser.history.mops.len();
        parser.transaction(text.ok_or((None, "not-a-list")).map_err(wrong)?, has_answer).map_err(wrong)?;
        if has_answer && requests[row] != answers[row] {
            let wrong = |(place, what): Wrong| Malformed { row, answer: false, place, what };
            let flat = parser.history.flat.len();
            let middle = parser.history.mops.len();
            parser.transaction(requests[row].ok_or((None, "not-a-list")).map_err(wrong)?, false).map_err(wrong)?;
            request.clear();
            request.extend(parser.history.mops.drain(middle..));
            parser.history.flat.truncate(flat);
            let answer = &parser.history.mops[begin..];
            let differs = |(one, other): (&Mop, &Mop)| {
                one.is_read != other.is_read || one.key != other.key || (!one.is_read && one.elem != other.elem)
            };
            let place = request.iter().zip(answer).position(differs);
            if place.is_some() || request.len() != answer.len() {
                return Err(Malformed { row, answer: true, place, what: "other-shape" });
            }
        }
        parser.history.offset.push(parser.history.mops.len());
    }
    Ok(parser.history)
}

impl<'a> Parser<'a> {
    /// Adds the micro-operations of a text to the history.
    fn transaction(&mut self, text: &'a str, has_answer: bool) -> Result<(), Wrong> {
        let bytes = text.as_bytes();
        if bytes.first() != Some(&b'[') {
            return Err((None, "not-a-list"));
        }
        let mut at = 1;
        let mut place = 0;
        while bytes.get(at).is_some_and(|byte| *byte != b']') {
            at = self.mop(text, at, has_answer).map_err(|what| (Some(place), what))?;
            place += 1;
            if bytes.get(at) == Some(&b',') {
                at += 1;
            }
        }
        Ok(())
    }

    /// Adds the micro-operation that begins at a place of a text; returns the place after it.
    fn mop(&mut self, text: &'a str, at: usize, has_answer: bool) -> Result<usize, &'static str> {
        let bytes = text.as_bytes();
        let end = value_end(bytes, at).ok_or("not-a-micro-operation")?;
        if bytes[at] != b'[' {
            return Err("not-a-micro-operation");
        }
        let mut parts = [""; 3];
        let mut count = 0;
        let mut next = at + 1;
        while next < end - 1 {
            let stop = value_end(bytes, next).ok_or("not-a-micro-operation")?;
            if count == 3 {
                return Err("not-a-micro-operation");
            }
            parts[count] = &text[next..stop];
            count += 1;
            next = stop + 1;
        }
        if count != 3 {
            return Err("not-a-micro-operation");
        }
        let [name, key, value] = parts;
        let is_read = match (name, self.workload) {
            ("\"r\"" | "\"read\"", _) => true,
            ("\"append\"", Workload::Lists) | ("\"w\"" | "\"write\"", Workload::Registers) => false,
            _ => return Err("unknown-function"),
        };
        let key = self.key(key);
        let mut mop = Mop { is_read, known: has_answer || !is_read, key, elem: NONE, from: 0, to: 0 };
        if !is_read {
            if value == "null" && self.workload == Workload::Registers {
                return Err("written-nil");
            }
            mop.elem = self.elem(key, value);
        } else if has_answer && self.workload == Workload::Lists {
            (mop.from, mop.to) = self.list(key, value)?;
        } else if has_answer && value != "null" {
            mop.elem = self.elem(key, value);
        }
        self.history.mops.push(mop);
        Ok(end)
    }

    fn key(&mut self, text: &'a str) -> u32 {
        if let Some(&known) = self.keys.get(text) {
            return known;
        }
        let number = self.history.keys.len() as u32;
        self.keys.insert(text, number);
        self.history.keys.push(text);
        self.last.push(("", 0, 0));
        number
    }

    fn elem(&mut self, key: u32, text: &'a str) -> u32 {
        let elems = &mut self.history.elems;
        let mut new = || {
            elems.push((key, text));
            elems.len() as u32 - 1
        };
        match integer(text.as_bytes()) {
            Some(value) => *self.integers.entry((key, value)).or_insert_with(new),
            None => *self.others.entry((key, text)).or_insert_with(&mut new),
        }
    }

    /// Returns the place of a list's elements in `flat`.
    fn list(&mut self, key: u32, text: &'a str) -> Result<(usize, usize), &'static str> {
        let from = self.history.flat.len();
        if text == "null" || text == "[]" {
            return Ok((from, from));
        }
        let bytes = text.as_bytes();
        if bytes[0] != b'[' {
            return Err("read-no-list");
        }
        let mut at = 1;
        let (known, first, last) = self.last[key as usize];
        if !known.is_empty() && text.starts_with(known) && matches!(bytes[known.len()], b',' | b']') {
            self.history.flat.extend_from_within(first..last);
            at = known.len() + 1;
        }
        while at < bytes.len() {
            let end = value_end(bytes, at).ok_or("read-no-list")?;
            let elem = self.elem(key, &text[at..end]);
            self.history.flat.push(elem);
            at = end + 1;
        }
        let to = self.history.flat.len();
        self.last[key as usize] = (&text[..text.len() - 1], from, to);
        Ok((from, to))
    }
}

/// Returns the end of the JSON value that begins at a place; None if it does not end.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut place = at;
    loop {
        match *bytes.get(place)? {
            b'"' => {
                place += 1;
                while *bytes.get(place)? != b'"' {
                    place += if bytes[place] == b'\\' { 2 } else { 1 };
                }
                place += 1;
            }
            b'[' | b'{' => {
                depth += 1;
                place += 1;
            }
            b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                place += 1;
            }
            b',' | b':' if depth > 0 => place += 1,
            b',' | b':' => return None,
            _ => {
                while bytes.get(place).is_some_and(|byte| !matches!(byte, b',' | b']' | b'}' | b':')) {
                    place += 1;
                }
            }
        }
        if depth == 0 {
            return Some(place);
        }
    }
}

fn integer(bytes: &[u8]) -> Option<i64> {
    let (sign, digits) = match bytes {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || digits.len() > LONGEST_INTEGER || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if digits[0] == b'0' && (digits.len() > 1 || sign < 0) {
        return None;
    }
    Some(sign * digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}
