//! Events as maps of EDN, in a vector or list around everything or without it.

use super::{count, end_of_string, integer, Event, Events, Plain, Unplain, FAIL, INFO, INVOKE, MOST_NESTED, OK};

const MOST_BYTES: usize = 1 << 20;
const MOST_UNKNOWN: usize = 16;

/// Takes all whole maps of a text, and returns their length.
pub fn feed(events: &mut Events, text: &[u8]) -> Plain<usize> {
    let mut cursor = Cursor { text, at: 0, lines: 0 };
    let mut taken = 0;
    loop {
        cursor.space();
        if !cursor.has_more() {
            // A last map may be complete only with the next piece of the text.
            events.line += cursor.lines;
            return Ok(cursor.at);
        }
        let begin = cursor.at;
        match cursor.next() {
            _ if events.is_closed => return Err(Unplain),
            open @ (b'[' | b'(') if !events.has_begun => {
                events.around = Some(if open == b'[' { b']' } else { b')' });
                events.has_begun = true;
                cursor.at += 1;
            }
            close @ (b']' | b')') if events.around == Some(close) => {
                events.is_closed = true;
                cursor.at += 1;
            }
            b'{' => {
                let (lines, line) = (cursor.lines, events.line + cursor.lines);
                let Some(event) = cursor.event(&mut *events)? else {
                    events.line += lines;
                    return if text.len() - begin > MOST_BYTES { Err(Unplain) } else { Ok(begin) };
                };
                events.has_begun = true;
                events.add(&event, line)?;
            }
            _ => return Err(Unplain),
        }
        debug_assert!(cursor.at > taken);
        taken = cursor.at;
    }
}

/// Returns both members of a vector of two.
pub fn tuple(text: &[u8]) -> Plain<(&[u8], &[u8])> {
    if text.first() != Some(&b'[') {
        return Err(Unplain);
    }
    let mut cursor = Cursor { text, at: 1, lines: 0 };
    cursor.space();
    let first = cursor.value()?.ok_or(Unplain)?;
    cursor.space();
    let second = cursor.value()?.ok_or(Unplain)?;
    cursor.space();
    cursor.at += 1;
    if cursor.at == text.len() && first != b"nil" {
        Ok((first, second))
    } else {
        Err(Unplain)
    }
}

/// A place in a text.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    lines: usize,
}

impl<'a> Cursor<'a> {
    fn next(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    fn has_more(&self) -> bool {
        self.at < self.text.len()
    }

    fn space(&mut self) {
        loop {
            match self.next() {
                b'\n' => self.lines += 1,
                b' ' | b',' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Returns an event; None if the text ends before it.
    fn event(&mut self, events: &mut Events) -> Plain<Option<Event<'a>>> {
        let mut event = Event::default();
        let mut seen = 0_u16;
        let mut unknown: Vec<(&[u8], &[u8])> = Vec::new();
        self.at += 1;
        loop {
            self.space();
            if !self.has_more() {
                return Ok(None);
            }
            if self.next() == b'}' {
                self.at += 1;
                break;
            }
            if self.next() != b':' {
                return Err(Unplain);
            }
            let Some(name) = self.value()? else { return Ok(None) };
            self.space();
            let begin = self.at;
            if name == b":value" && self.next() == b'[' {
                match events.transaction(self.text, begin) {
                    Err(_) => return Ok(None),
                    Ok(Some(end)) if end - begin <= MOST_BYTES => {
                        event.is_transaction = true;
                        self.at = end;
                    }
                    Ok(_) => {}
                }
            }
            let value = if self.at > begin {
                &self.text[begin..self.at]
            } else {
                let Some(value) = self.value()? else { return Ok(None) };
                value
            };
            let text = (value != b"nil").then_some(value);
            let place = match name {
                b":index" => {
                    event.index = Some(count(value).ok_or(Unplain)?);
                    0
                }
                b":time" => {
                    event.time = Some(count(value).ok_or(Unplain)?);
                    1
                }
                b":type" => {
                    event.kind = Some(match value {
                        b":invoke" => INVOKE,
                        b":ok" => OK,
                        b":fail" => FAIL,
                        b":info" => INFO,
                        _ => return Err(Unplain),
                    });
                    2
                }
                b":process" => {
                    event.has_process = true;
                    event.process = count(value);
                    if event.process.is_none() && value != b":nemesis" {
                        return Err(Unplain);
                    }
                    3
                }
                b":f" => {
                    if !matches!(value[0], b':' | b'"') {
                        return Err(Unplain);
                    }
                    event.f = Some(value);
                    4
                }
                b":value" => {
                    event.value = Some(value);
                    5
                }
                b":key" => {
                    event.key = text;
                    6
                }
                b":node" => {
                    event.node = text;
                    7
                }
                b":error" => {
                    event.error = text;
                    8
                }
                b":scheduled" => {
                    event.scheduled = text.map(|text| count(text).ok_or(Unplain)).transpose()?;
                    9
                }
                b":phase" => {
                    event.phase = text;
                    10
                }
                b":via" => {
                    event.via = text;
                    11
                }
                b":order" => {
                    event.order = text.map(|text| integer(text).ok_or(Unplain)).transpose()?;
                    12
                }
                b":labrys/conventions" if events.count == 0 => 13, // known already
                b":labrys/conventions" => return Err(Unplain),
                _ => {
                    if unknown.len() >= MOST_UNKNOWN || unknown.iter().any(|&(other, _)| other == name) {
                        return Err(Unplain);
                    }
                    unknown.push((name, value));
                    continue;
                }
            };
            if seen & (1 << place) != 0 {
                return Err(Unplain);
            }
            seen |= 1 << place;
        }
        for (name, value) in unknown {
            events.unused.place(name);
            events.unused.place(value);
        }
        Ok(Some(event))
    }

    /// Returns the text of a value; None if the whole text ends before or with it. Python checks it.
    fn value(&mut self) -> Plain<Option<&'a [u8]>> {
        let begin = self.at;
        let mut depth = 0;
        loop {
            match self.next() {
                0 if !self.has_more() => return Ok(None),
                b'"' => {
                    let Some(end) = end_of_string(self.text, self.at)? else { return Ok(None) };
                    if std::str::from_utf8(&self.text[self.at..end]).is_err() {
                        return Err(Unplain);
                    }
                    self.at = end;
                }
                b'[' | b'(' | b'{' if depth < MOST_NESTED => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'#' if self.text.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    continue;
                }
                b']' | b')' | b'}' if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                b' ' | b',' | b'\t' | b'\r' | b'\n' if depth > 0 => {
                    self.space();
                    continue;
                }
                byte if is_name(byte) => {
                    while is_name(self.next()) {
                        self.at += 1;
                    }
                    // In the middle of a name if the text ends here.
                    if !self.has_more() {
                        return Ok(None);
                    }
                    if !matches!(self.next(), b' ' | b',' | b'\t' | b'\r' | b'\n' | b']' | b')' | b'}') {
                        return Err(Unplain);
                    }
                }
                _ => return Err(Unplain),
            }
            if depth == 0 {
                return if self.at - begin <= MOST_BYTES {
                    Ok(Some(&self.text[begin..self.at]))
                } else {
                    Err(Unplain)
                };
            }
        }
    }
}

/// Whether a byte is one of a plain name or number.
pub fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b":-_./*+!?<>=%&$".contains(&byte)
}
