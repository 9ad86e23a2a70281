//! Events as lines of Jepsen's console log, among other lines, and as the lines of its history.txt.

use super::edn::is_name;
use super::{count, Event, Events, Format, Plain, Unplain, FAIL, INFO, INVOKE, OK};

/// The reader in Python cuts longer lines.
const MOST_BYTES: usize = 60_000;

const LOGGER: &[u8] = b"jepsen.util";

/// Takes all whole lines of a text, and returns their length.
pub fn feed(events: &mut Events, text: &[u8]) -> Plain<usize> {
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let text = &text[..whole];
    // In Python, a vertical tab is a space.
    if std::str::from_utf8(text).is_err() || text.iter().any(|&byte| byte == 0 || byte == b'\x0b') {
        return Err(Unplain);
    }
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if line.len() > MOST_BYTES {
            return Err(Unplain);
        }
        let found = match events.format {
            Format::Txt => Some(event(line)?.ok_or(Unplain)?),
            _ => match after_mark(line)? {
                Some(rest) => event(rest)?,
                None => None,
            },
        };
        if let Some(event) = found {
            let number = events.line;
            events.add(&event, number)?;
        }
        events.line += 1;
    }
    Ok(whole)
}

/// Returns what follows the logger's name; None for a line of another logger.
fn after_mark(line: &[u8]) -> Plain<Option<&[u8]>> {
    let mut begin = 0;
    while let Some(at) = line[begin..].windows(LOGGER.len()).position(|part| part == LOGGER) {
        let (start, end) = (begin + at, begin + at + LOGGER.len());
        let is_word = start == 0 || !(line[start - 1].is_ascii_alphanumeric() || line[start - 1] == b'_');
        if let Some(rest) = after_separator(&line[end..]).filter(|_| is_word) {
            return Ok(Some(rest));
        }
        begin = end;
    }
    // Python looks for an event between tabs.
    if line.contains(&b'\t') {
        return Err(Unplain);
    }
    Ok(None)
}

/// Returns what follows the separator of a logger's name and its message: spaces, maybe with a dash between them or a colon before.
fn after_separator(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = spaces(text) {
        return Some(rest.strip_prefix(b"-").and_then(spaces).unwrap_or(rest));
    }
    text.strip_prefix(b":").and_then(spaces)
}

/// Returns what follows at least one space.
fn spaces(text: &[u8]) -> Option<&[u8]> {
    let rest = text.trim_ascii_start();
    (rest.len() < text.len()).then_some(rest)
}

/// Returns the event of a line of the logger; None for another message, which does not even begin like one.
fn event(text: &[u8]) -> Plain<Option<Event<'_>>> {
    let text = text.trim_ascii_end();
    if text.iter().any(|&byte| byte < b' ' && byte != b'\t') {
        return Err(Unplain);
    }
    let (process, rest) = word(text);
    let (kind, rest) = word(rest);
    let is_number = process.iter().all(|&byte| byte.is_ascii_digit() || byte == b'-');
    if !is_number && process != b":nemesis" && !kind.starts_with(b":") {
        return Ok(None);
    }
    let (f, value) = word(rest);
    let is_plain = |name: &&[u8]| !name.is_empty() && name.iter().all(|&byte| is_name(byte) && byte != b':');
    let f = f.strip_prefix(b":").filter(is_plain).ok_or(Unplain)?;
    let kind = match kind {
        b":invoke" => INVOKE,
        b":ok" => OK,
        b":fail" => FAIL,
        b":info" => INFO,
        _ => return Err(Unplain),
    };
    // A semicolon may begin a comment, which no value of a line has. A comma beside a value is text to Python.
    if value.is_empty() || value.contains(&b';') || value[0] == b',' || value.ends_with(b",") {
        return Err(Unplain);
    }
    let mut event = Event { kind: Some(kind), has_process: true, f: Some(f), ..Event::default() };
    if process == b":nemesis" {
        return Ok(Some(event));
    }
    event.process = Some(count(process).ok_or(Unplain)?);
    if (kind == FAIL || kind == INFO) && !is_evident(value) {
        // A keyword alone is the cause; any other word may be text, which Python tells from a value.
        if !value.starts_with(b":") {
            return Err(Unplain);
        }
        event.error = Some(value);
    } else {
        event.value = Some(value);
    }
    Ok(Some(event))
}

/// Whether a text begins as a value, and not as a name.
fn is_evident(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    digits.first().is_some_and(u8::is_ascii_digit)
        || matches!(text[0], b'[' | b'(' | b'{' | b'"')
        || matches!(text, b"nil" | b"true" | b"false")
}

/// Returns the first word of a text, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}
