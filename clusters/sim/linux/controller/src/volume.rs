//! The volume below a folder of data: a file system in memory of its own, so that it can be full while the rest of a node is not.
//!
//! A full one has a limit of as many pages as it uses. So it is the kernel that refuses what needs another page.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{chown, lchown, symlink, MetadataExt};
use std::path::{Path, PathBuf};

use crate::start::{mount, show, text, unmount, PAGE};

/// The folder beside those of the nodes that has the volumes. No program sees it.
const VOLUMES: &str = ".volumes";
const DATA: &str = "data";
const REMOVED: &str = "removed";
/// A file that takes a page, so that the limit of a full volume is never zero, which would be none.
const FILLER: &str = "filler";
const PROBE: &str = ".labrys-room";
/// The size of a volume that is not full, in pages.
pub const USUAL: u64 = (8 << 30) / PAGE;

/// A volume.
#[derive(Clone)]
pub struct Volume {
    /// The folder of data, as the controller sees the files of the node.
    pub folder: PathBuf,
    pub device: u64,
    place: PathBuf,
    /// The pages that it may use, if it is full.
    limit: Option<u64>,
}

/// Copies what is below a folder, with its owners.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let folder = fs::metadata(from)?;
    chown(to, Some(folder.uid()), Some(folder.gid()))?;
    fs::set_permissions(to, folder.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        let state = entry.metadata()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
            lchown(&target, Some(state.uid()), Some(state.gid()))?;
        } else {
            // Not by `fs::copy`, which ends with an error when the timer of the controller rings.
            let mut content = Vec::new();
            File::open(entry.path())?.read_to_end(&mut content)?;
            fs::write(&target, content)?;
            chown(&target, Some(state.uid()), Some(state.gid()))?;
            fs::set_permissions(&target, state.permissions())?;
        }
    }
    Ok(())
}

impl Volume {
    /// Makes the volume with a number below `root`, and mounts it over a folder, whose content it takes.
    pub fn new(root: &Path, number: usize, folder: PathBuf) -> io::Result<Self> {
        if fs::canonicalize(&folder)? != folder {
            return Err(io::Error::other(format!("the folder {} is a link", folder.display())));
        }
        let place = root.join(VOLUMES).join(number.to_string());
        fs::create_dir_all(&place)?;
        let how = format!("size={},mode=755,huge=never\0", USUAL * PAGE);
        let how = std::ffi::CStr::from_bytes_with_nul(how.as_bytes()).map_err(io::Error::other)?;
        mount(Path::new("labrys"), &place, Some(c"tmpfs"), libc::MS_NODEV, Some(how))?;
        fs::create_dir(place.join(REMOVED))?;
        fs::create_dir(place.join(DATA))?;
        fs::write(place.join(FILLER), vec![0; PAGE as usize])?;
        copy(&folder, &place.join(DATA))?;
        show(&place.join(DATA), &folder, false)?;
        let device = fs::metadata(&place)?.dev();
        Ok(Self { folder, device, place, limit: None })
    }

    /// Returns where the data is, by a path that no program can change.
    pub fn data(&self) -> PathBuf {
        self.place.join(DATA)
    }

    /// Returns where removed files stay until nothing can bring them back.
    pub fn removed(&self) -> PathBuf {
        self.place.join(REMOVED)
    }

    fn used(&self) -> io::Result<u64> {
        let path = text(&self.place);
        // SAFETY: the struct is plain numbers, and the path outlives the call.
        let state = unsafe {
            let mut state: libc::statfs = std::mem::zeroed();
            if libc::statfs(path.as_ptr(), &raw mut state) < 0 {
                return Err(io::Error::last_os_error());
            }
            state
        };
        Ok(state.f_blocks - state.f_bfree)
    }

    fn limit_to(&self, pages: u64) -> io::Result<()> {
        let how = std::ffi::CString::new(format!("size={}", pages * PAGE)).map_err(io::Error::other)?;
        mount(Path::new("labrys"), &self.place, Some(c"tmpfs"), libc::MS_REMOUNT | libc::MS_NODEV, Some(&how))
    }

    /// Fills it, or frees it again.
    pub fn fill(&mut self, is_full: bool) -> io::Result<()> {
        self.limit = if is_full { Some(self.used()?) } else { None };
        self.limit_to(self.limit.unwrap_or(USUAL))
    }

    /// Gives one more page to a full volume, or takes one back.
    pub fn grow(&mut self, is_more: bool) -> io::Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        let limit = if is_more { limit + 1 } else { limit - 1 };
        self.limit = Some(limit);
        self.limit_to(limit)
    }

    /// Tries to write a small file. Returns whether that works.
    pub fn takes_file(&self) -> io::Result<bool> {
        let path = self.data().join(PROBE);
        let takes = match File::create(&path).and_then(|mut file| io::Write::write_all(&mut file, b"room")) {
            Ok(()) => true,
            Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => false,
            Err(error) => return Err(error),
        };
        fs::remove_file(path)?;
        Ok(takes)
    }

    /// Returns the folder of its file system that has all its files.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Has the room that another state of it had.
    pub fn limit_as(&self, other: &Self) -> io::Result<()> {
        if self.limit == other.limit {
            return Ok(());
        }
        self.limit_to(other.limit.unwrap_or(USUAL))
    }

    /// Ends it, with its files.
    pub fn end(&self) -> io::Result<()> {
        unmount(&self.folder)?;
        unmount(&self.place)?;
        fs::remove_dir(&self.place)
    }

    /// Returns where a path of a node is by a path that no program can change; None if it is not on this volume.
    pub fn inside(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(&self.folder).ok().map(|rest| self.data().join(rest))
    }
}
