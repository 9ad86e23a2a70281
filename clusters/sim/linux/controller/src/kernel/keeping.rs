//! The calls by which a disk learns what programs change, and what they make durable.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use libc::{c_int, c_long, pid_t};

use super::disk::{Key, Losing, Loss, Named, Synced};
use super::dispatch::Outcome;
use super::slow::Sync;
use super::steps::{Making, SYNCING};
use super::{scaled, Kernel, NodeId, ProcessId, Run, ThreadId, Wait};
use crate::chance::Chance;
use crate::kernel::Fatal;
use crate::start::PAGE;
use crate::tracee::{self, Registers};
use crate::volume::Volume;

/// The least time of a sync, as a share of the mean; the rest is exponential.
const LEAST_SYNC: f64 = 0.25;

/// A part of the memory of a process; see `/proc/PID/maps` in proc(5).
pub(super) struct Area {
    pub memory: Range<u64>,
    pub rights: String,
    pub offset: u64,
    pub key: Key,
    pub path: PathBuf,
}

/// Returns the path that the kernel tells of a file in memory.
///
/// A file that a copy of a run has removed, and that is back for the next one, counts as removed for those that had it then.
fn there(told: &str, key: Key) -> PathBuf {
    let path = told.strip_suffix(" (deleted)").map(PathBuf::from);
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == key);
    path.filter(is_there).unwrap_or_else(|| told.into())
}

impl Area {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let rights = words.next()?.to_owned();
        let offset = number(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = libc::makedev(number(major)? as u32, number(minor)? as u32);
        let inode = words.next()?.parse().ok()?;
        let key = (device, inode);
        let path = there(words.next().unwrap_or("").trim_start(), key);
        Some(Self { memory: number(begin)?..number(end)?, rights, offset, key, path })
    }

    pub fn is_shared(&self) -> bool {
        self.rights.ends_with('s')
    }

    pub fn is_writable(&self) -> bool {
        self.rights[1..].starts_with('w')
    }

    /// Returns the pages of the file in a range of the memory.
    pub fn pages(&self, memory: &Range<u64>) -> Range<u64> {
        let begin = memory.start.max(self.memory.start) - self.memory.start;
        let end = memory.end.min(self.memory.end) - self.memory.start;
        (self.offset + begin) / PAGE..(self.offset + end).div_ceil(PAGE)
    }
}

/// Adds the files below a folder to a set.
fn files_below(folder: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => files_below(&path, files),
            Ok(_) => drop(files.insert(path)),
            Err(_) => {}
        }
    }
}

impl Kernel {
    /// Returns the parts of the memory of a process.
    pub(super) fn areas(&self, tid: pid_t) -> Vec<Area> {
        self.root.read_of(tid, "maps").unwrap_or_default().lines().filter_map(Area::parse).collect()
    }

    /// Returns the file behind a descriptor, if it is on a volume: a path that leads to it, and its name on the volume.
    pub(super) fn opened(&self, thread: ThreadId, descriptor: i32) -> Option<(PathBuf, PathBuf)> {
        let opened = self.root.path_of(self.threads[thread].tid, &format!("fd/{descriptor}"));
        let seen = fs::read_link(&opened).ok()?;
        let path = self.disks[self.threads[thread].node].volume(&seen)?.inside(&seen)?;
        Some((opened, path))
    }

    /// A call that changes a file by a descriptor follows. `place` is where, if the call says it, and `writes` whether it writes bytes.
    pub(super) fn keep_content(
        &mut self,
        thread: ThreadId,
        descriptor: i32,
        place: Option<u64>,
        count: u64,
        writes: bool,
    ) {
        let (tid, node) = (self.threads[thread].tid, self.threads[thread].node);
        if !self.disks[node].remembers {
            return;
        }
        let Some((opened, path)) = self.opened(thread, descriptor) else { return };
        let Ok(information) = self.root.read_of(tid, &format!("fdinfo/{descriptor}")) else { return };
        let field = |name: &str| {
            information.lines().find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
        };
        let flags = field("flags:").and_then(|text| c_int::from_str_radix(&text, 8).ok()).unwrap_or(0);
        if flags & libc::O_DSYNC != 0 {
            let key = fs::metadata(&opened).map_or((0, 0), |file| (file.dev(), file.ino()));
            if self.disks[node].has_image(key) {
                let why = format!("its programs write {} through memory and by writes that sync", path.display());
                self.disks[node].forget(why);
            }
            self.disks[node].count();
            self.begin_step(thread, "write", path);
            return; // the write is durable when it returns
        }
        let from = match place {
            Some(place) => place,
            None if flags & libc::O_APPEND != 0 => fs::metadata(&opened).map_or(0, |metadata| metadata.len()),
            None => field("pos:").and_then(|text| text.parse().ok()).unwrap_or(0),
        };
        let end = from.saturating_add(count);
        self.disks[node].keep(&opened, &path, from..end, writes.then_some(end));
        self.begin_step(thread, if writes { "write" } else { "truncate" }, path);
    }

    /// A call that changes a disk, or syncs it, begins or has ended. It is a step when the thread comes to its next call.
    fn begin_step(&mut self, thread: ThreadId, call: &'static str, path: PathBuf) {
        if self.steps.notes {
            self.threads[thread].making_step = Some(Making { call, path });
        }
    }

    /// A call that changes the content or the name of a file by its path follows.
    pub(super) fn keep_names(&mut self, thread: ThreadId, number: c_long, registers: &Registers) {
        if !self.disks[self.threads[thread].node].remembers {
            return;
        }
        let (one, two, three, four) = (registers.rdi, registers.rsi, registers.rdx, registers.r10);
        let here = libc::AT_FDCWD;
        let directory = |value: u64| value as i32;
        let node = self.threads[thread].node;
        match number {
            libc::SYS_open => self.opens(thread, here, one, two as c_int),
            libc::SYS_creat => self.opens(thread, here, one, libc::O_CREAT | libc::O_TRUNC),
            libc::SYS_openat => self.opens(thread, directory(one), two, three as c_int),
            libc::SYS_openat2 => {
                let flags = tracee::read_u64(self.threads[thread].tid, three).unwrap_or(0);
                self.opens(thread, directory(one), two, flags as c_int);
            }
            libc::SYS_mkdir | libc::SYS_mknod => self.makes(thread, here, one),
            libc::SYS_mkdirat => self.makes(thread, directory(one), two),
            libc::SYS_link | libc::SYS_symlink => self.makes(thread, here, two),
            libc::SYS_linkat => self.makes(thread, directory(three), four),
            libc::SYS_symlinkat => self.makes(thread, directory(two), three),
            libc::SYS_unlink => self.removes(thread, here, one),
            libc::SYS_unlinkat if three as c_int & libc::AT_REMOVEDIR == 0 => {
                self.removes(thread, directory(one), two);
            }
            libc::SYS_rmdir | libc::SYS_unlinkat => {
                let (at, path) = if number == libc::SYS_rmdir { (here, one) } else { (directory(one), two) };
                if let Some(path) = self.named(thread, at, path) {
                    self.disks[node].name(Named::RemovedFolder(path.clone()));
                    self.begin_step(thread, "remove", path);
                }
            }
            libc::SYS_rename => self.renames(thread, (here, one), (here, two)),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                self.renames(thread, (directory(one), two), (directory(three), four));
            }
            libc::SYS_truncate => {
                if let Some(path) = self.named(thread, here, one) {
                    self.disks[node].keep(&path, &path, two..u64::MAX, None);
                    self.begin_step(thread, "truncate", path);
                }
            }
            libc::SYS_ftruncate => self.keep_content(thread, one as i32, Some(two), u64::MAX, false),
            libc::SYS_fallocate => self.keep_content(thread, one as i32, Some(three), four, false),
            _ => {}
        }
    }

    /// A thread maps a file so that it can write it through memory.
    pub(super) fn keep_mapping(&mut self, thread: ThreadId, registers: &Registers) {
        let (rights, flags) = (registers.rdx as c_int, registers.r10 as c_int);
        let node = self.threads[thread].node;
        let is_written = rights & libc::PROT_WRITE != 0
            && flags & libc::MAP_SHARED != 0
            && flags & libc::MAP_ANONYMOUS == 0
            && self.disks[node].remembers;
        if is_written {
            self.hold_by_pages(thread, registers.r8 as i32);
        }
    }

    /// From now on, what is durable of the file behind a descriptor is known by the page.
    fn hold_by_pages(&mut self, thread: ThreadId, descriptor: i32) {
        if let Some((opened, path)) = self.opened(thread, descriptor) {
            self.hold_file(self.threads[thread].node, &opened, &path);
        }
    }

    fn hold_file(&mut self, node: NodeId, opened: &Path, path: &Path) {
        if let Err(error) = self.disks[node].map(opened, path) {
            let why = format!("{}, of which pages are durable, could not be read: {error}", path.display());
            self.disks[node].forget(why);
        }
    }

    /// A sync begins. Its thread waits for the disk, while others go on.
    pub(super) fn begin_sync(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Outcome {
        let node = self.threads[thread].node;
        self.nodes[node].syncs += 1;
        if self.disks[node].remembers {
            if let Some(refused) = &self.threads[thread].refused {
                if matches!(number, libc::SYS_fsync | libc::SYS_fdatasync) {
                    self.hold_by_pages(thread, registers.rdi as i32);
                } else {
                    let files: Vec<_> = refused.files.iter().filter(|path| path.exists()).cloned().collect();
                    for path in files {
                        self.hold_file(node, &path, &path);
                    }
                }
            }
            match self.begin_durable(thread, number, registers) {
                Ok(begun) => self.threads[thread].syncing = Some(begun),
                Err(error) => self.disks[node].forget(format!("a sync could not be followed: {error}")),
            }
        }
        let factor = LEAST_SYNC + (1.0 - LEAST_SYNC) * self.disks[node].chance.exponential();
        let time = scaled(self.sync_mean(node), factor);
        self.threads[thread].sync = Sync { began: self.now, is_slowed: self.is_slow(node) };
        self.block(thread, Wait::Sync, Some(self.now + time));
        Outcome::Block
    }

    fn begin_durable(
        &self,
        thread: ThreadId,
        number: c_long,
        registers: &Registers,
    ) -> io::Result<super::disk::Begun> {
        let disk = &self.disks[self.threads[thread].node];
        match number {
            libc::SYS_msync => disk.begin(Synced::Pages(&self.mapped_files(thread, registers))),
            libc::SYS_sync => disk.begin(Synced::All),
            libc::SYS_syncfs => {
                let volume = self
                    .opened(thread, registers.rdi as i32)
                    .and_then(|(_, path)| disk.volumes.iter().map(Volume::data).find(|data| path.starts_with(data)));
                disk.begin(volume.as_deref().map_or(Synced::Others, Synced::Below))
            }
            _ => match self.opened(thread, registers.rdi as i32) {
                Some((opened, path)) => {
                    let file = fs::metadata(opened)?;
                    disk.begin(Synced::One(&path, (file.dev(), file.ino())))
                }
                None => disk.begin(Synced::Others),
            },
        }
    }

    /// Returns the parts of files that a call is of that names a range of the memory: of each, its path and the pages.
    pub(super) fn mapped_files(&self, thread: ThreadId, registers: &Registers) -> Vec<(PathBuf, Key, Range<u64>)> {
        let disk = &self.disks[self.threads[thread].node];
        let memory = registers.rdi..registers.rdi.saturating_add(registers.rsi);
        let areas = self
            .areas(self.threads[thread].tid)
            .into_iter()
            .filter(|area| area.is_shared() && area.memory.start < memory.end && memory.start < area.memory.end);
        let part = |area: Area| {
            let path = disk.volume(&area.path)?.inside(&area.path)?;
            Some((path, area.key, area.pages(&memory)))
        };
        areas.filter_map(part).collect()
    }

    /// A sync ends. Returns the error that its thread gets, if it failed.
    pub(super) fn end_sync(&mut self, thread: ThreadId, number: c_long) -> Option<c_int> {
        self.count_sync(thread);
        let refused = self.threads[thread].refused.take();
        let disk = &mut self.disks[self.threads[thread].node];
        let begun = self.threads[thread].syncing.take();
        let remembers = begun.is_some();
        match (begun, &refused) {
            (Some(begun), None) => disk.sync(begun),
            (Some(begun), Some(refused)) if matches!(number, libc::SYS_sync | libc::SYS_syncfs) => {
                disk.sync_without(begun, &refused.files);
            }
            (Some(begun), Some(_)) => disk.fail_sync(begun),
            (None, _) => {}
        }
        if remembers && refused.is_none() {
            self.note_sync(thread, number);
        }
        let error = self.refuse_call(refused?);
        (number != libc::SYS_sync).then_some(error) // it is always successful; see sync(2)
    }

    /// A sync is about to end, and has made nothing durable yet: this is a step. Returns whether the program stands still.
    pub(super) fn note_sync_before(&mut self, thread: ThreadId, number: c_long) -> bool {
        let is_new = self.threads[thread].syncing.as_ref().is_some_and(|sync| !sync.is_noted);
        if !is_new || !self.steps.notes {
            return false;
        }
        let path = self.synced_file(thread, number);
        self.disks[self.threads[thread].node].count();
        let stands = self.note_step(thread, Making { call: SYNCING, path });
        if let Some(sync) = &mut self.threads[thread].syncing {
            sync.is_noted = true;
        }
        stands
    }

    /// Returns the file that a sync is of; an empty path if it is of more than one.
    fn synced_file(&self, thread: ThreadId, number: c_long) -> PathBuf {
        let of_one = matches!(number, libc::SYS_fsync | libc::SYS_fdatasync);
        let descriptor = self.threads[thread].registers.rdi as i32;
        let opened = if of_one { self.opened(thread, descriptor) } else { None };
        opened.map_or_else(PathBuf::new, |(_, path)| path)
    }

    /// A sync has ended, and made durable what it is of: a file, or more than one.
    fn note_sync(&mut self, thread: ThreadId, number: c_long) {
        let path = self.synced_file(thread, number);
        self.begin_step(thread, "sync", path);
    }

    /// A process is about to be killed: notes whether it could write a file through memory that has no image.
    pub(super) fn note_maps(&mut self, process: ProcessId) {
        let (pid, node): (pid_t, NodeId) = (self.processes[process].pid, self.processes[process].node);
        if !self.disks[node].remembers {
            return;
        }
        let unseen = self.areas(pid).into_iter().find(|area| {
            let disk = &self.disks[node];
            area.is_shared() && area.is_writable() && disk.volume(&area.path).is_some() && !disk.has_image(area.key)
        });
        if let Some(area) = unseen {
            let path = area.path.display();
            self.disks[node].forget(format!("its programs write {path} through memory that they mapped for reading"));
        }
    }

    /// The disk of a node gets a volume below a folder, and may remember what is durable. Returns where the volume has its data.
    pub fn add_volume(&mut self, node: NodeId, folder: &str, remembers: bool) -> Run<PathBuf> {
        let folder = self.folder(node).join(folder.trim_start_matches('/'));
        self.disks[node].remembers |= remembers;
        if let Some(volume) = self.disks[node].volumes.iter().find(|volume| volume.folder == folder) {
            return Ok(volume.data());
        }
        self.volumes += 1;
        let mut volume = Volume::new(self.root.path(), self.volumes, folder)
            .map_err(|error| Fatal(format!("the disk of {} could not be made: {error}", self.nodes[node].name)))?;
        volume.fill(self.disks[node].is_full)?;
        self.root.devices.push(volume.device);
        let data = volume.data();
        self.disks[node].add(volume);
        Ok(data)
    }

    /// Returns where the volume of a folder has its data.
    pub(super) fn data_of(&self, node: NodeId, folder: &str) -> Run<PathBuf> {
        let folder = self.folder(node).join(folder.trim_start_matches('/'));
        let volume = self.disks[node].volumes.iter().find(|volume| volume.folder == folder);
        volume
            .map(Volume::data)
            .ok_or_else(|| Fatal(format!("{} has no volume at {}", self.nodes[node].name, folder.display())))
    }

    /// Fills the disk of a node, or frees it again.
    pub fn fill(&mut self, node: NodeId, is_full: bool) -> Run<()> {
        self.disks[node].is_full = is_full;
        for volume in &mut self.disks[node].volumes {
            volume.fill(is_full)?;
        }
        Ok(())
    }

    /// Tries to write a small file on each volume of a node. Returns whether all take it.
    pub fn takes_file(&self, node: NodeId) -> Run<bool> {
        let taken: Result<Vec<bool>, _> = self.disks[node].volumes.iter().map(Volume::takes_file).collect();
        Ok(taken?.into_iter().all(|takes| takes))
    }

    /// A fault has changed a file of a folder, or has removed all of them: that is durable.
    pub fn settle(&mut self, node: NodeId, folder: &str, file: Option<&str>) -> Run<()> {
        let data = self.data_of(node, folder)?;
        match file {
            Some(file) => self.disks[node].settle(&data.join(file))?,
            None => self.disks[node].settle_all(&data),
        }
        Ok(())
    }

    /// Returns the numbers of the changes of a node that are not durable, the oldest first.
    pub fn unsynced(&self, node: NodeId) -> Vec<u64> {
        self.disks[node].unsynced().iter().map(|change| change.number).collect()
    }

    /// The disk of a node loses what is not durable below a folder. No program with data there may run.
    ///
    /// `losing` is what it loses; None: what the seed draws.
    pub fn lose(&mut self, node: NodeId, folder: &str, losing: Option<Losing>) -> Run<Loss> {
        if let Some(why) = &self.disks[node].unknown {
            return Err(Fatal(format!("what {} loses with its power is not known: {why}", self.nodes[node].name)));
        }
        let is_full = self.disks[node].is_full;
        let folder = self.data_of(node, folder)?;
        let mut files = BTreeSet::new();
        files_below(&folder, &mut files);
        self.disks[node].losses += 1;
        let purpose = format!("loss {} of {}", self.disks[node].losses, self.nodes[node].name);
        let mut changed = BTreeSet::new();
        self.fill(node, false)?; // what was overwritten may need space
        let mut losing = losing.unwrap_or_else(|| Losing::Drawn(Chance::new(self.settings.seed, &purpose)));
        let bytes = self.disks[node].lose(&folder, &mut losing, &mut changed)?;
        self.fill(node, is_full)?;
        files.extend(changed.iter().cloned());
        let loss = Loss { files: files.len() as u64, changed: changed.len() as u64, bytes };
        self.say(&format!("{} loses {loss:?}", self.nodes[node].name));
        Ok(loss)
    }

    fn opens(&mut self, thread: ThreadId, at: i32, path: u64, flags: c_int) {
        if flags & (libc::O_CREAT | libc::O_TRUNC) == 0 {
            return;
        }
        let Some(path) = self.named(thread, at, path) else { return };
        let node = self.threads[thread].node;
        if path.symlink_metadata().is_err() {
            if flags & libc::O_CREAT != 0 {
                self.disks[node].name(Named::Made(path.clone()));
                self.begin_step(thread, "create", path);
            }
        } else if flags & libc::O_TRUNC != 0 {
            self.disks[node].keep(&path, &path, 0..u64::MAX, None);
            self.begin_step(thread, "truncate", path);
        }
    }

    fn makes(&mut self, thread: ThreadId, at: i32, path: u64) {
        if let Some(path) = self.named(thread, at, path).filter(|path| path.symlink_metadata().is_err()) {
            self.disks[self.threads[thread].node].name(Named::Made(path.clone()));
            self.begin_step(thread, "create", path);
        }
    }

    fn removes(&mut self, thread: ThreadId, at: i32, path: u64) {
        let Some(path) = self.named(thread, at, path) else { return };
        if let Some(kept) = self.kept(thread, &path) {
            self.disks[self.threads[thread].node].name(Named::Removed { path: path.clone(), kept });
            self.begin_step(thread, "remove", path);
        }
    }

    fn renames(&mut self, thread: ThreadId, from: (i32, u64), to: (i32, u64)) {
        let (Some(from), Some(to)) = (self.named(thread, from.0, from.1), self.named(thread, to.0, to.1)) else {
            return;
        };
        if from.symlink_metadata().is_ok() {
            let replaced = self.kept(thread, &to);
            self.disks[self.threads[thread].node].name(Named::Renamed { from, to: to.clone(), replaced });
            self.begin_step(thread, "rename", to);
        }
    }

    /// Gives a file another name, under which it stays when it is removed. Returns that name; None if there is no file.
    fn kept(&mut self, thread: ThreadId, path: &Path) -> Option<PathBuf> {
        self.removed += 1;
        let volumes = &self.disks[self.threads[thread].node].volumes;
        let volume = volumes.iter().find(|volume| path.starts_with(volume.data()))?;
        let kept = volume.removed().join(self.removed.to_string());
        fs::hard_link(path, &kept).ok().map(|()| kept)
    }

    /// Returns where a path of a program is on a volume of its node; None if it is on none.
    pub(super) fn named(&self, thread: ThreadId, at: i32, address: u64) -> Option<PathBuf> {
        let Self { root, threads, .. } = self;
        let (tid, node) = (threads[thread].tid, threads[thread].node);
        let path = PathBuf::from(tracee::read_text(tid, address));
        let whole = if let Ok(inside) = path.strip_prefix("/") {
            self.folder(node).join(inside)
        } else {
            let base = if at == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{at}") };
            fs::read_link(root.path_of(tid, &base)).ok()?.join(path)
        };
        let seen = whole.parent()?.canonicalize().ok()?.join(whole.file_name().unwrap_or_default());
        self.disks[node].volume(&seen)?.inside(&seen)
    }
}
