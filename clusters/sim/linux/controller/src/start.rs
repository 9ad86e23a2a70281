//! Namespaces, the files that programs see, and the start of a program under the filter.
//!
//! A program sees nothing of the host but read-only folders that its run names. Its process ids, inode numbers and all that `/proc`
//! and `/sys` say of the machine are the same in each run.

use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use libc::{c_char, c_ulong, c_void, pid_t, sock_filter};

use crate::calls::{Class, TABLE};
use crate::fast::{self, Fast};
use crate::machine::{FILES, MACHINE, PROCESS, STAND_INS};
use crate::tracee::{self, Stop, Until};

/// Where a program finds the page that all share, that of its node, and the stand-in for the vDSO; see vdso/vdso.c.
pub const SHARED_PAGE: u64 = 0x6fff_0000_0000;
pub const OWN_PAGE: u64 = 0x6fff_0000_1000;
pub const LIBRARY: u64 = 0x6fff_0001_0000;
pub const PAGE: u64 = 4096;
const LIBRARY_DESCRIPTOR: i32 = 1000;
const PAGES_DESCRIPTOR: i32 = 1001;
/// The descriptors that each program has for these.
pub const DESCRIPTORS: [i32; 2] = [LIBRARY_DESCRIPTOR, PAGES_DESCRIPTOR];
const FOURTH_ARGUMENT: u32 = 16 + 3 * 8; // its offset in struct seccomp_data; see seccomp(2)
const VDSO: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vdso.so"));

/// The mount of `/proc` for the programs, which each node shows, and what stands there for that of the machine.
const PROCESSES: &str = ".processes";
/// The same for the copies of programs.
const COPIES: &str = ".copies";
const SIMULATED: &str = ".machine";

/// The limits of a program, whatever those of the host are; see getrlimit(2).
const LIMITS: &[(libc::__rlimit_resource_t, u64)] = &[
    (libc::RLIMIT_AS, libc::RLIM_INFINITY),
    (libc::RLIMIT_CORE, 0),
    (libc::RLIMIT_CPU, libc::RLIM_INFINITY),
    (libc::RLIMIT_DATA, libc::RLIM_INFINITY),
    (libc::RLIMIT_FSIZE, libc::RLIM_INFINITY),
    (libc::RLIMIT_LOCKS, libc::RLIM_INFINITY),
    (libc::RLIMIT_MEMLOCK, 8 << 20),
    (libc::RLIMIT_MSGQUEUE, 819_200),
    (libc::RLIMIT_NICE, 0),
    (libc::RLIMIT_NOFILE, 65_536),
    (libc::RLIMIT_NPROC, 65_536),
    (libc::RLIMIT_RSS, libc::RLIM_INFINITY),
    (libc::RLIMIT_RTPRIO, 0),
    (libc::RLIMIT_RTTIME, libc::RLIM_INFINITY),
    (libc::RLIMIT_SIGPENDING, 65_536),
    (libc::RLIMIT_STACK, 8 << 20),
];

/// Where the nodes' files are.
#[derive(Clone)]
pub struct Root {
    path: PathBuf,
    /// `/proc` of the host, with the ids by which the controller knows the threads.
    proc: Rc<OwnedFd>,
    /// The devices of the nodes' files: that of their roots, and those of the volumes.
    pub devices: Vec<u64>,
    /// The real time at which the run began, in seconds: files of the run are not older.
    pub began_s: i64,
    /// The first process of the programs' namespace.
    init: Rc<Init>,
}

pub fn check(result: i32, what: &str) -> io::Result<i32> {
    if result < 0 {
        let error = io::Error::last_os_error();
        Err(io::Error::new(error.kind(), format!("{what}: {error}")))
    } else {
        Ok(result)
    }
}

pub fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_encoded_bytes()).expect("a path has no zero byte")
}

pub fn mount(
    source: &Path,
    target: &Path,
    kind: Option<&CStr>,
    flags: c_ulong,
    data: Option<&CStr>,
) -> io::Result<()> {
    let (from, to) = (text(source), text(target));
    let pointer = |text: Option<&CStr>| text.map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: all texts outlive the call.
    let result =
        unsafe { libc::mount(from.as_ptr(), to.as_ptr(), pointer(kind), flags, pointer(data).cast::<c_void>()) };
    check(result, &format!("mount {} at {}", source.display(), target.display())).map(drop)
}

/// Shows a file or a folder at another place, read-only if asked.
pub fn show(source: &Path, target: &Path, is_read_only: bool) -> io::Result<()> {
    mount(source, target, None, libc::MS_BIND | libc::MS_REC, None)?;
    if is_read_only {
        mount(source, target, None, libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY, None)?;
    }
    Ok(())
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().expect("a file has a folder"))?;
    fs::write(path, content)
}

/// Puts what is the same in each run over all that `/proc` says of the machine, and nothing over its first process.
///
/// The first process is of the host: its root folder, its variables and its program are.
fn hide_machine(processes: &Path, simulated: &Path) -> io::Result<()> {
    let (empty, nothing) = (simulated.join("empty"), simulated.join("nothing"));
    for entry in fs::read_dir(processes)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            continue; // `self` and the like lead to a process
        }
        let own = simulated.join("proc").join(entry.file_name());
        let source = if own.exists() {
            &own
        } else if kind.is_dir() {
            &nothing
        } else {
            &empty
        };
        show(source, &entry.path(), true)?;
    }
    Ok(())
}

/// Makes what stands in `/proc` for that of the machine.
fn simulate_machine(simulated: &Path) -> io::Result<()> {
    for (name, content) in MACHINE {
        write(&simulated.join("proc").join(name), content)?;
    }
    write(&simulated.join("empty"), "")?;
    fs::create_dir(simulated.join("nothing"))
}

impl Root {
    /// Enters namespaces of their own, and makes a file system for the nodes at an existing folder.
    ///
    /// Nothing of it is seen outside of this process and its children, and all of it ends with them.
    pub fn new(path: &Path) -> io::Result<Self> {
        let proc = Rc::new(OwnedFd::from(File::open("/proc")?));
        // SAFETY: it sets the mask of this process, which the programs inherit.
        unsafe { libc::umask(0o022) };
        let began_s = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_secs() as i64 - 1;
        let spaces =
            libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
        // SAFETY: the controller has one thread, so its namespaces can change.
        check(unsafe { libc::unshare(spaces) }, "unshare the namespaces (this needs root)")?;
        mount(Path::new("none"), Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None)?;
        mount(Path::new("labrys"), path, Some(c"tmpfs"), libc::MS_NODEV, Some(c"size=8g,mode=755"))?;
        let device = fs::metadata(path)?.dev();
        let processes = path.join(PROCESSES);
        fs::create_dir(&processes)?;
        let init = Rc::new(Init(first_process(&processes, None)?));
        let simulated = path.join(SIMULATED);
        simulate_machine(&simulated)?;
        hide_machine(&processes, &simulated)?;
        Ok(Self { path: path.to_owned(), proc, devices: vec![device], began_s, init })
    }

    /// Returns the folder of all nodes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether a device has files of the nodes.
    pub fn is_own(&self, device: u64) -> bool {
        self.devices.contains(&device)
    }

    /// Returns the root folder of a node.
    pub fn folder_of(&self, node: &str) -> PathBuf {
        self.path.join(node)
    }

    /// Makes the root folder of a node.
    ///
    /// `shown` are folders and files of the host that its programs may read, at the same paths.
    pub fn add_node(&self, node: &str, shown: &[PathBuf]) -> io::Result<()> {
        let root = self.folder_of(node);
        for folder in ["proc", "dev/shm", "tmp", "run", "root", "var/lib", "var/log", "opt", "etc", "usr", STAND_INS]
        {
            fs::create_dir_all(root.join(folder))?;
        }
        for folder in ["dev/shm", "tmp"] {
            fs::set_permissions(root.join(folder), Permissions::from_mode(0o1777))?;
        }
        for link in ["bin", "sbin", "lib", "lib64"] {
            std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link))?;
        }
        for (name, content) in FILES {
            write(&root.join(name), content)?;
        }
        for (name, content) in PROCESS {
            write(&root.join(STAND_INS).join(name), content)?;
        }
        for path in shown {
            let inside = root.join(path.strip_prefix("/").unwrap_or(path));
            if path.is_dir() {
                fs::create_dir_all(&inside)?;
            } else {
                write(&inside, "")?;
            }
            show(path, &inside, true)?;
        }
        show(&self.path.join(PROCESSES), &root.join("proc"), false)?;
        for device in ["null", "zero", "full", "random", "urandom"] {
            let path = root.join("dev").join(device);
            write(&path, "")?;
            show(&Path::new("/dev").join(device), &path, false)?;
        }
        std::os::unix::fs::symlink("/proc/self/fd", root.join("dev/fd"))?;
        Ok(())
    }

    /// Writes the names of all nodes for the programs of each.
    pub fn name_nodes<'a>(&self, nodes: impl Iterator<Item = (&'a str, Ipv4Addr)> + Clone) -> io::Result<()> {
        let mut hosts = String::from("127.0.0.1 localhost\n");
        for (name, address) in nodes.clone() {
            let _ = writeln!(hosts, "{address} {name}");
        }
        for (name, _) in nodes {
            write(&self.folder_of(name).join("etc/hosts"), &hosts)?;
            write(&self.folder_of(name).join("etc/hostname"), &format!("{name}\n"))?;
        }
        Ok(())
    }

    /// Returns the last id that the namespace of the programs has given to a process or a thread.
    pub fn last_number() -> io::Result<pid_t> {
        let mut gate = [0; 2];
        // SAFETY: the child calls functions that are safe after a fork only.
        unsafe {
            check(libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC), "pipe")?;
            let child = check(libc::fork(), "fork")?;
            if child == 0 {
                let own = libc::getpid();
                libc::_exit((libc::write(gate[1], (&raw const own).cast(), size_of::<pid_t>()) < 0).into());
            }
            libc::close(gate[1]);
            let number = read_number(gate[0]);
            wait_for(child);
            number
                .map(|number| number - 1)
                .ok_or_else(|| io::Error::other("a child of the controller did not tell its id"))
        }
    }

    /// Makes the folder that copies of the programs need.
    pub fn prepare_copies(&self) -> io::Result<()> {
        fs::create_dir(self.path.join(COPIES))
    }

    /// Makes a namespace of processes for a copy of the programs, below theirs: `last` is the last id that it counts as given.
    pub fn enter_copy(&mut self, last: pid_t) -> io::Result<()> {
        let processes = self.path.join(COPIES);
        self.init = Rc::new(Init(first_process(&processes, Some(last))?));
        hide_machine(&processes, &self.path.join(SIMULATED))?;
        self.start_here()
    }

    /// Shows the processes of a copy in the `/proc` of the nodes, in place of the originals.
    pub fn show_copy<'a>(&self, nodes: impl Iterator<Item = &'a str>) -> io::Result<()> {
        for node in nodes {
            show(&self.path.join(COPIES), &self.folder_of(node).join("proc"), false)?;
        }
        Ok(())
    }

    /// Takes back what `enter_copy` and `show_copy` did, when all its programs have ended. `before` is what there was before it.
    pub fn leave_copy<'a>(&mut self, nodes: impl Iterator<Item = &'a str>, before: &Self) -> io::Result<()> {
        for node in nodes {
            unmount(&self.folder_of(node).join("proc"))?;
        }
        unmount(&self.path.join(COPIES))?;
        self.clone_from(before);
        self.start_here()
    }

    /// Lets programs start in the namespace of processes that this has.
    fn start_here(&self) -> io::Result<()> {
        let space = File::open(format!("/proc/{}/ns/pid", self.init.0))?;
        // SAFETY: the descriptor is open.
        check(unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWPID) }, "enter a namespace of processes")
            .map(drop)
    }

    /// Returns the id of the first process of the programs' namespace.
    pub fn first_pid(&self) -> pid_t {
        self.init.0
    }

    /// Reads a file of a thread below `/proc` of the host, e.g. `status`.
    pub fn read_of(&self, tid: pid_t, name: &str) -> io::Result<String> {
        let path = self.path_of(tid, name);
        fs::read_to_string(path)
    }

    /// Returns the path of a file of a thread below `/proc` of the host.
    pub fn path_of(&self, tid: pid_t, name: &str) -> PathBuf {
        // The descriptor leads to the host's `/proc` through that of any mount.
        PathBuf::from(format!("/proc/self/fd/{}/{tid}/{name}", self.proc.as_raw_fd()))
    }
}

/// The first process of a namespace of processes, which ends with it.
struct Init(pid_t);

impl Drop for Init {
    fn drop(&mut self) {
        // It ends when somebody has waited for all others of its namespace, which end too.
        // SAFETY: it is a child of this process.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            loop {
                let ended = libc::waitpid(-1, ptr::null_mut(), libc::__WALL);
                let is_over = ended < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted;
                if ended == self.0 || is_over {
                    break;
                }
            }
        }
    }
}

/// Waits for the end of a child, whatever signals the controller gets.
unsafe fn wait_for(child: pid_t) {
    while libc::waitpid(child, ptr::null_mut(), libc::__WALL) < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Reads a number from a pipe, and closes it; None if nobody writes it.
unsafe fn read_number(gate: RawFd) -> Option<pid_t> {
    let mut number: pid_t = 0;
    let read = loop {
        let read = libc::read(gate, (&raw mut number).cast(), size_of::<pid_t>());
        if read >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break read;
        }
    };
    libc::close(gate);
    (read > 0).then_some(number)
}

/// Unmounts what is mounted at a path, and below it.
pub fn unmount(path: &Path) -> io::Result<()> {
    let target = text(path);
    // SAFETY: the text outlives the call.
    let result = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    check(result, &format!("unmount {}", path.display())).map(drop)
}

/// Starts the first process of the new namespace of process ids. It waits until it is killed, and takes orphans.
///
/// Only a process of this namespace can mount its `/proc`. With `last`, the namespace is a new one below that of the programs, which
/// counts this number as the last that it has given.
fn first_process(processes: &Path, last: Option<pid_t>) -> io::Result<pid_t> {
    let target = text(processes);
    let last = last.map(|last| last.to_string());
    let mut gate = [0; 2];
    // SAFETY: the children call functions that are safe after a fork only.
    unsafe {
        check(libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC), "pipe")?;
        let child = check(libc::fork(), "fork")?;
        if child == 0 {
            if last.is_some() {
                // Its child is one of the controller too.
                let made = if libc::unshare(libc::CLONE_NEWPID) < 0 {
                    -1
                } else {
                    libc::syscall(libc::SYS_clone, libc::CLONE_PARENT, 0, 0, 0, 0)
                };
                if made != 0 {
                    libc::_exit((made < 0).into());
                }
            }
            be_first(&target, last.as_deref(), gate[1]);
        }
        libc::close(gate[1]);
        if last.is_some() {
            wait_for(child);
        }
        read_number(gate[0])
            .ok_or_else(|| io::Error::other(format!("/proc could not be mounted at {}", processes.display())))
    }
}

/// Is the first process: tells the controller its id there, and waits.
unsafe fn be_first(processes: &CStr, last: Option<&str>, gate: RawFd) -> ! {
    let kind = c"proc".as_ptr();
    if libc::mount(kind, processes.as_ptr(), kind, 0, ptr::null()) < 0 {
        libc::_exit(1);
    }
    if let Some(last) = last {
        let given = libc::open(c"/proc/sys/kernel/ns_last_pid".as_ptr(), libc::O_WRONLY);
        if libc::write(given, last.as_ptr().cast(), last.len()) < 1 {
            libc::_exit(1);
        }
    }
    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    // `/proc` of the host has the ids by which the controller knows processes.
    let mut own = [0_u8; 16];
    libc::readlink(c"/proc/self".as_ptr(), own.as_mut_ptr().cast(), own.len() - 1);
    let pid: pid_t = own
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |pid, digit| 10 * pid + pid_t::from(digit - b'0'));
    if libc::write(gate, (&raw const pid).cast(), size_of::<pid_t>()) < 1 {
        libc::_exit(1); // the controller ended before it was heard of
    }
    libc::signal(libc::SIGCHLD, libc::SIG_IGN);
    libc::signal(libc::SIGINT, libc::SIG_IGN);
    libc::signal(libc::SIGTERM, libc::SIG_IGN);
    libc::close_range(0, u32::MAX, 0);
    loop {
        libc::pause();
    }
}

/// The pages from which the stand-in for the vDSO reads the time.
pub struct SharedPages {
    library: OwnedFd,
    pages: OwnedFd,
    memory: *mut u64,
    nodes: usize,
}

impl SharedPages {
    const NOW: usize = 0;
    const LIMIT: usize = 1;
    const COST: usize = 2;
    const READS: usize = 3;
    const MONOTONIC: usize = 4;
    const REALTIME: usize = 5;
    const PATH: usize = 64; // of bytes, in the page of a node, after what its clocks show

    /// Makes the pages for a number of nodes.
    pub fn new(nodes: usize, cost: u64, monotonic_start: u64, realtime_start: u64) -> io::Result<Self> {
        let size = PAGE as usize * (1 + nodes + fast::PAGES);
        let library = memory_file(c"vdso")?;
        File::from(library.try_clone()?).write_all(VDSO)?;
        let pages = memory_file(c"time")?;
        File::from(pages.try_clone()?).set_len(size as u64)?;
        // SAFETY: the mapping is new, and lives as long as the process.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                pages.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let made = Self { library, pages, memory: memory.cast(), nodes };
        made.set(Self::COST, cost);
        made.set(Self::MONOTONIC, monotonic_start);
        made.set(Self::REALTIME, realtime_start);
        Ok(made)
    }

    fn set(&self, place: usize, value: u64) {
        // SAFETY: the place is within the mapping. No program runs while the controller does.
        unsafe { self.memory.add(place).write_volatile(value) }
    }

    fn get(&self, place: usize) -> u64 {
        // SAFETY: as for `set`.
        unsafe { self.memory.add(place).read_volatile() }
    }

    /// Returns all that the pages have.
    pub fn content(&self) -> Vec<u64> {
        let words = PAGE as usize / 8 * (1 + self.nodes + fast::PAGES);
        // SAFETY: as for `set`.
        (0..words).map(|place| unsafe { self.memory.add(place).read_volatile() }).collect()
    }

    /// Puts back what `content` has returned.
    pub fn restore(&self, content: &[u64]) {
        content.iter().enumerate().for_each(|(place, word)| self.set(place, *word));
    }

    /// A thread runs: it may read the clock up to a time.
    pub fn begin(&self, now: u64, limit: u64) {
        self.set(Self::NOW, now);
        self.set(Self::LIMIT, limit);
    }

    /// Returns the time that the thread has reached.
    pub fn reached(&self) -> u64 {
        self.get(Self::NOW)
    }

    /// Returns how often programs read the clock here.
    pub fn reads(&self) -> u64 {
        self.get(Self::READS)
    }

    /// Returns how far the wall clock of a node is from the true time, as its programs read it.
    pub fn offset(&self, node: usize) -> i64 {
        self.get(PAGE as usize / 8 * (1 + node)) as i64
    }

    /// Sets how far the wall clock and the monotonic clock of a node are from the true time, and whether programs read them here.
    pub fn set_clock(&self, node: usize, offset: i64, lead: i64, is_right: bool) {
        let place = PAGE as usize / 8 * (1 + node);
        self.set(place, offset as u64);
        self.set(place + 1, lead as u64);
        self.set(place + 2, u64::from(!is_right));
    }

    /// Writes a path into the page of a node, for a call that its programs carry out at once.
    ///
    /// Returns where they find it; none if it is too long.
    pub fn lend_path(&self, node: usize, path: &str) -> Option<u64> {
        if path.len() + 1 > PAGE as usize - Self::PATH || path.contains('\0') {
            return None;
        }
        // SAFETY: as for `set`; the text and its end are within the page.
        unsafe {
            let place = self.memory.cast::<u8>().add(PAGE as usize * (1 + node) + Self::PATH);
            ptr::copy_nonoverlapping(path.as_ptr(), place, path.len());
            place.add(path.len()).write(0);
        }
        Some(OWN_PAGE + Self::PATH as u64)
    }

    /// Returns the pages with which programs answer calls, which are new.
    pub fn fast(&self, call: u64, brief: u64, later: u64) -> Fast {
        // SAFETY: the mapping has these pages after those of the nodes.
        let memory = unsafe { self.memory.add(PAGE as usize / 8 * (1 + self.nodes)) };
        Fast::new(memory, call, brief, later)
    }

    /// Maps the pages of a node and the library into a program that stands at its first instruction.
    pub fn map_into(&self, tid: pid_t, node: usize) -> io::Result<()> {
        let fixed = (libc::MAP_FIXED | libc::MAP_SHARED) as u64;
        let private = (libc::MAP_FIXED | libc::MAP_PRIVATE) as u64;
        let unless_used = (libc::MAP_FIXED_NOREPLACE | libc::MAP_SHARED) as u64;
        let (read, all, code) = (1, 3, 5);
        let written = PAGE * (1 + self.nodes as u64);
        let answers = written + PAGE * fast::WRITTEN_PAGES as u64;
        let answering = fast::CODE_AT.map(|at| (at, fast::CODE_PAGES, code, unless_used, PAGES_DESCRIPTOR, answers));
        let others = [
            (SHARED_PAGE, 1, all, fixed, PAGES_DESCRIPTOR, 0),
            (OWN_PAGE, 1, read, fixed, PAGES_DESCRIPTOR, PAGE * (1 + node as u64)),
            (LIBRARY, 1, code, private, LIBRARY_DESCRIPTOR, 0),
            (fast::WRITTEN, fast::WRITTEN_PAGES, all, fixed, PAGES_DESCRIPTOR, written),
        ];
        for (address, pages, rights, flags, descriptor, offset) in others.into_iter().chain(answering) {
            let arguments = [address, PAGE * pages as u64, rights, flags, descriptor as u64, offset];
            let result = tracee::call_in(tid, libc::SYS_mmap, arguments)?;
            if flags == unless_used && result == -i64::from(libc::EEXIST) {
                continue; // the program has something there, and its calls stop
            }
            if result != address as i64 {
                return Err(io::Error::other(format!("the page at {address:#x} could not be mapped: {result}")));
            }
        }
        Ok(())
    }
}

fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name outlives the call, and the descriptor is new.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC), "memfd_create")?)) }
}

/// Returns the filter: calls that pass, and a stop at all others.
fn filter(trace_all: bool) -> Vec<sock_filter> {
    let instruction = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    let mut program = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    let always = libc::SYS_rt_sigreturn; // it has no result
    for call in TABLE {
        if call.class == Class::Passes && (!trace_all || call.number == always) {
            if call.number == libc::SYS_mmap {
                // A shared mapping of a file stops, since its stores do not.
                program.extend([
                    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 4, call.number as u32),
                    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, FOURTH_ARGUMENT),
                    instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, libc::MAP_SHARED as u32),
                    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_TRACE),
                    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
                ]);
                continue;
            }
            program.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call.number as u32));
            program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
        }
    }
    program.push(instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_TRACE));
    program
}

/// A program to start.
pub struct Program {
    /// The root folder of its node.
    pub root: PathBuf,
    pub host: String,
    /// The working folder and the file of its output, as it sees them.
    pub folder: String,
    pub output: String,
    pub arguments: Vec<String>,
    pub environment: Vec<String>,
    pub trace_all: bool,
    /// Whether descriptors 0 and 1 stand for an object of the simulation.
    pub talks: bool,
    /// The namespace with the shared memory of its node; None: a new one.
    pub shared_memory: Option<RawFd>,
}

/// Starts a program. It stands at its exec then.
pub fn start(program: &Program, pages: Option<&SharedPages>) -> io::Result<pid_t> {
    let strings = |texts: &[String]| -> io::Result<Vec<CString>> {
        texts.iter().map(|text| CString::new(text.as_str()).map_err(io::Error::other)).collect()
    };
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (strings(&program.arguments)?, strings(&program.environment)?);
    let (argument_list, environment_list) = (pointers(&arguments), pointers(&environment));
    let others = strings(&[program.host.clone(), program.folder.clone(), program.output.clone()])?;
    let root = text(&program.root);
    let mut instructions = filter(program.trace_all);
    let filter = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
    let mut gate = [0; 2];
    // SAFETY: the pointers above outlive the child's use of them; the child calls functions that are safe after a fork only.
    unsafe {
        check(libc::pipe2(gate.as_mut_ptr(), libc::O_CLOEXEC), "pipe")?;
        let pid = check(libc::fork(), "fork")?;
        if pid == 0 {
            libc::close(gate[1]);
            let step = prepare(&root, &others, gate[0], pages, &filter, program);
            if step == 0 {
                libc::execve(argument_list[0], argument_list.as_ptr(), environment_list.as_ptr());
            }
            libc::_exit(if step == 0 { 127 } else { step });
        }
        libc::close(gate[0]);
        let seized = tracee::seize(pid);
        libc::write(gate[1], [0_u8; 1].as_ptr().cast(), 1);
        libc::close(gate[1]);
        seized?;
        loop {
            match tracee::wait_on(pid)? {
                Stop::Executed => return Ok(pid),
                Stop::Ended(status) => {
                    return Err(io::Error::other(format!(
                        "{} cannot be started: the step {} of its start failed",
                        program.arguments[0],
                        libc::WEXITSTATUS(status)
                    )));
                }
                Stop::Signal(signal) => tracee::resume(pid, Until::Stops, signal)?,
                _ => tracee::resume(pid, Until::Stops, 0)?,
            }
        }
    }
}

/// Prepares the child. Returns 0, or the number of the step that failed.
unsafe fn prepare(
    root: &CStr,
    others: &[CString],
    gate: i32,
    pages: Option<&SharedPages>,
    filter: &libc::sock_fprog,
    program: &Program,
) -> i32 {
    let [host, folder, output] = others else { return 100 };
    if libc::unshare(libc::CLONE_NEWUTS) < 0 || libc::sethostname(host.as_ptr(), host.as_bytes().len()) < 0 {
        return 101;
    }
    let shares = match program.shared_memory {
        Some(space) => libc::setns(space, libc::CLONE_NEWIPC),
        None => libc::unshare(libc::CLONE_NEWIPC),
    };
    if shares < 0 {
        return 106;
    }
    if libc::chroot(root.as_ptr()) < 0 || libc::chdir(folder.as_ptr()) < 0 {
        return 102;
    }
    libc::setsid();
    let out = libc::open(output.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, 0o644);
    let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
    if out < 0 || null < 0 {
        return 103;
    }
    let mut byte = 0_u8;
    if libc::read(gate, (&raw mut byte).cast(), 1) < 1 {
        return 105; // the controller ended before it had seized this process
    }
    let talks = program.talks;
    let both = if talks { libc::eventfd(0, 0) } else { -1 }; // as all descriptors of objects
    libc::dup2(if talks { both } else { null }, 0);
    libc::dup2(if talks { both } else { out }, 1);
    libc::dup2(out, 2);
    if let Some(pages) = pages {
        libc::dup2(pages.library.as_raw_fd(), LIBRARY_DESCRIPTOR);
        libc::dup2(pages.pages.as_raw_fd(), PAGES_DESCRIPTOR);
        libc::close_range(3, LIBRARY_DESCRIPTOR as u32 - 1, 0);
        libc::close_range(PAGES_DESCRIPTOR as u32 + 1, u32::MAX, 0);
    } else {
        libc::close_range(3, u32::MAX, 0);
    }
    libc::personality(libc::ADDR_NO_RANDOMIZE as c_ulong);
    libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV);
    libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    for signal in 1..32 {
        libc::signal(signal, libc::SIG_DFL);
    }
    let mut none: libc::sigset_t = std::mem::zeroed();
    libc::sigemptyset(&raw mut none);
    libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    for (resource, limit) in LIMITS {
        let both = libc::rlimit { rlim_cur: *limit, rlim_max: *limit };
        libc::setrlimit(*resource, &raw const both);
    }
    libc::setgroups(0, ptr::null());
    libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::from_ref(filter)) < 0 {
        return 104;
    }
    0
}
