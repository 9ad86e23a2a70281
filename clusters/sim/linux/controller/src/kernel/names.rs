//! Names of sockets, as programs say and read them: of IPv4, IPv6 and Unix. Sources: ip(7), ipv6(7), unix(7).
//!
//! Nodes have IPv4 addresses. So a socket of IPv6 has addresses of IPv4 (`::ffff:192.0.2.1`), `::` and `::1`, and no others.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use libc::{c_int, EAFNOSUPPORT, EFAULT, EINVAL, ENETUNREACH};

use super::objects::Kind;
use super::{Kernel, ObjectId, ThreadId};
use crate::tracee;

/// `::1`, as an address of the loopback network that no program uses.
pub const LOOPBACK6: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 254);

const FAMILY_SIZE: usize = 2;
const MOST_UNIX: u64 = 110; // of a sockaddr_un
const ADDRESS_SIZE: usize = 16; // of a sockaddr_in
const LEAST_INET6: u64 = 24; // of a sockaddr_in6 without its scope, as old programs have it
const ADDRESS6_SIZE: usize = 28;
const ADDRESS6: usize = 8; // the offset of the address

/// A name of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    Inet(SocketAddrV4),
    /// A path, or an abstract name, which begins with a zero byte. Empty: none.
    Unix(Vec<u8>),
}

/// Returns the address that an IPv6 address stands for; None if no node has it.
fn inner(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    match ip {
        Ipv6Addr::UNSPECIFIED => Some(Ipv4Addr::UNSPECIFIED),
        Ipv6Addr::LOCALHOST => Some(LOOPBACK6),
        other => other.to_ipv4_mapped(),
    }
}

/// Returns an address as a socket of IPv6 shows it.
fn shown(ip: Ipv4Addr) -> Ipv6Addr {
    match ip {
        Ipv4Addr::UNSPECIFIED => Ipv6Addr::UNSPECIFIED,
        LOOPBACK6 => Ipv6Addr::LOCALHOST,
        other => other.to_ipv6_mapped(),
    }
}

impl Kernel {
    /// Returns the family of a socket.
    pub(super) fn family_of(&self, object: ObjectId) -> c_int {
        match &self.objects[object].kind {
            Kind::Stream(stream) => stream.family,
            Kind::Datagrams(datagrams) => datagrams.family,
            _ => libc::AF_UNSPEC,
        }
    }

    /// Reads an address that a program gives for a socket.
    ///
    /// The error is ENETUNREACH if no node has it, and EAFNOSUPPORT if it is of another family.
    pub(super) fn name_at(&self, thread: ThreadId, object: ObjectId, address: u64, size: u64) -> Result<Name, c_int> {
        let family = self.family_of(object);
        let least = match family {
            libc::AF_UNIX => FAMILY_SIZE as u64,
            libc::AF_INET6 => LEAST_INET6,
            _ => ADDRESS_SIZE as u64,
        };
        if size < least || family == libc::AF_UNIX && size > MOST_UNIX {
            return Err(EINVAL);
        }
        let bytes = tracee::read(self.threads[thread].tid, address, size.min(MOST_UNIX) as usize).ok_or(EFAULT)?;
        let given = c_int::from(u16::from_le_bytes([bytes[0], bytes[1]]));
        if family == libc::AF_UNIX {
            let path = &bytes[FAMILY_SIZE..];
            return match path.iter().position(|byte| *byte == 0) {
                _ if given != libc::AF_UNIX => Err(EINVAL),
                Some(end) if end > 0 => Ok(Name::Unix(path[..end].to_vec())),
                _ => Ok(Name::Unix(path.to_vec())),
            };
        }
        if given != family {
            return Err(EAFNOSUPPORT);
        }
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let ip = if family == libc::AF_INET {
            Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7])
        } else {
            let octets: [u8; 16] = bytes[ADDRESS6..ADDRESS6 + 16].try_into().map_err(|_| EINVAL)?;
            inner(octets.into()).ok_or(ENETUNREACH)?
        };
        Ok(Name::Inet(SocketAddrV4::new(ip, port)))
    }

    /// Reads the address that a program sends to. Streams look at none: TCP sends to its other end, and Unix refuses one.
    pub(super) fn destination(
        &self,
        thread: ThreadId,
        object: ObjectId,
        address: u64,
        size: u64,
    ) -> Result<Option<Name>, c_int> {
        match &self.objects[object].kind {
            Kind::Stream(stream) if stream.is_unix() => Ok(Some(Name::Unix(Vec::new()))),
            Kind::Stream(_) => Ok(None),
            _ => self.name_at(thread, object, address, size).map(Some),
        }
    }

    /// Returns whether an address of a program names no family: it dissolves a connection.
    pub(super) fn is_no_name(&self, thread: ThreadId, address: u64, size: u64) -> bool {
        size >= FAMILY_SIZE as u64
            && tracee::read(self.threads[thread].tid, address, FAMILY_SIZE)
                == Some((libc::AF_UNSPEC as u16).to_le_bytes().to_vec())
    }

    /// Writes a name where a program wants it; the size is at `size_at`. `family` is that of the socket.
    pub(super) fn put_name(&self, thread: ThreadId, address: u64, size_at: u64, family: c_int, name: &Name) {
        if address == 0 {
            return;
        }
        let mut bytes = (family as u16).to_le_bytes().to_vec();
        match name {
            Name::Unix(path) => {
                bytes.extend(path);
                if path.first().is_some_and(|byte| *byte != 0) {
                    bytes.push(0);
                }
            }
            Name::Inet(name) => {
                bytes.extend(name.port().to_be_bytes());
                if family == libc::AF_INET6 {
                    bytes.resize(ADDRESS6, 0);
                    bytes.extend(shown(*name.ip()).octets());
                    bytes.resize(ADDRESS6_SIZE, 0);
                } else {
                    bytes.extend(name.ip().octets());
                    bytes.resize(ADDRESS_SIZE, 0);
                }
            }
        }
        self.put_sized(thread, address, size_at, &bytes);
    }

    /// Returns the addresses that a socket with a local address takes what is sent to.
    pub(super) fn reach(&self, object: ObjectId) -> Option<Reach> {
        let (local, options) = match &self.objects[object].kind {
            Kind::Stream(stream) => (stream.local, &stream.options),
            Kind::Datagrams(datagrams) => (datagrams.local, &datagrams.options),
            _ => return None,
        };
        let is_alone = options
            .get(&(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY))
            .is_some_and(|value| value.iter().any(|byte| *byte != 0));
        Some(match (*local?.ip(), self.family_of(object)) {
            (Ipv4Addr::UNSPECIFIED, libc::AF_INET6) if is_alone => Reach::AllOf6,
            (Ipv4Addr::UNSPECIFIED, libc::AF_INET6) => Reach::All,
            (Ipv4Addr::UNSPECIFIED, _) => Reach::AllOf4,
            (ip, _) => Reach::One(ip),
        })
    }
}

/// The addresses of a node that a socket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// `::`.
    All,
    /// `0.0.0.0`.
    AllOf4,
    /// `::`, if the socket is for IPv6 alone.
    AllOf6,
    One(Ipv4Addr),
}

impl Reach {
    /// Returns whether an address is among them.
    pub fn has(self, ip: Ipv4Addr) -> bool {
        match self {
            Self::All => true,
            Self::AllOf4 => ip != LOOPBACK6,
            Self::AllOf6 => ip == LOOPBACK6,
            Self::One(own) => own == ip,
        }
    }

    /// Returns whether two sockets have a common address.
    pub fn meets(self, other: Self) -> bool {
        match (self, other) {
            (Self::One(ip), reach) | (reach, Self::One(ip)) => reach.has(ip),
            (Self::AllOf4, Self::AllOf6) | (Self::AllOf6, Self::AllOf4) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{inner, shown, Reach, LOOPBACK6};

    #[test]
    fn addresses_of_ipv6_are_those_of_ipv4_and_two_more() {
        for text in ["::", "::1", "::ffff:192.0.2.1"] {
            let ip = text.parse().expect("an address");
            assert_eq!(inner(ip).map(shown), Some(ip));
        }
        assert_eq!(inner("2001:db8::1".parse().expect("an address")), None);
    }

    #[test]
    fn sockets_meet_where_they_have_a_common_address() {
        let one = Reach::One(Ipv4Addr::new(192, 0, 2, 1));
        let six = Reach::One(LOOPBACK6);
        assert!(Reach::All.meets(one) && Reach::All.meets(six) && Reach::All.meets(Reach::AllOf4));
        assert!(Reach::AllOf4.meets(one) && !Reach::AllOf4.meets(six) && !Reach::AllOf4.meets(Reach::AllOf6));
        assert!(!Reach::AllOf6.meets(one) && six.meets(Reach::AllOf6) && !one.meets(six) && one.meets(one));
    }
}
