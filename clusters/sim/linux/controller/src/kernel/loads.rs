//! Pages of mapped files that a disk cannot read: a program that uses one gets SIGBUS.
//!
//! Linux reads a page of a mapped file when a program uses it and it is not in memory, and sends SIGBUS if that fails. A page that is
//! not written yet stays in memory. The others count as not in memory from the begin of a fault on, so programs lose all rights to
//! them. A call for which the kernel uses such a page fails with EFAULT, as on Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::Path;

use libc::{c_int, pid_t};

use super::disk::Key;
use super::errors::{Failure, Refused};
use super::keeping::Area;
use super::{Kernel, ProcessId, Run, ThreadId};
use crate::fast;
use crate::start::PAGE;
use crate::tracee::{self, Stop, Until};

/// A page of memory to which its process has no rights.
#[derive(Clone, PartialEq, Eq)]
pub struct Withheld {
    file: Key,
    /// The rights that it had.
    rights: c_int,
}

/// What a process cannot use, by the addresses of the pages.
#[derive(Clone, Default)]
pub struct Memory {
    /// The state of the rules of its node for which this holds.
    rules: u64,
    withheld: BTreeMap<u64, Withheld>,
}

/// What a signal for a use of memory without rights means.
pub(super) enum Use {
    /// It is the program's own.
    Own,
    /// The page can be used again.
    Again,
    /// The page could not be read.
    Unread,
}

impl Area {
    /// Returns whether the program has no right to it.
    fn is_barred(&self) -> bool {
        self.rights.starts_with("---")
    }

    fn protection(&self) -> c_int {
        let right = |letter, value| if self.rights.contains(letter) { value } else { 0 };
        right('r', libc::PROT_READ) | right('w', libc::PROT_WRITE) | right('x', libc::PROT_EXEC)
    }

    fn address(&self, page: u64) -> u64 {
        self.memory.start + (page * PAGE - self.offset)
    }
}

/// Joins neighbours with equal rights.
fn ranges(pages: impl Iterator<Item = (u64, c_int)>) -> Vec<(Range<u64>, c_int)> {
    let mut joined: Vec<(Range<u64>, c_int)> = Vec::new();
    for (address, rights) in pages {
        match joined.last_mut() {
            Some((range, same)) if range.end == address && *same == rights => range.end += PAGE,
            _ => joined.push((address..address + PAGE, rights)),
        }
    }
    joined
}

fn protect(tid: pid_t, pages: impl Iterator<Item = (u64, c_int)>) -> io::Result<()> {
    for (range, rights) in ranges(pages) {
        let arguments = [range.start, range.end - range.start, rights as u64, 0, 0, 0];
        let result = tracee::call_in(tid, libc::SYS_mprotect, arguments)?;
        if result < 0 {
            return Err(io::Error::from_raw_os_error(-result as c_int));
        }
    }
    Ok(())
}

impl Kernel {
    /// Returns whether the rules for pages have changed since a process was last seen to.
    pub(super) fn has_new_pages(&self, thread: ThreadId) -> Run<bool> {
        let process = &self.processes[self.threads[thread].process];
        let is_new = process.memory.rules != self.disks[process.node].page_rules;
        // Nothing can be put into the code of the controller there.
        Ok(is_new && !fast::is_code(tracee::registers(self.threads[thread].tid)?.rip))
    }

    /// A thread stands before a call. Withholds pages from its process, or gives them back, and lets it come to its next stop.
    pub(super) fn withhold_before_call(&mut self, thread: ThreadId) -> Run<Stop> {
        let tid = self.threads[thread].tid;
        tracee::stand_before_call(tid, &tracee::registers(tid)?)?;
        self.withhold(thread)?;
        tracee::resume(tid, Until::Stops, 0)?;
        Ok(tracee::wait_on(tid)?)
    }

    /// Withholds the pages from a process that its disk cannot read, and gives back the others.
    pub(super) fn withhold(&mut self, thread: ThreadId) -> Run<()> {
        let tid = self.threads[thread].tid;
        let process = self.threads[thread].process;
        let areas = self.areas(tid);
        let before = std::mem::take(&mut self.processes[process].memory.withheld);
        let is_still = |address: &u64, page: &Withheld| {
            areas.iter().any(|area| area.memory.contains(address) && area.key == page.file && area.is_barred())
        };
        let before: BTreeMap<_, _> = before.into_iter().filter(|(address, page)| is_still(address, page)).collect();
        let now = self.unreadable(thread, &areas, &before)?;
        let given_back = before.iter().filter(|(address, _)| !now.contains_key(address));
        let taken = now.keys().filter(|address| !before.contains_key(address));
        tracee::undisturbed(tid, || {
            protect(tid, given_back.map(|(address, page)| (*address, page.rights)))?;
            protect(tid, taken.map(|address| (*address, libc::PROT_NONE)))
        })?;
        let rules = self.disks[self.threads[thread].node].page_rules;
        self.processes[process].memory = Memory { rules, withheld: now };
        Ok(())
    }

    /// Returns the pages among parts of the memory of a process that its disk cannot read.
    fn unreadable(
        &self,
        thread: ThreadId,
        areas: &[Area],
        before: &BTreeMap<u64, Withheld>,
    ) -> Run<BTreeMap<u64, Withheld>> {
        let disk = &self.disks[self.threads[thread].node];
        let mut unreadable = BTreeMap::new();
        for area in areas.iter().filter(|area| area.is_shared()) {
            let Some(path) = disk.volume(&area.path).and_then(|volume| volume.inside(&area.path)) else { continue };
            let failing: Vec<_> = disk.rules.iter().filter_map(|rule| rule.pages(&path)).collect();
            if failing.is_empty() {
                continue;
            }
            let mut unwritten = BTreeSet::new();
            disk.unwritten(area.key, &mut unwritten)?;
            let pages = area.pages(&area.memory);
            let end = pages.end.min(size_of(&path)?.div_ceil(PAGE));
            for page in failing.iter().flat_map(|part| part.start.max(pages.start)..part.end.min(end)) {
                let address = area.address(page);
                let withheld = match before.get(&address) {
                    Some(page) => page.clone(),
                    None if area.is_barred() || unwritten.contains(&page) => continue,
                    None => Withheld { file: area.key, rights: area.protection() },
                };
                unreadable.insert(address, withheld);
            }
        }
        Ok(unreadable)
    }

    /// A thread used memory to which it has no rights: says whether that is a page that could not be read.
    pub(super) fn uses_page(&mut self, thread: ThreadId) -> Run<Use> {
        let process = self.threads[thread].process;
        if self.processes[process].memory.withheld.is_empty() {
            return Ok(Use::Own);
        }
        let tid = self.threads[thread].tid;
        let address = tracee::fault_address(tid)?;
        let at = address / PAGE * PAGE;
        if !self.processes[process].memory.withheld.contains_key(&at) {
            return Ok(Use::Own);
        }
        if self.processes[process].memory.rules != self.disks[self.threads[thread].node].page_rules {
            self.withhold(thread)?;
            if !self.processes[process].memory.withheld.contains_key(&at) {
                return Ok(Use::Again);
            }
        }
        let Some(area) = self.areas(tid).into_iter().find(|area| area.memory.contains(&address)) else {
            return Ok(Use::Own);
        };
        self.note_unread(process, &area, area.pages(&(at..at + PAGE)).start);
        tracee::as_bus_error(tid)?;
        Ok(Use::Unread)
    }

    fn note_unread(&mut self, process: ProcessId, area: &Area, page: u64) {
        let node = self.processes[process].node;
        let disk = &self.disks[node];
        let Some(path) = disk.volume(&area.path).and_then(|volume| volume.inside(&area.path)) else { return };
        let failures = disk
            .rules
            .iter()
            .filter(|rule| rule.pages(&path).is_some_and(|pages| pages.contains(&page)))
            .map(|rule| Failure {
                key: rule.key(),
                node,
                at: 0,
                program: self.processes[process].program.clone(),
                call: "load".into(),
                file: rule.shown(&path),
                number: page + 1,
            })
            .collect();
        self.refuse_call(Refused { error: libc::EIO, files: BTreeSet::new(), failures });
    }
}

fn size_of(path: &Path) -> io::Result<u64> {
    path.metadata().map(|metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::{ranges, PAGE};

    #[test]
    fn neighbours_with_equal_rights_are_one_range() {
        let pages = [(PAGE, 1), (2 * PAGE, 1), (3 * PAGE, 3), (5 * PAGE, 3)];
        let joined = ranges(pages.into_iter());
        assert_eq!(joined, [(PAGE..3 * PAGE, 1), (3 * PAGE..4 * PAGE, 3), (5 * PAGE..6 * PAGE, 3)]);
    }
}
