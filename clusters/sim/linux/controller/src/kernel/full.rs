//! Loads and stores of programs in holes of mapped files, while the disk is full.
//!
//! A page of a mapped file needs space when it is first written, and the kernel sends SIGBUS if there is none. It does so for a
//! store on each file system. A file system in memory also does it for a load, where a disk would show a page of zeros. So such a
//! page gets its space here if the instruction loads. Which it does shows in a page that can only be read.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

use super::keeping::Area;
use super::loops::step;
use super::pages::punch;
use super::{Kernel, Run, ThreadId};
use crate::start::PAGE;
use crate::tracee::{self, Stop};

/// Gives a page of a file space.
fn reserve(file: &File, place: u64) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    let done = unsafe { libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, place as i64, PAGE as i64) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

impl Kernel {
    /// A thread got SIGBUS. Returns whether it goes on without it: its instruction is to be carried out once more.
    pub(super) fn goes_on_from_hole(&mut self, thread: ThreadId) -> Run<bool> {
        let (tid, node) = (self.threads[thread].tid, self.threads[thread].node);
        if std::mem::take(&mut self.threads[thread].is_refused) || !self.disks[node].is_full {
            return Ok(false);
        }
        let address = tracee::fault_address(tid)?;
        let page = address / PAGE * PAGE;
        let Some(area) = self.areas(tid).into_iter().find(|area| area.memory.contains(&address)) else {
            return Ok(false);
        };
        let Some(volume) = self.disks[node].volume(&area.path).map(|volume| volume.device) else { return Ok(false) };
        let name = format!("map_files/{:x}-{:x}", area.memory.start, area.memory.end);
        let file = OpenOptions::new().read(true).write(true).open(self.root.path_of(tid, &name))?;
        let place = area.offset + (page - area.memory.start);
        if !area.is_shared() || place >= file.metadata()?.len() {
            return Ok(false); // the file ends before it
        }
        self.grow(node, volume, true)?;
        reserve(&file, place)?;
        let is_store = area.is_writable() && Self::stores(tid, page, &area)?;
        if is_store {
            punch(&file, place)?;
            self.grow(node, volume, false)?;
            self.threads[thread].is_refused = true;
        }
        self.digest.number(address);
        Ok(true)
    }

    fn grow(&mut self, node: super::NodeId, device: u64, is_more: bool) -> Run<()> {
        for volume in self.disks[node].volumes.iter_mut().filter(|volume| volume.device == device) {
            volume.grow(is_more)?;
        }
        Ok(())
    }

    /// Carries out the next instruction of a thread while a page can only be read. Returns whether it stores there.
    fn stores(tid: libc::pid_t, page: u64, area: &Area) -> Run<bool> {
        let code = if area.rights.contains('x') { libc::PROT_EXEC } else { 0 };
        let protect = |rights: i32| {
            tracee::call_in(tid, libc::SYS_mprotect, [page, PAGE, (rights | code) as u64, 0, 0, 0]).map(drop)
        };
        protect(libc::PROT_READ)?;
        let before = tracee::registers(tid)?;
        let stop = step(tid, &before)?;
        let is_store = match stop {
            Err(Stop::Signal(libc::SIGSEGV)) => tracee::fault_address(tid)? / PAGE * PAGE == page,
            // It loads; or it needs another page too, and comes to this place again.
            Ok(_) | Err(Stop::Signal(libc::SIGBUS)) => false,
            Err(stop) => return Err(super::Fatal(format!("a thread at {:#x} ended a step by {stop:?}", before.rip))),
        };
        protect(libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(is_store)
    }
}
