//! Files: real ones below the root of a node, with all that would differ between two runs made constant.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use libc::{c_int, c_long, EFAULT, EINVAL, ENAMETOOLONG};

use super::dispatch::{failed, natively, After, Outcome};
use super::objects::Kind;
use super::streams::MOST_AT_ONCE;
use super::work::WORK;
use super::{Kernel, ObjectId, ThreadId, Wait, REALTIME_START, SECOND};
use crate::machine;
use crate::start::PAGE;
use crate::tracee::{self, Registers};
use crate::volume::USUAL;

const STAT_SIZE: usize = 144;
const STATX_SIZE: usize = 256;
const STATFS_SIZE: usize = 120;
const DEVICE: u64 = 0x20; // of all files without a disk
const FOREIGN_INODE: u64 = 77; // of all files of /proc and other foreign file systems
const FIRST_OBJECT_INODE: u64 = 1_000_000;
const FOLDER_SIZE: u64 = 4096;
const FOLDER_BLOCKS: u64 = 8;
const BLOCKS: u64 = 10_000_000; // of any file system, for statfs(2)
const FREE_BLOCKS: u64 = 8_000_000;
const CHUNK: usize = 1 << 16;
const PATH_IN_MAPS: usize = 73; // its column, of the kernel
const UUID: &str = "/proc/sys/kernel/random/uuid"; // proc(5)
const ENTRY_INODE: usize = 0; // the offsets in struct linux_dirent64; see getdents(2)
const BLOCK: u64 = 512; // what stat counts in
const ENTRY_PLACE: usize = 8;
const ENTRY_LENGTH: usize = 16;
const LEAST_ENTRY: usize = 19;

fn put(bytes: &mut [u8], offset: usize, number: u64) {
    bytes[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
}

/// Returns the blocks of a file of a size. How many pages a file in memory has depends on when the kernel needed one.
fn blocks_of(size: u64) -> u64 {
    size.div_ceil(PAGE) * (PAGE / BLOCK)
}

/// Returns entries of a folder without their places in it, which depend on how often names came into the folder.
fn without_places(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut place = 0;
    while place + LEAST_ENTRY <= bytes.len() {
        put(&mut bytes, place + ENTRY_PLACE, 0);
        let length = [bytes[place + ENTRY_LENGTH], bytes[place + ENTRY_LENGTH + 1]];
        place += usize::from(u16::from_le_bytes(length)).max(LEAST_ENTRY);
    }
    bytes
}

impl Kernel {
    /// Handles a call about files. Most run in the kernel, and their results are made constant.
    pub(super) fn file_call(
        &mut self,
        thread: ThreadId,
        number: c_long,
        registers: &Registers,
        again: bool,
    ) -> Outcome {
        let node = self.threads[thread].node;
        self.keep_names(thread, number, registers);
        match number {
            libc::SYS_open | libc::SYS_creat => self.open(thread, registers, false),
            libc::SYS_openat | libc::SYS_openat2 => self.open(thread, registers, true),
            libc::SYS_stat | libc::SYS_lstat => natively(After::Stat(registers.rsi, None)),
            libc::SYS_fstat => natively(After::Stat(registers.rsi, self.object(thread, registers.rdi))),
            libc::SYS_newfstatat => natively(After::Stat(registers.rdx, self.empty_path_object(thread, registers))),
            libc::SYS_statx => natively(After::Statx(registers.r8)),
            libc::SYS_statfs | libc::SYS_fstatfs => natively(After::Statfs(registers.rsi)),
            libc::SYS_getdents64 => natively(After::Entries(registers.rsi)),
            libc::SYS_readlink => natively(After::Link(registers.rsi)),
            libc::SYS_readlinkat => natively(After::Link(registers.rdx)),
            libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync | libc::SYS_syncfs | libc::SYS_msync => {
                if number == libc::SYS_msync {
                    if registers.rdx as c_int & libc::MS_SYNC == 0 {
                        return natively(After::Nothing); // since Linux 2.6.19, it does nothing; see msync(2)
                    }
                } else if number != libc::SYS_sync && self.object(thread, registers.rdi).is_some() {
                    return failed(EINVAL);
                }
                if !again {
                    return self.begin_sync(thread, number, registers);
                }
                if self.note_sync_before(thread, number) {
                    self.block(thread, Wait::Sync, Some(self.now));
                    return Outcome::Block; // its program stands, and what the sync is of is not durable yet
                }
                // `sync` is of all disks of the machine, those of others too, so the kernel does not carry it out.
                let works = if number == libc::SYS_sync { Outcome::Value(0) } else { Outcome::Native };
                self.end_sync(thread, number).map_or(works, failed)
            }
            libc::SYS_pread64 | libc::SYS_preadv => Outcome::Native,
            libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_copy_file_range => {
                self.nodes[node].writes += 1;
                let (descriptor, place, count) = match number {
                    libc::SYS_pwrite64 => (registers.rdi, Some(registers.r10), registers.rdx),
                    libc::SYS_pwritev => {
                        let parts = self.parts(thread, registers.rsi, registers.rdx);
                        let count = parts.map_or(0, |parts| parts.iter().map(|(_, count)| *count as u64).sum());
                        (registers.rdi, Some(registers.r10), count)
                    }
                    _ => (registers.rdx, None, registers.r8),
                };
                self.keep_content(thread, descriptor as i32, place, count, true);
                natively(After::Nothing)
            }
            // Of these, `sync_file_range` makes neither the size nor the names of a file durable, nor what is in the cache of a disk.
            // Names, sizes and owners change below the node's own root: the kernel does it, and its result is the same each time.
            _ => natively(After::Nothing),
        }
    }

    /// Returns the object behind `fstatat` of an empty path, which is that of its descriptor.
    fn empty_path_object(&self, thread: ThreadId, registers: &Registers) -> Option<ObjectId> {
        let is_empty = registers.r10 as i32 & libc::AT_EMPTY_PATH != 0
            && tracee::read(self.threads[thread].tid, registers.rsi, 1) == Some(vec![0]);
        if is_empty {
            self.object(thread, registers.rdi)
        } else {
            None
        }
    }

    fn open(&mut self, thread: ThreadId, registers: &Registers, is_at: bool) -> Outcome {
        let tid = self.threads[thread].tid;
        let node = self.threads[thread].node;
        let path = tracee::read_text(tid, if is_at { registers.rsi } else { registers.rdi });
        if self.digest.logs() {
            self.digest.line(format_args!("{:>14}   opens {path:?}", self.now));
        }
        let path = self.whole(thread, is_at.then_some(registers.rdi as i32), &path);
        if path == "/dev/urandom" || path == "/dev/random" {
            let object = self.make(node, Kind::Random, false);
            return self.new_descriptor(thread, object, true);
        }
        if path == WORK {
            let object = self.open_work(thread);
            return self.new_descriptor(thread, object, false);
        }
        let other = match path.as_str() {
            UUID => self.uuid(thread),
            _ if path.starts_with("/proc/") && path.ends_with("/maps") => self.cleaned_maps(thread, &path),
            _ => machine::stand_in(&path),
        };
        let Some(other) = other else { return natively(After::Nothing) };
        // Not on the stack: below that of a goroutine are those of others.
        let Some(place) = self.pages.as_ref().and_then(|pages| pages.lend_path(node, &other)) else {
            return failed(ENAMETOOLONG);
        };
        let mut changed = *registers;
        *(if is_at { &mut changed.rsi } else { &mut changed.rdi }) = place;
        Outcome::Natively(Some(Box::new(changed)), After::Nothing)
    }

    /// Returns a path of a call as an absolute one, as the program sees it; links that it leads through stay.
    pub(super) fn whole(&self, thread: ThreadId, folder: Option<i32>, path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let mut begin = String::new();
        if !path.starts_with('/') {
            let link = match folder {
                Some(descriptor) if descriptor != libc::AT_FDCWD => format!("fd/{descriptor}"),
                _ => "cwd".to_owned(),
            };
            let real = std::fs::read_link(self.root.path_of(self.threads[thread].tid, &link)).unwrap_or_default();
            let inside = real.strip_prefix(self.folder(self.threads[thread].node)).unwrap_or(&real);
            begin = inside.to_string_lossy().into_owned();
        }
        for part in begin.split('/').chain(path.split('/')) {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }

    /// Writes an id from the seed, another one for each time that a program reads one. Returns its path.
    fn uuid(&mut self, thread: ThreadId) -> Option<String> {
        let process = self.threads[thread].process;
        let (one, two) = (self.processes[process].chance.next(), self.processes[process].chance.next());
        let text = format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\n",
            one >> 32,
            one & 0xffff,
            one >> 16 & 0xfff,
            two >> 48 & 0xfff,
            two & 0xffff_ffff_ffff
        );
        let inside = format!("{}/uuid", machine::STAND_INS);
        std::fs::write(self.folder(self.threads[thread].node).join(&inside), text).ok()?;
        Some(format!("/{inside}"))
    }

    /// Writes a copy of the map of a program's memory, without numbers that vary. Returns its path.
    fn cleaned_maps(&self, thread: ThreadId, path: &str) -> Option<String> {
        let of = path.strip_prefix("/proc/")?.split('/').next()?;
        let tid = match of.parse::<libc::pid_t>() {
            Ok(number) => self.processes.iter().find(|process| process.is_alive && process.number == number)?.pid,
            Err(_) => self.threads[thread].tid,
        };
        // The controller sees the files of all nodes, with the folder of each.
        let maps = self.root.read_of(tid, "maps").ok()?.replace(self.root.path().to_string_lossy().as_ref(), "");
        let maps = self.nodes.iter().fold(maps, |maps, node| maps.replace(&format!(" /{}/", node.name), " /"));
        let cleaned: Vec<String> = maps
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.splitn(6, ' ').collect();
                match words[..] {
                    // Files without a disk, such as those of memory: both numbers count what the host has made.
                    [memory, rights, offset, device, number, path] if device.starts_with("00:") && number != "0" => {
                        let begin = format!("{memory} {rights} {offset} 00:20 77");
                        format!("{begin:PATH_IN_MAPS$}{}", path.trim_start())
                    }
                    _ => line.to_owned(),
                }
            })
            .collect();
        let inside = format!("{}/maps", machine::STAND_INS);
        std::fs::write(self.folder(self.threads[thread].node).join(&inside), cleaned.join("\n") + "\n").ok()?;
        Some(format!("/{inside}"))
    }

    /// A write of a file of the node.
    pub(super) fn write_file(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Outcome {
        let node = self.threads[thread].node;
        self.nodes[node].writes += 1;
        let parts = if number == libc::SYS_write {
            Some(vec![(registers.rsi, registers.rdx as usize)])
        } else {
            self.parts(thread, registers.rsi, registers.rdx)
        };
        let count = parts.as_ref().map_or(0, |parts| parts.iter().map(|(_, count)| *count as u64).sum());
        self.keep_content(thread, registers.rdi as i32, None, count, true);
        if let Some(bytes) = parts.and_then(|parts| self.gather(thread, &parts, MOST_AT_ONCE)) {
            self.digest.bytes(&bytes);
        }
        natively(After::Nothing)
    }

    /// Sends a part of a file over a stream.
    pub(super) fn send_file(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let Some(object) = self.object(thread, registers.rdi) else { return natively(After::Nothing) };
        let tid = self.threads[thread].tid;
        if registers.rdx == 0 {
            return failed(EINVAL); // the programs that were tried name the offset, and fall back to read and write
        }
        let Some(offset) = tracee::read_u64(tid, registers.rdx) else { return failed(EFAULT) };
        let path = self.root.path_of(tid, &format!("fd/{}", registers.rsi as i32));
        let mut bytes = vec![0; (registers.r10 as usize).min(CHUNK)];
        let count = match File::open(path).and_then(|file| file.read_at(&mut bytes, offset)) {
            Ok(count) => count,
            Err(error) => return failed(error.raw_os_error().unwrap_or(EINVAL)),
        };
        if count == 0 {
            return Outcome::Value(0);
        }
        let outcome = self.write_from(thread, object, &bytes[..count], 0, None);
        if let Outcome::Value(sent) = outcome {
            if sent > 0 {
                tracee::write_u64(tid, registers.rdx, offset + sent as u64);
            }
        }
        outcome
    }

    /// Makes the result of a call about a file the same in each run.
    pub(super) fn clean(&mut self, thread: ThreadId, after: After) {
        let tid = self.threads[thread].tid;
        match after {
            After::Stat(address, object) => {
                let Some(mut bytes) = tracee::read(tid, address, STAT_SIZE) else { return };
                self.clean_stat(&mut bytes, object);
                tracee::write(tid, address, &bytes);
                self.digest.bytes(&bytes);
            }
            After::Statx(address) => {
                let Some(mut bytes) = tracee::read(tid, address, STATX_SIZE) else { return };
                self.clean_statx(&mut bytes);
                tracee::write(tid, address, &bytes);
                self.digest.bytes(&bytes[..160]);
            }
            After::Statfs(address) => {
                let Some(mut bytes) = tracee::read(tid, address, STATFS_SIZE) else { return };
                // A full volume has as many blocks as it uses, and what its programs have freed since.
                let is_full = tracee::u64_at(&bytes, 0) == libc::TMPFS_MAGIC as u64
                    && ![0, USUAL].contains(&tracee::u64_at(&bytes, 16));
                let free = if is_full { tracee::u64_at(&bytes, 24) } else { FREE_BLOCKS };
                // Blocks, free blocks twice, files and free files, and the id.
                for (offset, number) in
                    [(16, BLOCKS), (24, free), (32, free), (40, 1_000_000), (48, 900_000), (56, 7)]
                {
                    put(&mut bytes, offset, number);
                }
                tracee::write(tid, address, &bytes);
            }
            _ => {}
        }
    }

    /// Makes the entries of a folder that a program has read the same in each run: below `/proc`, their inode numbers vary.
    pub(super) fn clean_entries(&mut self, thread: ThreadId, address: u64, count: usize) {
        let tid = self.threads[thread].tid;
        let descriptor = self.threads[thread].registers.rdi as i32;
        let path = self.root.path_of(tid, &format!("fd/{descriptor}"));
        let device = std::fs::metadata(path).ok().map(|folder| folder.dev());
        let Some(mut bytes) = tracee::read(tid, address, count) else { return };
        if let Some(device) = device.filter(|device| device >> 8 == 0) {
            let is_own = self.root.is_own(device);
            let mut place = 0;
            while place + LEAST_ENTRY <= count {
                let number = tracee::u64_at(&bytes, place + ENTRY_INODE);
                let seen = if is_own { self.numbers.seen(device, number) } else { FOREIGN_INODE };
                put(&mut bytes, place + ENTRY_INODE, seen);
                let length = [bytes[place + ENTRY_LENGTH], bytes[place + ENTRY_LENGTH + 1]];
                place += usize::from(u16::from_le_bytes(length)).max(LEAST_ENTRY);
            }
            tracee::write(tid, address, &bytes);
            self.digest.bytes(&without_places(bytes));
        } else {
            self.digest.bytes(&bytes);
        }
    }

    /// Makes what a program has read of a link the same in each run: namespaces, sockets and pipes have numbers of the host.
    pub(super) fn clean_link(&mut self, thread: ThreadId, address: u64, count: usize) {
        let tid = self.threads[thread].tid;
        let Some(mut bytes) = tracee::read(tid, address, count) else { return };
        if let Some(begin) = bytes.windows(2).position(|two| two == b":[") {
            if bytes.ends_with(b"]") && !bytes.contains(&b'/') {
                bytes[begin + 2..count - 1]
                    .iter_mut()
                    .filter(|byte| byte.is_ascii_digit())
                    .for_each(|byte| *byte = b'7');
                tracee::write(tid, address, &bytes);
            }
        }
        self.digest.bytes(&bytes);
    }

    fn clean_stat(&self, bytes: &mut [u8], object: Option<ObjectId>) {
        const ACCESSED: usize = 72;
        const MODIFIED: usize = 88;
        const CHANGED: usize = 104;
        for offset in [ACCESSED, MODIFIED, CHANGED] {
            let seconds = tracee::u64_at(bytes, offset) as i64;
            if seconds >= self.root.began_s || offset != MODIFIED || object.is_some() {
                put(bytes, offset, REALTIME_START / SECOND);
                put(bytes, offset + 8, 0);
            }
        }
        if let Some(object) = object {
            put(bytes, 8, FIRST_OBJECT_INODE + object as u64);
            let mode: u32 = match self.objects[object].kind {
                Kind::Stream(_) | Kind::Datagrams(_) => libc::S_IFSOCK | 0o777,
                Kind::Pipe { .. } => libc::S_IFIFO | 0o600,
                Kind::Random | Kind::Work => libc::S_IFCHR | 0o666,
                _ => 0o600,
            };
            bytes[24..28].copy_from_slice(&mode.to_le_bytes());
        }
        let device = tracee::u64_at(bytes, 0);
        let is_own = self.root.is_own(device);
        let is_folder = tracee::u32_at(bytes, 24) & libc::S_IFMT == libc::S_IFDIR;
        if !is_own && is_folder {
            // A folder of the host: its links, size and time depend on what else is there.
            put(bytes, 16, 2);
            put(bytes, 48, FOLDER_SIZE);
            put(bytes, 64, FOLDER_BLOCKS);
            put(bytes, MODIFIED, SECOND);
            put(bytes, MODIFIED + 8, 0);
        }
        if is_own {
            let number = tracee::u64_at(bytes, 8);
            put(bytes, 16, self.numbers.names(device, number, tracee::u64_at(bytes, 16)));
            put(bytes, 8, self.numbers.seen(device, number));
            put(bytes, 64, blocks_of(tracee::u64_at(bytes, 48)));
        }
        if device >> 8 == 0 {
            if !is_own && object.is_none() {
                put(bytes, 8, FOREIGN_INODE);
                put(bytes, 16, 1);
                put(bytes, MODIFIED, SECOND);
                put(bytes, MODIFIED + 8, 0);
            }
            put(bytes, 0, DEVICE);
        }
    }

    fn clean_statx(&self, bytes: &mut [u8]) {
        const MODIFIED: usize = 112;
        for offset in [64, 80, 96, MODIFIED] {
            let seconds = tracee::u64_at(bytes, offset) as i64;
            if seconds >= self.root.began_s || offset != MODIFIED {
                put(bytes, offset, REALTIME_START / SECOND);
                bytes[offset + 8..offset + 12].fill(0);
            }
        }
        if tracee::u32_at(bytes, 136) == 0 {
            let device = tracee::u32_at(bytes, 140).into();
            if self.root.is_own(device) {
                let number = tracee::u64_at(bytes, 32);
                let names = self.numbers.names(device, number, tracee::u32_at(bytes, 16).into());
                bytes[16..20].copy_from_slice(&(names as u32).to_le_bytes());
                put(bytes, 32, self.numbers.seen(device, number));
                put(bytes, 48, blocks_of(tracee::u64_at(bytes, 40)));
            } else {
                put(bytes, 32, FOREIGN_INODE);
                bytes[16..20].copy_from_slice(&1_u32.to_le_bytes());
                put(bytes, MODIFIED, SECOND);
                bytes[MODIFIED + 8..MODIFIED + 12].fill(0);
            }
            bytes[140..144].copy_from_slice(&(DEVICE as u32).to_le_bytes());
        }
        bytes[144..152].fill(0); // the id of the mount
    }
}
