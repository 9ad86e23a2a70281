//! What the disk of a node keeps when it loses its power.
//!
//! The files of a node are in memory. Before each change, this module keeps what undoes it, until a sync makes the change durable.
//! As on a file system with a journal, a sync of a file makes its content durable, and all names of the volume so far: those of
//! new, renamed and removed files. Of a file that programs write through memory, it holds an image instead; see `pages`.
//! A disk writes sectors, so the last write that survives can be there in part.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::pages::{Changes, Image};
use crate::chance::Chance;
use crate::start::PAGE;
use crate::volume::Volume;

/// More than this is not kept of one change.
const MOST_KEPT: u64 = 1 << 30;
/// What a disk writes at once.
const SECTOR: u64 = 512;
/// The probability that the last write of a file that survives a loss is there in part.
const TORN: f64 = 0.5;

/// The device and the number of a file.
pub type Key = (u64, u64);

/// A change of a file, as what undoes it.
#[derive(Clone)]
struct Write {
    change: u64,
    offset: u64,
    old: Vec<u8>,
    old_size: u64,
    /// Of bytes that a program writes: where they end. None: of another change, such as a truncation.
    end: Option<u64>,
}

impl Write {
    /// Undoes it from an offset on, but for the size, which is at least that. Returns how many bytes that changes.
    fn undo(&self, file: &File, from: u64) -> io::Result<u64> {
        let size = file.metadata()?.len();
        let whole = from == self.offset;
        let new_size = if whole { self.old_size } else { self.old_size.max(from).min(size) };
        let old = self.old.get((from - self.offset) as usize..).unwrap_or(&[]);
        file.set_len(new_size)?;
        file.write_all_at(old, from)?;
        Ok((old.len() as u64).max(size.saturating_sub(new_size)))
    }

    /// Draws where it is torn: between two sectors. None: it is whole.
    fn torn_at(&self, size: u64, chance: &mut Chance) -> Option<u64> {
        let end = self.end?.min(size);
        let first = self.offset / SECTOR + 1;
        let count = end.div_ceil(SECTOR).saturating_sub(first);
        (count > 0 && chance.happens(TORN)).then(|| (first + chance.below(count)) * SECTOR)
    }
}

/// A write that was undone, as what does it again.
struct Redo {
    change: u64,
    offset: u64,
    bytes: Vec<u8>,
    old_size: u64,
    size: u64,
}

impl Redo {
    /// Undoes a write, and returns what does it again.
    fn of(write: &Write, file: &File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let end = write.end.map_or(write.offset, |end| end.min(size)).max(write.offset);
        let mut bytes = vec![0; (end - write.offset) as usize];
        file.read_exact_at(&mut bytes, write.offset)?;
        write.undo(file, write.offset)?;
        Ok(Self { change: write.change, offset: write.offset, bytes, old_size: write.old_size, size })
    }

    /// Does the write again. A torn one ends at the first boundary of sectors within its bytes, if there is one.
    fn apply(&self, file: &File, is_torn: bool) -> io::Result<()> {
        let end = self.offset + self.bytes.len() as u64;
        let boundary = (self.offset / SECTOR + 1) * SECTOR;
        let count = if is_torn && boundary < end { boundary - self.offset } else { self.bytes.len() as u64 };
        file.write_all_at(&self.bytes[..count as usize], self.offset)?;
        if self.bytes.is_empty() {
            let size = file.metadata()?.len();
            file.set_len(if self.size < self.old_size { size.min(self.size) } else { size.max(self.size) })?;
        }
        Ok(())
    }
}

/// A change that is not durable: its number, whether it is one of names, and the path of its file.
#[derive(Clone)]
pub struct Unsynced {
    pub number: u64,
    pub names: bool,
    pub file: PathBuf,
}

/// What a loss of power takes of what is not durable.
pub enum Losing {
    /// What the seed draws.
    Drawn(Chance),
    All,
    /// The changes with these numbers, and the changes of names after the first of them. The newest write that is left may be torn.
    These {
        lost: BTreeSet<u64>,
        is_torn: bool,
    },
}

/// A file with changes that are not durable, or with an image.
#[derive(Clone)]
struct Dirty {
    /// Where it was when it was first changed.
    path: PathBuf,
    file: Rc<File>,
    writes: Vec<Write>,
    /// What is durable, if a program can write the file through memory.
    image: Option<Image>,
}

/// A change of names, as what undoes it.
#[derive(Clone)]
pub enum Named {
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

    /// Nothing needs what it has kept.
    fn forget(self) {
        if let Self::Removed { kept, .. } | Self::Renamed { replaced: Some(kept), .. } = self {
            let _ = fs::remove_file(kept);
        }
    }

    /// A change that did not happen needs no undoing.
    fn undo(self) -> io::Result<()> {
        let undo = |result: io::Result<()>| match result {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => Ok(()),
            other => other,
        };
        match self {
            Self::Made(path) => undo(if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }),
            Self::Renamed { from, to, replaced } => {
                undo(fs::rename(&to, from))?;
                replaced.map_or(Ok(()), |replaced| undo(fs::rename(replaced, to)))
            }
            Self::Removed { path, kept } => undo(fs::rename(kept, path)),
            Self::RemovedFolder(path) => undo(fs::create_dir(path)),
        }
    }
}

/// What a sync is of.
#[derive(Clone, Copy)]
pub enum Synced<'a> {
    /// All files of the node.
    All,
    /// All files below a folder.
    Below(&'a Path),
    /// A file, or a folder.
    One(&'a Path, Key),
    /// Parts of files that are in memory: of each, its path and the pages.
    Pages(&'a [(PathBuf, Key, Range<u64>)]),
    /// Files on a disk that loses nothing.
    Others,
}

impl Synced<'_> {
    /// Returns the pages of a file that the sync is of.
    fn pages(self, key: Key, path: &Path) -> Option<Range<u64>> {
        match self {
            Self::All => Some(0..u64::MAX),
            Self::Below(folder) => path.starts_with(folder).then_some(0..u64::MAX),
            Self::One(_, of) => (of == key).then_some(0..u64::MAX),
            Self::Pages(parts) => parts.iter().find(|(_, of, _)| *of == key).map(|(.., pages)| pages.clone()),
            Self::Others => None,
        }
    }

    /// Returns whether the sync is of a volume, or of a file on it.
    fn is_on(self, folder: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Below(path) | Self::One(path, _) => path.starts_with(folder),
            Self::Pages(parts) => parts.iter().any(|(path, ..)| path.starts_with(folder)),
            Self::Others => false,
        }
    }
}

/// A sync that has begun: what it makes durable at its end.
#[derive(Clone)]
pub struct Begun {
    /// The number of the last change before it.
    last: u64,
    files: BTreeSet<Key>,
    /// The volumes of which it makes all names durable.
    folders: Vec<PathBuf>,
    images: BTreeMap<Key, Changes>,
    /// Whether the moment before its end was a step already.
    pub is_noted: bool,
}

/// What is not durable on the disk of a node.
#[derive(Clone)]
pub struct Disk {
    /// How long syncs take.
    pub chance: Chance,
    pub volumes: Vec<Volume>,
    /// Where the data of each volume is.
    folders: Vec<PathBuf>,
    /// Whether writes fail that need space.
    pub is_full: bool,
    /// The calls that fail.
    pub rules: Vec<super::errors::Rule>,
    /// How often the rules for pages of mapped files have changed.
    pub page_rules: u64,
    /// Whether it remembers what is durable. Files that are on no volume, such as logs, are on a disk that loses nothing.
    pub remembers: bool,
    /// How many changes there were so far, which is the number of the last one.
    changes: u64,
    files: BTreeMap<Key, Dirty>,
    names: Vec<(u64, Named)>,
    pub losses: u64,
    /// Why what a loss takes is not known.
    pub unknown: Option<String>,
}

/// What a loss of power took.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    pub files: u64,
    pub changed: u64,
    pub bytes: u64,
}

/// Returns what the draws of the disk of a node are for.
pub fn purpose(node: &str) -> String {
    format!("disk of {node}")
}

impl Disk {
    /// Makes the disk of a node.
    pub fn new(seed: u64, node: &str) -> Self {
        Self {
            chance: Chance::new(seed, &purpose(node)),
            volumes: Vec::new(),
            folders: Vec::new(),
            is_full: false,
            rules: Vec::new(),
            page_rules: 0,
            remembers: false,
            changes: 0,
            files: BTreeMap::new(),
            names: Vec::new(),
            losses: 0,
            unknown: None,
        }
    }

    /// Adds a volume.
    pub fn add(&mut self, volume: Volume) {
        self.folders.push(volume.data());
        self.volumes.push(volume);
    }

    /// Returns the volume that has a path of the node, as the controller sees it.
    pub fn volume(&self, path: &Path) -> Option<&Volume> {
        self.volumes.iter().rev().find(|volume| path.starts_with(&volume.folder))
    }

    /// Says why a loss of power is not possible any more.
    pub fn forget(&mut self, why: String) {
        self.unknown.get_or_insert(why);
    }

    /// Returns whether it holds an image of a file.
    pub fn has_image(&self, key: Key) -> bool {
        self.files.get(&key).is_some_and(|dirty| dirty.image.is_some())
    }

    /// A change of a file follows: keeps what it overwrites between two offsets, and the size.
    ///
    /// `opened` leads to the file, and `path` is its name. `end` is where bytes end that a program writes.
    pub fn keep(&mut self, opened: &Path, path: &Path, range: Range<u64>, end: Option<u64>) {
        if let Err(error) = self.try_to_keep(opened, path, range, end) {
            self.forget(format!("a change of {} could not be kept: {error}", path.display()));
        }
    }

    fn dirty(&mut self, opened: &Path, path: &Path) -> io::Result<Option<(&mut Dirty, u64)>> {
        let metadata = fs::metadata(opened)?;
        if !metadata.is_file() {
            return Ok(None);
        }
        let dirty = match self.files.entry((metadata.dev(), metadata.ino())) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let file = OpenOptions::new().read(true).write(true).open(opened)?;
                entry.insert(Dirty { path: path.to_owned(), file: Rc::new(file), writes: Vec::new(), image: None })
            }
        };
        Ok(Some((dirty, metadata.len())))
    }

    fn try_to_keep(&mut self, opened: &Path, path: &Path, range: Range<u64>, end: Option<u64>) -> io::Result<()> {
        let change = self.changes + 1;
        let Some((dirty, old_size)) = self.dirty(opened, path)? else { return Ok(()) };
        if let Some(image) = &mut dirty.image {
            image.touch(&range); // the next sync, or the loss, compares it
            self.changes = change;
            return Ok(());
        }
        let count = range.end.min(old_size).saturating_sub(range.start);
        if count > MOST_KEPT {
            return Err(io::Error::other("a change of more than 1 GiB"));
        }
        let mut old = vec![0; count as usize];
        dirty.file.read_exact_at(&mut old, range.start)?;
        dirty.writes.push(Write { change, offset: range.start, old, old_size, end });
        self.changes = change;
        Ok(())
    }

    /// From now on, what is durable of a file is known by the page: a program can write it through memory, or a sync of it fails.
    pub fn map(&mut self, opened: &Path, path: &Path) -> io::Result<()> {
        let Some((dirty, _)) = self.dirty(opened, path)? else { return Ok(()) };
        if dirty.image.is_none() {
            let mut image = Image::of(&dirty.file)?;
            for write in std::mem::take(&mut dirty.writes).into_iter().rev() {
                image.undo(write.offset, &write.old, write.old_size);
            }
            dirty.image = Some(image);
        }
        Ok(())
    }

    /// Returns the files with changes that may not be durable, by the paths that they have now.
    pub fn changed_files(&self) -> Vec<PathBuf> {
        self.files.values().filter_map(|dirty| self.path_now(dirty)).collect()
    }

    /// Returns the path that a file has now; None if it was removed.
    fn path_now(&self, dirty: &Dirty) -> Option<PathBuf> {
        let seen = fs::read_link(format!("/proc/self/fd/{}", dirty.file.as_raw_fd())).ok()?;
        let inside = self.volume(&seen).and_then(|volume| volume.inside(&seen));
        Some(inside.unwrap_or(seen)).filter(|path| path.exists())
    }

    /// Adds the pages of a file that no sync has written.
    pub fn unwritten(&self, key: Key, pages: &mut BTreeSet<u64>) -> io::Result<()> {
        let Some(dirty) = self.files.get(&key) else { return Ok(()) };
        if let Some(image) = &dirty.image {
            pages.extend(image.changes(&dirty.file, 0..u64::MAX)?.numbers());
        }
        for write in &dirty.writes {
            pages.extend(write.offset / PAGE..write.end.unwrap_or(write.offset).div_ceil(PAGE));
        }
        Ok(())
    }

    /// Returns the number of the last change or sync.
    pub fn last(&self) -> u64 {
        self.changes
    }

    /// Counts a change that is durable at once.
    pub fn count(&mut self) {
        self.changes += 1;
    }

    /// Returns the changes that are not durable, the oldest first, but for those that programs make through memory.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        let shown = |path: &Path| {
            let folder = self.folders.iter().find(|folder| path.starts_with(folder));
            folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path).to_owned()
        };
        let mut changes: Vec<_> = self
            .names
            .iter()
            .map(|(number, name)| Unsynced { number: *number, names: true, file: shown(name.path()) })
            .collect();
        for dirty in self.files.values() {
            let of_file = |write: &Write| Unsynced { number: write.change, names: false, file: shown(&dirty.path) };
            changes.extend(dirty.writes.iter().map(of_file));
        }
        changes.sort_by_key(|change| change.number);
        changes
    }

    /// Notes a change of names.
    pub fn name(&mut self, named: Named) {
        self.changes += 1;
        self.names.push((self.changes, named));
    }

    /// A sync begins. What comes after this will not be durable by it.
    pub fn begin(&self, what: Synced) -> io::Result<Begun> {
        let folders: Vec<_> = self.folders.iter().filter(|folder| what.is_on(folder)).cloned().collect();
        let mut images = BTreeMap::new();
        for (key, dirty) in &self.files {
            if let Some(image) = &dirty.image {
                // A sync of another file makes the size durable, as it does the names of the volume.
                let has_size = folders.iter().any(|folder| dirty.path.starts_with(folder));
                if let Some(pages) = what.pages(*key, &dirty.path).or_else(|| has_size.then_some(0..0)) {
                    images.insert(*key, image.changes(&dirty.file, pages)?);
                }
            }
        }
        Ok(Begun {
            last: self.changes,
            files: self
                .files
                .iter()
                .filter(|(key, dirty)| what.pages(**key, &dirty.path).is_some())
                .map(|(key, _)| *key)
                .collect(),
            folders,
            images,
            is_noted: false,
        })
    }

    /// A sync ends: it makes the content of its files durable, and all names of their volumes, as they were when it began.
    pub fn sync(&mut self, begun: Begun) {
        for (key, changes) in begun.images {
            if let Some(image) = self.files.get_mut(&key).and_then(|dirty| dirty.image.as_mut()) {
                image.take(changes);
            }
        }
        for (key, dirty) in &mut self.files {
            if begun.files.contains(key) {
                dirty.writes.retain(|write| write.change > begun.last);
            }
        }
        self.files.retain(|_, dirty| dirty.image.is_some() || !dirty.writes.is_empty());
        let is_durable = |change: u64, name: &Named| {
            change <= begun.last && begun.folders.iter().any(|folder| name.path().starts_with(folder))
        };
        let (durable, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.names).into_iter().partition(|(change, name)| is_durable(*change, name));
        self.names = others;
        for (_, name) in durable {
            name.forget();
        }
        self.changes += 1;
    }

    /// A sync of all files ends. The content of some is not durable, as that of a sync that has failed.
    ///
    /// The disk holds an image of each of these files.
    pub fn sync_without(&mut self, mut begun: Begun, files: &BTreeSet<PathBuf>) {
        let is_of = |dirty: &Dirty| self.path_now(dirty).is_some_and(|path| files.contains(&path));
        let of: BTreeSet<Key> = self.files.iter().filter(|(_, dirty)| is_of(dirty)).map(|(key, _)| *key).collect();
        let (failed, written) = std::mem::take(&mut begun.images).into_iter().partition(|(key, _)| of.contains(key));
        begun.files.retain(|key| !of.contains(key));
        begun.images = written;
        self.fail(failed);
        self.sync(begun);
    }

    /// A sync of some files has failed. Names wait for the next sync.
    ///
    /// The disk holds an image of each of these files.
    pub fn fail_sync(&mut self, begun: Begun) {
        self.fail(begun.images);
    }

    /// The changes of files count as written, and are not durable.
    fn fail(&mut self, images: BTreeMap<Key, Changes>) {
        for (key, changes) in images {
            if let Some(image) = self.files.get_mut(&key).and_then(|dirty| dirty.image.as_mut()) {
                image.fail(changes);
            }
        }
    }

    /// A fault has changed a file: it is durable as it is now.
    pub fn settle(&mut self, path: &Path) -> io::Result<()> {
        let metadata = fs::metadata(path)?;
        self.files.remove(&(metadata.dev(), metadata.ino()));
        Ok(())
    }

    /// All below a folder is durable as it is now.
    pub fn settle_all(&mut self, folder: &Path) {
        self.files.retain(|_, dirty| !dirty.path.starts_with(folder));
        let (gone, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.names).into_iter().partition(|(_, name)| name.path().starts_with(folder));
        self.names = others;
        for (_, name) in gone {
            name.forget();
        }
    }

    /// Takes what is not durable below a folder, but for what survives: of what the seed draws, the first changes of each file, and of
    /// the names, and some pages of a file with an image.
    ///
    /// Returns the number of bytes, and adds the names of the files to a set.
    pub fn lose(&mut self, folder: &Path, losing: &mut Losing, changed: &mut BTreeSet<PathBuf>) -> io::Result<u64> {
        let mut bytes = 0;
        let share = match losing {
            Losing::Drawn(chance) => chance.happens(0.5).then(|| chance.share()),
            Losing::All => None,
            Losing::These { .. } => Some(1.0),
        };
        let newest = self.newest_left(folder, losing);
        let (files, others) =
            std::mem::take(&mut self.files).into_iter().partition(|(_, dirty)| dirty.path.starts_with(folder));
        self.files = others;
        for dirty in BTreeMap::<Key, Dirty>::into_values(files) {
            let (mut lost, mut is_less) = (0, false);
            if let Some(image) = &dirty.image {
                let mut whole = Chance::new(0, "all of it");
                let chance = if let Losing::Drawn(chance) = losing { chance } else { &mut whole };
                (lost, is_less) = image.restore(&dirty.file, share.unwrap_or(0.0), chance)?;
            }
            let (of_writes, is_less_by_writes) = match losing {
                Losing::Drawn(chance) => dirty.lose_last(share.map(|_| &mut *chance))?,
                Losing::All => dirty.lose_last(None)?,
                Losing::These { lost, .. } => dirty.lose_these(lost, newest)?,
            };
            lost += of_writes;
            is_less |= is_less_by_writes;
            if is_less {
                changed.insert(dirty.path);
            }
            bytes += lost;
        }
        let (names, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.names).into_iter().partition(|(_, name)| name.path().starts_with(folder));
        self.names = others;
        let kept = match losing {
            Losing::Drawn(chance) if share.is_some() => chance.below(names.len() as u64 + 1) as usize,
            Losing::Drawn(_) | Losing::All => 0,
            Losing::These { lost, .. } => {
                names.iter().position(|(number, _)| lost.contains(number)).unwrap_or(names.len())
            }
        };
        for (place, (_, name)) in names.into_iter().enumerate().rev() {
            if place < kept {
                name.forget();
            } else {
                changed.insert(name.path().to_owned());
                name.undo()?;
            }
        }
        Ok(bytes)
    }

    /// Returns the number of the write to tear: the newest one below a folder that is left.
    fn newest_left(&self, folder: &Path, losing: &Losing) -> Option<u64> {
        let Losing::These { lost, is_torn: true } = losing else { return None };
        let files = self.files.values().filter(|dirty| dirty.path.starts_with(folder));
        let writes = files.flat_map(|dirty| &dirty.writes).map(|write| write.change);
        writes.filter(|change| !lost.contains(change)).max()
    }
}

impl Dirty {
    /// Undoes the last writes: all, or as many as are drawn. Then, the last one that is left may be there in part.
    ///
    /// Returns the number of bytes that this changes, and whether it changes anything.
    fn lose_last(&self, chance: Option<&mut Chance>) -> io::Result<(u64, bool)> {
        let mut lost = 0;
        let Some(chance) = chance else {
            for write in self.writes.iter().rev() {
                lost += write.undo(&self.file, write.offset)?;
            }
            return Ok((lost, !self.writes.is_empty()));
        };
        let kept = chance.below(self.writes.len() as u64 + 1) as usize;
        for write in self.writes[kept..].iter().rev() {
            lost += write.undo(&self.file, write.offset)?;
        }
        let mut is_less = kept < self.writes.len();
        if let Some(last) = kept.checked_sub(1).map(|last| &self.writes[last]) {
            if let Some(cut) = last.torn_at(self.file.metadata()?.len(), chance) {
                lost += last.undo(&self.file, cut)?;
                is_less = true;
            }
        }
        Ok((lost, is_less))
    }

    /// Undoes some writes, whatever came after them. Returns what `lose_last` returns.
    fn lose_these(&self, lost: &BTreeSet<u64>, torn: Option<u64>) -> io::Result<(u64, bool)> {
        let is_hit = |change: &u64| lost.contains(change) || torn == Some(*change);
        if !self.writes.iter().any(|write| is_hit(&write.change)) {
            return Ok((0, false));
        }
        let redos =
            self.writes.iter().rev().map(|write| Redo::of(write, &self.file)).collect::<io::Result<Vec<_>>>()?;
        for redo in redos.iter().rev().filter(|redo| !lost.contains(&redo.change)) {
            redo.apply(&self.file, torn == Some(redo.change))?;
        }
        let bytes = redos.iter().filter(|redo| lost.contains(&redo.change)).map(|redo| redo.bytes.len() as u64).sum();
        Ok((bytes, true))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::{Path, PathBuf};

    use super::{Disk, Losing, Named, Synced};
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

    /// Returns a disk with one folder of data.
    fn disk(folder: &Path) -> Disk {
        let mut disk = Disk::new(1, "n1");
        disk.folders.push(folder.to_owned());
        disk
    }

    fn keep(disk: &mut Disk, path: &Path, from: u64, to: u64) {
        disk.keep(path, path, from..to, Some(to));
    }

    fn sync(disk: &mut Disk, path: &Path) {
        let metadata = fs::metadata(path).expect("its metadata");
        let begun = disk.begin(Synced::One(path, (metadata.dev(), metadata.ino()))).expect("begun");
        disk.sync(begun);
    }

    #[test]
    fn what_was_not_synced_is_lost() {
        let folder = folder("content");
        let path = folder.join("log");
        fs::write(&path, b"one").expect("a file");
        let mut disk = disk(&folder);
        keep(&mut disk, &path, 3, 6);
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.write_all_at(b"two", 3).expect("written");
        sync(&mut disk, &path);
        keep(&mut disk, &path, 1, 2);
        file.write_all_at(b"X", 1).expect("written");
        keep(&mut disk, &path, 6, 9);
        file.write_all_at(b"end", 6).expect("written");
        let mut changed = BTreeSet::new();
        let bytes = disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut changed).expect("a loss");
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
        let mut disk = disk(&folder);
        fs::hard_link(&gone, &kept).expect("kept");
        disk.name(Named::Removed { path: gone.clone(), kept: kept.clone() });
        fs::remove_file(&gone).expect("removed");
        disk.name(Named::Renamed { from: old.clone(), to: new.clone(), replaced: None });
        fs::rename(&old, &new).expect("renamed");
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        assert!(old.exists() && gone.exists() && !new.exists() && !kept.exists());
        disk.name(Named::Renamed { from: old.clone(), to: new.clone(), replaced: None });
        fs::rename(&old, &new).expect("renamed");
        sync(&mut disk, &folder);
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        assert!(new.exists() && !old.exists());
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn the_first_changes_may_survive() {
        let folder = folder("prefix");
        let path = folder.join("log");
        fs::write(&path, b"").expect("a file");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        let mut sizes = BTreeSet::new();
        for seed in 0..200 {
            let mut disk = disk(&folder);
            file.set_len(0).expect("empty");
            for place in 0..4 {
                keep(&mut disk, &path, place, place + 1);
                file.write_all_at(b"x", place).expect("written");
            }
            disk.lose(&folder, &mut Losing::Drawn(Chance::new(seed, "loss")), &mut BTreeSet::new()).expect("a loss");
            sizes.insert(fs::metadata(&path).expect("its metadata").len());
        }
        assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        fs::remove_dir_all(folder).expect("removed");
    }
    /// Returns what a file has after losses of power with many seeds, each after one write of 1,300 bytes at 100 over 2,000 bytes.
    fn torn(name: &str) -> BTreeSet<Vec<u8>> {
        let folder = folder(name);
        let path = folder.join("log");
        let mut seen = BTreeSet::new();
        for seed in 0..300 {
            let mut disk = disk(&folder);
            fs::write(&path, vec![b'o'; 1_000]).expect("a file");
            keep(&mut disk, &path, 100, 1_400);
            let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
            file.write_all_at(&[b'n'; 1_300], 100).expect("written");
            disk.lose(&folder, &mut Losing::Drawn(Chance::new(seed, "loss")), &mut BTreeSet::new()).expect("a loss");
            seen.insert(fs::read(&path).expect("the file"));
        }
        fs::remove_dir_all(folder).expect("removed");
        seen
    }

    #[test]
    fn the_last_write_that_survives_may_be_there_in_part() {
        let whole = |cut: usize| {
            let mut bytes = vec![b'o'; 1_000.max(cut)];
            bytes[100..cut].fill(b'n');
            bytes
        };
        let expected: BTreeSet<Vec<u8>> = [100, 512, 1_024, 1_400].map(whole).into();
        assert_eq!(torn("torn"), expected);
    }

    #[test]
    fn only_the_pages_of_a_sync_are_durable_of_a_mapped_file() {
        let folder = folder("mapped");
        let path = folder.join("log");
        let mut disk = disk(&folder);
        fs::write(&path, b"").expect("a file");
        disk.keep(&path, &path, 12_288..u64::MAX, None);
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        file.set_len(12_288).expect("a size");
        disk.map(&path, &path).expect("mapped");
        file.write_all_at(b"a", 0).expect("written");
        file.write_all_at(b"b", 4_096).expect("written");
        let metadata = fs::metadata(&path).expect("its metadata");
        let part = (path.clone(), (metadata.dev(), metadata.ino()), 1..2);
        let begun = disk.begin(Synced::Pages(&[part])).expect("begun");
        file.write_all_at(b"c", 4_096).expect("written"); // after the begin of the sync
        disk.sync(begun);
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        let mut expected = vec![0; 12_288];
        expected[4_096] = b'b';
        assert!(fs::read(&path).expect("the file") == expected);
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn the_size_of_a_mapped_file_is_durable_after_any_sync() {
        let folder = folder("sizes");
        let (path, other) = (folder.join("log"), folder.join("other"));
        let mut disk = disk(&folder);
        for path in [&path, &other] {
            fs::write(path, b"").expect("a file");
        }
        disk.map(&path, &path).expect("mapped");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.set_len(8_192).expect("a size");
        file.write_all_at(b"a", 4_096).expect("written");
        sync(&mut disk, &other);
        file.set_len(12_288).expect("a size"); // after the sync
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        assert!(fs::read(&path).expect("the file") == vec![0; 8_192]);
        fs::remove_dir_all(folder).expect("removed");
    }

    /// Returns what a file with `old` has after four writes of a byte, of which some are lost.
    fn left(name: &str, old: &[u8], places: [u64; 4], lost: &[u64], is_torn: bool) -> Vec<u8> {
        let folder = folder(name);
        let path = folder.join("log");
        fs::write(&path, old).expect("a file");
        let mut disk = disk(&folder);
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        for (number, place) in places.into_iter().enumerate() {
            keep(&mut disk, &path, place, place + 1);
            file.write_all_at(&[b'1' + number as u8], place).expect("written");
        }
        assert_eq!(disk.unsynced().iter().map(|change| change.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let mut losing = Losing::These { lost: lost.iter().copied().collect(), is_torn };
        disk.lose(&folder, &mut losing, &mut BTreeSet::new()).expect("a loss");
        let bytes = fs::read(&path).expect("the file");
        fs::remove_dir_all(folder).expect("removed");
        bytes
    }

    #[test]
    fn chosen_changes_are_lost_whatever_came_after_them() {
        assert_eq!(left("none", b"abcd", [0, 1, 2, 3], &[], false), b"1234");
        assert_eq!(left("first", b"abcd", [0, 1, 2, 3], &[1], false), b"a234");
        assert_eq!(left("middle", b"abcd", [0, 1, 2, 3], &[2, 3], false), b"1bc4");
        assert_eq!(left("same", b"abcd", [1, 1, 1, 1], &[4], false), b"a3cd");
        assert_eq!(left("grown", b"", [0, 1, 2, 3], &[2], false), b"1\x0034");
        assert_eq!(left("shorter", b"", [0, 1, 2, 3], &[3, 4], false), b"12");
        assert_eq!(left("whole", b"abcd", [0, 1, 2, 3], &[], true), b"1234"); // nothing within a sector is torn
    }

    #[test]
    fn what_a_fault_has_changed_stays() {
        let folder = folder("settled");
        let path = folder.join("log");
        fs::write(&path, b"one").expect("a file");
        let mut disk = disk(&folder);
        keep(&mut disk, &path, 0, 3);
        fs::write(&path, b"two").expect("written");
        disk.settle(&path).expect("settled");
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        assert_eq!(fs::read(&path).expect("the file"), b"two");
        disk.name(Named::Made(path.clone()));
        disk.settle_all(&folder);
        disk.lose(&folder, &mut Losing::Drawn(chance(false)), &mut BTreeSet::new()).expect("a loss");
        assert!(path.exists());
        fs::remove_dir_all(folder).expect("removed");
    }
    /// Returns a file after a write, or after a part of it up to `end`.
    fn written(before: &[u8], offset: usize, value: u8, end: usize) -> Vec<u8> {
        let mut after = before.to_vec();
        if end > offset {
            after.resize(before.len().max(end), 0);
            after[offset..end].fill(value);
        }
        after
    }

    /// Random writes, truncations, syncs and losses of one file, against all that the law lets survive.
    #[test]
    fn the_law_holds_for_random_histories() {
        let folder = folder("random");
        let path = folder.join("log");
        for seed in 0..300 {
            let mut draws = Chance::new(seed, "history");
            fs::write(&path, b"").expect("a file");
            let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
            let mut disk = disk(&folder);
            // What may be there after a loss: the state after each change, and those after a part of it.
            let mut states = vec![vec![Vec::new()]];
            for value in 1..25 {
                let now = states.last().expect("a state")[0].clone();
                match draws.below(8) {
                    0 => {
                        sync(&mut disk, &path);
                        states = vec![vec![now]];
                    }
                    1 => {
                        let chance = Chance::new(draws.next(), "loss");
                        disk.lose(&folder, &mut Losing::Drawn(chance), &mut BTreeSet::new()).expect("a loss");
                        let left = fs::read(&path).expect("the file");
                        assert!(states.iter().flatten().any(|state| *state == left), "seed {seed}, change {value}");
                        states = vec![vec![left]];
                    }
                    2 => {
                        let size = draws.below(3_000);
                        disk.keep(&path, &path, size..u64::MAX, None);
                        file.set_len(size).expect("a size");
                        let mut after = now;
                        after.resize(size as usize, 0);
                        states.push(vec![after]);
                    }
                    _ => {
                        let (offset, count) = (draws.below(2_000), 1 + draws.below(1_500));
                        let (begin, end) = (offset as usize, (offset + count) as usize);
                        keep(&mut disk, &path, offset, offset + count);
                        file.write_all_at(&vec![value; count as usize], offset).expect("written");
                        let mut after = vec![written(&now, begin, value, end)];
                        let cuts = (begin / 512 + 1..end.div_ceil(512)).map(|sector| sector * 512);
                        after.extend(cuts.map(|cut| written(&now, begin, value, cut)));
                        states.push(after);
                    }
                }
            }
        }
        fs::remove_dir_all(folder).expect("removed");
    }
}
