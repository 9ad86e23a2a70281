//! Events as lines of Jepsen's console log, among other lines.

use super::{count, Event, Events, Plain, Unplain, FAIL, INFO, INVOKE, OK};

/// The reader in Python cuts longer lines.
const MOST_BYTES: usize = 60_000;

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
        if let Some(rest) = after_mark(line) {
            if let Some(event) = event(rest)? {
                let number = events.line;
                events.add(&event, number)?;
            }
        }
        events.line += 1;
    }
    Ok(whole)
}

/// Returns what follows the logger's name; None for a line of another logger.
fn after_mark(line: &[u8]) -> Option<&[u8]> {
    let mut rest = spaces(line.strip_prefix(b"INFO")?)?;
    if let Some(thread) = rest.strip_prefix(b"[") {
        let end = thread.iter().position(|&byte| byte == b']')?;
        rest = thread[end + 1..].trim_ascii_start();
    }
    let rest = spaces(rest.strip_prefix(b"jepsen.util")?)?;
    spaces(rest.strip_prefix(b"-")?)
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
    let f = f.strip_prefix(b":").filter(|name| !name.is_empty()).ok_or(Unplain)?;
    let kind = match kind {
        b":invoke" => INVOKE,
        b":ok" => OK,
        b":fail" => FAIL,
        b":info" => INFO,
        _ => return Err(Unplain),
    };
    if value.is_empty() {
        return Err(Unplain);
    }
    let mut event = Event { kind: Some(kind), has_process: true, f: Some(f), ..Event::default() };
    if process == b":nemesis" {
        return Ok(Some(event));
    }
    event.process = Some(count(process).ok_or(Unplain)?);
    if value.starts_with(b":") && (kind == FAIL || kind == INFO) {
        event.error = Some(value);
    } else {
        event.value = Some(value);
    }
    Ok(Some(event))
}

/// Returns the first word of a text, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}
