//! What the disk of a node keeps when it loses its power.
//!
//! The files of a node are in memory. Before each change, this module keeps what undoes it, until a sync makes the change durable.
//! As on a file system with a journal, a sync of a file makes its content durable, and all names of the node so far: those of new,
//! renamed and removed files. Writes through memory are not seen: a node whose programs map a file for writing cannot lose its power.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use libc::{c_int, c_long, pid_t};

use super::dispatch::Outcome;
use super::{scaled, Kernel, NodeId, ProcessId, Run, ThreadId, Wait};
use crate::chance::Chance;
use crate::kernel::Fatal;
use crate::tracee::{self, Registers};

/// The folder beside those of the nodes that keeps what programs have removed.
const REMOVED: &str = ".removed";
/// More than this is not kept of one change.
const MOST_KEPT: u64 = 1 << 30;

/// The least time of a sync, as a share of the mean; the rest is exponential.
const LEAST_SYNC: f64 = 0.25;

/// A change of a file, as what undoes it.
struct Write {
    change: u64,
    offset: u64,
    old: Vec<u8>,
    old_size: u64,
}

/// A file with changes that are not durable.
struct Dirty {
    /// Where it was when it was first changed.
    path: PathBuf,
    file: File,
    writes: Vec<Write>,
}

/// A change of names, as what undoes it.
enum Named {
    Made(PathBuf),
    Renamed { from: PathBuf, to: PathBuf, replaced: Option<PathBuf> },
    Removed { path: PathBuf, kept: PathBuf },
    RemovedFolder(PathBuf),
}

impl Named {
    fn path(&self) -> &Path {
        match self {
            Self::Made(path) | Self::Removed { path, .. } | Self::RemovedFolder(path) => path,
            Self::Renamed { to, .. } => to,
        }
    }
}

/// What is not durable on the disk of a node.
pub struct Disk {
    /// How long syncs take.
    chance: Chance,
    /// The folders with the data of the node's programs. Other files, such as logs, are on a disk that loses nothing.
    folders: Vec<PathBuf>,
    /// How many changes there were so far, which is the number of the last one.
    changes: u64,
    files: BTreeMap<u64, Dirty>,
    names: Vec<(u64, Named)>,
    losses: u64,
    /// Why what a loss takes is not known, e.g. since a program could write a file through memory.
    unknown: Option<String>,
}

/// What a loss of power took.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub files: u64,
    pub changed: u64,
    pub bytes: u64,
}

impl Disk {
    /// Makes the disk of a node.
    pub fn new(seed: u64, node: &str) -> Self {
        Self {
            chance: Chance::new(seed, &format!("disk of {node}")),
            folders: Vec::new(),
            changes: 0,
            files: BTreeMap::new(),
            names: Vec::new(),
            losses: 0,
            unknown: None,
        }
    }

    fn has(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder))
    }

    /// A change of a file follows: keeps what it overwrites between two offsets, and the size.
    fn keep(&mut self, path: &Path, device: u64, from: u64, to: u64) {
        if let Err(error) = self.try_to_keep(path, device, from, to) {
            self.unknown.get_or_insert(format!("a change of {} could not be kept: {error}", path.display()));
        }
    }

    fn try_to_keep(&mut self, path: &Path, device: u64, from: u64, to: u64) -> io::Result<()> {
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() || metadata.dev() != device {
            return Ok(());
        }
        let dirty = match self.files.entry(metadata.ino()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let file = OpenOptions::new().read(true).write(true).open(path)?;
                let place = fs::read_link(path).unwrap_or_else(|_| path.to_owned()); // the path of a descriptor is a link
                entry.insert(Dirty { path: place, file, writes: Vec::new() })
            }
        };
        let old_size = metadata.len();
        let end = to.min(old_size);
        if end.saturating_sub(from) > MOST_KEPT {
            return Err(io::Error::other("a change of more than 1 GiB"));
        }
        let mut old = vec![0; end.saturating_sub(from) as usize];
        dirty.file.read_exact_at(&mut old, from)?;
        self.changes += 1;
        dirty.writes.push(Write { change: self.changes, offset: from, old, old_size });
        Ok(())
    }

    fn name(&mut self, named: Named) {
        self.changes += 1;
        self.names.push((self.changes, named));
    }

    /// A sync makes the content of a file durable, and all names; without a file, all of the node. What came after a change stays.
    fn sync(&mut self, inode: Option<u64>, last: u64) {
        for (number, dirty) in &mut self.files {
            if inode.is_none_or(|inode| inode == *number) {
                dirty.writes.retain(|write| write.change > last);
            }
        }
        self.files.retain(|_, dirty| !dirty.writes.is_empty());
        let durable = self.names.partition_point(|(change, _)| *change <= last);
        for (_, name) in self.names.drain(..durable) {
            if let Named::Removed { kept, .. } | Named::Renamed { replaced: Some(kept), .. } = name {
                let _ = fs::remove_file(kept); // nothing needs it any more
            }
        }
    }

    /// Takes what is not durable below a folder, but for what the seed lets survive: the first changes of each file, and of the names.
    ///
    /// Returns the number of bytes, and adds the names of the files to a set.
    fn lose(&mut self, folder: &Path, chance: &mut Chance, changed: &mut BTreeSet<PathBuf>) -> io::Result<u64> {
        let mut bytes = 0;
        let survives = chance.happens(0.5);
        let mut draw = |count: usize| if survives { chance.below(count as u64 + 1) as usize } else { 0 };
        let (files, others) =
            std::mem::take(&mut self.files).into_iter().partition(|(_, dirty)| dirty.path.starts_with(folder));
        self.files = others;
        for dirty in BTreeMap::<u64, Dirty>::into_values(files) {
            let kept = draw(dirty.writes.len());
            let undone = &dirty.writes[kept..];
            if !undone.is_empty() {
                changed.insert(dirty.path);
            }
            for write in undone.iter().rev() {
                let size = dirty.file.metadata()?.len();
                bytes += (write.old.len() as u64).max(size.saturating_sub(write.old_size));
                dirty.file.set_len(write.old_size)?;
                dirty.file.write_all_at(&write.old, write.offset)?;
            }
        }
        let (names, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.names).into_iter().partition(|(_, name)| name.path().starts_with(folder));
        self.names = others;
        let kept = draw(names.len());
        for (place, (_, name)) in names.into_iter().enumerate().rev() {
            if place < kept {
                if let Named::Removed { kept, .. } | Named::Renamed { replaced: Some(kept), .. } = name {
                    let _ = fs::remove_file(kept);
                }
                continue;
            }
            changed.insert(name.path().to_owned());
            match name {
                Named::Made(path) => undo(if path.is_dir() && !path.is_symlink() {
                    fs::remove_dir_all(path)
                } else {
                    fs::remove_file(path)
                })?,
                Named::Renamed { from, to, replaced } => {
                    undo(fs::rename(&to, from))?;
                    if let Some(replaced) = replaced {
                        undo(fs::rename(replaced, to))?;
                    }
                }
                Named::Removed { path, kept } => undo(fs::rename(kept, path))?,
                Named::RemovedFolder(path) => undo(fs::create_dir(path))?,
            }
        }
        Ok(bytes)
    }
}

/// A change that did not happen needs no undoing.
fn undo(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => Ok(()),
        other => other,
    }
}

/// Adds the files below a folder to a set.
fn files_below(folder: &Path, device: u64, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.dev() != device => {}
            Ok(metadata) if metadata.is_dir() => files_below(&path, device, files),
            Ok(_) => drop(files.insert(path)),
            Err(_) => {}
        }
    }
}

impl Kernel {
    /// A call that changes a file by a descriptor follows.
    pub(super) fn keep_content(&mut self, thread: ThreadId, descriptor: i32, place: Option<u64>, count: u64) {
        let (tid, node) = (self.threads[thread].tid, self.threads[thread].node);
        let path = self.root.path_of(tid, &format!("fd/{descriptor}"));
        if !fs::read_link(&path).is_ok_and(|place| self.disks[node].has(&place)) {
            return;
        }
        let Ok(information) = self.root.read_of(tid, &format!("fdinfo/{descriptor}")) else { return };
        let field = |name: &str| {
            information.lines().find_map(|line| line.strip_prefix(name).map(str::trim).map(str::to_owned))
        };
        let flags = field("flags:").and_then(|text| c_int::from_str_radix(&text, 8).ok()).unwrap_or(0);
        if flags & libc::O_DSYNC != 0 {
            return; // the write is durable when it returns
        }
        let from = match place {
            Some(place) => place,
            None if flags & libc::O_APPEND != 0 => fs::metadata(&path).map_or(0, |metadata| metadata.len()),
            None => field("pos:").and_then(|text| text.parse().ok()).unwrap_or(0),
        };
        let device = self.root.device;
        self.disks[node].keep(&path, device, from, from.saturating_add(count));
    }

    /// A call that changes the content or the name of a file by its path follows.
    pub(super) fn keep_names(&mut self, thread: ThreadId, number: c_long, registers: &Registers) {
        if self.disks[self.threads[thread].node].folders.is_empty() {
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
            libc::SYS_mkdir => self.makes(thread, here, one),
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
                    self.disks[node].name(Named::RemovedFolder(path));
                }
            }
            libc::SYS_rename => self.renames(thread, (here, one), (here, two)),
            libc::SYS_renameat | libc::SYS_renameat2 => {
                self.renames(thread, (directory(one), two), (directory(three), four));
            }
            libc::SYS_truncate => {
                if let Some(path) = self.named(thread, here, one) {
                    let device = self.root.device;
                    self.disks[node].keep(&path, device, two, u64::MAX);
                }
            }
            libc::SYS_ftruncate => self.keep_content(thread, one as i32, Some(two), u64::MAX),
            libc::SYS_fallocate => self.keep_content(thread, one as i32, Some(three), four),
            _ => {}
        }
    }

    /// A sync begins. Its thread waits for the disk, while others go on.
    pub(super) fn begin_sync(&mut self, thread: ThreadId) -> Outcome {
        let node = self.threads[thread].node;
        self.nodes[node].syncs += 1;
        self.threads[thread].syncing = Some(self.disks[node].changes);
        let factor = LEAST_SYNC + (1.0 - LEAST_SYNC) * self.disks[node].chance.exponential();
        let time = scaled(self.nodes[node].sync_mean, factor);
        self.block(thread, Wait::Sync, Some(self.now + time));
        Outcome::Block
    }

    /// A sync of a descriptor ends, or of all: all changes up to one are durable.
    pub(super) fn keep_durable(&mut self, thread: ThreadId, descriptor: Option<i32>, last: u64) {
        let (tid, node) = (self.threads[thread].tid, self.threads[thread].node);
        let inode = descriptor.map(|descriptor| {
            fs::metadata(self.root.path_of(tid, &format!("fd/{descriptor}"))).map_or(0, |file| file.ino())
        });
        self.disks[node].sync(inode, last);
    }

    /// A process is about to be killed: notes whether it could write a file through memory.
    pub(super) fn note_maps(&mut self, process: ProcessId) {
        let (pid, node): (pid_t, NodeId) = (self.processes[process].pid, self.processes[process].node);
        if self.disks[node].folders.is_empty() {
            return;
        }
        let maps = self.root.read_of(pid, "maps").unwrap_or_default();
        let written = maps.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            let may = words.nth(1)?;
            let path = words.nth(3)?;
            (may.starts_with("rw") && may.ends_with('s') && self.disks[node].has(Path::new(path)))
                .then(|| path.to_owned())
        });
        if let Some(path) = written {
            self.disks[node].unknown.get_or_insert(format!("its programs write {path} through memory"));
        }
    }

    /// From now on, the disk of a node remembers what is durable below a folder.
    pub fn remember(&mut self, node: NodeId, folder: &str) {
        let folder = self.folder(node).join(folder.trim_start_matches('/'));
        if !self.disks[node].folders.contains(&folder) {
            self.disks[node].folders.push(folder);
        }
    }

    /// The disk of a node loses what is not durable below a folder. No program with data there may run.
    pub fn lose(&mut self, node: NodeId, folder: &str) -> Run<Loss> {
        if let Some(why) = &self.disks[node].unknown {
            return Err(Fatal(format!("what {} loses with its power is not known: {why}", self.nodes[node].name)));
        }
        let folder = self.folder(node).join(folder.trim_start_matches('/'));
        let mut files = BTreeSet::new();
        files_below(&folder, self.root.device, &mut files);
        self.disks[node].losses += 1;
        let purpose = format!("loss {} of {}", self.disks[node].losses, self.nodes[node].name);
        let mut changed = BTreeSet::new();
        let bytes = self.disks[node].lose(&folder, &mut Chance::new(self.settings.seed, &purpose), &mut changed)?;
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
                self.disks[node].name(Named::Made(path));
            }
        } else if flags & libc::O_TRUNC != 0 {
            let device = self.root.device;
            self.disks[node].keep(&path, device, 0, u64::MAX);
        }
    }

    fn makes(&mut self, thread: ThreadId, at: i32, path: u64) {
        if let Some(path) = self.named(thread, at, path).filter(|path| path.symlink_metadata().is_err()) {
            self.disks[self.threads[thread].node].name(Named::Made(path));
        }
    }

    fn removes(&mut self, thread: ThreadId, at: i32, path: u64) {
        let Some(path) = self.named(thread, at, path) else { return };
        if let Some(kept) = self.kept(&path) {
            self.disks[self.threads[thread].node].name(Named::Removed { path, kept });
        }
    }

    fn renames(&mut self, thread: ThreadId, from: (i32, u64), to: (i32, u64)) {
        let (Some(from), Some(to)) = (self.named(thread, from.0, from.1), self.named(thread, to.0, to.1)) else {
            return;
        };
        if from.symlink_metadata().is_ok() {
            let replaced = self.kept(&to);
            self.disks[self.threads[thread].node].name(Named::Renamed { from, to, replaced });
        }
    }

    /// Gives a file another name, under which it stays when it is removed. Returns that name; None if there is no file.
    fn kept(&mut self, path: &Path) -> Option<PathBuf> {
        self.removed += 1;
        let folder = self.root.folder_of(REMOVED);
        fs::create_dir_all(&folder).ok()?;
        let kept = folder.join(self.removed.to_string());
        fs::hard_link(path, &kept).ok().map(|()| kept)
    }

    /// Returns where the controller sees a path of a program; None if that is not on the disk of its node.
    fn named(&self, thread: ThreadId, at: i32, address: u64) -> Option<PathBuf> {
        let Self { root, threads, .. } = self;
        let (tid, folder) = (threads[thread].tid, self.folder(threads[thread].node));
        let path = PathBuf::from(tracee::read_text(tid, address));
        let whole = if let Ok(inside) = path.strip_prefix("/") {
            folder.join(inside)
        } else {
            let base = if at == libc::AT_FDCWD { "cwd".to_owned() } else { format!("fd/{at}") };
            fs::read_link(root.path_of(tid, &base)).ok()?.join(path)
        };
        let parent = whole.parent()?.canonicalize().ok()?;
        let is_own =
            parent.starts_with(&folder) && fs::metadata(&parent).is_ok_and(|found| found.dev() == root.device);
        is_own.then(|| parent.join(whole.file_name().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::PathBuf;

    use super::{Disk, Named};
    use crate::chance::Chance;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("labrys-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a folder for the test");
        path
    }

    /// Returns a stream of random numbers that lets nothing survive, or something.
    fn chance(survives: bool) -> Chance {
        (0..100)
            .map(|seed| Chance::new(seed, "loss"))
            .find(|chance| chance.clone().happens(0.5) == survives)
            .expect("one")
    }

    #[test]
    fn what_was_not_synced_is_lost() {
        let folder = folder("content");
        let path = folder.join("log");
        fs::write(&path, b"one").expect("a file");
        let metadata = fs::metadata(&path).expect("its metadata");
        let mut disk = Disk::new(1, "n1");
        disk.keep(&path, metadata.dev(), 3, 6);
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.write_all_at(b"two", 3).expect("written");
        disk.sync(Some(metadata.ino()), disk.changes);
        disk.keep(&path, metadata.dev(), 1, 2);
        file.write_all_at(b"X", 1).expect("written");
        disk.keep(&path, metadata.dev(), 6, 9);
        file.write_all_at(b"end", 6).expect("written");
        let mut changed = BTreeSet::new();
        let bytes = disk.lose(&folder, &mut chance(false), &mut changed).expect("a loss");
        assert_eq!(fs::read(&path).expect("the file"), b"onetwo");
        assert_eq!((changed.len(), bytes), (1, 4));
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn names_are_durable_after_any_sync() {
        let folder = folder("names");
        let (old, new, gone, kept) =
            (folder.join("old"), folder.join("new"), folder.join("gone"), folder.join("kept"));
        fs::write(&old, b"a").expect("a file");
        fs::write(&gone, b"b").expect("a file");
        let mut disk = Disk::new(1, "n1");
        fs::hard_link(&gone, &kept).expect("kept");
        disk.name(Named::Removed { path: gone.clone(), kept: kept.clone() });
        fs::remove_file(&gone).expect("removed");
        disk.name(Named::Renamed { from: old.clone(), to: new.clone(), replaced: None });
        fs::rename(&old, &new).expect("renamed");
        disk.lose(&folder, &mut chance(false), &mut BTreeSet::new()).expect("a loss");
        assert!(old.exists() && gone.exists() && !new.exists() && !kept.exists());
        disk.name(Named::Renamed { from: old.clone(), to: new.clone(), replaced: None });
        fs::rename(&old, &new).expect("renamed");
        disk.sync(Some(0), disk.changes);
        disk.lose(&folder, &mut chance(false), &mut BTreeSet::new()).expect("a loss");
        assert!(new.exists() && !old.exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn the_first_changes_may_survive() {
        let folder = folder("prefix");
        let path = folder.join("log");
        fs::write(&path, b"").expect("a file");
        let device = fs::metadata(&path).expect("its metadata").dev();
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        let mut sizes = BTreeSet::new();
        for seed in 0..200 {
            let mut disk = Disk::new(1, "n1");
            file.set_len(0).expect("empty");
            for place in 0..4 {
                disk.keep(&path, device, place, place + 1);
                file.write_all_at(b"x", place).expect("written");
            }
            disk.lose(&folder, &mut Chance::new(seed, "loss"), &mut BTreeSet::new()).expect("a loss");
            sizes.insert(fs::metadata(&path).expect("its metadata").len());
        }
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        fs::remove_dir_all(folder).expect("removed");
    }
}
