//! Unix sockets: streams and datagrams between programs of one node, by the path of a file or an abstract name.
//!
//! Sources: unix(7), and `net/unix/af_unix.c` of Linux. The file of a socket is a real one below the root of the node, and its
//! device and number lead to the object. Descriptors cannot be passed.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use libc::{c_int, EADDRINUSE, EAGAIN, ECONNREFUSED, EINVAL, EISCONN, ENOTCONN, EPERM, EPROTOTYPE};

use super::disk::Key;
use super::dispatch::{failed, After, Outcome};
use super::names::Name;
use super::objects::{Kind, Object};
use super::tcp::{Phase, Stream};
use super::{Kernel, NodeId, ObjectId, ThreadId, Wait};

/// That a socket takes one more connection or datagram: an event that programs do not see.
pub const ROOM: u32 = 1 << 20;
/// How many datagrams wait at a socket, but for one: `net.unix.max_dgram_qlen`.
pub const MOST_WAITING: usize = 10;
const ALL_RIGHTS: u64 = 0o777; // those of the file, but for the mask of the process
const NOBODY: [u32; 3] = [0, u32::MAX, u32::MAX];
const MANY: usize = 1 << 12; // connections that may wait at a listener, at most: `net.core.somaxconn`

/// A process at an end of a connection: its number, its user and its group.
type Credentials = [u32; 3];

/// What a Unix socket has beside its stream or its datagrams.
#[derive(Clone, Default)]
pub struct End {
    pub name: Vec<u8>,
    pub peer_name: Vec<u8>,
    /// Of a listener: of the process that made it one.
    pub peer_credentials: Option<Credentials>,
    /// Of a listener: how many connections wait at most, but for one.
    pub most_waiting: usize,
}

impl End {
    /// Returns what `SO_PEERCRED` says.
    pub fn peer(&self) -> Vec<u8> {
        self.peer_credentials.unwrap_or(NOBODY).iter().flat_map(|number| number.to_le_bytes()).collect()
    }
}

/// What leads to a Unix socket.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    File(Key),
    /// Streams and datagrams have names of their own.
    Abstract {
        node: NodeId,
        is_stream: bool,
        name: Vec<u8>,
    },
}

/// Opens a path below a folder, and no link leads out of it.
fn open_below(folder: &std::path::Path, path: &str) -> io::Result<File> {
    let folder = File::open(folder)?;
    let path = CString::new(path.trim_start_matches('/'))?;
    // SAFETY: the structure is plain numbers, the path ends with a zero, and the descriptor is a new one.
    unsafe {
        let mut how: libc::open_how = std::mem::zeroed();
        how.flags = (libc::O_PATH | libc::O_CLOEXEC) as u64;
        how.resolve = libc::RESOLVE_IN_ROOT;
        let size = size_of::<libc::open_how>();
        match libc::syscall(libc::SYS_openat2, folder.as_raw_fd(), path.as_ptr(), &raw const how, size) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor as c_int)),
        }
    }
}

impl Kernel {
    fn end(&mut self, object: ObjectId) -> &mut End {
        match &mut self.objects[object].kind {
            Kind::Stream(stream) => &mut stream.unix,
            Kind::Datagrams(datagrams) => &mut datagrams.unix,
            _ => unreachable!("the caller has checked that it is a socket"),
        }
    }

    /// Returns the process of a thread, for the other ends of its connections.
    pub(super) fn credentials(&self, thread: ThreadId) -> Credentials {
        let status = self.root.read_of(self.threads[thread].tid, "status").unwrap_or_default();
        let effective = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
        };
        let number = self.processes[self.threads[thread].process].number;
        [number as u32, effective("Uid:"), effective("Gid:")]
    }

    /// Returns the file that a path of a program leads to: whether it is a socket, and its device and number.
    fn file_of(&self, thread: ThreadId, path: &[u8]) -> Result<(bool, Key), c_int> {
        let whole = self.whole(thread, None, &String::from_utf8_lossy(path));
        let folder = self.folder(self.threads[thread].node);
        let metadata = open_below(&folder, &whole).and_then(|file| file.metadata());
        let metadata = metadata.map_err(|error| error.raw_os_error().unwrap_or(EINVAL))?;
        Ok((metadata.file_type().is_socket(), (metadata.dev(), metadata.ino())))
    }

    /// Returns what an abstract name of a socket leads to.
    fn abstract_place(&self, object: ObjectId, name: &[u8]) -> Place {
        let Object { kind, node, .. } = &self.objects[object];
        Place::Abstract { node: *node, is_stream: matches!(kind, Kind::Stream(_)), name: name.to_vec() }
    }

    /// Returns the socket that a program sends or connects to by one of its own.
    fn target_of(&self, thread: ThreadId, object: ObjectId, path: &[u8]) -> Result<ObjectId, c_int> {
        let place = match path.first() {
            None => return Err(EINVAL),
            Some(0) => self.abstract_place(object, path),
            Some(_) => match self.file_of(thread, path)? {
                (true, key) => Place::File(key),
                (false, _) => return Err(ECONNREFUSED),
            },
        };
        self.unix.get(&place).copied().ok_or(ECONNREFUSED)
    }

    /// Gives a Unix socket a name. The kernel makes its file.
    pub(super) fn bind_unix(&mut self, thread: ThreadId, object: ObjectId, mut path: Vec<u8>) -> Outcome {
        let node = self.threads[thread].node;
        if !self.end(object).name.is_empty() {
            return failed(EINVAL);
        }
        if path.is_empty() {
            // The kernel draws a free name; here it is the next one.
            path = format!("\0{:05x}", object & 0xf_ffff).into_bytes();
        }
        if path[0] == 0 {
            let place = self.abstract_place(object, &path);
            if self.unix.contains_key(&place) {
                return failed(EADDRINUSE);
            }
            self.unix.insert(place, object);
            self.end(object).name = path;
            return Outcome::Value(0);
        }
        let whole = self.whole(thread, None, &String::from_utf8_lossy(&path));
        if self.file_of(thread, &path).is_ok() {
            return failed(EADDRINUSE);
        }
        let Some(address) = self.pages.as_ref().and_then(|pages| pages.lend_path(node, &whole)) else {
            return failed(libc::ENAMETOOLONG);
        };
        let mut changed = self.threads[thread].registers;
        changed.orig_rax = libc::SYS_mknod as u64;
        (changed.rdi, changed.rsi, changed.rdx) = (address, u64::from(libc::S_IFSOCK) | ALL_RIGHTS, 0);
        self.keep_names(thread, libc::SYS_mknod, &changed);
        self.threads[thread].binding = Some((object, path));
        Outcome::Natively(Some(Box::new(changed)), After::Bound)
    }

    /// The kernel has made the file of a socket.
    pub(super) fn bound_unix(&mut self, thread: ThreadId) {
        let Some((object, path)) = self.threads[thread].binding.take() else { return };
        if let Ok((_, key)) = self.file_of(thread, &path) {
            self.unix.insert(Place::File(key), object);
            self.end(object).name = path;
        }
    }

    /// A Unix socket is closed: nothing leads to it any more. Its file stays.
    pub(super) fn unbind_unix(&mut self, object: ObjectId) {
        self.unix.retain(|_, of| *of != object);
    }

    pub(super) fn listen_unix(&mut self, thread: ThreadId, object: ObjectId, most: c_int) -> Outcome {
        if self.end(object).name.is_empty() {
            return failed(EINVAL);
        }
        let credentials = self.credentials(thread);
        let end = self.end(object);
        end.peer_credentials = Some(credentials);
        end.most_waiting = usize::try_from(most).unwrap_or(MANY).min(MANY);
        self.stream(object).phase = Phase::Listening;
        Outcome::Value(0)
    }

    pub(super) fn connect_unix(&mut self, thread: ThreadId, object: ObjectId, path: &[u8]) -> Outcome {
        let target = match self.target_of(thread, object, path) {
            Err(error) => return failed(error),
            Ok(target) => target,
        };
        if let Kind::Datagrams(datagrams) = &mut self.objects[object].kind {
            datagrams.peer = Some(target);
            let name = self.end(target).name.clone();
            self.end(object).peer_name = name;
            self.changed(object);
            if matches!(self.objects[target].kind, Kind::Datagrams(_)) {
                return Outcome::Value(0);
            }
            self.forget_peer(object);
            return failed(EPROTOTYPE);
        }
        let listener = match &self.objects[target].kind {
            Kind::Stream(stream) if stream.phase == Phase::Listening && !stream.reads_ended => stream.unix.clone(),
            Kind::Stream(_) => return failed(ECONNREFUSED),
            _ => return failed(EPROTOTYPE),
        };
        if self.stream(target).backlog.len() > listener.most_waiting {
            return self.await_room(thread, object, target, self.objects[object].is_nonblocking);
        }
        match self.stream(object).phase {
            Phase::Fresh => {}
            Phase::Connected => return failed(EISCONN),
            _ => return failed(EINVAL),
        }
        let node = self.threads[thread].node;
        let own = self.credentials(thread);
        let server = self.make(node, Kind::Stream(Box::new(Stream::new(node, libc::AF_UNIX))), false);
        let client_name = self.end(object).name.clone();
        for (end, other) in [(object, server), (server, object)] {
            let stream = self.stream(end);
            (stream.phase, stream.is_told, stream.peer) = (Phase::Connected, true, Some(other));
        }
        let end = self.end(server);
        (end.name, end.peer_name, end.peer_credentials) = (listener.name.clone(), client_name, Some(own));
        let end = self.end(object);
        (end.peer_name, end.peer_credentials) = (listener.name, listener.peer_credentials);
        self.stream(target).backlog.push_back(server);
        self.changed(target);
        self.changed(object);
        Outcome::Value(0)
    }

    /// A socket takes nothing more: waits until it does.
    fn await_room(&mut self, thread: ThreadId, object: ObjectId, target: ObjectId, is_nonblocking: bool) -> Outcome {
        if is_nonblocking || self.threads[thread].timed_out {
            return failed(EAGAIN);
        }
        let deadline = self.threads[thread].deadline.or_else(|| self.send_timeout(object));
        self.block(thread, Wait::Ready(vec![(target, ROOM)]), deadline);
        Outcome::Block
    }

    fn forget_peer(&mut self, object: ObjectId) {
        if let Kind::Datagrams(datagrams) = &mut self.objects[object].kind {
            datagrams.peer = None;
            datagrams.unix.peer_name.clear();
        }
    }

    /// Sends a datagram to a path, or to the socket that this one is connected to.
    pub(super) fn send_unix(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        bytes: &[u8],
        to: Option<&[u8]>,
        is_nonblocking: bool,
    ) -> Outcome {
        let peer = match &self.objects[object].kind {
            Kind::Datagrams(datagrams) => datagrams.peer,
            _ => None,
        };
        let target = match to.map(|path| self.target_of(thread, object, path)) {
            Some(Err(error)) => return failed(error),
            Some(Ok(target)) => target,
            None => match peer {
                Some(peer) => peer,
                None => return failed(ENOTCONN),
            },
        };
        let name = self.end(object).name.clone();
        match &mut self.objects[target].kind {
            Kind::Datagrams(other) if other.peer.is_some_and(|peer| peer != object) => failed(EPERM),
            Kind::Datagrams(other) if other.received.len() > MOST_WAITING => {
                self.await_room(thread, object, target, is_nonblocking)
            }
            Kind::Datagrams(other) => {
                other.received.push_back((Name::Unix(name), bytes.to_vec()));
                self.changed(target);
                Outcome::Value(bytes.len() as i64)
            }
            Kind::Stream(_) => failed(EPROTOTYPE),
            _ => {
                self.forget_peer(object);
                failed(ECONNREFUSED)
            }
        }
    }

    /// A datagram was taken from a Unix socket: those that send to it may go on.
    pub(super) fn made_room(&mut self, object: ObjectId) {
        self.is_stale = true;
        let is_sender = |other: &ObjectId| matches!(&self.objects[*other].kind, Kind::Datagrams(datagrams) if datagrams.peer == Some(object));
        let senders: Vec<ObjectId> = (0..self.objects.len()).filter(is_sender).collect();
        for sender in senders {
            self.changed(sender);
        }
    }

    /// Makes two connected Unix sockets of datagrams.
    pub(super) fn datagram_pair(&mut self, node: NodeId, is_nonblocking: bool) -> (ObjectId, ObjectId) {
        let [one, other] = [0; 2].map(|_| self.make(node, Kind::Datagrams(Box::default()), is_nonblocking));
        for (object, peer) in [(one, other), (other, one)] {
            if let Kind::Datagrams(datagrams) = &mut self.objects[object].kind {
                (datagrams.family, datagrams.peer) = (libc::AF_UNIX, Some(peer));
            }
        }
        (one, other)
    }
}
