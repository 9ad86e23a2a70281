//! What a frame carries: a segment of TCP or a datagram of UDP between two addresses.

use crate::frame::{word, ETHERNET, HEADER};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
const FRAGMENT: u16 = 0x1fff;

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const ACK: u8 = 0x10;

/// The addresses and ports of a segment, in the direction in which it goes. An address of IPv4 has 4 bytes, and then zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    pub source: [u8; 16],
    pub target: [u8; 16],
    pub source_port: u16,
    pub target_port: u16,
}

/// The header of TCP, as far as the switch looks at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    pub sequence: u32,
    pub flags: u8,
}

/// A segment of TCP, or a datagram of UDP, which has no `tcp`.
#[derive(Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub ends: Ends,
    pub tcp: Option<Tcp>,
    pub payload: &'a [u8],
}

fn address(bytes: &[u8]) -> [u8; 16] {
    let mut whole = [0; 16];
    whole[..bytes.len()].copy_from_slice(bytes);
    whole
}

/// Reads a frame. None: it carries something else, or a later part of a packet. Its bytes may be hostile.
pub fn read(frame: &[u8]) -> Option<Segment<'_>> {
    let body = frame.get(HEADER..)?;
    let packet = body.get(ETHERNET..)?;
    let (protocol, source, target, rest) = match word(body, 12)? {
        IPV4 => {
            let header = usize::from(packet.first()? & 0x0f) * 4;
            if header < 20 || word(packet, 6)? & FRAGMENT != 0 {
                return None;
            }
            let length = usize::from(word(packet, 2)?);
            let end = if length == 0 { packet.len() } else { length.min(packet.len()) };
            (*packet.get(9)?, packet.get(12..16)?, packet.get(16..20)?, packet.get(header..end)?)
        }
        IPV6 => {
            let length = usize::from(word(packet, 4)?);
            let end = if length == 0 { packet.len() } else { (40 + length).min(packet.len()) };
            (*packet.get(6)?, packet.get(8..24)?, packet.get(24..40)?, packet.get(40..end)?)
        }
        _ => return None,
    };
    let ends = Ends {
        source: address(source),
        target: address(target),
        source_port: word(rest, 0)?,
        target_port: word(rest, 2)?,
    };
    match protocol {
        TCP => {
            let sequence = u32::from_be_bytes(rest.get(4..8)?.try_into().ok()?);
            let header = usize::from(rest.get(12)? >> 4) * 4;
            let payload = rest.get(header.max(20)..)?;
            Some(Segment { ends, tcp: Some(Tcp { sequence, flags: *rest.get(13)? }), payload })
        }
        UDP => Some(Segment { ends, tcp: None, payload: rest.get(8..)? }),
        _ => None,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A segment of TCP over IPv4 from port 1000 to port 2000, with six bytes of padding behind the packet.
    pub fn tcp(sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER + ETHERNET + 40];
        let ip = HEADER + ETHERNET;
        frame[HEADER + 12..ip].copy_from_slice(&IPV4.to_be_bytes());
        frame[ip] = 0x45;
        frame[ip + 2..ip + 4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
        frame[ip + 9] = TCP;
        frame[ip + 12..ip + 20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[ip + 20..ip + 24].copy_from_slice(&[3, 232, 7, 208]);
        frame[ip + 24..ip + 28].copy_from_slice(&sequence.to_be_bytes());
        frame[ip + 32] = 0x50;
        frame[ip + 33] = flags;
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&[0; 6]);
        frame
    }

    #[test]
    fn a_segment_has_its_ports_flags_and_bytes_without_padding() {
        let frame = tcp(77, ACK, b"vote");
        let read = read(&frame).unwrap();
        assert_eq!((read.ends.source_port, read.ends.target_port), (1000, 2000));
        assert_eq!(read.ends.source[..5], [10, 0, 0, 1, 0]);
        assert_eq!(read.tcp, Some(Tcp { sequence: 77, flags: ACK }));
        assert_eq!(read.payload, b"vote");
    }

    #[test]
    fn a_datagram_over_ipv6_is_read() {
        let mut frame = vec![0; HEADER + ETHERNET + 48];
        let ip = HEADER + ETHERNET;
        frame[HEADER + 12..ip].copy_from_slice(&IPV6.to_be_bytes());
        frame[ip + 5] = 11;
        frame[ip + 6] = UDP;
        frame[ip + 23] = 1;
        frame[ip + 41] = 53;
        frame.extend_from_slice(b"abc");
        let read = read(&frame).unwrap();
        assert_eq!((read.ends.source[15], read.ends.source_port), (1, 53));
        assert_eq!((read.tcp, read.payload), (None, &b"abc"[..]));
    }

    #[test]
    fn hostile_and_cut_frames_are_nothing() {
        let whole = tcp(1, SYN, b"x");
        for length in 0..HEADER + ETHERNET + 40 {
            assert_eq!(read(&whole[..length]), None, "{length}");
        }
        for (at, value) in [(0, 0x41), (6, 1), (9, 1), (32, 0xf0)] {
            let mut frame = whole.clone();
            frame[HEADER + ETHERNET + at] = value;
            assert_eq!(read(&frame), None, "{at}");
        }
    }
}
