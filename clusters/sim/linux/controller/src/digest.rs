//! The digest of an execution, and its log. Two runs of a seed must have equal digests; two logs show where they differ first.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

const SECOND: u64 = 1_000_000_000;
const MOST_SHOWN: usize = 96; // bytes of data in a line of the log

/// The digest of all that happened so far. It finds differences; it is no protection against an adversary.
#[derive(Clone)]
pub struct Digest {
    low: u64,
    high: u64,
    /// A part of the digest at the end of each virtual second so far.
    seconds: Vec<u32>,
    /// Copies of a run write into the same one.
    log: Option<Rc<RefCell<BufWriter<File>>>>,
}

impl Digest {
    /// Begins an empty execution, with a log if there is a path for it.
    pub fn new(log: Option<&Path>) -> io::Result<Self> {
        let log = log.map(File::create).transpose()?;
        Ok(Self {
            low: 0x243F_6A88_85A3_08D3,
            high: 0x1319_8A2E_0370_7344,
            seconds: Vec::new(),
            log: log.map(|file| Rc::new(RefCell::new(BufWriter::with_capacity(1 << 20, file)))),
        })
    }

    /// Returns all that is added so far, as two numbers.
    pub fn state(&self) -> (u64, u64) {
        (self.low, self.high)
    }

    /// Goes on from what a program has added itself; see `fast`.
    pub fn set_state(&mut self, (low, high): (u64, u64)) {
        (self.low, self.high) = (low, high);
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.low = (self.low ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.low ^= self.low >> 29;
        self.high = (self.high.rotate_left(23) ^ number).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        self.high ^= self.high >> 32;
    }

    /// Adds bytes, with their length. The log shows the first ones.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.add(bytes);
        if self.logs() {
            let first = &bytes[..bytes.len().min(MOST_SHOWN)];
            self.line(format_args!("{:>14}   {} bytes: {}", "", bytes.len(), first.escape_ascii()));
        }
    }

    /// Adds bytes that the log shows in another way.
    pub fn add(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
        self.number(bytes.len() as u64);
    }

    /// Returns whether there is a log, so that a line is worth making.
    pub fn logs(&self) -> bool {
        self.log.is_some()
    }

    /// Adds a line to the log, if there is one. The line ends with a part of the digest so far.
    pub fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let mark = self.low & 0xffff_ffff;
        if let Some(log) = &self.log {
            // A log that cannot be written ends with the error of `flush`.
            let _ = writeln!(log.borrow_mut(), "{line} #{mark:08x}");
        }
    }

    /// The time has come to `now`: keeps the digest of each second that is over.
    pub fn passed(&mut self, now: u64) {
        while (self.seconds.len() as u64 + 1) * SECOND <= now {
            self.seconds.push(((self.high ^ self.low) >> 32) as u32);
        }
    }

    /// Returns the digests at the ends of all seconds, each as eight hexadecimal digits.
    pub fn trace(&self) -> String {
        let mut text = String::new();
        for second in &self.seconds {
            let _ = write!(text, "{second:08x}");
        }
        text
    }

    /// Writes what is left of the log.
    pub fn flush(&mut self) -> io::Result<()> {
        self.log.as_ref().map_or(Ok(()), |log| log.borrow_mut().flush())
    }

    /// Returns the digest in hexadecimal digits.
    pub fn text(&self) -> String {
        format!("{:016x}{:016x}", self.high, self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, SECOND};

    #[test]
    fn a_trace_has_a_digest_of_each_second_that_is_over() {
        let mut digest = Digest::new(None).expect("it has no log");
        digest.passed(SECOND - 1);
        assert_eq!(digest.trace(), "");
        digest.number(1);
        digest.passed(SECOND);
        digest.passed(SECOND + 1);
        assert_eq!(digest.trace().len(), 8);
        digest.number(2);
        digest.passed(3 * SECOND);
        let trace = digest.trace();
        assert_eq!(trace.len(), 24);
        assert_ne!(trace[..8], trace[8..16]);
        assert_eq!(trace[8..16], trace[16..]);
    }
}
