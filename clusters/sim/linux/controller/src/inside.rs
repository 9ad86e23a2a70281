//! A command among the files of a node: `labrys-linux inside PID ROOT PROGRAM ARGUMENT...`.
//!
//! It runs in real time and outside of the simulation, to install files or to read them. PID is that of the controller, whose mount
//! namespace has the files of the nodes. ROOT is the folder of a node there. No link leads out of it. The command gets a `/proc`
//! with its own process, which the programs of the simulation do not see.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::chroot;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use crate::start::{check, mount};

/// Runs the command in place of this process, so it returns only why it cannot.
pub fn run(words: &[OsString]) -> io::Error {
    let [pid, root, program, arguments @ ..] = words else {
        return io::Error::other("expected: inside PID ROOT PROGRAM ARGUMENT...");
    };
    match enter(Path::new("/proc").join(pid).join("ns/mnt").as_path(), Path::new(root)) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}

fn enter(namespace: &Path, root: &Path) -> io::Result<()> {
    let namespace = File::open(namespace)?;
    // SAFETY: the descriptor is open, and this process has one thread.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) }, "enter the namespace of the controller")?;
    // SAFETY: it takes no pointer.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) }, "unshare the mounts")?;
    let kind = Path::new("proc");
    mount(Path::new("none"), Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    mount(kind, &root.join("proc"), Some(c"proc"), 0, None)?;
    chroot(root)?;
    std::env::set_current_dir("/")
}
