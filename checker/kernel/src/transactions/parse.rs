//! Reads transactions from text: `[["r","x",[1,2]],["append","x",3]]`, in JSON or EDN.
//!
//! Most reads of a key return a beginning of one list, so the parser keeps the text of this list with the ends of its elements. It
//! compares the text of a read with that, byte by byte, and reads only the elements after it. So the time is that of one
//! pass over the text, and the memory is linear in the number of writes.
//!
//! Canonical JSON has any keys and elements; they keep their text, so two of them are equal exactly if their texts are. In
//! a file, only those are read whose canonical text is evident. The readers in Python read a file with others.

use std::collections::HashMap;
use std::sync::Arc;

pub use super::tokens::Syntax;
use super::tokens::{byte_at, is_delimiter, same_bytes, Bad, NO_MOP};
use super::{Atom, Mop, Table, Workload, FAIL, INFO, NONE, OK};
use crate::events::integer;
use crate::hash::FastHasher;

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

/// Why a text is no transaction.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// The text ends before the transaction does.
    Torn,
    /// The micro-operation, or None for the whole value, has another form.
    Wrong(Option<usize>, &'static str),
}

const NO_LIST: Bad = Bad::Wrong("read-no-list");

/// The text of the list of a key, and where each of its elements ends.
#[derive(Default)]
struct Known {
    /// Without the closing bracket.
    text: Vec<u8>,
    ends: Vec<u32>,
}

/// Reads transactions one after the other into a table.
pub struct Parser {
    workload: Workload,
    syntax: Syntax,
    keys: HashMap<Atom, u32, FastHasher>,
    elems: HashMap<(u32, Atom), u32, FastHasher>,
    texts: HashMap<Arc<str>, u32>,
    /// By key.
    known: Vec<Known>,
    /// EDN: whether a keyword, and whether a string, is a key or an element.
    has_keyword: bool,
    has_string: bool,
    /// Whether the transaction that is read now may have results of reads.
    has_results: bool,
    /// The transaction that was read last.
    scratch: Vec<Mop>,
    table: Table,
}

/// Reads the requests and the answers of all transactions of a history from canonical JSON.
///
/// A transaction without an answer has a text in `answers` if it happened, and its completion shows results of reads. There, nil
/// means that the result is not known. A text of another form than the request shows nothing.
///
/// # Arguments
///
/// * `requests`, `answers` - by row: the text of the value; None if it is not a list of micro-operations at all.
pub fn parse(
    workload: Workload,
    kinds: &[i8],
    requests: &[Option<&str>],
    answers: &[Option<&str>],
) -> Result<Table, Malformed> {
    let mut parser = Parser::new(workload, Syntax::Canonical);
    for row in 0..kinds.len() {
        let has_answer = kinds[row] == OK;
        let shows = kinds[row] == INFO && answers[row].is_some() && parser.read_shown(answers[row]);
        let shown = if shows { std::mem::take(&mut parser.scratch) } else { Vec::new() };
        debug_assert!(has_answer || kinds[row] == FAIL || kinds[row] == INFO);
        let read = |parser: &mut Parser, text: Option<&str>, answer: bool| {
            let found = match text {
                None => Err(Stop::Wrong(None, "not-a-list")),
                Some(text) => parser.read(text.as_bytes(), 0, answer),
            };
            found.map(|_| ()).map_err(|stop| {
                let (place, what) = match stop {
                    Stop::Torn => (None, "not-a-list"),
                    Stop::Wrong(place, what) => (place, what),
                };
                Malformed { row, answer, place, what }
            })
        };
        if !has_answer || requests[row] == answers[row] {
            let found = read(&mut parser, requests[row], has_answer);
            // Only the result of a read can be wrong in the answer and not in the same request.
            found.map_err(|wrong| Malformed { answer: wrong.what == "read-no-list", ..wrong })?;
            parser.add(has_answer);
            if shows {
                parser.show(row, shown);
            }
            continue;
        }
        if let Err(wrong) = read(&mut parser, answers[row], true) {
            read(&mut parser, requests[row], false)?;
            return Err(wrong);
        }
        let answer = parser.scratch.clone();
        read(&mut parser, requests[row], false)?;
        parser.add(false);
        parser.scratch = answer;
        if let Err(place) = parser.answer(row) {
            return Err(Malformed { row, answer: true, place, what: "other-shape" });
        }
    }
    Ok(parser.table)
}

impl Parser {
    pub fn new(workload: Workload, syntax: Syntax) -> Self {
        Self {
            workload,
            syntax,
            keys: HashMap::default(),
            elems: HashMap::default(),
            texts: HashMap::new(),
            known: Vec::new(),
            has_keyword: false,
            has_string: false,
            has_results: true,
            scratch: Vec::new(),
            table: Table::new(),
        }
    }

    pub fn into_table(self) -> Table {
        self.table
    }

    pub fn workload(&self) -> Workload {
        self.workload
    }

    /// Reads the transaction that begins at a place of a text, without the results of its reads if it is a request in canonical
    /// JSON; returns the place after it.
    pub fn read(&mut self, text: &[u8], at: usize, is_answer: bool) -> Result<usize, Stop> {
        self.scratch.clear();
        self.has_results = is_answer || self.syntax != Syntax::Canonical;
        if byte_at(text, at).map_err(|_| Stop::Torn)? != b'[' {
            return Err(Stop::Wrong(None, "not-a-list"));
        }
        let mut at = at + 1;
        loop {
            let place = self.scratch.len();
            let stop = |bad: Bad| match bad {
                Bad::Torn => Stop::Torn,
                Bad::Wrong(what) => Stop::Wrong(Some(place), what),
            };
            at = self.syntax.member(text, at, place == 0).map_err(stop)?;
            if text[at] == b']' {
                return Ok(at + 1);
            }
            at = self.mop(text, at).map_err(stop)?;
        }
    }

    /// Adds the transaction that was read last to the table; with the results of its reads, or without them.
    pub fn add(&mut self, is_answer: bool) {
        for mop in &mut self.scratch {
            mop.known = is_answer || !mop.is_read;
            if !mop.known {
                (mop.shared, mop.is_nil, mop.elem, mop.from, mop.to) = (false, true, NONE, 0, 0);
            }
        }
        self.table.mops.extend_from_slice(&self.scratch);
        self.table.offset.push(self.table.mops.len());
    }

    /// Reads what a transaction without an answer shows; returns whether it is a transaction.
    fn read_shown(&mut self, text: Option<&str>) -> bool {
        text.is_some_and(|text| self.read(text.as_bytes(), 0, true).is_ok())
    }

    /// Sets the results of reads that a transaction of the table shows, if it has the form of the request.
    fn show(&mut self, transaction: usize, shown: Vec<Mop>) {
        self.scratch = shown;
        if self.answer(transaction).is_ok() {
            let (begin, end) = (self.table.offset[transaction], self.table.offset[transaction + 1]);
            for mop in &mut self.table.mops[begin..end] {
                mop.known = !(mop.is_read && mop.is_nil);
            }
        }
    }

    /// Returns whether no read has a result in the transaction that was read last.
    pub fn is_request(&self) -> bool {
        self.scratch.iter().all(|mop| !mop.is_read || mop.is_nil)
    }

    /// Returns whether the transaction that was read last is the request of one of the table.
    pub fn is_same(&self, transaction: usize) -> bool {
        let of = self.table.of(transaction);
        self.is_request() && of.len() == self.scratch.len() && self.difference(transaction).is_none()
    }

    /// Sets the transaction that was read last as the answer of one of the table.
    ///
    /// # Errors
    ///
    /// The place of the first micro-operation that differs from the request; None if only their numbers differ.
    pub fn answer(&mut self, transaction: usize) -> Result<(), Option<usize>> {
        let place = self.difference(transaction);
        let begin = self.table.offset[transaction];
        let end = self.table.offset[transaction + 1];
        if place.is_some() || end - begin != self.scratch.len() {
            return Err(place);
        }
        for mop in &mut self.scratch {
            mop.known = true;
        }
        self.table.mops[begin..end].copy_from_slice(&self.scratch);
        Ok(())
    }

    fn difference(&self, transaction: usize) -> Option<usize> {
        let differs = |(one, other): (&Mop, &Mop)| {
            one.is_read != other.is_read || one.key != other.key || (!one.is_read && one.elem != other.elem)
        };
        self.table.of(transaction).iter().zip(&self.scratch).position(differs)
    }

    /// Adds the micro-operation that begins at a place of a text; returns the place after it.
    fn mop(&mut self, text: &[u8], at: usize) -> Result<usize, Bad> {
        if text[at] != b'[' {
            return Err(NO_MOP);
        }
        let mut parts = [0; 3];
        parts[0] = self.syntax.part(text, at + 1, true)?;
        let name_end = self.syntax.value_end(text, parts[0])?;
        parts[1] = self.syntax.part(text, name_end, false)?;
        let name = &text[parts[0]..name_end];
        let (is_read, is_long) = match (name, self.syntax, self.workload) {
            (b"\"r\"", Syntax::Canonical | Syntax::Json, _) | (b":r", Syntax::Edn, _) => (true, false),
            (b"\"read\"", Syntax::Canonical | Syntax::Json, _) | (b":read", Syntax::Edn, _) => (true, true),
            (b"\"append\"", Syntax::Canonical | Syntax::Json, Workload::Lists)
            | (b":append", Syntax::Edn, Workload::Lists)
            | (b"\"w\"", Syntax::Canonical | Syntax::Json, Workload::Registers)
            | (b":w", Syntax::Edn, Workload::Registers) => (false, false),
            (b"\"write\"", Syntax::Canonical | Syntax::Json, Workload::Registers)
            | (b":write", Syntax::Edn, Workload::Registers) => (false, true),
            _ => {
                let key_end = self.syntax.value_end(text, parts[1])?;
                let value_end =
                    self.syntax.part(text, key_end, false).and_then(|value| self.syntax.value_end(text, value))?;
                self.syntax.end(text, value_end)?;
                return Err(Bad::Wrong("unknown-function"));
            }
        };
        let (key, key_end) = self.atom(text, parts[1])?;
        let key = self.key(key);
        parts[2] = self.syntax.part(text, key_end, false)?;
        let mut mop = Mop {
            is_read,
            known: true,
            is_nil: self.syntax.is_nil(text, parts[2])?,
            is_long,
            shared: false,
            key,
            elem: NONE,
            from: 0,
            to: 0,
        };
        let value_end = if is_read && !self.has_results {
            self.syntax.value_end(text, parts[2])?
        } else if is_read && mop.is_nil {
            mop.shared = true;
            self.atom(text, parts[2])?.1
        } else if is_read && self.workload == Workload::Lists {
            self.list(&mut mop, text, parts[2])?
        } else {
            let (value, end) = self.atom(text, parts[2])?;
            mop.is_nil &= self.workload == Workload::Registers;
            mop.elem = self.elem(key, value);
            end
        };
        let end = self.syntax.end(text, value_end)?;
        self.scratch.push(mop);
        Ok(end)
    }

    /// Returns the key or the element that begins at a place, and the place after it.
    fn atom(&mut self, text: &[u8], at: usize) -> Result<(Atom, usize), Bad> {
        let end = match text[at] {
            b'-' | b'0'..=b'9' => {
                let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let end = at + 1 + digits;
                if is_delimiter(byte_at(text, end)?) {
                    if let Some(value) = integer(&text[at..end]) {
                        return Ok((Atom::Integer(value), end));
                    }
                }
                if self.syntax != Syntax::Canonical {
                    return Err(NO_MOP);
                }
                self.syntax.value_end(text, at)?
            }
            _ => self.syntax.value_end(text, at)?,
        };
        let value = &text[at..end];
        let found = match (self.syntax, value) {
            (Syntax::Canonical, _)
            | (Syntax::Json, b"null" | [b'"', ..])
            | (Syntax::Json | Syntax::Edn, b"true" | b"false") => self.text(value),
            (Syntax::Edn, b"nil") => self.text(b"null"),
            (Syntax::Edn, [b'"', ..]) => {
                self.has_string = true;
                let is_function =
                    [&b"r"[..], b"read", b"append", b"w", b"write"].contains(&&value[1..value.len() - 1]);
                if is_function || self.has_keyword {
                    return Err(NO_MOP);
                }
                self.text(value)
            }
            (Syntax::Edn, [b':', name @ ..]) => {
                self.has_keyword = true;
                let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
                if self.has_string || name.is_empty() || !name.iter().all(is_plain) {
                    return Err(NO_MOP);
                }
                let quoted = [b"\"", name, b"\""].concat();
                self.text(&quoted)
            }
            _ => return Err(NO_MOP),
        };
        if self.syntax != Syntax::Canonical && !is_delimiter(byte_at(text, end)?) {
            return Err(NO_MOP);
        }
        Ok((found, end))
    }

    fn text(&mut self, value: &[u8]) -> Atom {
        let value = String::from_utf8_lossy(value);
        if let Some(&place) = self.texts.get(&*value) {
            return Atom::Text(place);
        }
        let (shared, place): (Arc<str>, u32) = (value.into(), self.table.texts.len() as u32);
        self.texts.insert(Arc::clone(&shared), place);
        self.table.texts.push(shared);
        Atom::Text(place)
    }

    fn key(&mut self, key: Atom) -> u32 {
        let number = self.table.keys.len() as u32;
        let found = *self.keys.entry(key).or_insert(number);
        if found == number {
            self.table.keys.push(key);
            self.table.lists.push(Vec::new());
            self.known.push(Known { text: vec![b'['], ends: Vec::new() });
        }
        found
    }

    fn elem(&mut self, key: u32, value: Atom) -> u32 {
        let number = self.table.elems.len() as u32;
        let found = *self.elems.entry((key, value)).or_insert(number);
        if found == number {
            self.table.elems.push((key, value));
        }
        found
    }

    /// Reads the list that begins at a place as the result of a read; returns the place after it.
    fn list(&mut self, mop: &mut Mop, text: &[u8], at: usize) -> Result<usize, Bad> {
        let rest = &text[at..];
        if rest[0] != b'[' {
            return Err(NO_LIST);
        }
        let key = mop.key as usize;
        let known = &self.known[key];
        let common = same_bytes(&known.text, rest);
        let after = *rest.get(common).ok_or(Bad::Torn)?;
        if common == known.text.len() && (known.ends.is_empty() || is_delimiter(after)) {
            return self.longer(mop, text, at);
        }
        if after == b']' {
            let count =
                if common == 1 { Ok(0) } else { known.ends.binary_search(&(common as u32)).map(|place| place + 1) };
            if let Ok(count) = count {
                (mop.shared, mop.to) = (true, count as u32);
                return Ok(at + common + 1);
            }
        }
        let same = known.ends.partition_point(|&end| (end as usize) < common);
        let mut next = at + if same == 0 { 1 } else { known.ends[same - 1] as usize };
        let from = self.table.flat.len();
        self.table.flat.extend_from_slice(&self.table.lists[key][..same]);
        loop {
            let place = self.syntax.member(text, next, self.table.flat.len() == from)?;
            if text[place] == b']' {
                if self.table.flat.len() >= NONE as usize {
                    return Err(NO_LIST);
                }
                (mop.from, mop.to) = (from as u32, self.table.flat.len() as u32);
                return Ok(place + 1);
            }
            let (value, end) = self.atom(text, place)?;
            let elem = self.elem(mop.key, value);
            self.table.flat.push(elem);
            next = end;
        }
    }

    /// Reads a list that begins with the known one of its key, and adds its other elements to that.
    fn longer(&mut self, mop: &mut Mop, text: &[u8], at: usize) -> Result<usize, Bad> {
        let key = mop.key as usize;
        let mut next = at + self.known[key].text.len();
        loop {
            let place = self.syntax.member(text, next, self.known[key].ends.is_empty())?;
            if text[place] == b']' {
                (mop.shared, mop.to) = (true, self.table.lists[key].len() as u32);
                return Ok(place + 1);
            }
            let (value, end) = self.atom(text, place)?;
            let elem = self.elem(mop.key, value);
            self.table.lists[key].push(elem);
            let known = &mut self.known[key];
            known.text.extend_from_slice(&text[next..end]);
            known.ends.push(known.text.len() as u32);
            next = end;
        }
    }
}
