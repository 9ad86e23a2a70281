//! The files of the nodes as they were at a moment, so that they can come back after a copy of the programs has changed them.
//!
//! Files come back in place: the original programs have them open and in their memory, so they stay the same files. For that, each
//! file has another name in a folder that no program sees. Folders keep their order, which programs can read.

use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
                if let Vacant(entry) = self.files.entry(key) {
                    let name = names.join(key.1.to_string());
                    fs::hard_link(&path, &name)?;
                    let content = if state.is_file() { Some(Image::of(&File::open(&path)?)?) } else { None };
                    let owners = (state.uid(), state.gid());
                    entry.insert(Kept { name, mode: state.mode(), owners, content });
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
        let mut left = HashSet::new();
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
                left.insert(entry.file_name());
            } else {
                remove(&entry.path())?;
            }
        }
        for (name, entry) in &folder.entries {
            if !left.contains(name) {
                self.make_again(&path.join(name), entry)?;
            }
        }
        reorder(path, folder)?;
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
        let now: Vec<_> =
            fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
        Ok(now.iter().eq(names.iter().copied()))
    };
    let come_again = |name: &OsString| -> io::Result<()> {
        let (there, aside) = (path.join(name), path.join(PROBE));
        fs::rename(&there, &aside)?;
        fs::rename(&aside, &there)
    };
    if is_ordered()? {
        return Ok(());
    }
    names.iter().try_for_each(|name| come_again(name))?;
    if is_ordered()? {
        return Ok(());
    }
    names.iter().rev().try_for_each(|name| come_again(name))?;
    if is_ordered()? {
        return Ok(());
    }
    Err(io::Error::other(format!("the folder {} does not get its order again", path.display())))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::{self, OpenOptions};
    use std::io::Write as _;
    use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
    use std::path::{Path, PathBuf};

    use super::Original;
    use crate::chance::Chance;

    /// A folder in memory, as that of the nodes.
    fn place(name: &str) -> PathBuf {
        let place = PathBuf::from(format!("/dev/shm/labrys-original-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.join("data")).expect("a folder");
        place
    }

    /// Returns all that a program can see below a folder: of each name its place, number of a file, mode and content.
    fn seen(folder: &Path, into: &mut BTreeMap<PathBuf, (usize, u64, u32, Vec<u8>)>) {
        for (place, entry) in fs::read_dir(folder).expect("a folder").enumerate() {
            let path = entry.expect("an entry").path();
            let state = fs::symlink_metadata(&path).expect("an entry");
            let content = if state.is_file() {
                fs::read(&path).expect("a file")
            } else if state.is_symlink() {
                fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes()
            } else {
                seen(&path, into);
                Vec::new()
            };
            into.insert(path, (place, if state.is_dir() { 0 } else { state.ino() }, state.mode(), content));
        }
    }

    /// Changes something below a folder by chance.
    fn change(data: &Path, chance: &mut Chance) {
        let folder = data.join(["", "a", "a/b"][chance.below(3) as usize]);
        let (name, other) =
            (folder.join(format!("f{}", chance.below(5))), data.join(format!("f{}", chance.below(5))));
        let _ = match chance.below(8) {
            0 => fs::write(&name, chance.bytes(20)),
            1 => OpenOptions::new().append(true).open(&name).and_then(|mut file| file.write_all(&chance.bytes(9000))),
            2 => fs::remove_file(&name),
            3 => fs::rename(&name, other),
            4 => OpenOptions::new().write(true).open(&name).and_then(|file| file.set_len(chance.below(5000))),
            5 => fs::set_permissions(&name, fs::Permissions::from_mode(0o600)),
            6 => fs::remove_dir_all(data.join("a")),
            _ => symlink("elsewhere", &name).and_then(|()| fs::create_dir_all(data.join("a/b"))),
        };
    }

    #[test]
    fn files_come_back_whatever_has_changed_them() {
        let place = place("all");
        let data = place.join("data");
        let mut chance = Chance::new(7, "changes");
        fs::create_dir_all(data.join("a/b")).expect("folders");
        for name in ["f0", "f1", "a/f1", "a/f2", "a/b/f3"] {
            fs::write(data.join(name), chance.bytes(5000)).expect("a file");
        }
        let original = Original::of(&[(place.clone(), vec![data.clone()])]).expect("kept");
        let mut before = BTreeMap::new();
        seen(&data, &mut before);
        assert!(before.len() > 3);
        for _ in 0..300 {
            (0..=chance.below(12)).for_each(|_| change(&data, &mut chance));
            original.restore().expect("restored");
            let mut after = BTreeMap::new();
            seen(&data, &mut after);
            let differing: Vec<_> = before.iter().filter(|(path, seen)| after.get(*path) != Some(*seen)).collect();
            let short: Vec<_> = differing
                .iter()
                .map(|(path, seen)| {
                    (
                        path,
                        seen.0,
                        seen.1,
                        seen.2,
                        seen.3.len(),
                        after.get(*path).map(|seen| (seen.0, seen.1, seen.2, seen.3.len())),
                    )
                })
                .collect();
            assert!(short.is_empty() && after.len() == before.len(), "{short:?}");
        }
        fs::remove_dir_all(place).expect("removed");
    }

    #[test]
    fn numbers_and_names_of_files_are_those_without_a_copy() {
        let place = place("numbers");
        let data = place.join("data");
        fs::write(data.join("old"), "").expect("a file");
        fs::create_dir(data.join("folder")).expect("a folder");
        let folder = fs::metadata(data.join("folder")).expect("a folder").ino();
        let last = folder;
        let original = Original::of(&[(place.clone(), vec![data.clone()])]).expect("kept");
        for _ in 0..3 {
            fs::remove_dir(data.join("folder")).expect("removed");
            original.restore().expect("restored");
            let numbers = original.numbers().expect("numbers");
            let seen = |name: &str| {
                let state = fs::metadata(data.join(name)).expect("a file");
                (numbers.seen(state.dev(), state.ino()), numbers.names(state.dev(), state.ino(), state.nlink()))
            };
            fs::write(data.join("new"), "").expect("a file");
            assert_eq!(seen("old").1, 1);
            assert_eq!(seen("folder").0, folder);
            assert_eq!(seen("new"), (last + 1, 1));
            fs::remove_file(data.join("new")).expect("removed");
        }
        fs::remove_dir_all(place).expect("removed");
    }
}
