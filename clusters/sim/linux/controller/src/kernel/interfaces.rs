//! What programs hear of the network interfaces of their node: a loopback and one with the address of the node; see netdevice(7).

use std::net::Ipv4Addr;

use libc::{EFAULT, ENODEV, ENOTTY};

use super::dispatch::{failed, Outcome};
use super::{Kernel, NodeId, ThreadId};
use crate::tracee::{self, Registers};

const REQUEST_SIZE: usize = 40; // of struct ifreq: a name of 16 bytes, and what is asked
const NAME_SIZE: usize = 16;
const CONF_BUFFER: u64 = 8; // the offset of the buffer in struct ifconf, after its length
const UP: u16 = libc::IFF_UP as u16 | libc::IFF_RUNNING as u16;
const LOOPBACK_HARDWARE: u16 = libc::ARPHRD_LOOPBACK;
const ETHERNET_HARDWARE: u16 = libc::ARPHRD_ETHER;

struct Interface {
    name: &'static str,
    address: Ipv4Addr,
    mask: Ipv4Addr,
    flags: u16,
    mtu: i32,
    hardware: u16,
}

impl Interface {
    /// Returns what follows the name in the answer to a request; None if the request is not known.
    fn answer(&self, request: u64, number: i32) -> Option<Vec<u8>> {
        let bits = u32::from(self.address) | !u32::from(self.mask);
        Some(match request {
            libc::SIOCGIFADDR => address(self.address),
            libc::SIOCGIFBRDADDR => address(Ipv4Addr::from(bits)),
            libc::SIOCGIFNETMASK => address(self.mask),
            libc::SIOCGIFFLAGS => self.flags.to_le_bytes().to_vec(),
            libc::SIOCGIFMTU => self.mtu.to_le_bytes().to_vec(),
            libc::SIOCGIFINDEX => number.to_le_bytes().to_vec(),
            libc::SIOCGIFHWADDR => {
                let mut bytes = self.hardware.to_le_bytes().to_vec();
                if self.hardware == ETHERNET_HARDWARE {
                    bytes.extend([2, 0]); // a local address, of the node's own
                    bytes.extend(self.address.octets());
                } else {
                    bytes.extend([0; 6]);
                }
                bytes
            }
            _ => return None,
        })
    }
}

/// Returns an address as a struct `sockaddr_in`.
fn address(ip: Ipv4Addr) -> Vec<u8> {
    let mut bytes = (libc::AF_INET as u16).to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(ip.octets());
    bytes.extend([0; 8]);
    bytes
}

impl Kernel {
    fn interfaces(&self, node: NodeId) -> [Interface; 2] {
        [
            Interface {
                name: "lo",
                address: Ipv4Addr::LOCALHOST,
                mask: Ipv4Addr::new(255, 0, 0, 0),
                flags: UP | libc::IFF_LOOPBACK as u16,
                mtu: 65_536,
                hardware: LOOPBACK_HARDWARE,
            },
            Interface {
                name: "eth0",
                address: self.nodes[node].address,
                mask: Ipv4Addr::new(255, 255, 255, 0),
                flags: UP | (libc::IFF_BROADCAST | libc::IFF_MULTICAST) as u16,
                mtu: 1_500,
                hardware: ETHERNET_HARDWARE,
            },
        ]
    }

    /// Answers a request of a socket about interfaces.
    pub(super) fn interface_call(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let tid = self.threads[thread].tid;
        let (request, place) = (registers.rsi, registers.rdx);
        let interfaces = self.interfaces(self.threads[thread].node);
        if request == libc::SIOCGIFCONF {
            let (Some(room), Some(buffer)) =
                (tracee::read_u32(tid, place), tracee::read_u64(tid, place + CONF_BUFFER))
            else {
                return failed(EFAULT);
            };
            let mut bytes = Vec::new();
            for interface in &interfaces {
                let mut entry = interface.name.as_bytes().to_vec();
                entry.resize(NAME_SIZE, 0);
                entry.extend(address(interface.address));
                entry.resize(REQUEST_SIZE, 0);
                if buffer == 0 || bytes.len() + REQUEST_SIZE <= room as usize {
                    bytes.extend(entry);
                }
            }
            if buffer != 0 && !tracee::write(tid, buffer, &bytes) {
                return failed(EFAULT);
            }
            tracee::write_u32(tid, place, bytes.len() as u32);
            return Outcome::Value(0);
        }
        let Some(name) = tracee::read(tid, place, NAME_SIZE) else { return failed(EFAULT) };
        let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_SIZE);
        let Some(index) = interfaces.iter().position(|interface| interface.name.as_bytes() == &name[..length]) else {
            return failed(ENODEV);
        };
        let Some(answer) = interfaces[index].answer(request, index as i32 + 1) else { return failed(ENOTTY) };
        tracee::write(tid, place + NAME_SIZE as u64, &answer);
        Outcome::Value(0)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Interface, ETHERNET_HARDWARE, UP};

    #[test]
    fn answers_have_the_layout_of_the_kernel() {
        let interface = Interface {
            name: "eth0",
            address: Ipv4Addr::new(192, 0, 2, 3),
            mask: Ipv4Addr::new(255, 255, 255, 0),
            flags: UP,
            mtu: 1_500,
            hardware: ETHERNET_HARDWARE,
        };
        let answer = |request| interface.answer(request, 2).expect("a known request");
        assert_eq!(answer(libc::SIOCGIFADDR)[..8], [2, 0, 0, 0, 192, 0, 2, 3]);
        assert_eq!(answer(libc::SIOCGIFBRDADDR)[4..8], [192, 0, 2, 255]);
        assert_eq!(answer(libc::SIOCGIFFLAGS), [0x41, 0]);
        assert_eq!(answer(libc::SIOCGIFINDEX), [2, 0, 0, 0]);
        assert_eq!(answer(libc::SIOCGIFHWADDR), [1, 0, 2, 0, 192, 0, 2, 3]);
        assert!(interface.answer(0, 2).is_none());
    }
}
