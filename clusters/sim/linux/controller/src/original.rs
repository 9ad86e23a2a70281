//! The files of the nodes as they were at a moment, so that they can come back after a copy of the programs has changed them.
//!
//! Files come back in place: the original programs have them open and in their memory, so they stay the same files. For that, each
//! file has another name in a folder that no program sees. Folders keep their order, which programs can read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{chown, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::kernel::Image;

/// The device and the number of a file.
pub type Key = (u64, u64);

/// The folder, on each file system, that has the other names of files.
const NAMES: &str = ".original";
/// A name of a file that nobody keeps: its number is the next one of its file system.
const PROBE: &str = ".next";

/// An entry of a folder.
enum Entry {
    Folder(Folder),
    /// A file of any kind but a folder.
    File(Key),
    /// What another file system shows there.
    Other,
}

/// A folder as it was.
struct Folder {
    key: Key,
    mode: u32,
    owners: (u32, u32),
    /// Its entries in the order in which programs read them.
    entries: Vec<(OsString, Entry)>,
}

/// A file that is no folder, as it was.
struct Kept {
    /// Its other name.
    name: PathBuf,
    mode: u32,
    owners: (u32, u32),
    /// Its content, if it has one.
    content: Option<Image>,
}

/// A file system as it was.
struct Saved {
    /// A folder of it that no program sees.
    place: PathBuf,
    device: u64,
    /// The number that its next file would have had.
    next: u64,
    folders: Vec<(PathBuf, Folder)>,
}

/// The files of all nodes as they were.
pub struct Original {
    systems: Vec<Saved>,
    files: BTreeMap<Key, Kept>,
}

/// How the numbers of files in a copy lead to those that the same files have in a run without copies.
#[derive(Clone, Default)]
pub struct Numbers {
    /// For each device: the numbers from which on files are new, and by how much they are too large.
    new: Vec<(u64, u64, u64)>,
    /// Folders that were made again.
    again: HashMap<Key, u64>,
    /// The files that have another name.
    named: BTreeSet<Key>,
}

impl Numbers {
    /// Returns the number of a file that programs see.
    pub fn seen(&self, device: u64, number: u64) -> u64 {
        if let Some(original) = self.again.get(&(device, number)) {
            return *original;
        }
        match self.new.iter().find(|(of, ..)| *of == device) {
            Some((_, from, surplus)) if number >= *from => number - surplus,
            _ => number,
        }
    }

    /// Returns how many names programs see of a file that has `count`.
    pub fn names(&self, device: u64, number: u64, count: u64) -> u64 {
        count - u64::from(self.named.contains(&(device, number)))
    }
}

fn key_of(metadata: &fs::Metadata) -> Key {
    (metadata.dev(), metadata.ino())
}

/// Returns the number that the next file of a file system will have had, had nobody asked.
fn next_number(place: &Path) -> io::Result<u64> {
    let path = place.join(PROBE);
    let number = File::create(&path)?.metadata()?.ino();
    fs::remove_file(path)?;
    Ok(number)
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Gives a file or a folder its owners and its mode.
fn own(path: &Path, owners: (u32, u32), mode: u32) -> io::Result<()> {
    let now = fs::symlink_metadata(path)?;
    if (now.uid(), now.gid()) != owners {
        chown(path, Some(owners.0), Some(owners.1))?;
    }
    if now.mode() != mode && !now.is_symlink() {
        fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))?;
    }
    Ok(())
}

impl Original {
    /// Keeps the files of some file systems. `systems` has, of each, a folder that no program sees, and the folders to keep.
    pub fn of(systems: &[(PathBuf, Vec<PathBuf>)]) -> io::Result<Self> {
        let mut original = Self { systems: Vec::new(), files: BTreeMap::new() };
        for (place, folders) in systems {
            let next = next_number(place)?; // first, since a folder takes a number
            fs::create_dir(place.join(NAMES))?;
            let device = fs::metadata(place)?.dev();
            let mut saved = Saved { place: place.clone(), device, next, folders: Vec::new() };
            for folder in folders {
                let kept = original.keep(folder, device, &place.join(NAMES))?;
                saved.folders.push((folder.clone(), kept));
            }
            original.systems.push(saved);
        }
        Ok(original)
    }

    fn keep(&mut self, path: &Path, device: u64, names: &Path) -> io::Result<Folder> {
        let state = fs::symlink_metadata(path)?;
        let mut entries = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (path, state) = (entry.path(), entry.metadata()?);
            let key = key_of(&state);
            let kept = if state.dev() != device {
                Entry::Other
            } else if state.is_dir() {
                Entry::Folder(self.keep(&path, device, names)?)
            } else {
                if !self.files.contains_key(&key) {
                    let name = names.join(key.1.to_string());
                    fs::hard_link(&path, &name)?;
                    let content = if state.is_file() { Some(Image::of(&File::open(&path)?)?) } else { None };
                    let owners = (state.uid(), state.gid());
                    self.files.insert(key, Kept { name, mode: state.mode(), owners, content });
                }
                Entry::File(key)
            };
            entries.push((entry.file_name(), kept));
        }
        Ok(Folder { key: key_of(&state), mode: state.mode(), owners: (state.uid(), state.gid()), entries })
    }

    /// Returns how the numbers of the files of a copy that begins now lead to those of a run without copies.
    pub fn numbers(&self) -> io::Result<Numbers> {
        let mut numbers = Numbers { named: self.files.keys().copied().collect(), ..Numbers::default() };
        for system in &self.systems {
            let next = next_number(&system.place)? + 1;
            numbers.new.push((system.device, next, next - system.next));
            for (path, folder) in &system.folders {
                again(path, folder, &mut numbers.again)?;
            }
        }
        Ok(numbers)
    }

    /// Puts all files back.
    pub fn restore(&self) -> io::Result<()> {
        for system in &self.systems {
            for (path, folder) in &system.folders {
                self.put_back(path, folder)?;
            }
        }
        for kept in self.files.values() {
            if let Some(content) = &kept.content {
                content.put_back(&OpenOptions::new().read(true).write(true).open(&kept.name)?)?;
            }
            own(&kept.name, kept.owners, kept.mode)?;
        }
        Ok(())
    }

    fn put_back(&self, path: &Path, folder: &Folder) -> io::Result<()> {
        let before: HashMap<_, _> = folder.entries.iter().map(|(name, entry)| (name, entry)).collect();
        let mut order = Vec::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let state = fs::symlink_metadata(entry.path())?;
            let stays = match before.get(&entry.file_name()) {
                Some(Entry::Other) => true,
                Some(Entry::Folder(_)) => state.is_dir(),
                Some(Entry::File(key)) => key_of(&state) == *key,
                None => false,
            };
            if stays {
                order.push(entry.file_name());
            } else {
                remove(&entry.path())?;
            }
        }
        for (name, entry) in &folder.entries {
            if !order.contains(name) {
                self.make_again(&path.join(name), entry)?;
                order.push(name.clone());
            }
        }
        if !order.iter().eq(folder.entries.iter().map(|(name, _)| name)) {
            reorder(path, folder)?;
        }
        for (name, entry) in &folder.entries {
            if let Entry::Folder(inner) = entry {
                self.put_back(&path.join(name), inner)?;
            }
        }
        own(path, folder.owners, folder.mode)
    }

    fn make_again(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::Folder(_) => fs::create_dir(path),
            Entry::File(key) => fs::hard_link(&self.files[key].name, path),
            Entry::Other => Err(io::Error::other(format!("a mount at {} is gone", path.display()))),
        }
    }
}

/// Notes the folders below a path that are not those of before.
fn again(path: &Path, folder: &Folder, numbers: &mut HashMap<Key, u64>) -> io::Result<()> {
    let key = key_of(&fs::symlink_metadata(path)?);
    if key != folder.key {
        numbers.insert(key, folder.key.1);
    }
    for (name, entry) in &folder.entries {
        if let Entry::Folder(inner) = entry {
            again(&path.join(name), inner, numbers)?;
        }
    }
    Ok(())
}

/// Gives a folder its order again: a name that comes into a folder is its first or its last one.
fn reorder(path: &Path, folder: &Folder) -> io::Result<()> {
    let names: Vec<_> = folder.entries.iter().map(|(name, _)| name).collect();
    let is_ordered = || -> io::Result<bool> {
        let now: Vec<_> = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
        Ok(now.iter().eq(names.iter().copied()))
    };
    let come_again = |name: &OsString| -> io::Result<()> {
        let (there, aside) = (path.join(name), path.join(PROBE));
        fs::rename(&there, &aside)?;
        fs::rename(&aside, &there)
    };
    names.iter().try_for_each(|name| come_again(name))?;
    if !is_ordered()? {
        names.iter().rev().try_for_each(|name| come_again(name))?;
        if !is_ordered()? {
            return Err(io::Error::other(format!("the folder {} does not get its order again", path.display())));
        }
    }
    Ok(())
}
