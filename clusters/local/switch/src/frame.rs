//! Frames as the kernel hands them over: an Ethernet frame behind a header about its unfinished parts.
//!
//! A sender's kernel leaves checksums to its device, and hands over one large segment for many packets. The header
//! (`virtio_net_hdr` in `linux/virtio_net.h`) says so, and another kernel accepts both with the same header. A rule is about packets, so
//! `packets` makes them: of the size that the sender asked for, with their checksums.

pub const HEADER: usize = 10;
pub const ETHERNET: usize = 14;

const NEEDS_CHECKSUM: u8 = 1;
const NO_SEGMENTS: u8 = 0;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
const CONGESTION: u8 = 0x80;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP_PROTOCOL: u8 = 6;
const UDP_PROTOCOL: u8 = 17;
const FIN_AND_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// The destination's address.
pub fn target(frame: &[u8]) -> Option<[u8; 6]> {
    frame.get(HEADER..HEADER + 6)?.try_into().ok()
}

/// The sender's address.
pub fn source(frame: &[u8]) -> Option<[u8; 6]> {
    frame.get(HEADER + 6..HEADER + 12)?.try_into().ok()
}

/// Whether an address is one of several receivers.
pub fn is_group(address: [u8; 6]) -> bool {
    address[0] & 1 == 1
}

/// Whether checksums cover the frame, so that a receiver sees damage.
pub fn is_protected(frame: &[u8]) -> bool {
    matches!(word(frame, HEADER + 12), Some(IPV4 | IPV6))
}

pub fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn own_word(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]))
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// The sum of RFC 1071, not yet folded.
fn sum(bytes: &[u8]) -> u64 {
    // A sum of larger words is the same when it is folded.
    let words = bytes.chunks_exact(4);
    let rest = match words.remainder() {
        [] => 0,
        [one] => u64::from(*one) << 8,
        [one, two] => u64::from(u16::from_be_bytes([*one, *two])),
        [one, two, three, ..] => u64::from(u16::from_be_bytes([*one, *two])) + (u64::from(*three) << 8),
    };
    words.map(|word| u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))).sum::<u64>() + rest
}

fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Finishes the checksum that the sender left open, if it did.
pub fn finish(frame: &mut [u8]) {
    let open = frame[0] & NEEDS_CHECKSUM != 0;
    let (start, offset) = (own_word(frame, 6), own_word(frame, 8));
    frame[..HEADER].fill(0);
    let body = &mut frame[HEADER..];
    if !open || start + offset + 2 > body.len() {
        return;
    }
    // The field has the sum of the pseudo-header already.
    let check = !folded(sum(&body[start..]));
    put(body, start + offset, if check == 0 { 0xffff } else { check });
}

/// The packets of a frame; the frame itself if it is one.
pub fn packets(frame: &[u8]) -> Vec<Vec<u8>> {
    if frame[1] & !CONGESTION == NO_SEGMENTS {
        return vec![frame.to_vec()];
    }
    segments(frame).unwrap_or_else(|| vec![frame.to_vec()])
}

/// Cuts a large segment as the kernel would (`net/ipv4/tcp_offload.c`). None: it is no segment that this knows.
fn segments(frame: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (kind, size, start) = (frame[1] & !CONGESTION, own_word(frame, 4), own_word(frame, 6));
    let body = &frame[HEADER..];
    let is_udp = kind == UDP;
    let version = word(body, 12)?;
    let transport = body.get(start..)?;
    let header = match kind {
        UDP => 8,
        TCP_V4 | TCP_V6 => usize::from(transport.get(12)? >> 4) * 4,
        _ => return None,
    };
    let payload = transport.get(header..)?;
    let network_end = ETHERNET + if version == IPV4 { 20 } else { 40 };
    if size == 0
        || payload.is_empty()
        || start < network_end
        || (!is_udp && header < 20)
        || !matches!(version, IPV4 | IPV6)
    {
        return None;
    }
    let last = payload.len().div_ceil(size) - 1;
    let cut = |(number, part): (usize, &[u8])| {
        let mut packet = vec![0; HEADER];
        packet.extend_from_slice(&body[..start + header]);
        packet.extend_from_slice(part);
        let inner = &mut packet[HEADER..];
        let length = header + part.len();
        if version == IPV4 {
            put(inner, ETHERNET + 2, (start - ETHERNET + length) as u16);
            let id = word(inner, ETHERNET + 4).unwrap_or(0).wrapping_add(number as u16);
            put(inner, ETHERNET + 4, id);
            put(inner, ETHERNET + 10, 0);
            let check = !folded(sum(&inner[ETHERNET..start]));
            put(inner, ETHERNET + 10, check);
        } else {
            put(inner, ETHERNET + 4, (start - ETHERNET - 40 + length) as u16);
        }
        let protocol = if is_udp { UDP_PROTOCOL } else { TCP_PROTOCOL };
        let field = start + if is_udp { 6 } else { 16 };
        if is_udp {
            put(inner, start + 4, length as u16);
        } else {
            let first = u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = first.wrapping_add((number * size) as u32);
            inner[start + 4..start + 8].copy_from_slice(&sequence.to_be_bytes());
            if number != last {
                inner[start + 13] &= !FIN_AND_PSH;
            }
            if number != 0 {
                inner[start + 13] &= !CWR;
            }
        }
        put(inner, field, 0);
        let addresses = if version == IPV4 { ETHERNET + 12..ETHERNET + 20 } else { ETHERNET + 8..ETHERNET + 40 };
        let check = !folded(
            sum(&inner[addresses]) + u64::from(protocol) + length as u64 + sum(&inner[start..start + length]),
        );
        put(inner, field, if check == 0 { 0xffff } else { check });
        packet
    };
    Some(payload.chunks(size).enumerate().map(cut).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of TCP over IPv4, as a kernel hands it over: without checksum, for packets of `size` bytes each.
    fn large(payload: usize, size: u16) -> Vec<u8> {
        let mut frame = vec![0; HEADER + ETHERNET + 40];
        frame[0] = NEEDS_CHECKSUM;
        frame[1] = TCP_V4;
        frame[4..6].copy_from_slice(&size.to_ne_bytes());
        frame[6..8].copy_from_slice(&34u16.to_ne_bytes());
        frame[8..10].copy_from_slice(&16u16.to_ne_bytes());
        put(&mut frame, HEADER + 12, IPV4);
        let ip = HEADER + ETHERNET;
        frame[ip] = 0x45;
        frame[ip + 9] = TCP_PROTOCOL;
        put(&mut frame, ip + 4, 0xffff);
        frame[ip + 12..ip + 20].copy_from_slice(&[10, 55, 1, 11, 10, 55, 1, 12]);
        frame[ip + 24..ip + 28].copy_from_slice(&u32::MAX.to_be_bytes());
        frame[ip + 32] = 0x50;
        frame[ip + 33] = 0x10 | FIN_AND_PSH | CWR;
        frame.extend((0..payload).map(|at| at as u8));
        frame
    }

    /// The sum over the pseudo-header and the segment, which is all ones if the checksum is right.
    fn checked(packet: &[u8]) -> u16 {
        let body = &packet[HEADER..];
        folded(sum(&body[26..34]) + 6 + (body.len() - 34) as u64 + sum(&body[34..]))
    }

    #[test]
    fn a_large_segment_becomes_whole_packets() {
        let cut = packets(&large(2500, 1000));
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [1064, 1064, 564]);
        let payload: Vec<u8> = cut.iter().flat_map(|packet| packet[64..].to_vec()).collect();
        assert_eq!(payload, large(2500, 1000)[64..]);
        for packet in &cut {
            assert_eq!(packet[..HEADER], [0; HEADER]);
            assert_eq!(checked(packet), 0xffff);
            assert_eq!(folded(sum(&packet[24..44])), 0xffff, "the checksum of IP");
            assert_eq!(word(packet, 26).map(usize::from), Some(packet.len() - 24));
        }
        let field = |at: usize| cut.iter().map(|packet| word(packet, at).unwrap()).collect::<Vec<_>>();
        assert_eq!(field(28), [0xffff, 0, 1], "the ids of IP");
        assert_eq!(field(50), [0xffff, 999, 1999], "the low half of the sequence numbers, which wrap");
        let flags: Vec<u8> = cut.iter().map(|packet| packet[57]).collect();
        assert_eq!(flags, [0x90, 0x10, 0x19], "CWR on the first, FIN and PSH on the last");
    }

    #[test]
    fn an_open_checksum_is_finished() {
        let mut frame = packets(&large(9, 1000)).remove(0);
        let right = frame.clone();
        let pseudo = folded(sum(&frame[HEADER + 26..HEADER + 34]) + 6 + 29);
        put(&mut frame, HEADER + 50, pseudo);
        frame[0] = NEEDS_CHECKSUM;
        frame[6..8].copy_from_slice(&34u16.to_ne_bytes());
        frame[8..10].copy_from_slice(&16u16.to_ne_bytes());
        finish(&mut frame);
        assert_eq!(frame, right);
        finish(&mut frame);
        assert_eq!(frame, right, "a finished one stays");
    }

    #[test]
    fn a_sum_is_that_of_pairs_of_bytes() {
        for length in 0..20u8 {
            let bytes: Vec<u8> = (0..length).map(|at| at.wrapping_mul(83)).collect();
            let pairs = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
            assert_eq!(folded(sum(&bytes)), folded(pairs.sum()));
        }
    }

    #[test]
    fn hostile_headers_cut_nothing() {
        for (at, value) in [(4, 0u16), (6, 9), (6, 60_000), (8, 60_000)] {
            let mut frame = large(100, 1000);
            frame[at..at + 2].copy_from_slice(&value.to_ne_bytes());
            let cut = packets(&frame);
            assert_eq!(cut.len(), 1);
            finish(&mut cut[0].clone());
        }
    }
}
