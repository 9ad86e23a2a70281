//! Errors of a disk at chosen calls: from the n-th call of a kind on a file with a name, calls fail.
//!
//! A call that fails has no other effect, but for a sync. After a failed sync, Linux counts the pages of the file as written. So no
//! later sync makes them durable, unless a program changes them again, and programs still read them; see fsync(2). A sync of all files
//! writes those that do not fail, and `sync` tells its caller of no error.

use std::collections::BTreeSet;
use std::ffi::{CString, OsStr};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use libc::{c_int, c_long};

use super::dispatch::{failed, Outcome};
use super::network::Key;
use super::{Kernel, Nanos, NodeId, Run, ThreadId};
use crate::calls;
use crate::kernel::Fatal;
use crate::tracee::Registers;

/// The kinds of calls that can fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Open,
    Read,
    Write,
    /// `fsync` and `fdatasync`.
    Sync,
    /// `msync` with `MS_SYNC`.
    MemorySync,
    /// `sync` and `syncfs`.
    SyncAll,
    Rename,
    /// Uses of pages of mapped files, which count from the begin of the file; see `loads`.
    Load,
}

impl std::str::FromStr for Operation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "open" => Self::Open,
            "read" => Self::Read,
            "write" => Self::Write,
            "fsync" => Self::Sync,
            "msync" => Self::MemorySync,
            "sync" => Self::SyncAll,
            "rename" => Self::Rename,
            "load" => Self::Load,
            _ => return Err(()),
        })
    }
}

/// Calls that fail, by the rule of a fault.
#[derive(Clone)]
pub struct Failing {
    pub operation: Operation,
    /// A pattern of names, or of paths below the folder of the volume; see fnmatch(3).
    pub pattern: CString,
    /// The number of the first call that fails, from 1, and how many fail.
    pub first: u64,
    pub times: u64,
    pub error: c_int,
}

/// A rule on the disk of a node.
#[derive(Clone)]
pub struct Rule {
    key: Key,
    /// Where the volume has its data.
    folder: PathBuf,
    failing: Failing,
    /// How many such calls there were so far.
    seen: u64,
}

impl Rule {
    fn matches(&self, path: &Path) -> bool {
        path.strip_prefix(&self.folder).is_ok_and(|name| fits(&self.failing.pattern, name))
    }

    /// Returns the pages of a file that it lets nobody read, if it is of pages and of this file.
    pub(super) fn pages(&self, path: &Path) -> Option<Range<u64>> {
        let first = self.failing.first - 1;
        let is_of_it = self.failing.operation == Operation::Load && self.matches(path);
        is_of_it.then(|| first..first.saturating_add(self.failing.times))
    }

    pub(super) fn key(&self) -> Key {
        self.key
    }

    /// Returns a path as the report has it.
    pub(super) fn shown(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.folder).unwrap_or(path).to_owned()
    }
}

/// Returns whether a pattern fits a path below a folder, or a name or a path at its end; see fnmatch(3).
pub(super) fn fits(pattern: &CString, path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let below = [b"*/", pattern.as_bytes()].concat();
    let fits = |pattern: &CString| {
        // SAFETY: both are texts that end with a zero.
        unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
    };
    fits(pattern) || CString::new(below).is_ok_and(|below| fits(&below))
}

/// A call that failed by a rule.
#[derive(Clone)]
pub struct Failure {
    pub key: Key,
    pub node: NodeId,
    /// When it returned.
    pub at: Nanos,
    pub program: String,
    pub call: String,
    /// The file below the folder of the volume; of a sync of all files, the pattern of those that fail.
    pub file: PathBuf,
    /// Its number among the calls of the rule.
    pub number: u64,
}

/// A sync that goes on and will fail: its error, and what to note then.
#[derive(Clone)]
pub struct Refused {
    pub error: c_int,
    /// The files that are not written, by the paths of the volume. Of a sync of some files: all of them.
    pub files: BTreeSet<PathBuf>,
    pub(super) failures: Vec<Failure>,
}

/// Returns what a call does with which descriptor; None if it names a file by its path, or is no such call.
fn on_descriptor(number: c_long, registers: &Registers) -> Option<(Operation, i32)> {
    let first = registers.rdi as i32;
    Some(match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv => (Operation::Read, first),
        libc::SYS_sendfile => (Operation::Read, registers.rsi as i32),
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev => (Operation::Write, first),
        libc::SYS_copy_file_range => (Operation::Write, registers.rdx as i32),
        libc::SYS_fsync | libc::SYS_fdatasync => (Operation::Sync, first),
        libc::SYS_syncfs => (Operation::SyncAll, first),
        _ => return None,
    })
}

impl Kernel {
    /// Lets calls on the files of a volume fail.
    pub fn fail_calls(&mut self, key: Key, node: NodeId, folder: &str, failing: Failing) -> Run<()> {
        if failing.first == 0 {
            return Err(Fatal("calls count from 1".into()));
        }
        let folder = self.data_of(node, folder)?;
        self.disks[node].page_rules += u64::from(failing.operation == Operation::Load);
        self.disks[node].rules.push(Rule { key, folder, failing, seen: 0 });
        Ok(())
    }

    /// Removes the rules of a fault. What has failed by them stays known.
    pub(super) fn stop_failing(&mut self, key: Key) {
        for disk in &mut self.disks {
            let is_of_pages = |rule: &Rule| rule.key == key && rule.failing.operation == Operation::Load;
            disk.page_rules += u64::from(disk.rules.iter().any(is_of_pages));
            disk.rules.retain(|rule| rule.key != key);
        }
    }

    /// Returns the result of a call that fails by a rule; None if it does not fail, or is a sync, which fails at its end.
    pub(super) fn fails(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Option<Outcome> {
        let node = self.threads[thread].node;
        let (operation, paths) = if let Some((operation, descriptor)) = on_descriptor(number, registers) {
            (operation, vec![self.opened(thread, descriptor)?.1])
        } else {
            let here = libc::AT_FDCWD;
            let (one, two, three, four) = (registers.rdi, registers.rsi, registers.rdx, registers.r10);
            let (operation, names) = match number {
                libc::SYS_open | libc::SYS_creat => (Operation::Open, vec![(here, one)]),
                libc::SYS_openat | libc::SYS_openat2 => (Operation::Open, vec![(one as i32, two)]),
                libc::SYS_rename => (Operation::Rename, vec![(here, one), (here, two)]),
                libc::SYS_renameat | libc::SYS_renameat2 => {
                    (Operation::Rename, vec![(one as i32, two), (three as i32, four)])
                }
                libc::SYS_msync if registers.rdx as c_int & libc::MS_SYNC != 0 => (Operation::MemorySync, Vec::new()),
                libc::SYS_sync => (Operation::SyncAll, Vec::new()),
                _ => return None,
            };
            let paths = if operation == Operation::MemorySync {
                self.mapped_files(thread, registers).into_iter().map(|(path, ..)| path).collect()
            } else {
                names.into_iter().filter_map(|(at, path)| self.named(thread, at, path)).collect()
            };
            (operation, paths)
        };
        let syncs = matches!(operation, Operation::Sync | Operation::MemorySync | Operation::SyncAll);
        let changed = if operation == Operation::SyncAll { self.disks[node].changed_files() } else { Vec::new() };
        let program = self.processes[self.threads[thread].process].program.clone();
        let mut refused: Option<Refused> = None;
        for rule in self.disks[node].rules.iter_mut().filter(|rule| rule.failing.operation == operation) {
            let file = if operation == Operation::SyncAll {
                // `syncfs` is of the disk of its descriptor, and `sync` of all.
                if number == libc::SYS_syncfs && !paths.iter().any(|path| path.starts_with(&rule.folder)) {
                    continue;
                }
                PathBuf::from(OsStr::from_bytes(rule.failing.pattern.as_bytes()))
            } else {
                let Some(path) = paths.iter().find(|path| rule.matches(path)) else { continue };
                rule.shown(path)
            };
            rule.seen += 1;
            let Failing { first, times, error, .. } = rule.failing;
            if rule.seen < first || rule.seen - first >= times {
                continue;
            }
            let refused = refused.get_or_insert(Refused { error, files: BTreeSet::new(), failures: Vec::new() });
            if operation == Operation::SyncAll {
                refused.files.extend(changed.iter().filter(|path| rule.matches(path)).cloned());
            } else {
                refused.files.extend(paths.iter().cloned());
            }
            refused.failures.push(Failure {
                key: rule.key,
                node,
                at: 0,
                program: program.clone(),
                call: calls::name(number),
                file,
                number: rule.seen,
            });
        }
        if syncs {
            self.threads[thread].refused = refused;
            return None;
        }
        refused.map(|refused| failed(self.refuse_call(refused)))
    }

    /// A call fails now. Returns its error.
    pub(super) fn refuse_call(&mut self, refused: Refused) -> c_int {
        for failure in refused.failures {
            self.say(&format!("{} of {} fails with error {}", failure.call, failure.file.display(), refused.error));
            self.failures.push(Failure { at: self.now, ..failure });
        }
        refused.error
    }
}
