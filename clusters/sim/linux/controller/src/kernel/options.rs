//! Options of sockets. Sources: socket(7), tcp(7).

use std::collections::BTreeMap;

use libc::{c_int, EFAULT};

use super::dispatch::{failed, Outcome};
use super::objects::Kind;
use super::tcp::Phase;
use super::unix::End;
use super::{Kernel, Nanos, ObjectId, ThreadId, MICROSECOND, SECOND};
use crate::tracee::{self, Registers};

pub(super) const MOST_BUFFER: usize = 425_984; // twice rmem_max and wmem_max
const KEEPING: [c_int; 3] = [libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT];
const MOST_OPTION: usize = 256;

impl Kernel {
    fn options(&mut self, object: ObjectId) -> Option<&mut BTreeMap<(c_int, c_int), Vec<u8>>> {
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => Some(&mut stream.options),
            Kind::Datagrams(datagrams) => Some(&mut datagrams.options),
            _ => None,
        }
    }

    /// Returns a time limit among the options of a socket; None: none.
    pub(super) fn option_timeout(&self, object: ObjectId, name: c_int) -> Option<Nanos> {
        let options = match &self.objects[object].kind {
            Kind::Stream(stream) => &stream.options,
            Kind::Datagrams(datagrams) => &datagrams.options,
            _ => return None,
        };
        let value = options.get(&(libc::SOL_SOCKET, name)).filter(|value| value.len() >= 16)?;
        let timeout = tracee::u64_at(value, 0) * SECOND + tracee::u64_at(value, 8) * MICROSECOND;
        (timeout > 0).then_some(timeout)
    }

    /// Writes as much of a value as the program has room for, and its whole size.
    pub(super) fn put_sized(&self, thread: ThreadId, address: u64, size_at: u64, bytes: &[u8]) {
        let tid = self.threads[thread].tid;
        let room = tracee::read_u32(tid, size_at).unwrap_or(0) as usize;
        tracee::write(tid, address, &bytes[..room.min(bytes.len())]);
        tracee::write_u32(tid, size_at, bytes.len() as u32);
    }

    pub(super) fn setsockopt(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        let size = (registers.r8 as usize).min(MOST_OPTION);
        let Some(value) = tracee::read(self.threads[thread].tid, registers.r10, size) else { return failed(EFAULT) };
        if let Some(options) = self.options(object) {
            options.insert((registers.rsi as c_int, registers.rdx as c_int), value);
        }
        let (level, name) = (registers.rsi as c_int, registers.rdx as c_int);
        if (level, name) == (libc::SOL_SOCKET, libc::SO_KEEPALIVE)
            || level == libc::IPPROTO_TCP && KEEPING.contains(&name)
        {
            self.watch_connection(object);
        }
        Outcome::Value(0)
    }

    pub(super) fn getsockopt(&mut self, thread: ThreadId, object: ObjectId, registers: &Registers) -> Outcome {
        const SEGMENT: i32 = 1448;
        let key @ (level, name) = (registers.rsi as c_int, registers.rdx as c_int);
        let number = |number: i32| number.to_le_bytes().to_vec();
        let is_stream = matches!(self.objects[object].kind, Kind::Stream(_));
        let value = match (level, name) {
            (libc::SOL_SOCKET, libc::SO_ERROR) => match &mut self.objects[object].kind {
                Kind::Stream(stream) => number(std::mem::take(&mut stream.error)),
                Kind::Datagrams(datagrams) => number(std::mem::take(&mut datagrams.error)),
                _ => number(0),
            },
            (libc::SOL_SOCKET, libc::SO_TYPE) => number(if is_stream { libc::SOCK_STREAM } else { libc::SOCK_DGRAM }),
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) if self.family_of(object) == libc::AF_UNIX => number(0),
            (libc::SOL_SOCKET, libc::SO_DOMAIN) => number(self.family_of(object)),
            (libc::SOL_SOCKET, libc::SO_PEERCRED) => match &self.objects[object].kind {
                Kind::Stream(stream) => stream.unix.peer(),
                _ => End::default().peer(),
            },
            (libc::SOL_SOCKET, libc::SO_PROTOCOL) => {
                number(if is_stream { libc::IPPROTO_TCP } else { libc::IPPROTO_UDP })
            }
            (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => {
                number((is_stream && self.stream(object).phase == Phase::Listening).into())
            }
            (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => match &self.objects[object].kind {
                Kind::Stream(stream) => number(stream.buffer(name) as i32),
                _ => number(MOST_BUFFER as i32 / 2),
            },
            _ => match self.options(object).and_then(|options| options.get(&key)).cloned() {
                Some(value) => value,
                None => match (level, name) {
                    (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => number(SEGMENT),
                    (libc::IPPROTO_TCP, libc::TCP_INFO) => {
                        let mut info = vec![0; 104];
                        info[0] = 1; // TCP_ESTABLISHED
                        info
                    }
                    _ => number(0),
                },
            },
        };
        self.put_sized(thread, registers.r10, registers.r8, &value);
        Outcome::Value(0)
    }
}

impl Kernel {}
