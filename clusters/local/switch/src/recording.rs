//! The last packets that went out, in a ring of bounded size, and as a file for Wireshark.
//!
//! The format is that of `draft-ietf-opsawg-pcap`, with times in nanoseconds and Ethernet frames.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;

use crate::frame;

const MOST_BYTES: usize = 32 << 20;
const KEPT_OF_EACH: usize = 256;
/// What a packet takes in the ring and in the file, beside its bytes.
const OVERHEAD: usize = 16;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const NS_PER_S: u64 = 1_000_000_000;

struct Packet {
    time_ns: u64,
    length: usize,
    kept: Box<[u8]>,
}

/// The ring.
#[derive(Default)]
pub struct Recording {
    packets: VecDeque<Packet>,
    bytes: usize,
}

impl Recording {
    /// Keeps the beginning of a frame that goes out at this wall time, and forgets the oldest ones for it.
    pub fn add(&mut self, bytes: &[u8], time_ns: u64) {
        let body = &bytes[frame::HEADER..];
        let kept: Box<[u8]> = body[..body.len().min(KEPT_OF_EACH)].into();
        self.bytes += kept.len() + OVERHEAD;
        self.packets.push_back(Packet { time_ns, length: body.len(), kept });
        while self.bytes > MOST_BYTES {
            let Some(oldest) = self.packets.pop_front() else { break };
            self.bytes -= oldest.kept.len() + OVERHEAD;
        }
    }

    /// Writes a file that must not be there yet. Returns the number of packets in it.
    pub fn write(&self, path: &str) -> io::Result<usize> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let mut output = BufWriter::new(file);
        self.put(&mut output)?;
        output.flush()?;
        Ok(self.packets.len())
    }

    fn put(&self, output: &mut impl Write) -> io::Result<()> {
        // The versions are 2 and 4; two fields are always 0.
        for word in [NANOSECONDS, 2 | 4 << 16, 0, 0, KEPT_OF_EACH as u32, ETHERNET] {
            output.write_all(&word.to_le_bytes())?;
        }
        for packet in &self.packets {
            let (seconds, rest) = (packet.time_ns / NS_PER_S, packet.time_ns % NS_PER_S);
            for word in [seconds as u32, rest as u32, packet.kept.len() as u32, packet.length as u32] {
                output.write_all(&word.to_le_bytes())?;
            }
            output.write_all(&packet.kept)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(length: usize) -> Vec<u8> {
        vec![7; frame::HEADER + length]
    }

    #[test]
    fn a_file_has_the_times_and_the_beginnings_of_packets() {
        let mut recording = Recording::default();
        recording.add(&framed(60), 5 * NS_PER_S + 9);
        recording.add(&framed(5000), 6 * NS_PER_S);
        let mut file = Vec::new();
        recording.put(&mut file).unwrap();
        assert_eq!(file.len(), 24 + 16 + 60 + 16 + KEPT_OF_EACH);
        assert_eq!(file[..8], [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0]);
        let words: Vec<u32> =
            file[24..40].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [5, 9, 60, 60]);
        let words: Vec<u32> =
            file[100..116].chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [6, 0, KEPT_OF_EACH as u32, 5000]);
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let mut recording = Recording::default();
        let most = MOST_BYTES / (KEPT_OF_EACH + OVERHEAD);
        for time_ns in 0..most as u64 + 10 {
            recording.add(&framed(1000), time_ns);
        }
        assert!(recording.bytes <= MOST_BYTES && recording.packets.len() == most);
        assert_eq!(recording.packets.front().map(|packet| packet.time_ns), Some(10));
    }
}
