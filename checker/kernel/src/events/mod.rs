//! Reads plain histories into columns: cuts the text into events, and pairs them into operations.
//!
//! The rule: this reader gives exactly what the readers in Python give (`checker/formats`), or it stops with `Unplain`,
//! and they read the history again. So it needs no error messages, and may refuse whatever is rare. Values beyond integers
//! and pairs of them, and all names, are texts here; Python decodes each distinct text once, in the order of first use.

mod edn;
mod json;
mod log;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::hash::FastHasher;
use crate::transactions::parse::{Parser, Stop, Syntax};
use crate::transactions::Workload;

/// A history that the readers in Python have to read.
#[derive(Debug, PartialEq, Eq)]
pub struct Unplain;

pub type Plain<T> = Result<T, Unplain>;

/// The text ends within a value.
struct Torn;

/// The text of an event, without the members that have an own field in `Event`.
type Text<'a> = Option<&'a [u8]>;

pub const NONE: i32 = -1;
const INVOKE: u8 = 0;
/// Types of events, and of operations without the first.
pub const OK: u8 = 1;
pub const FAIL: u8 = 2;
pub const INFO: u8 = 3;
/// Longer numbers are texts.
const DIGITS: usize = 18;
const MOST_NESTED: usize = 50;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Jsonl,
    /// JSON Lines without a header: an index means nothing, a value may be missing.
    Bare,
    Edn,
    /// Jepsen's console log, without indexes and times.
    Log,
    /// Jepsen's history.txt: the events of such a log alone.
    Txt,
}

impl Format {
    fn is_json(self) -> bool {
        matches!(self, Format::Jsonl | Format::Bare)
    }
}

/// A value: kinds and numbers as in `checker/formats/columns.py`, where a text has its place as the first number; 0: no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Value {
    pub kind: i8,
    pub first: i64,
    pub second: i64,
}

const INTEGER: i8 = 1;
const PAIR: i8 = 2;
const OTHER: i8 = 3;

/// One event, as slices of the text.
#[derive(Default)]
struct Event<'a> {
    index: Option<i64>,
    time: Option<i64>,
    kind: Option<u8>,
    /// None: the nemesis, if `has_process`.
    process: Option<i64>,
    has_process: bool,
    f: Text<'a>,
    value: Text<'a>,
    /// Whether the value was read as a transaction, the last one of `Events::transactions`.
    is_transaction: bool,
    key: Text<'a>,
    node: Text<'a>,
    error: Text<'a>,
    scheduled: Option<i64>,
    phase: Text<'a>,
    via: Text<'a>,
    order: Option<i64>,
}

/// Distinct texts, by the order of their first use.
#[derive(Default)]
pub struct Names(HashMap<Box<[u8]>, i32>);

impl Names {
    fn place(&mut self, text: &[u8]) -> i32 {
        if let Some(&place) = self.0.get(text) {
            return place;
        }
        let place = self.0.len() as i32;
        self.0.insert(text.into(), place);
        place
    }

    fn optional(&mut self, text: Text) -> i32 {
        text.map_or(NONE, |text| self.place(text))
    }

    /// Returns the texts in their order.
    pub fn into_texts(self) -> Vec<Box<[u8]>> {
        let mut pairs: Vec<_> = self.0.into_iter().collect();
        pairs.sort_unstable_by_key(|&(_, place)| place);
        pairs.into_iter().map(|(text, _)| text).collect()
    }
}

/// The operations so far, a row for each, in the order of their invokes.
#[derive(Default)]
pub struct Rows {
    pub key: Vec<i32>,
    pub f: Vec<i32>,
    pub kind: Vec<u8>,
    pub process: Vec<i64>,
    pub start: Vec<i64>,
    pub end: Vec<i64>,
    pub start_ns: Vec<i64>,
    pub end_ns: Vec<i64>,
    pub value: Vec<Value>,
    pub result: Vec<Value>,
    pub node: Vec<i32>,
    pub error: Vec<i32>,
    pub scheduled: Vec<i64>,
    pub phase: Vec<i32>,
    pub via: Vec<i32>,
    /// By row, the system's own number; only rows that have one.
    pub order: Vec<(i64, i64)>,
}

/// A completion that is not ok, and whose value may differ from that of its invoke.
pub struct Changed {
    pub row: usize,
    pub line: usize,
    pub failed: bool,
    pub value: Value,
}

#[derive(Default)]
struct Process {
    open: Option<usize>,
    has_ended: bool,
    free_ns: i64,
    /// The time of its first event.
    first_ns: i64,
    /// Whether its first event completes an operation that it invoked before this part.
    is_begun: bool,
}

/// What one part of a history in JSON Lines tells about its ends.
#[derive(Default)]
pub struct Part {
    /// The index of its first event.
    pub first: i64,
    /// Lines that the reader in Python takes, each with its number: of faults, and completions of operations of earlier parts.
    pub lines: Vec<(usize, Box<[u8]>)>,
    keeps: bool,
}

/// A process of a part.
pub struct Worker {
    pub process: i64,
    pub first_ns: i64,
    pub free_ns: i64,
    pub is_begun: bool,
    pub is_open: bool,
    pub has_ended: bool,
}

/// Takes the text of a history piece by piece.
pub struct Events {
    format: Format,
    /// Whether values are pairs of a key and a value, in JSON of events without a key.
    keyed: bool,
    /// The transactions, if the values are such. In a column of values, a text has the place of twice the row for a request, and one
    /// more for its answer.
    pub transactions: Option<Parser>,
    pub rows: Rows,
    pub keys: Names,
    pub functions: Names,
    pub values: Names,
    /// Other names: of nodes, errors, phases.
    pub names: Names,
    /// Texts that nothing uses, but which must be well-formed.
    pub unused: Names,
    pub changed: Vec<Changed>,
    pub count: i64,
    pub line: usize,
    /// The first line whose time is below that of the line before.
    pub back_line: Option<usize>,
    /// Whether all events of clients have an index, and a time; None before the first one.
    pub indexed: Option<bool>,
    pub timed: Option<bool>,
    index: i64,
    time_ns: i64,
    processes: HashMap<i64, Process, FastHasher>,
    /// EDN: the closing bracket around everything, once it was opened, and whether it was closed.
    around: Option<u8>,
    is_closed: bool,
    has_begun: bool,
    /// None: the text is the whole history.
    pub part: Option<Part>,
}

impl Events {
    /// Starts a history at a line, maybe of transactions; None if there is no such format.
    pub fn new(format: &str, keyed: bool, line: usize, transactions: Option<Workload>) -> Option<Self> {
        let format = match format {
            "jsonl" => Format::Jsonl,
            "json-lines" => Format::Bare,
            "edn" => Format::Edn,
            "console-log" | "jepsen-log" => Format::Log,
            "history-txt" => Format::Txt,
            _ => return None,
        };
        Some(Self {
            format,
            keyed,
            transactions: transactions.map(|workload| {
                Parser::new(workload, if format == Format::Edn { Syntax::Edn } else { Syntax::Json })
            }),
            rows: Rows::default(),
            keys: Names::default(),
            functions: Names::default(),
            values: Names::default(),
            names: Names::default(),
            unused: Names::default(),
            changed: Vec::new(),
            count: 0,
            line,
            back_line: None,
            indexed: None,
            timed: None,
            index: -1,
            time_ns: -1,
            processes: HashMap::default(),
            around: None,
            is_closed: false,
            has_begun: false,
            part: None,
        })
    }

    /// Takes only a part of the lines of a history, without a header; None for other formats.
    pub fn into_part(self) -> Option<Self> {
        (self.format == Format::Jsonl).then(|| Self { part: Some(Part::default()), ..self })
    }

    /// Returns the processes of a part, in their order.
    pub fn workers(&self) -> Vec<Worker> {
        let mut found: Vec<Worker> = self
            .processes
            .iter()
            .map(|(&process, state)| Worker {
                process,
                first_ns: state.first_ns,
                free_ns: state.free_ns,
                is_begun: state.is_begun,
                is_open: state.open.is_some(),
                has_ended: state.has_ended,
            })
            .collect();
        found.sort_unstable_by_key(|worker| worker.process);
        found
    }

    /// Lets a part begin with the index of its first event.
    fn begin_part(&mut self, event: &Event) {
        if let (Some(part), Some(index)) = (&mut self.part, event.index) {
            part.keeps = false;
            if !std::mem::replace(&mut self.has_begun, true) {
                part.first = index;
                (self.index, self.count) = (index - 1, index);
            }
        }
    }

    /// Keeps a line that was taken, if Python has to read it.
    fn keep(&mut self, number: usize, line: &[u8]) {
        if let Some(part) = self.part.as_mut().filter(|part| part.keeps) {
            part.lines.push((number, line.into()));
        }
    }

    /// Takes the whole events at the beginning of a text, and returns their length in bytes.
    pub fn feed(&mut self, text: &[u8]) -> Plain<usize> {
        match self.format {
            Format::Jsonl | Format::Bare => json::feed(self, text),
            Format::Edn => edn::feed(self, text),
            Format::Log | Format::Txt => log::feed(self, text),
        }
    }

    /// Whether the history may end here.
    pub fn may_end(&self) -> bool {
        self.around.is_none() || self.is_closed
    }

    /// Whether there is a vector or list around everything.
    pub fn is_around(&self) -> bool {
        self.around.is_some()
    }

    /// Returns a value and interns its text; all values in the order of events, as Python decodes them.
    fn value_of(&mut self, text: Text) -> Value {
        let Some(text) = text else { return Value::default() };
        typed(text, self.format).unwrap_or_else(|| Value {
            kind: OTHER,
            first: i64::from(self.values.place(text)),
            second: 0,
        })
    }

    /// Reads the value that begins at a place of a text as a transaction; returns its end, if it is one.
    fn transaction(&mut self, text: &[u8], at: usize) -> Result<Option<usize>, Torn> {
        let Some(parser) = &mut self.transactions else { return Ok(None) };
        match parser.read(text, at, true) {
            Ok(end) => Ok(Some(end)),
            Err(Stop::Torn) => Err(Torn),
            Err(Stop::Wrong(..)) => Ok(None),
        }
    }

    /// Adds an event of the nemesis.
    fn add_fault(&mut self, event: &Event) -> Plain<()> {
        if event.order.is_some() {
            return Err(Unplain);
        }
        let fits = match self.format {
            Format::Edn => match (event.index, self.indexed) {
                // The index counts if the events of clients have one.
                (Some(index), Some(true) | None) => index > std::mem::replace(&mut self.index, index),
                _ => true,
            },
            Format::Jsonl => event.kind == Some(INFO) && event.index == Some(self.count) && event.time.is_some(),
            Format::Bare | Format::Log | Format::Txt => true,
        };
        if !fits {
            return Err(Unplain);
        }
        self.count += 1;
        if let Some(part) = &mut self.part {
            part.keeps = true;
            return Ok(());
        }
        for text in [event.value, event.key, event.node, event.error, event.phase, event.via].into_iter().flatten() {
            self.unused.place(text);
        }
        Ok(())
    }

    /// Returns whether an event has a time if the first one has.
    fn is_timed_alike(&mut self, event: &Event) -> bool {
        *self.timed.get_or_insert(event.time.is_some()) == event.time.is_some()
    }

    /// Returns the index and the time of an event of a client.
    fn placed(&mut self, event: &Event) -> Plain<(i64, i64)> {
        let indexed = event.index.is_some();
        if *self.indexed.get_or_insert(indexed) != indexed || !self.is_timed_alike(event) {
            return Err(Unplain);
        }
        let index = event.index.unwrap_or(self.count);
        let fits = if self.format == Format::Jsonl {
            index == self.count && indexed && event.time.is_some()
        } else {
            index > self.index
        };
        if !fits {
            return Err(Unplain);
        }
        self.index = index;
        self.count += 1;
        Ok((index, event.time.unwrap_or(0)))
    }

    /// Adds the event that begins in a line.
    fn add(&mut self, event: &Event, line: usize) -> Plain<()> {
        let (Some(kind), Some(f)) = (event.kind, event.f) else { return Err(Unplain) };
        if !event.has_process {
            return Err(Unplain);
        }
        self.begin_part(event);
        let Some(process) = event.process else {
            // Also the names of functions must be well-formed.
            if self.part.is_none() {
                self.unused.place(f);
            }
            return self.add_fault(event);
        };
        let (index, time_ns) = self.placed(event)?;
        if let (Some(part), true) = (&mut self.part, kind != INVOKE && !self.processes.contains_key(&process)) {
            part.keeps = true;
            let state = Process {
                has_ended: kind == INFO,
                free_ns: time_ns,
                first_ns: time_ns,
                is_begun: true,
                ..Process::default()
            };
            self.processes.insert(process, state);
            return Ok(());
        }
        let (mut key, mut value, mut has_value) = (event.key, event.value, event.value.is_some());
        let is_json = self.format.is_json();
        let nil: &[u8] = if is_json { b"null" } else { b"nil" };
        value = value.filter(|&text| text != nil);
        if matches!(self.format, Format::Log | Format::Txt) && event.error.is_some() {
            // The reader in Python decodes an error as a value, too.
            self.value_of(event.error);
        }
        if self.keyed {
            if self.format != Format::Jsonl && value.is_none() && (kind == FAIL || kind == INFO) {
                has_value = false;
            } else if key.is_none() {
                let text = value.ok_or(Unplain)?;
                let (first, second) = if is_json { json::tuple(text)? } else { edn::tuple(text)? };
                key = Some(first);
                value = Some(second).filter(|&text| text != nil);
            }
        }
        let is_transaction = event.is_transaction && !self.keyed;
        if self.transactions.is_some() && !is_transaction && (value.is_some() || kind == INVOKE || kind == OK) {
            return Err(Unplain);
        }
        let value = if is_transaction { Value::default() } else { self.value_of(value) };
        let key = self.keys.optional(key);
        let f = self.functions.place(f);
        let (node, error) = (self.names.optional(event.node), self.names.optional(event.error));
        let (phase, via) = (self.names.optional(event.phase), self.names.optional(event.via));
        if time_ns < self.time_ns {
            self.back_line.get_or_insert(line);
        }
        self.time_ns = time_ns;
        let state =
            self.processes.entry(process).or_insert_with(|| Process { first_ns: time_ns, ..Process::default() });
        let rows = &mut self.rows;
        if kind == INVOKE {
            if state.open.is_some() || state.has_ended || time_ns < state.free_ns || event.order.is_some() {
                return Err(Unplain);
            }
            let mut value = value;
            if let Some(parser) = &mut self.transactions {
                if !parser.is_request() {
                    return Err(Unplain);
                }
                parser.add(false);
                value = of_transaction(rows.start.len(), false);
            }
            state.open = Some(rows.start.len());
            rows.key.push(key);
            rows.f.push(f);
            rows.kind.push(INFO);
            rows.process.push(process);
            rows.start.push(index);
            rows.end.push(-1);
            rows.start_ns.push(time_ns);
            rows.end_ns.push(-1);
            rows.value.push(value);
            rows.result.push(Value::default());
            rows.node.push(node);
            rows.error.push(NONE);
            rows.scheduled.push(event.scheduled.unwrap_or(-1));
            rows.phase.push(phase);
            rows.via.push(NONE);
            return Ok(());
        }
        let row = state.open.take().ok_or(Unplain)?;
        let other_key = key != rows.key[row] && (has_value || key != NONE);
        if f != rows.f[row] || time_ns < rows.start_ns[row] || other_key {
            return Err(Unplain);
        }
        if let (Some(parser), true) = (&mut self.transactions, is_transaction) {
            if kind == OK {
                parser.answer(row).map_err(|_| Unplain)?;
                rows.result[row] = of_transaction(row, true);
            } else if !parser.is_same(row) {
                return Err(Unplain);
            }
        } else if kind == OK {
            rows.result[row] = value;
        } else if has_value && value != rows.value[row] {
            self.changed.push(Changed { row, line, failed: kind == FAIL, value });
        }
        state.has_ended = kind == INFO;
        state.free_ns = time_ns;
        rows.kind[row] = kind;
        rows.end[row] = index;
        rows.end_ns[row] = time_ns;
        rows.error[row] = error;
        rows.via[row] = via;
        if let Some(order) = event.order {
            rows.order.push((row as i64, order));
        }
        Ok(())
    }
}

/// Returns the value of a row that is a transaction.
fn of_transaction(row: usize, is_answer: bool) -> Value {
    Value { kind: OTHER, first: row as i64 * 2 + i64::from(is_answer), second: 0 }
}

/// Returns the value of a text if it is no number, an integer or a pair of integers in the usual form; else None.
fn typed(text: &[u8], format: Format) -> Option<Value> {
    if let Some(first) = integer(text) {
        return Some(Value { kind: INTEGER, first, second: 0 });
    }
    let inner = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    if inner.len() > 2 * DIGITS + 4 {
        return None;
    }
    let separator = if format.is_json() { b',' } else { b' ' };
    let mut parts = inner.split(|&byte| byte == separator);
    let (first, second) = (integer(parts.next()?)?, integer(parts.next()?)?);
    parts.next().is_none().then_some(Value { kind: PAIR, first, second })
}

/// Returns the integer of a text in its canonical form, if it has at most 18 digits.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let number = count(digits)?;
    match (digits.len() < text.len(), number) {
        (true, 0) => None,
        (true, _) => Some(-number),
        _ => Some(number),
    }
}

/// Returns the number of a text of digits in its canonical form, if it has at most 18 of them.
fn count(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > DIGITS || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    text.iter().try_fold(0_i64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

/// Returns the end of a string that begins at `at`, after its closing quote; None if the text ends before.
fn end_of_string(text: &[u8], at: usize) -> Plain<Option<usize>> {
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return Ok(Some(at + 1)),
            b'\\' => at += 2,
            0..=31 => return Err(Unplain),
            _ => at += 1,
        }
    }
    Ok(None)
}
