//! Finds the ends of values in the text of a transaction, in JSON or EDN.

/// Bytes that are compared at once.
const STEP: usize = 32;

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON without spaces, as `checker/formats/parquet.py` writes it.
    Canonical,
    /// JSON of a file.
    Json,
    Edn,
}

/// Why a text is no micro-operation.
pub enum Bad {
    Torn,
    Wrong(&'static str),
}

pub const NO_MOP: Bad = Bad::Wrong("not-a-micro-operation");
impl Syntax {
    /// Returns the place of the next member of a list, or of its closing bracket.
    pub fn member(self, text: &[u8], at: usize, first: bool) -> Result<usize, Bad> {
        let mut at = self.spaces(text, at);
        if self != Syntax::Edn && !first && byte_at(text, at)? != b']' {
            if text[at] != b',' {
                return Err(NO_MOP);
            }
            at = self.spaces(text, at + 1);
            if byte_at(text, at)? == b']' {
                return Err(NO_MOP);
            }
        }
        byte_at(text, at)?;
        Ok(at)
    }

    pub fn spaces(self, text: &[u8], mut at: usize) -> usize {
        while let Some(byte) = text.get(at) {
            match (byte, self) {
                (b' ', Syntax::Json | Syntax::Edn) | (b',' | b'\t' | b'\r', Syntax::Edn) => at += 1,
                _ => break,
            }
        }
        at
    }

    /// Returns the place of the next part of a micro-operation.
    pub fn part(self, text: &[u8], at: usize, first: bool) -> Result<usize, Bad> {
        let at = self.member(text, at, first)?;
        if text[at] == b']' {
            return Err(NO_MOP);
        }
        Ok(at)
    }

    /// Returns the place after the closing bracket of a micro-operation.
    pub fn end(self, text: &[u8], at: usize) -> Result<usize, Bad> {
        let at = self.spaces(text, at);
        if byte_at(text, at)? != b']' {
            return Err(NO_MOP);
        }
        Ok(at + 1)
    }

    pub fn is_nil(self, text: &[u8], at: usize) -> Result<bool, Bad> {
        let nil: &[u8] = if self == Syntax::Edn { b"nil" } else { b"null" };
        if nil.starts_with(&text[at..]) {
            return Err(Bad::Torn);
        }
        Ok(text[at..].starts_with(nil) && is_delimiter(byte_at(text, at + nil.len())?))
    }

    /// Returns the end of the value that begins at a place.
    pub fn value_end(self, text: &[u8], at: usize) -> Result<usize, Bad> {
        if self == Syntax::Canonical {
            return value_end(text, at).ok_or(NO_MOP);
        }
        if text[at] == b'"' {
            return string_end(text, at);
        }
        let length = text[at..].iter().position(|&byte| is_delimiter(byte)).ok_or(Bad::Torn)?;
        if length == 0 {
            return Err(NO_MOP);
        }
        Ok(at + length)
    }
}

pub fn byte_at(text: &[u8], at: usize) -> Result<u8, Bad> {
    text.get(at).copied().ok_or(Bad::Torn)
}

/// Returns the number of bytes with which both texts begin.
pub fn same_bytes(one: &[u8], other: &[u8]) -> usize {
    let steps = one.chunks_exact(STEP).zip(other.chunks_exact(STEP));
    let begin = steps.take_while(|(one, other)| one == other).count() * STEP;
    begin + one[begin..].iter().zip(&other[begin..]).take_while(|(one, other)| one == other).count()
}

pub fn is_delimiter(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b']' | b'\t' | b'\r')
}

/// Returns the end of a string of ASCII without escapes.
fn string_end(text: &[u8], at: usize) -> Result<usize, Bad> {
    for (place, byte) in text.iter().enumerate().skip(at + 1) {
        match byte {
            b'"' => return Ok(place + 1),
            b'\\' | 0..=31 | 127.. => return Err(NO_MOP),
            _ => {}
        }
    }
    Err(Bad::Torn)
}

/// Returns the end of the canonical JSON that begins at a place; None if it does not end.
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
