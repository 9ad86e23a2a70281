//! Which calls are steps of a disk: changes of a file, and syncs. The words are those of the simulator's disks.
//!
//! What a program writes through memory is no call, and so no step.

use std::ffi::{c_int, CString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{c_long, pid_t};

use crate::thread;

const KINDS: [&str; 6] = ["sync", "write", "truncate", "create", "rename", "remove"];

/// A step whose call has not ended.
pub struct Making {
    pub call: &'static str,
    pub file: PathBuf,
    /// Whether a result of 0 says that nothing was written.
    writes: bool,
}

impl Making {
    /// Returns whether the call has made the step.
    pub fn is_made(&self, result: i64) -> bool {
        result > 0 || (result == 0 && !self.writes)
    }
}

/// The steps that count.
pub struct Wanted {
    /// None: any.
    pub call: Option<String>,
    pub folder: PathBuf,
    pub pattern: CString,
}

impl Wanted {
    /// Returns the step that a call of a stopped thread is going to make, if it counts.
    pub fn making(&self, tid: pid_t, number: i64, arguments: [u64; 6]) -> Option<Making> {
        let (call, path, writes) = step(tid, number as c_long, arguments)?;
        if self.call.as_ref().is_some_and(|wanted| wanted != call) {
            return None;
        }
        let file = path.strip_prefix(&self.folder).ok()?.to_owned();
        fits(&self.pattern, &file).then_some(Making { call, file, writes })
    }
}

/// Returns the numbers of the calls that can be steps of a kind; None: of any.
pub fn numbers(call: Option<&str>) -> Vec<c_long> {
    const OPENS: [c_long; 3] = [libc::SYS_open, libc::SYS_creat, libc::SYS_openat];
    let of = |kind: &str| -> &[c_long] {
        match kind {
            "sync" => &[libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_syncfs, libc::SYS_sync_file_range],
            "write" => &[
                libc::SYS_write,
                libc::SYS_pwrite64,
                libc::SYS_writev,
                libc::SYS_pwritev,
                libc::SYS_pwritev2,
                libc::SYS_sendfile,
                libc::SYS_copy_file_range,
                libc::SYS_splice,
            ],
            "truncate" => &[libc::SYS_truncate, libc::SYS_ftruncate, libc::SYS_fallocate],
            "create" => &[
                libc::SYS_mkdir,
                libc::SYS_mknod,
                libc::SYS_link,
                libc::SYS_symlink,
                libc::SYS_mkdirat,
                libc::SYS_mknodat,
                libc::SYS_linkat,
                libc::SYS_symlinkat,
            ],
            "rename" => &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2],
            _ => &[libc::SYS_unlink, libc::SYS_rmdir, libc::SYS_unlinkat],
        }
    };
    let kinds: Vec<&str> = call.map_or_else(|| KINDS.to_vec(), |kind| vec![kind]);
    let opens = kinds.iter().any(|kind| matches!(*kind, "create" | "truncate"));
    let opening: &[c_long] = if opens { &OPENS } else { &[] };
    kinds.into_iter().flat_map(of).chain(opening).copied().collect()
}

/// Returns the kind of a step, its file, and whether it writes bytes.
fn step(tid: pid_t, number: c_long, [one, two, three, four, ..]: [u64; 6]) -> Option<(&'static str, PathBuf, bool)> {
    let here = libc::AT_FDCWD;
    let open = |descriptor: u64| thread::opened(tid, descriptor as i32);
    let named = |directory: i32, path: u64| resolved(tid, directory, path);
    match number {
        libc::SYS_open => return opens(named(here, one)?, two as c_int),
        libc::SYS_creat => return opens(named(here, one)?, libc::O_CREAT | libc::O_TRUNC),
        libc::SYS_mkdir | libc::SYS_mknod => return Some(("create", named(here, one)?, false)),
        libc::SYS_link | libc::SYS_symlink => return Some(("create", named(here, two)?, false)),
        libc::SYS_unlink | libc::SYS_rmdir => return Some(("remove", named(here, one)?, false)),
        libc::SYS_rename => return Some(("rename", named(here, two)?, false)),
        _ => {}
    }
    match number {
        libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_syncfs | libc::SYS_sync_file_range => {
            Some(("sync", open(one)?, false))
        }
        libc::SYS_write | libc::SYS_pwrite64 | libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            Some(("write", open(one)?, true))
        }
        libc::SYS_sendfile => Some(("write", open(one)?, true)),
        libc::SYS_copy_file_range | libc::SYS_splice => Some(("write", open(three)?, true)),
        libc::SYS_ftruncate | libc::SYS_fallocate => Some(("truncate", open(one)?, false)),
        libc::SYS_truncate => Some(("truncate", named(here, one)?, false)),
        libc::SYS_openat => opens(named(one as i32, two)?, three as c_int),
        libc::SYS_mkdirat | libc::SYS_mknodat => Some(("create", named(one as i32, two)?, false)),
        libc::SYS_linkat => Some(("create", named(three as i32, four)?, false)),
        libc::SYS_symlinkat => Some(("create", named(two as i32, three)?, false)),
        libc::SYS_unlinkat => Some(("remove", named(one as i32, two)?, false)),
        libc::SYS_renameat | libc::SYS_renameat2 => Some(("rename", named(three as i32, four)?, false)),
        _ => None,
    }
}

/// Returns the step that the opening of a file is: it makes the file, or takes its content.
fn opens(path: PathBuf, flags: c_int) -> Option<(&'static str, PathBuf, bool)> {
    match fs::metadata(&path) {
        Err(_) if flags & libc::O_CREAT != 0 => Some(("create", path, false)),
        Ok(file) if flags & libc::O_TRUNC != 0 && file.len() > 0 => Some(("truncate", path, false)),
        _ => None,
    }
}

/// Returns the path that a call names, without links in its folder.
fn resolved(tid: pid_t, directory: i32, address: u64) -> Option<PathBuf> {
    let path = thread::path_at(tid, address)?;
    let path = if path.is_absolute() { path } else { thread::opened(tid, directory)?.join(path) };
    let folder = fs::canonicalize(path.parent()?).ok()?;
    Some(folder.join(path.file_name()?))
}

/// Returns whether a file, or the end of its path, has the pattern.
fn fits(pattern: &CString, file: &Path) -> bool {
    let Ok(name) = CString::new(file.as_os_str().as_bytes()) else { return false };
    let below = CString::new([b"*/", pattern.as_bytes()].concat());
    // SAFETY: both are texts that end with a zero.
    let fits = |pattern: &CString| unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 };
    fits(pattern) || below.is_ok_and(|below| fits(&below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_one_of_names_or_of_paths() {
        let pattern = |text: &str| CString::new(text).unwrap();
        assert!(fits(&pattern("*.wal"), Path::new("member/wal/0.wal")));
        assert!(fits(&pattern("wal/*"), Path::new("member/wal/0.wal")));
        assert!(fits(&pattern("*"), Path::new("log")));
        assert!(!fits(&pattern("wal"), Path::new("member/wal/0.wal")));
    }

    #[test]
    fn a_failed_call_is_no_step_and_neither_is_an_empty_write() {
        let making = |writes| Making { call: "write", file: PathBuf::new(), writes };
        assert!(making(true).is_made(1));
        assert!(!making(true).is_made(0));
        assert!(making(false).is_made(0));
        assert!(!making(false).is_made(-5));
    }
}
