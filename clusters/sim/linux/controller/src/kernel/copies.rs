//! Copies of all programs of a run, from the moment at which they stand.
//!
//! The programs of the run, here the originals, stand from then on. Each copy of them begins where they stand, and is as the run
//! itself would be: the same ids of processes and threads, the same memory, files and descriptors. There is one copy at a time,
//! since it uses the files, the descriptors and the shared memory of the originals; all of these come back before the next one.
//!
//! A thread of each original makes a process by calls that the controller puts into it. The memory of this process is copied at its
//! first change. The process makes its other threads likewise. They are in a namespace of ids of their own, below that of the
//! originals, where `set_tid` of clone3(2) gives them the ids of these.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libc::{c_int, pid_t};

use super::{Kernel, ProcessId, Run, State, ThreadId};
use crate::chance::Chance;
use crate::original::Original;
use crate::start::{check, text, Root, DESCRIPTORS, LIBRARY, PAGE, SHARED_PAGE};
use crate::tracee::{self, Registers, Stop, Until};

/// Where calls are put into programs: the end of the page of the stand-in for the vDSO, which has nothing.
const CALL_AT: u64 = LIBRARY + PAGE - 16;
/// Where these calls have their arguments: in the page that all programs share, after what it has.
const ARGUMENTS: u64 = SHARED_PAGE + PAGE / 2;
const ARGUMENTS_SIZE: u64 = 88; // of `struct clone_args`; see clone3(2)
const NUMBER: u64 = ARGUMENTS + 128; // the id that `set_tid` leads to
const TEXT: u64 = ARGUMENTS + 256;
const NO_SIGNAL_STACK: u32 = 2; // SS_DISABLE

/// How a thread stands.
#[derive(Clone)]
struct Standing {
    registers: Registers,
    vectors: Vec<u8>,
    mask: u64,
    /// Whether it stands before a call.
    before_call: bool,
    /// A `stack_t`: where its handlers of signals run.
    signal_stack: Vec<u8>,
    /// The list of its locks that the kernel frees at its end, and the size of the list.
    robust: (u64, u64),
    name: Vec<u8>,
}

/// A descriptor of an original that leads to a file.
struct Open {
    process: ProcessId,
    descriptor: i32,
    /// Where it leads to.
    path: PathBuf,
    file: OwnedFd,
    place: i64,
    flags: c_int,
}

/// Who has a lock of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The process: fcntl(2).
    Process,
    /// The opened file, by fcntl(2) or by flock(2).
    Opened,
    OpenedWhole,
}

/// A lock of a file that a process, or a file that it has opened, has.
struct Lock {
    process: ProcessId,
    descriptor: i32,
    owner: Owner,
    /// `F_RDLCK` or `F_WRLCK`.
    kind: c_int,
    start: i64,
    /// The number of bytes; zero: to the end.
    length: i64,
}

/// What copies begin with.
pub struct Template {
    kernel: Kernel,
    threads: Vec<Option<Standing>>,
    open: Vec<Open>,
    locks: Vec<Lock>,
    /// The working folder of each process that lives.
    folders: Vec<(ProcessId, PathBuf)>,
    files: Original,
    pages: Vec<u64>,
    /// The last id that the originals got.
    last: pid_t,
}

/// Why a run cannot be copied.
type Refusal = String;

fn put<const N: usize>(tid: pid_t, address: u64, numbers: [u64; N]) -> io::Result<()> {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    put_bytes(tid, address, &bytes)
}

fn put_bytes(tid: pid_t, address: u64, bytes: &[u8]) -> io::Result<()> {
    if tracee::write(tid, address, bytes) {
        Ok(())
    } else {
        Err(page_is_gone())
    }
}

fn page_is_gone() -> io::Error {
    io::Error::other(format!("the page at {SHARED_PAGE:#x} of a program is gone"))
}

fn put_path(tid: pid_t, path: &Path) -> io::Result<()> {
    put_bytes(tid, TEXT, text(path).as_bytes_with_nul())
}

/// Makes a call in a stopped thread. Returns its result.
fn call(tid: pid_t, number: libc::c_long, arguments: [u64; 6]) -> io::Result<i64> {
    made_by(tid, number, arguments).map(|(result, _)| result)
}

fn made_by(tid: pid_t, number: libc::c_long, arguments: [u64; 6]) -> io::Result<(i64, Option<pid_t>)> {
    let (result, made) = tracee::call_at(tid, CALL_AT, number, arguments)?;
    if result < 0 {
        let error = io::Error::from_raw_os_error(-result as c_int);
        return Err(io::Error::other(format!("{} in a program that is copied: {error}", crate::calls::name(number))));
    }
    Ok((result, made))
}

/// Makes a process or a thread with an id, by a thread; returns its id for the controller. It stands at its begin.
fn make(by: pid_t, flags: c_int, number: pid_t, tls: u64, clear_tid: u64) -> io::Result<pid_t> {
    put(by, NUMBER, [number as u64])?;
    put(by, ARGUMENTS, [flags as u64, 0, clear_tid, 0, 0, 0, 0, tls, NUMBER, 1, 0])?;
    let (_, made) = made_by(by, libc::SYS_clone3, [ARGUMENTS, ARGUMENTS_SIZE, 0, 0, 0, 0])?;
    let made = made.ok_or_else(|| io::Error::other("a copy of a thread was not seen"))?;
    tracee::wait_on(made)?; // its first stop
    Ok(made)
}

impl Lock {
    /// Reads a line of a file below `fdinfo`; see proc(5). Returns None if it is no such line.
    fn of(line: &str, process: ProcessId, descriptor: i32) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().collect();
        let [_, owner, _, kind, _, _, first, last] = words[..] else { return None };
        let owner = match owner {
            "POSIX" => Owner::Process,
            "OFDLCK" => Owner::Opened,
            "FLOCK" => Owner::OpenedWhole,
            _ => return None,
        };
        let start: i64 = first.parse().ok()?;
        let length = if last == "EOF" { 0 } else { last.parse::<i64>().ok()? - start + 1 };
        let kind = match kind {
            "WRITE" => libc::F_WRLCK,
            "READ" => libc::F_RDLCK,
            _ => return None,
        };
        Some(Self { process, descriptor, owner, kind, start, length })
    }

    /// Takes the lock, or gives it back, by a process.
    fn set(&self, tid: pid_t, is_held: bool) -> io::Result<()> {
        let descriptor = self.descriptor as u64;
        if self.owner == Owner::OpenedWhole {
            let how = match (is_held, self.kind) {
                (false, _) => libc::LOCK_UN,
                (true, libc::F_WRLCK) => libc::LOCK_EX,
                (true, _) => libc::LOCK_SH,
            };
            return call(tid, libc::SYS_flock, [descriptor, (how | libc::LOCK_NB) as u64, 0, 0, 0, 0]).map(drop);
        }
        let kind = if is_held { self.kind } else { libc::F_UNLCK };
        let command = if self.owner == Owner::Process { libc::F_SETLK } else { libc::F_OFD_SETLK };
        put(tid, ARGUMENTS, [kind as u64, self.start as u64, self.length as u64, 0])?; // `struct flock`, from the start of the file
        call(tid, libc::SYS_fcntl, [descriptor, command as u64, ARGUMENTS, 0, 0, 0]).map(drop)
    }
}

impl Open {
    /// Lets a copy of the process have the file open for itself.
    fn open_again(&self, tid: pid_t, path: &Path) -> io::Result<()> {
        put_path(tid, path)?;
        let descriptor = self.descriptor as u64;
        let flags = self.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_TRUNC);
        let new = call(tid, libc::SYS_openat, [libc::AT_FDCWD as u64, TEXT, flags as u64, 0, 0, 0])? as u64;
        call(tid, libc::SYS_dup3, [new, descriptor, (self.flags & libc::O_CLOEXEC) as u64, 0, 0, 0])?;
        call(tid, libc::SYS_close, [new, 0, 0, 0, 0, 0])?;
        call(tid, libc::SYS_lseek, [descriptor, self.place as u64, libc::SEEK_SET as u64, 0, 0, 0]).map(drop)
    }
}

impl Standing {
    /// Looks how a stopped thread stands. It does not stand there any more then.
    fn of(tid: pid_t, name: Vec<u8>) -> io::Result<Self> {
        let before_call = tracee::stands_before_call(tid)?;
        let (registers, vectors, mask) =
            (tracee::registers(tid)?, tracee::vector_registers(tid)?, tracee::mask(tid)?);
        tracee::set_mask(tid, tracee::UNDISTURBED)?;
        call(tid, libc::SYS_sigaltstack, [0, ARGUMENTS, 0, 0, 0, 0])?;
        let signal_stack = tracee::read(tid, ARGUMENTS, 24).ok_or_else(page_is_gone)?;
        call(tid, libc::SYS_get_robust_list, [0, ARGUMENTS, ARGUMENTS + 8, 0, 0, 0])?;
        let read = |address| tracee::read_u64(tid, address).ok_or_else(page_is_gone);
        let robust = (read(ARGUMENTS)?, read(ARGUMENTS + 8)?);
        Ok(Self { registers, vectors, mask, before_call, signal_stack, robust, name })
    }

    /// Lets a new thread stand like this.
    fn lay(&self, tid: pid_t) -> io::Result<()> {
        if tracee::u32_at(&self.signal_stack, 8) & NO_SIGNAL_STACK == 0 {
            put_bytes(tid, ARGUMENTS, &self.signal_stack)?;
            call(tid, libc::SYS_sigaltstack, [ARGUMENTS, 0, 0, 0, 0, 0])?;
        }
        if self.robust.0 != 0 {
            call(tid, libc::SYS_set_robust_list, [self.robust.0, self.robust.1, 0, 0, 0, 0])?;
        }
        put_bytes(tid, TEXT, &self.name)?;
        call(tid, libc::SYS_prctl, [libc::PR_SET_NAME as u64, TEXT, 0, 0, 0, 0])?;
        tracee::set_vector_registers(tid, &self.vectors)?;
        tracee::set_mask(tid, self.mask)?;
        if !self.before_call {
            return tracee::set_registers(tid, &Registers { orig_rax: u64::MAX, ..self.registers });
        }
        tracee::stand_before_call(tid, &self.registers)?;
        loop {
            tracee::resume(tid, Until::Stops, 0)?;
            match tracee::wait_on(tid)? {
                Stop::Call => return Ok(()),
                Stop::Other => {}
                stop => return Err(io::Error::other(format!("a copy of a thread stopped otherwise: {stop:?}"))),
            }
        }
    }
}

impl Kernel {
    /// Draws by another seed from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.say(&format!("the seed is {seed} from now on"));
        self.settings.seed = seed;
        self.scheduling = Chance::new(seed, "threads");
        self.links.reseed(seed);
        self.stalls.reseed(seed, self.now);
        for (node, disk) in self.nodes.iter().zip(&mut self.disks) {
            disk.chance = Chance::new(seed, &super::disk::purpose(&node.name));
        }
        for (number, process) in self.processes.iter_mut().enumerate() {
            process.chance = Chance::new(seed, &super::processes::purpose(number));
        }
    }

    fn living(&self) -> Vec<ProcessId> {
        (0..self.processes.len()).filter(|process| self.processes[*process].is_alive).collect()
    }

    fn threads_of(&self, process: ProcessId) -> impl Iterator<Item = ThreadId> + '_ {
        self.processes[process].threads.iter().copied().filter(|thread| self.threads[*thread].state != State::Dead)
    }

    fn node_names(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    /// Makes all programs the originals of copies. They stand from then on.
    ///
    /// Returns why not, if something of them cannot be copied.
    pub fn become_template(&self) -> Run<Result<Template, Refusal>> {
        if let Some(refusal) = self.refuses_copies()? {
            return Ok(Err(refusal));
        }
        let mut systems = vec![(self.root.path().to_owned(), Vec::new())];
        systems[0].1.extend(self.nodes.iter().map(|node| self.root.folder_of(&node.name)));
        for volume in self.disks.iter().flat_map(|disk| &disk.volumes) {
            systems.push((volume.place().to_owned(), vec![volume.data(), volume.removed()]));
        }
        let files = Original::of(&systems)?;
        self.root.prepare_copies()?;
        let last = Root::last_number()?;
        let pages = self.pages.as_ref().map_or_else(Vec::new, |pages| pages.content());
        let (mut open, mut locks, mut threads) = (Vec::new(), Vec::new(), vec![None; self.threads.len()]);
        let mut folders = Vec::new();
        for process in self.living() {
            for thread in self.threads_of(process) {
                let tid = self.threads[thread].tid;
                let mut name = self.root.read_of(tid, "comm")?.trim_end().as_bytes().to_vec();
                name.push(0);
                threads[thread] = Some(Standing::of(tid, name)?);
            }
            self.keep_descriptors(process, &mut open, &mut locks)?;
            folders.push((process, fs::read_link(self.root.path_of(self.processes[process].pid, "cwd"))?));
        }
        if let Some(all) = &self.pages {
            all.restore(&pages); // calls had their arguments there
        }
        Ok(Ok(Template { kernel: self.clone(), threads, open, locks, folders, files, pages, last }))
    }

    fn refuses_copies(&self) -> Run<Option<Refusal>> {
        for process in self.living() {
            let of = &self.processes[process];
            let what = format!("{} on {}", of.program, self.nodes[of.node].name);
            if of.parent.is_some() || of.memory_of.is_some() {
                return Ok(Some(format!("{what} is a child of another program")));
            }
            if self.processes.iter().any(|child| child.parent == Some(process) && !child.is_reaped) {
                return Ok(Some(format!("{what} has a child")));
            }
            for thread in self.threads_of(process) {
                if self.threads[thread].state == State::Zombie {
                    return Ok(Some(format!("the first thread of {what} has ended before the others")));
                }
                if self.threads[thread].is_refused || self.pending(thread) != 0 {
                    return Ok(Some(format!("a signal waits for {what}")));
                }
            }
            let is_own = |device: &str| {
                let (major, minor) = device.split_once(':').unwrap_or_default();
                let part = |text| u32::from_str_radix(text, 16).unwrap_or(u32::MAX);
                self.root.is_own(libc::makedev(part(major), part(minor)))
            };
            for line in self.root.read_of(of.pid, "maps")?.lines() {
                let words: Vec<_> = line.split_whitespace().collect();
                let [_, rights, _, device, _, ref path @ ..] = words[..] else { continue };
                let is_pages = path.first().is_some_and(|path| path.starts_with("/memfd:time"));
                if rights.ends_with('s') && rights.contains('w') && !is_pages && !is_own(device) {
                    return Ok(Some(format!("{what} shares memory that is no file of its node: {}", path.join(" "))));
                }
            }
            for entry in fs::read_dir(self.root.path_of(of.pid, "fd"))? {
                let entry = entry?;
                let leads = fs::read_link(entry.path())?;
                if leads.starts_with("/proc") || leads.to_string_lossy().contains("/proc/") {
                    return Ok(Some(format!("{what} has {} open", leads.display())));
                }
            }
        }
        Ok(None)
    }

    /// Keeps what a copy of a process would change of the descriptors of the original, and takes the locks of the original away.
    fn keep_descriptors(&self, process: ProcessId, open: &mut Vec<Open>, locks: &mut Vec<Lock>) -> Run<()> {
        let pid = self.processes[process].pid;
        // SAFETY: the calls take numbers alone, and the descriptors are new.
        let own =
            unsafe { OwnedFd::from_raw_fd(check(libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32, "pidfd_open")?) };
        let mut held = std::collections::BTreeSet::new();
        for entry in fs::read_dir(self.root.path_of(pid, "fdinfo"))? {
            let Ok(number) = entry?.file_name().to_string_lossy().parse::<i32>() else { continue };
            if DESCRIPTORS.contains(&number) || self.processes[process].descriptors.contains_key(&number) {
                continue;
            }
            let information = self.root.read_of(pid, &format!("fdinfo/{number}"))?;
            let field = |name: &str| {
                information
                    .lines()
                    .find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
                    .unwrap_or_default()
            };
            // SAFETY: as above.
            let file = unsafe {
                let copied = libc::syscall(libc::SYS_pidfd_getfd, own.as_raw_fd(), number, 0) as i32;
                OwnedFd::from_raw_fd(check(copied, "pidfd_getfd")?)
            };
            let unlike = || io::Error::other(format!("expected what proc(5) says of fdinfo, found {information:?}"));
            let flags = i32::from_str_radix(&field("flags:"), 8).map_err(|_| unlike())?;
            let place = field("pos:").parse().map_err(|_| unlike())?;
            let path = fs::read_link(self.root.path_of(pid, &format!("fd/{number}")))?;
            open.push(Open { process, descriptor: number, path, file, place, flags });
            for line in information.lines().filter_map(|line| line.strip_prefix("lock:")) {
                let lock = Lock::of(line, process, number).ok_or_else(unlike)?;
                // The file says it of each descriptor.
                if held.insert(line.to_owned()) {
                    lock.set(pid, false)?;
                    locks.push(lock);
                }
            }
        }
        Ok(())
    }

    /// Copies a process of the originals, whose first process has an id in their namespace.
    fn copy_process(&mut self, process: ProcessId, template: &Template, first: pid_t) -> Run<()> {
        let original = self.processes[process].pid;
        put_path(original, Path::new(&format!("/proc/{first}/ns/pid")))?;
        let descriptor =
            call(original, libc::SYS_openat, [libc::AT_FDCWD as u64, TEXT, libc::O_CLOEXEC as u64, 0, 0, 0])?;
        call(original, libc::SYS_setns, [descriptor as u64, libc::CLONE_NEWPID as u64, 0, 0, 0, 0])?;
        call(original, libc::SYS_close, [descriptor as u64, 0, 0, 0, 0, 0])?;
        let pid = make(original, libc::CLONE_PARENT, self.processes[process].number, 0, 0)?;
        self.processes[process].pid = pid;
        call(pid, libc::SYS_setsid, [0; 6])?;
        for open in template.open.iter().filter(|open| open.process == process) {
            let now = fs::read_link(self.root.path_of(original, &format!("fd/{}", open.descriptor)))?;
            let is_locked = |lock: &Lock| {
                lock.process == process && lock.descriptor == open.descriptor && lock.owner != Owner::Process
            };
            if now != open.path {
                // Another copy has removed the file, which is back, but not for those that had it open.
                open.open_again(pid, &self.inside(process, &open.path))?;
            } else if template.locks.iter().any(is_locked) {
                // The original has the same file open, so the lock would outlive the copy.
                open.open_again(pid, &PathBuf::from(format!("/proc/self/fd/{}", open.descriptor)))?;
            }
        }
        for lock in template.locks.iter().filter(|lock| lock.process == process) {
            lock.set(pid, true)?;
        }
        for (_, folder) in template.folders.iter().filter(|(of, _)| *of == process) {
            if fs::read_link(self.root.path_of(original, "cwd"))? != *folder {
                put_path(pid, &self.inside(process, folder))?;
                call(pid, libc::SYS_chdir, [TEXT, 0, 0, 0, 0, 0])?;
            }
        }
        let threads: Vec<_> = self.threads_of(process).collect();
        for thread in &threads {
            let clear_tid = self.threads[*thread].clear_tid;
            if self.threads[*thread].tid == original {
                call(pid, libc::SYS_set_tid_address, [clear_tid, 0, 0, 0, 0, 0])?;
                self.threads[*thread].tid = pid;
                continue;
            }
            let standing = template.threads[*thread].as_ref().expect("a thread that lives stands");
            let mut flags = libc::CLONE_VM
                | libc::CLONE_FS
                | libc::CLONE_FILES
                | libc::CLONE_SIGHAND
                | libc::CLONE_THREAD
                | libc::CLONE_SYSVSEM
                | libc::CLONE_SETTLS;
            if clear_tid != 0 {
                flags |= libc::CLONE_CHILD_CLEARTID;
            }
            let number = self.threads[*thread].number;
            self.threads[*thread].tid = make(pid, flags, number, standing.registers.fs_base, clear_tid)?;
        }
        for thread in threads {
            let standing = template.threads[thread].as_ref().expect("a thread that lives stands");
            standing.lay(self.threads[thread].tid)?;
        }
        Ok(())
    }

    /// Returns a path as a process sees it.
    fn inside(&self, process: ProcessId, path: &Path) -> PathBuf {
        let folder = self.folder(self.processes[process].node);
        Path::new("/").join(path.strip_prefix(folder).unwrap_or(path))
    }

    /// Ends all programs of a copy, and puts back what the originals share with it.
    pub fn end_copy(mut self, template: &Template) -> Run<()> {
        for process in self.living() {
            // SAFETY: the process is a child of this one that nobody else waits for.
            unsafe { libc::kill(self.processes[process].pid, libc::SIGKILL) };
            self.reap(process)?;
        }
        let original = &template.kernel;
        let names = self.node_names();
        self.root.leave_copy(names.iter().map(String::as_str), &original.root)?;
        for (now, before) in self.disks.iter().zip(&original.disks) {
            for (number, volume) in now.volumes.iter().enumerate() {
                match before.volumes.get(number) {
                    Some(before) => volume.limit_as(before)?,
                    None => volume.end()?,
                }
            }
        }
        template.files.restore()?;
        if let Some(pages) = &original.pages {
            pages.restore(&template.pages);
        }
        for Open { file, place, flags, .. } in &template.open {
            // SAFETY: the descriptor is open. One that has no place refuses a seek.
            unsafe {
                libc::lseek(file.as_raw_fd(), *place, libc::SEEK_SET);
                libc::fcntl(file.as_raw_fd(), libc::F_SETFL, *flags);
            }
        }
        Ok(())
    }
}

impl Template {
    /// Returns the state of the originals.
    pub fn kernel(&self) -> Kernel {
        self.kernel.clone()
    }

    /// Begins a copy. The one before has ended.
    pub fn copy(&self) -> Run<Kernel> {
        let mut kernel = self.kernel.clone();
        let names = kernel.node_names();
        kernel.root.enter_copy(self.last)?;
        let first = kernel.first_number()?;
        kernel.numbers = self.files.numbers()?;
        for process in kernel.living() {
            kernel.copy_process(process, self, first)?;
        }
        kernel.root.show_copy(names.iter().map(String::as_str))?;
        if let Some(pages) = &kernel.pages {
            pages.restore(&self.pages);
        }
        Ok(kernel)
    }
}

impl Kernel {
    /// Returns the id of the first process of a copy in the namespace of the originals.
    fn first_number(&self) -> Run<pid_t> {
        let status = self.root.read_of(self.root.first_pid(), "status")?;
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        let mut words = numbers.split_whitespace().rev().skip(1);
        words
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| io::Error::other("the first process of a copy has no id").into())
    }
}
