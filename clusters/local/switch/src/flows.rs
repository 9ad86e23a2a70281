//! What happens to connections on each link: how many are opened, refused and reset, and which data is sent again.

use std::collections::{BTreeMap, HashMap};

use crate::segment::{Ends, Segment, ACK, FIN, RST, SYN};

const MOST_FLOWS: usize = 8192;
const MOST_NOTES: usize = 10_000;
/// Notes within this time are counted together.
pub const STEP_NS: u64 = 100_000_000;
/// Data that is sent again so long after its first time stalls its connection.
const STALL_NS: u64 = 1_000_000_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A first packet of a connection (SYN).
    Opened,
    /// A refusal of a connection (RST to a SYN).
    Refused,
    /// An end of a connection by force (RST).
    Reset,
    /// A packet with data, or one that opens or ends a connection, for another time.
    Resent,
    /// The same, 1 s or longer after its first time.
    Stalled,
}

impl What {
    pub fn name(self) -> &'static str {
        match self {
            What::Opened => "opened",
            What::Refused => "refused",
            What::Reset => "reset",
            What::Resent => "resent",
            What::Stalled => "stalled",
        }
    }
}

/// One direction of a connection.
struct Flow {
    /// The number behind the last byte that was sent.
    end: u32,
    /// When the last byte was sent first.
    since_ns: u64,
}

/// The notes about all links, by time step, link and sort.
#[derive(Default)]
pub struct Flows {
    known: HashMap<Ends, Flow>,
    pub notes: BTreeMap<(u64, usize, What), u64>,
    /// How many there was no room for.
    pub dropped: u64,
}

impl Flows {
    /// Takes note of a packet on a link.
    pub fn see(&mut self, link: usize, segment: &Segment, now_ns: u64) {
        let Some(tcp) = segment.tcp else { return };
        if tcp.flags & RST != 0 {
            self.known.remove(&segment.ends);
            let what = if tcp.sequence == 0 { What::Refused } else { What::Reset };
            self.note(link, what, now_ns);
            return;
        }
        // SYN and FIN take a number each, as a byte does.
        let marks = u32::from(tcp.flags & SYN != 0) + u32::from(tcp.flags & FIN != 0);
        let length = segment.payload.len() as u32 + marks;
        if length == 0 {
            return;
        }
        let end = tcp.sequence.wrapping_add(length);
        if self.known.len() >= MOST_FLOWS && !self.known.contains_key(&segment.ends) {
            self.known.clear();
        }
        match self.known.get_mut(&segment.ends) {
            Some(flow) if tcp.flags & SYN == 0 || flow.end == end => {
                if (end.wrapping_sub(flow.end) as i32) > 0 {
                    *flow = Flow { end, since_ns: now_ns };
                } else {
                    let stalls = now_ns.saturating_sub(flow.since_ns) >= STALL_NS;
                    self.note(link, if stalls { What::Stalled } else { What::Resent }, now_ns);
                }
            }
            _ => {
                self.known.insert(segment.ends, Flow { end, since_ns: now_ns });
                if tcp.flags & (SYN | ACK) == SYN {
                    self.note(link, What::Opened, now_ns);
                }
            }
        }
    }

    fn note(&mut self, link: usize, what: What, now_ns: u64) {
        let key = (now_ns / STEP_NS, link, what);
        if self.notes.len() >= MOST_NOTES && !self.notes.contains_key(&key) {
            self.dropped += 1;
        } else {
            *self.notes.entry(key).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::read;
    use crate::segment::tests::tcp;

    const MS: u64 = 1_000_000;

    fn noted(frames: &[(u64, u32, u8, &[u8])]) -> Vec<(u64, &'static str, u64)> {
        let mut flows = Flows::default();
        for (time_ms, sequence, flags, payload) in frames {
            flows.see(3, &read(&tcp(*sequence, *flags, payload)).unwrap(), time_ms * MS);
        }
        flows.notes.iter().map(|((step, _, what), count)| (*step, what.name(), *count)).collect()
    }

    #[test]
    fn a_connection_without_trouble_is_opened_once() {
        let frames: [(u64, u32, u8, &[u8]); 5] =
            [(0, 9, SYN, b""), (1, 10, ACK, b""), (2, 10, ACK, b"ab"), (3, 11, ACK, b""), (4, 12, ACK | FIN, b"")];
        assert_eq!(noted(&frames), [(0, "opened", 1)]);
    }

    #[test]
    fn data_that_is_sent_again_is_counted_and_stalls_after_a_second() {
        let frames: [(u64, u32, u8, &[u8]); 5] = [
            (0, u32::MAX, ACK, b"ab"),
            (200, u32::MAX, ACK, b"ab"),
            (250, u32::MAX, ACK, b"a"),
            (1000, u32::MAX, ACK, b"ab"),
            (1001, 1, ACK, b"c"),
        ];
        assert_eq!(noted(&frames), [(2, "resent", 2), (10, "stalled", 1)]);
    }

    #[test]
    fn a_repeated_attempt_is_no_further_connection_but_a_new_one_is() {
        let frames: [(u64, u32, u8, &[u8]); 3] = [(0, 9, SYN, b""), (1000, 9, SYN, b""), (2000, 5000, SYN, b"")];
        assert_eq!(noted(&frames), [(0, "opened", 1), (10, "stalled", 1), (20, "opened", 1)]);
    }

    #[test]
    fn an_answer_to_a_connection_opens_none() {
        assert_eq!(noted(&[(0, 9, SYN | ACK, b"")]), []);
    }

    #[test]
    fn a_refusal_is_no_reset() {
        assert_eq!(noted(&[(0, 0, RST | ACK, b""), (0, 7, RST, b"")]), [(0, "refused", 1), (0, "reset", 1)]);
    }

    #[test]
    fn notes_and_connections_have_bounds() {
        let mut flows = Flows::default();
        let frame = tcp(7, RST, b"");
        let mut other = read(&frame).unwrap();
        for step in 0..MOST_NOTES as u64 + 5 {
            flows.see(0, &other, step * STEP_NS);
        }
        assert_eq!((flows.notes.len(), flows.dropped), (MOST_NOTES, 5));
        other.tcp = Some(crate::segment::Tcp { sequence: 1, flags: SYN });
        for port in 0..MOST_FLOWS as u16 + 10 {
            other.ends.source_port = port;
            flows.see(0, &other, 0);
        }
        assert!(flows.known.len() <= MOST_FLOWS);
    }
}
