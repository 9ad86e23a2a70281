//! Events as JSON Lines, after the header or without one.

use super::{
    count, end_of_string, integer, Event, Events, Format, Plain, Unplain, FAIL, INFO, INVOKE, MOST_NESTED, OK,
};

const MOST_BYTES: usize = 1 << 24;
const MOST_UNKNOWN: usize = 16;
/// The place of all members that are not known.
const UNKNOWN: u8 = 15;

/// Takes all whole lines of a text, and returns their length.
pub fn feed(events: &mut Events, text: &[u8]) -> Plain<usize> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    if std::str::from_utf8(&text[..whole]).is_err() {
        return Err(Unplain);
    }
    let mut begin = 0;
    while begin < whole {
        let mut line = Line { text: &text[begin..whole], at: 0 };
        let mut event = line.event(events)?;
        if events.format == Format::Bare {
            event.index = None;
        } else if event.value.is_none() {
            return Err(Unplain);
        }
        let number = events.line;
        events.add(&event, number)?;
        let end = begin + line.at;
        events.keep(number, &text[begin..end]);
        events.line += 1;
        begin = end;
    }
    Ok(whole)
}

/// Returns both members of a list of two, the first of which is a string.
pub fn tuple(text: &[u8]) -> Plain<(&[u8], &[u8])> {
    let mut line = Line { text, at: 0 };
    line.sign(b'[')?;
    let first = line.string()?;
    line.sign(b',')?;
    let second = line.value()?;
    line.sign(b']')?;
    if line.at == text.len() {
        Ok((first, second))
    } else {
        Err(Unplain)
    }
}

/// The rest of a text, at a place in its first line.
struct Line<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Line<'a> {
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn take(&mut self, byte: u8) -> Plain<()> {
        if self.next() != byte {
            return Err(Unplain);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes a byte and the spaces before and after it, as most writers of JSON put them.
    fn sign(&mut self, byte: u8) -> Plain<()> {
        self.spaces();
        self.take(byte)?;
        self.spaces();
        Ok(())
    }

    fn spaces(&mut self) {
        while self.next() == b' ' {
            self.at += 1;
        }
    }

    fn event(&mut self, events: &mut Events) -> Plain<Event<'a>> {
        let mut event = Event::default();
        let mut seen = 0_u16;
        let mut unknown: Vec<(&[u8], &[u8])> = Vec::new();
        let is_bare = events.format == Format::Bare;
        self.sign(b'{')?;
        loop {
            let name = self.string()?;
            self.sign(b':')?;
            let begin = self.at;
            if name == b"\"value\"" && self.next() == b'[' {
                if let Ok(Some(end)) = events.transaction(self.text, begin) {
                    event.is_transaction = true;
                    self.at = end;
                }
            }
            let value = if self.at > begin { &self.text[begin..self.at] } else { self.value()? };
            let text = (value != b"null").then_some(value);
            let string = text.map(|text| if text[0] == b'"' { Ok(text) } else { Err(Unplain) });
            let place = match name {
                b"\"index\"" if !is_bare => {
                    event.index = Some(count(value).ok_or(Unplain)?);
                    0
                }
                b"\"time\"" => {
                    let is_missing = is_bare && matches!(value, b"null" | b"-1");
                    event.time = if is_missing { None } else { Some(count(value).ok_or(Unplain)?) };
                    1
                }
                b"\"type\"" => {
                    event.kind = Some(match value {
                        b"\"invoke\"" => INVOKE,
                        b"\"ok\"" => OK,
                        b"\"fail\"" => FAIL,
                        b"\"info\"" => INFO,
                        _ => return Err(Unplain),
                    });
                    2
                }
                b"\"process\"" => {
                    event.has_process = true;
                    event.process = count(value);
                    if event.process.is_none() && value != b"\"nemesis\"" {
                        return Err(Unplain);
                    }
                    3
                }
                b"\"f\"" => {
                    event.f = Some(string.ok_or(Unplain)??);
                    4
                }
                b"\"value\"" => {
                    event.value = Some(value);
                    5
                }
                b"\"key\"" => {
                    event.key = string.transpose()?;
                    6
                }
                b"\"node\"" => {
                    event.node = string.transpose()?;
                    7
                }
                b"\"error\"" => {
                    event.error = string.transpose()?;
                    8
                }
                b"\"scheduled\"" => {
                    event.scheduled = text.map(|text| count(text).ok_or(Unplain)).transpose()?;
                    9
                }
                b"\"phase\"" => {
                    event.phase = string.transpose()?;
                    10
                }
                b"\"via\"" => {
                    event.via = string.transpose()?;
                    11
                }
                b"\"order\"" => {
                    event.order = text.map(|text| integer(text).ok_or(Unplain)).transpose()?;
                    12
                }
                _ if is_bare && unknown.len() < MOST_UNKNOWN && unknown.iter().all(|&(other, _)| other != name) => {
                    unknown.push((name, value));
                    UNKNOWN
                }
                _ => return Err(Unplain),
            };
            if seen & (1 << place) != 0 {
                return Err(Unplain);
            }
            if place != UNKNOWN {
                seen |= 1 << place;
            }
            self.spaces();
            if self.next() == b',' {
                self.sign(b',')?;
                continue;
            }
            self.take(b'}')?;
            self.spaces();
            if self.next() == b'\r' {
                self.at += 1;
            }
            self.take(b'\n')?;
            for (name, value) in unknown {
                events.unused.place(name);
                events.unused.place(value);
            }
            return if self.at <= MOST_BYTES { Ok(event) } else { Err(Unplain) };
        }
    }

    fn string(&mut self) -> Plain<&'a [u8]> {
        if self.next() != b'"' {
            return Err(Unplain);
        }
        let begin = self.at;
        self.at = end_of_string(self.text, begin)?.ok_or(Unplain)?;
        Ok(&self.text[begin..self.at])
    }

    /// Returns the text of a value; Python checks it if it is more than an integer.
    fn value(&mut self) -> Plain<&'a [u8]> {
        let begin = self.at;
        let mut depth = 0;
        loop {
            match self.next() {
                b'"' => {
                    self.string()?;
                }
                b'[' | b'{' if depth < MOST_NESTED => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b']' | b'}' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'+' | b'.' => {
                    while matches!(self.next(), b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'+' | b'.') {
                        self.at += 1;
                    }
                }
                _ => return Err(Unplain),
            }
            if depth == 0 {
                return Ok(&self.text[begin..self.at]);
            }
        }
    }
}
