//! The wait for the n-th packet of a sort, after which the nodes' packets stand still for a moment.

use crate::segment::{Ends, Segment};

/// The packets that count, and the one that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watch {
    /// The links on which packets count.
    pub links: Vec<usize>,
    /// The number of the packet, from 1.
    pub nth: u64,
    /// The port of one end; 0: any.
    pub port: u16,
    /// The least number of bytes that it carries.
    pub least: usize,
    /// What these bytes contain; empty: anything.
    pub has: Vec<u8>,
    /// How long the nodes' packets stand still after it.
    pub hold_ns: u64,
}

impl Watch {
    fn counts(&self, link: usize, segment: &Segment) -> bool {
        let Segment { ends, payload, .. } = segment;
        (self.port == 0 || self.port == ends.source_port || self.port == ends.target_port)
            && payload.len() >= self.least
            && self.links.contains(&link)
            && (self.has.is_empty() || payload.windows(self.has.len()).any(|part| part == self.has))
    }
}

/// The packet that was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    pub link: usize,
    pub ends: Ends,
    pub bytes: usize,
    pub at_ns: u64,
}

/// A wait, and what came of it.
#[derive(Debug, Default)]
pub struct Waited {
    watch: Watch,
    /// The packets that counted, up to the one that was waited for.
    pub count: u64,
    pub passed: Option<Passed>,
    /// The frames that stood still after it.
    pub held: u64,
}

impl Waited {
    pub fn new(watch: Watch) -> Self {
        Self { watch, ..Self::default() }
    }

    /// Takes note of a frame. Returns until when the packets stand still, if it is the one.
    pub fn see(&mut self, link: usize, segment: &Segment, now_ns: u64) -> Option<u64> {
        if self.passed.is_some() || !self.watch.counts(link, segment) {
            return None;
        }
        self.count += 1;
        if self.count < self.watch.nth {
            return None;
        }
        self.passed = Some(Passed { link, ends: segment.ends, bytes: segment.payload.len(), at_ns: now_ns });
        Some(now_ns + self.watch.hold_ns)
    }

    /// Takes note of a frame that stands still. Only the frames right after the packet do.
    pub fn stands(&mut self, now_ns: u64) {
        let hold_ns = self.watch.hold_ns;
        self.held += u64::from(self.passed.is_some_and(|passed| now_ns < passed.at_ns + hold_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::tests::tcp;
    use crate::segment::{read, ACK};

    fn seen(watch: &Watch, frames: &[(usize, &[u8])]) -> Waited {
        let mut waited = Waited::new(watch.clone());
        for (time_ns, (link, payload)) in frames.iter().enumerate() {
            let frame = tcp(0, ACK, payload);
            waited.see(*link, &read(&frame).unwrap(), time_ns as u64);
        }
        waited
    }

    #[test]
    fn the_nth_packet_that_matches_is_the_one() {
        let watch =
            Watch { links: vec![4], nth: 2, least: 1, has: b"vote".to_vec(), hold_ns: 10, ..Watch::default() };
        let frames: [(usize, &[u8]); 6] =
            [(4, b"a vote"), (5, b"vote"), (4, b"beat"), (4, b""), (4, b"vote!"), (4, b"vote")];
        let mut waited = seen(&watch, &frames);
        assert_eq!(waited.count, 2, "nothing counts after the one");
        let passed = waited.passed.unwrap();
        assert_eq!((passed.link, passed.bytes, passed.at_ns, passed.ends.target_port), (4, 5, 4, 2000));
        for now_ns in [4, 13, 14] {
            waited.stands(now_ns);
        }
        assert_eq!(waited.held, 2);
    }

    #[test]
    fn a_port_and_a_size_select_packets() {
        let watch = Watch { links: vec![0], nth: 1, port: 1000, least: 3, ..Watch::default() };
        assert_eq!(seen(&watch, &[(0, b"ab"), (0, b"abc")]).passed.unwrap().at_ns, 1);
        assert_eq!(seen(&Watch { port: 2000, ..watch.clone() }, &[(0, b"abc")]).count, 1);
        assert_eq!(seen(&Watch { port: 3000, ..watch }, &[(0, b"abc")]).count, 0);
    }
}
