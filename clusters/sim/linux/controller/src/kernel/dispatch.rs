//! What each system call does: the one place where a call meets its handler.

use libc::{c_int, c_long, EAGAIN, EBADF, EFAULT, EINVAL, ENOTTY};

use super::names::Name;
use super::objects::{Kind, READABLE};
use super::signals::RECORD;
use super::streams::MOST_AT_ONCE;
use super::{Fatal, Kernel, ObjectId, Run, ThreadId, Wait};
use crate::calls::{self, Class};
use crate::start;
use crate::tracee::{self, Registers};

/// What becomes of a call.
#[derive(Debug)]
pub enum Outcome {
    /// It returns this, without the kernel.
    Value(i64),
    /// It runs as it is.
    Native,
    /// It runs, perhaps with other registers, and something follows its end.
    Natively(Option<Box<Registers>>, After),
    /// The thread waits.
    Block,
    /// A signal has come: the kernel makes the call again, if the handler asks for that, and else it fails.
    Interrupted,
    /// It returns this when the thread runs again; others may run first.
    Yield(i64),
    Exit,
    ExitGroup,
}

/// What follows a call that ran in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// It made the descriptor of `Thread::opening`.
    Opened,
    /// It made a pipe or a pair of sockets, with these flags.
    MadePipe(c_int),
    MadePair(c_int),
    /// It mapped a file.
    Mapped,
    /// It made the file of the Unix socket of `Thread::binding`.
    Bound,
    /// It made another descriptor of the same file; whether an exec closes it.
    Duplicated(bool),
    /// It wrote the state of a file here; the object behind the file, if it is simulated.
    Stat(u64, Option<ObjectId>),
    Statx(u64),
    Statfs(u64),
    /// It wrote the entries of a folder, or the text of a link here.
    Entries(u64),
    Link(u64),
    /// It read these bytes of a file.
    Read(u64),
    /// It took signals from a descriptor, or one without a handler; it wrote here what they say.
    SignalsRead(u64),
    SignalTaken(u64),
    /// It wrote the state of shared memory here.
    SharedMemory(u64),
    Waited,
    /// It asked for a lock of a file, and did not wait for it.
    Locked,
    /// It sent a signal to a process or a thread.
    Signalled {
        number: i32,
        signal: c_int,
        is_thread: bool,
    },
}

/// Returns the outcome of a call that fails.
pub fn failed(error: c_int) -> Outcome {
    Outcome::Value(-i64::from(error))
}

/// Runs a call in the kernel as it is.
pub(super) fn natively(after: After) -> Outcome {
    Outcome::Natively(None, after)
}

/// Each yield in a row takes twice as long as the one before, up to about a millisecond: such a thread waits for another one.
const MOST_YIELDS: u32 = 10;
const NO_NICENESS: i64 = 20; // of a process that is not nice: getpriority(2) of the kernel
const MESSAGE_SIZE: usize = 56; // of a msghdr
const CONTROL_SIZE: u64 = 40; // its offset in a msghdr
const MANY_MESSAGE_SIZE: u64 = 64; // of an mmsghdr
const FIONBIO: u64 = 0x5421;
const FIONREAD: u64 = 0x541b;
const FIONCLEX: u64 = 0x5450;
const FIOCLEX: u64 = 0x5451;
const ALL_PROCESSES: i32 = -1; // of kill(2)
const SHM_STAT: c_int = 13; // of shmctl(2), as the next one
const SHM_STAT_ANY: c_int = 15;
const CLOSE_AT_EXEC: u64 = 4; // CLOSE_RANGE_CLOEXEC

impl Kernel {
    /// Returns the simulated object behind a descriptor of a thread.
    pub(super) fn object(&self, thread: ThreadId, descriptor: u64) -> Option<ObjectId> {
        let process = self.threads[thread].process;
        self.processes[process].descriptors.get(&(descriptor as i32)).map(|descriptor| descriptor.object)
    }

    /// Returns whether the kernel knows a descriptor.
    pub(super) fn is_native(&self, thread: ThreadId, descriptor: u64) -> bool {
        let name = format!("fd/{}", descriptor as i32);
        self.root.path_of(self.threads[thread].tid, &name).symlink_metadata().is_ok()
    }

    /// Lets the kernel make a descriptor that stands for an object: the call becomes that of an eventfd.
    pub(super) fn new_descriptor(&mut self, thread: ThreadId, object: ObjectId, closes_at_exec: bool) -> Outcome {
        let mut registers = self.threads[thread].registers;
        registers.orig_rax = libc::SYS_eventfd2 as u64;
        registers.rdi = 0;
        // A call that the controller lets pass must not wait in it.
        registers.rsi = (libc::EFD_NONBLOCK | if closes_at_exec { libc::EFD_CLOEXEC } else { 0 }) as u64;
        self.threads[thread].opening = Some((object, closes_at_exec));
        Outcome::Natively(Some(Box::new(registers)), After::Opened)
    }

    /// Handles the call before which a thread stands. `again`: it has waited in this call already.
    pub(super) fn handle(&mut self, thread: ThreadId, again: bool) -> Run<Outcome> {
        let registers = self.threads[thread].registers;
        let number = registers.orig_rax as c_long;
        let Some(call) = calls::find(number) else {
            let process = &self.processes[self.threads[thread].process];
            return Err(Fatal(format!(
                "{} on {} makes the system call {number}, which the simulation does not know; registers: {:#x}, {:#x}, {:#x}",
                process.program, self.nodes[process.node].name, registers.rdi, registers.rsi, registers.rdx
            )));
        };
        if number == libc::SYS_mmap {
            self.keep_mapping(thread, &registers);
            if self.disks[self.threads[thread].node].page_rules > 0 {
                return Ok(natively(After::Mapped));
            }
        }
        match call.class {
            Class::Passes => return Ok(Outcome::Native),
            Class::Refused(error) => return Ok(failed(error)),
            Class::Handled => {}
        }
        if number == libc::SYS_kill && registers.rdi as i32 == ALL_PROCESSES {
            let process = &self.processes[self.threads[thread].process];
            return Err(Fatal(format!(
                "{} on {} sends a signal to all processes, and those of other nodes would get it too",
                process.program, self.nodes[process.node].name
            )));
        }
        if matches!(number, libc::SYS_execve | libc::SYS_execveat) {
            self.check_alone(thread)?;
        }
        if number != libc::SYS_sched_yield {
            self.threads[thread].yields = 0;
        }
        if self.threads[thread].pieces > 0 && !self.is_work(thread, number, &registers) {
            self.threads[thread].pieces = 0;
        }
        if !again && !self.disks[self.threads[thread].node].rules.is_empty() {
            if let Some(outcome) = self.fails(thread, number, &registers) {
                return Ok(outcome);
            }
        }
        self.set_mask(thread, &registers);
        let outcome = self.answer(thread, number, &registers, again);
        let ends_wait = match outcome {
            Outcome::Block => true,
            Outcome::Value(0) => {
                matches!(number, libc::SYS_poll | libc::SYS_ppoll | libc::SYS_select | libc::SYS_pselect6)
            }
            _ => false,
        };
        Ok(if ends_wait { self.signal_instead(thread).unwrap_or(outcome) } else { outcome })
    }

    #[allow(clippy::cognitive_complexity)] // a table of calls is long
    fn answer(&mut self, thread: ThreadId, number: c_long, registers: &Registers, again: bool) -> Outcome {
        let tid = self.threads[thread].tid;
        let node = self.threads[thread].node;
        let (one, two, three, four) = (registers.rdi, registers.rsi, registers.rdx, registers.r10);
        match number {
            // Time.
            libc::SYS_clock_gettime if self.works(thread) => Outcome::Block,
            libc::SYS_clock_gettime => self.clock_gettime(thread, registers),
            libc::SYS_clock_getres => self.clock_getres(thread, registers),
            libc::SYS_gettimeofday => self.gettimeofday(thread, registers),
            libc::SYS_time => self.time(thread, registers),
            libc::SYS_nanosleep => self.sleep(thread, libc::CLOCK_MONOTONIC, false, one),
            libc::SYS_clock_nanosleep => self.sleep(thread, one as c_int, two & 1 != 0, three),
            libc::SYS_times => self.times(thread, registers),
            libc::SYS_getrusage => self.getrusage(thread, registers),
            libc::SYS_sysinfo => self.sysinfo(thread, one),
            libc::SYS_timerfd_create => {
                let timer = Kind::Timer { clock: one as c_int, next: 0, interval: 0, expired: 0, turn: 0 };
                let object = self.make(node, timer, two as c_int & libc::O_NONBLOCK != 0);
                self.new_descriptor(thread, object, two as c_int & libc::O_CLOEXEC != 0)
            }
            libc::SYS_timerfd_settime => self.timerfd_settime(thread, registers),
            libc::SYS_timerfd_gettime => self.timerfd_gettime(thread, registers),
            // Chance and processors.
            libc::SYS_getrandom => {
                let process = self.threads[thread].process;
                let bytes = self.processes[process].chance.bytes((two as usize).min(MOST_AT_ONCE));
                if tracee::write(tid, one, &bytes) {
                    Outcome::Value(bytes.len() as i64)
                } else {
                    failed(EFAULT)
                }
            }
            libc::SYS_sched_getaffinity => {
                if two < 8 || !tracee::write_u64(tid, three, 1) {
                    failed(EINVAL)
                } else {
                    Outcome::Value(8)
                }
            }
            libc::SYS_getpriority => Outcome::Value(NO_NICENESS),
            libc::SYS_sched_setaffinity
            | libc::SYS_sched_setscheduler
            | libc::SYS_sched_setparam
            | libc::SYS_set_mempolicy
            | libc::SYS_mbind => Outcome::Value(0),
            libc::SYS_getcpu => {
                for address in [one, two].into_iter().filter(|address| *address != 0) {
                    tracee::write_u32(tid, address, 0);
                }
                Outcome::Value(0)
            }
            libc::SYS_sched_yield => {
                let yields = &mut self.threads[thread].yields;
                *yields = (*yields + 1).min(MOST_YIELDS);
                self.now += self.settings.call << *yields;
                Outcome::Yield(0)
            }
            libc::SYS_futex => self.futex(thread, registers),
            // Threads, processes and signals.
            libc::SYS_set_tid_address => {
                self.threads[thread].clear_tid = one;
                natively(After::Nothing)
            }
            libc::SYS_clone => {
                self.threads[thread].making = (one, four);
                Outcome::Native
            }
            libc::SYS_clone3 => {
                let word = |offset| tracee::read_u64(tid, one + offset).unwrap_or(0);
                self.threads[thread].making = (word(0), word(16));
                Outcome::Native
            }
            libc::SYS_fork | libc::SYS_vfork => {
                let flags = if number == libc::SYS_vfork { libc::CLONE_VM as u64 } else { 0 };
                self.threads[thread].making = (flags, 0);
                Outcome::Native
            }
            libc::SYS_execve | libc::SYS_execveat => Outcome::Native,
            libc::SYS_exit => Outcome::Exit,
            libc::SYS_exit_group => Outcome::ExitGroup,
            libc::SYS_wait4 => self.wait_for_child(thread, one as i32, three as c_int),
            libc::SYS_waitid => self.wait_for_child(thread, -1, four as c_int),
            libc::SYS_kill => {
                natively(After::Signalled { number: one as i32, signal: two as c_int, is_thread: false })
            }
            libc::SYS_tkill => {
                natively(After::Signalled { number: one as i32, signal: two as c_int, is_thread: true })
            }
            libc::SYS_tgkill => {
                natively(After::Signalled { number: two as i32, signal: three as c_int, is_thread: true })
            }
            libc::SYS_rt_sigsuspend | libc::SYS_pause => {
                self.block(thread, Wait::Signals(0), None);
                Outcome::Block
            }
            libc::SYS_rt_sigtimedwait => self.wait_for_signal(thread, registers, again),
            libc::SYS_signalfd | libc::SYS_signalfd4 => self.signalfd(thread, number, registers),
            libc::SYS_getitimer => self.getitimer(thread, registers),
            libc::SYS_setitimer => self.setitimer(thread, registers),
            libc::SYS_alarm => self.alarm(thread, registers),
            libc::SYS_shmctl => natively(match two as c_int {
                libc::IPC_STAT | SHM_STAT | SHM_STAT_ANY => After::SharedMemory(three),
                _ => After::Nothing,
            }),
            // Descriptors.
            libc::SYS_read | libc::SYS_readv | libc::SYS_recvfrom => self.read_call(thread, number, registers),
            libc::SYS_recvmsg => self.receive_message(thread, registers),
            libc::SYS_write | libc::SYS_writev | libc::SYS_sendto => self.write_call(thread, number, registers),
            libc::SYS_sendmsg => self.send_message(thread, registers),
            libc::SYS_sendmmsg => self.send_messages(thread, registers),
            libc::SYS_sendfile => self.send_file(thread, registers),
            libc::SYS_lseek => match self.object(thread, one).map(|object| &self.objects[object].kind) {
                Some(Kind::Stream(_) | Kind::Datagrams(_) | Kind::Pipe { .. }) => failed(libc::ESPIPE),
                _ => Outcome::Native,
            },
            // Children of Java close all descriptors before they execute a program, which still needs these.
            libc::SYS_close if start::DESCRIPTORS.contains(&(one as i32)) => Outcome::Value(0),
            libc::SYS_close => {
                self.close_descriptor(thread, one as i32);
                natively(After::Nothing)
            }
            libc::SYS_close_range => {
                let process = self.threads[thread].process;
                let (first, last) = (one as i32, i32::try_from(two).unwrap_or(i32::MAX));
                let chosen: Vec<i32> =
                    self.processes[process].descriptors.range(first..=last).map(|(number, _)| *number).collect();
                for number in chosen {
                    if three & CLOSE_AT_EXEC == 0 {
                        self.close_descriptor(thread, number);
                    } else if let Some(descriptor) = self.processes[process].descriptors.get_mut(&number) {
                        descriptor.closes_at_exec = true;
                    }
                }
                natively(After::Nothing)
            }
            libc::SYS_dup | libc::SYS_dup2 => natively(After::Duplicated(false)),
            libc::SYS_dup3 => natively(After::Duplicated(three as c_int & libc::O_CLOEXEC != 0)),
            libc::SYS_fcntl => self.fcntl(thread, registers),
            libc::SYS_flock => {
                let mut changed = *registers;
                changed.rsi |= libc::LOCK_NB as u64;
                Outcome::Natively(Some(Box::new(changed)), After::Locked)
            }
            libc::SYS_ioctl => self.ioctl(thread, registers),
            libc::SYS_pipe => natively(After::MadePipe(0)),
            libc::SYS_pipe2 => natively(After::MadePipe(two as c_int)),
            libc::SYS_socketpair => natively(After::MadePair(two as c_int)), // the kernel knows Unix sockets alone
            libc::SYS_eventfd | libc::SYS_eventfd2 => {
                let flags = if number == libc::SYS_eventfd2 { two as c_int } else { 0 };
                let event = Kind::Event { count: one & 0xffff_ffff, is_semaphore: flags & libc::EFD_SEMAPHORE != 0 };
                let object = self.make(node, event, flags & libc::O_NONBLOCK != 0);
                self.new_descriptor(thread, object, flags & libc::O_CLOEXEC != 0)
            }
            // Sockets.
            libc::SYS_socket => self.socket(thread, registers),
            libc::SYS_bind
            | libc::SYS_listen
            | libc::SYS_accept
            | libc::SYS_accept4
            | libc::SYS_connect
            | libc::SYS_getsockname
            | libc::SYS_getpeername
            | libc::SYS_setsockopt
            | libc::SYS_getsockopt
            | libc::SYS_shutdown => match self.socket_of(thread, one) {
                Err(error) => failed(error),
                Ok(object) => match number {
                    libc::SYS_bind => self.bind(thread, object, registers),
                    libc::SYS_listen => self.listen(thread, object, two as c_int),
                    libc::SYS_accept => self.accept(thread, object, registers, 0),
                    libc::SYS_accept4 => self.accept(thread, object, registers, four as c_int),
                    libc::SYS_connect => self.connect(thread, object, registers),
                    libc::SYS_getsockname => self.socket_name(thread, object, registers, false),
                    libc::SYS_getpeername => self.socket_name(thread, object, registers, true),
                    libc::SYS_setsockopt => self.setsockopt(thread, object, registers),
                    libc::SYS_getsockopt => self.getsockopt(thread, object, registers),
                    _ => self.shutdown(object, two as c_int),
                },
            },
            // Waiting.
            libc::SYS_poll => self.poll(thread, registers, Self::millis(three), again),
            libc::SYS_ppoll => match self.timeout_at(thread, three) {
                Err(error) => failed(error),
                Ok(timeout) => self.poll(thread, registers, timeout, again),
            },
            libc::SYS_select | libc::SYS_pselect6 => {
                let timeout = if number == libc::SYS_select {
                    self.timeval_at(thread, registers.r8)
                } else {
                    self.timeout_at(thread, registers.r8)
                };
                match timeout {
                    Err(error) => failed(error),
                    Ok(timeout) => self.select(thread, registers, timeout, again),
                }
            }
            libc::SYS_epoll_create | libc::SYS_epoll_create1 => {
                let epoll = Kind::Epoll {
                    interests: std::collections::BTreeMap::new(),
                    ready: std::collections::VecDeque::new(),
                };
                let object = self.make(node, epoll, false);
                self.new_descriptor(
                    thread,
                    object,
                    number == libc::SYS_epoll_create1 && one as c_int & libc::O_CLOEXEC != 0,
                )
            }
            libc::SYS_epoll_ctl => self.epoll_ctl(thread, registers),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => {
                self.epoll_wait(thread, registers, Self::millis(four), again)
            }
            libc::SYS_epoll_pwait2 => match self.timeout_at(thread, four) {
                Err(error) => failed(error),
                Ok(timeout) => self.epoll_wait(thread, registers, timeout, again),
            },
            _ => self.file_call(thread, number, registers, again),
        }
    }

    fn sysinfo(&self, thread: ThreadId, address: u64) -> Outcome {
        const MEMORY: u64 = 8 << 30;
        const FREE: u64 = 6 << 30;
        const PROCESSES: u8 = 100;
        let mut info = vec![0; 112];
        info[..8].copy_from_slice(&(self.monotonic(self.threads[thread].node) / super::SECOND).to_le_bytes());
        info[32..40].copy_from_slice(&MEMORY.to_le_bytes());
        info[40..48].copy_from_slice(&FREE.to_le_bytes());
        info[80] = PROCESSES;
        info[104] = 1; // the unit is a byte
        if tracee::write(self.threads[thread].tid, address, &info) {
            Outcome::Value(0)
        } else {
            failed(EFAULT)
        }
    }

    /// Returns the object on which a call reads or writes; None for a file. A call of sockets takes a socket only.
    fn object_of(
        &self,
        thread: ThreadId,
        registers: &Registers,
        takes_socket: bool,
    ) -> Result<Option<ObjectId>, c_int> {
        if takes_socket {
            self.socket_of(thread, registers.rdi).map(Some)
        } else {
            Ok(self.object(thread, registers.rdi))
        }
    }

    fn read_call(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Outcome {
        let object = match self.object_of(thread, registers, number == libc::SYS_recvfrom) {
            Ok(Some(object)) => object,
            Ok(None) => return natively(After::Read(if number == libc::SYS_read { registers.rsi } else { 0 })),
            Err(error) => return failed(error),
        };
        let (parts, flags) = match number {
            libc::SYS_readv => match self.parts(thread, registers.rsi, registers.rdx) {
                None => return failed(EFAULT),
                Some(parts) => (parts, 0),
            },
            libc::SYS_read => (vec![(registers.rsi, registers.rdx as usize)], 0),
            _ => (vec![(registers.rsi, registers.rdx as usize)], registers.r10 as c_int),
        };
        let kind = &self.objects[object].kind;
        if let (Kind::Signals { set }, Some((address, _))) = (kind, parts.first()) {
            let takes_none = parts.iter().map(|(_, size)| size).sum::<usize>() < RECORD;
            return if takes_none || self.pending(thread) & set != 0 {
                natively(After::SignalsRead(*address))
            } else {
                self.nothing_yet(thread, object, flags)
            };
        }
        let is_empty = parts.iter().all(|(_, size)| *size == 0);
        if number == libc::SYS_readv
            && is_empty
            && !matches!(kind, Kind::Epoll { .. } | Kind::Pipe { is_writer: true, .. })
            || number == libc::SYS_read && is_empty && matches!(kind, Kind::Stream(_) | Kind::Datagrams(_))
        {
            return Outcome::Value(0);
        }
        if matches!(kind, Kind::Datagrams(_)) {
            let (name, size_at) = if number == libc::SYS_recvfrom { (registers.r8, registers.r9) } else { (0, 0) };
            return self.receive_datagram(thread, object, &parts, flags, name, size_at);
        }
        self.read_into(thread, object, &parts, flags)
    }

    fn receive_datagram(
        &mut self,
        thread: ThreadId,
        object: ObjectId,
        parts: &super::streams::Parts,
        flags: c_int,
        name: u64,
        size_at: u64,
    ) -> Outcome {
        let Kind::Datagrams(datagrams) = &mut self.objects[object].kind else { return failed(EBADF) };
        if datagrams.error != 0 {
            return failed(std::mem::take(&mut datagrams.error));
        }
        let first = if flags & libc::MSG_PEEK == 0 {
            datagrams.received.pop_front()
        } else {
            datagrams.received.front().cloned()
        };
        let Some((from, bytes)) = first else {
            if self.objects[object].is_nonblocking
                || flags & libc::MSG_DONTWAIT != 0
                || self.threads[thread].timed_out
            {
                return failed(EAGAIN);
            }
            self.block(thread, Wait::Ready(vec![(object, READABLE)]), None);
            return Outcome::Block;
        };
        let most: usize = parts.iter().map(|(_, size)| size).sum();
        let count = bytes.len().min(most);
        self.digest.bytes(&bytes[..count]);
        if !self.scatter(thread, parts, &bytes[..count]) {
            return failed(EFAULT);
        }
        let family = self.family_of(object);
        if family == libc::AF_UNIX {
            self.made_room(object);
        }
        self.put_name(thread, name, size_at, family, &from);
        self.threads[thread].is_cut = count < bytes.len();
        Outcome::Value(if flags & libc::MSG_TRUNC == 0 { count } else { bytes.len() } as i64)
    }

    /// Reads a msghdr: the name, the size of the name, and the parts.
    fn message(&self, thread: ThreadId, address: u64) -> Option<(u64, u64, super::streams::Parts)> {
        let header = tracee::read(self.threads[thread].tid, address, MESSAGE_SIZE)?;
        let parts = self.parts(thread, tracee::u64_at(&header, 16), tracee::u64_at(&header, 24))?;
        Some((tracee::u64_at(&header, 0), tracee::u32_at(&header, 8).into(), parts))
    }

    fn receive_message(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let (message, flags) = (registers.rsi, registers.rdx as c_int);
        let object = match self.socket_of(thread, registers.rdi) {
            Ok(object) => object,
            Err(error) => return failed(error),
        };
        let Some((name, _, parts)) = self.message(thread, message) else { return failed(EFAULT) };
        self.threads[thread].is_cut = false;
        let outcome = if matches!(self.objects[object].kind, Kind::Datagrams(_)) {
            self.receive_datagram(thread, object, &parts, flags, name, message + 8)
        } else {
            self.read_into(thread, object, &parts, flags)
        };
        if matches!(outcome, Outcome::Value(count) if count >= 0) {
            let tid = self.threads[thread].tid;
            tracee::write_u64(tid, message + 40, 0); // no control data
            tracee::write_u32(
                tid,
                message + 48,
                if self.threads[thread].is_cut { libc::MSG_TRUNC as u32 } else { 0 },
            );
        }
        outcome
    }

    fn write_call(&mut self, thread: ThreadId, number: c_long, registers: &Registers) -> Outcome {
        let object = match self.object_of(thread, registers, number == libc::SYS_sendto) {
            Ok(Some(object)) => object,
            Ok(None) => return self.write_file(thread, number, registers),
            Err(error) => return failed(error),
        };
        let mut to: Option<Name> = None;
        let mut flags = 0;
        let parts = match number {
            libc::SYS_writev => match self.parts(thread, registers.rsi, registers.rdx) {
                None => return failed(EFAULT),
                Some(parts) => parts,
            },
            libc::SYS_sendto => {
                flags = registers.r10 as c_int;
                if registers.r8 != 0 {
                    match self.destination(thread, object, registers.r8, registers.r9) {
                        Ok(address) => to = address,
                        Err(error) => return failed(error),
                    }
                }
                vec![(registers.rsi, registers.rdx as usize)]
            }
            _ => vec![(registers.rsi, registers.rdx as usize)],
        };
        let kind = &self.objects[object].kind;
        if number == libc::SYS_writev
            && !matches!(kind, Kind::Epoll { .. } | Kind::Timer { .. } | Kind::Pipe { is_writer: false, .. })
        {
            let parts: Vec<_> = parts.iter().copied().filter(|(_, size)| *size > 0).collect();
            if parts.is_empty() {
                return Outcome::Value(0);
            }
            if parts.len() > 1 && matches!(kind, Kind::Event { .. }) {
                return self.add_parts(thread, object, parts);
            }
        }
        match self.gather(thread, &parts, MOST_AT_ONCE) {
            None => failed(EFAULT),
            Some(bytes) => self.write_from(thread, object, &bytes, flags, to),
        }
    }

    /// Adds each of several numbers to an eventfd, until one is refused.
    fn add_parts(&mut self, thread: ThreadId, object: ObjectId, parts: super::streams::Parts) -> Outcome {
        let mut done = 0;
        for part in parts {
            let Some(bytes) = self.gather(thread, &vec![part], MOST_AT_ONCE) else { return failed(EFAULT) };
            match self.write_from(thread, object, &bytes, 0, None) {
                Outcome::Value(count) if count > 0 => done += count,
                refused if done == 0 => return refused,
                _ => break,
            }
        }
        Outcome::Value(done)
    }

    fn send_one(&mut self, thread: ThreadId, object: ObjectId, message: u64, flags: c_int) -> Outcome {
        let Some((name, size, parts)) = self.message(thread, message) else { return failed(EFAULT) };
        // Descriptors and credentials do not pass.
        if self.family_of(object) == libc::AF_UNIX
            && tracee::read_u64(self.threads[thread].tid, message + CONTROL_SIZE).is_some_and(|size| size > 0)
        {
            return failed(EINVAL);
        }
        let to = match name {
            0 => None,
            name => match self.destination(thread, object, name, size) {
                Ok(address) => address,
                Err(error) => return failed(error),
            },
        };
        match self.gather(thread, &parts, MOST_AT_ONCE) {
            None => failed(EFAULT),
            Some(bytes) => self.write_from(thread, object, &bytes, flags, to),
        }
    }

    fn send_message(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        match self.socket_of(thread, registers.rdi) {
            Err(error) => failed(error),
            Ok(object) => self.send_one(thread, object, registers.rsi, registers.rdx as c_int),
        }
    }

    fn send_messages(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let object = match self.socket_of(thread, registers.rdi) {
            Ok(object) => object,
            Err(error) => return failed(error),
        };
        let flags = registers.r10 as c_int | libc::MSG_DONTWAIT;
        for place in 0..registers.rdx {
            let message = registers.rsi + place * MANY_MESSAGE_SIZE;
            match self.send_one(thread, object, message, flags) {
                Outcome::Value(count) if count >= 0 => {
                    tracee::write_u32(self.threads[thread].tid, message + MESSAGE_SIZE as u64, count as u32);
                }
                refused if place == 0 => return refused,
                _ => return Outcome::Value(place as i64),
            }
        }
        Outcome::Value(registers.rdx as i64)
    }

    /// Forgets a simulated descriptor of a process.
    fn close_descriptor(&mut self, thread: ThreadId, number: i32) {
        let process = self.threads[thread].process;
        if let Some(descriptor) = self.processes[process].descriptors.remove(&number) {
            self.release(descriptor.object);
        }
    }

    /// A descriptor of a process stands for an object from now on.
    pub(super) fn set_descriptor(&mut self, thread: ThreadId, number: i32, object: ObjectId, closes_at_exec: bool) {
        self.objects[object].references += 1;
        self.close_descriptor(thread, number);
        let process = self.threads[thread].process;
        self.processes[process].descriptors.insert(number, super::Descriptor { object, closes_at_exec });
    }

    fn fcntl(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let process = self.threads[thread].process;
        let argument = registers.rdx as c_int;
        match (self.object(thread, registers.rdi), registers.rsi as c_int) {
            (Some(object), libc::F_GETFL) => {
                let flags = if self.objects[object].is_nonblocking { libc::O_NONBLOCK } else { 0 };
                let access = match self.objects[object].kind {
                    Kind::Pipe { is_writer: true, .. } => libc::O_WRONLY,
                    Kind::Pipe { .. } | Kind::Random => libc::O_RDONLY,
                    _ => libc::O_RDWR,
                };
                Outcome::Value((access | flags).into())
            }
            (Some(object), libc::F_SETFL) => {
                self.objects[object].is_nonblocking = argument & libc::O_NONBLOCK != 0;
                Outcome::Value(0)
            }
            (_, libc::F_DUPFD) => natively(After::Duplicated(false)),
            (_, libc::F_DUPFD_CLOEXEC) => natively(After::Duplicated(true)),
            (Some(_), libc::F_SETFD) => {
                if let Some(descriptor) = self.processes[process].descriptors.get_mut(&(registers.rdi as i32)) {
                    descriptor.closes_at_exec = argument & libc::FD_CLOEXEC != 0;
                }
                natively(After::Nothing)
            }
            (None, command @ (libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW)) => {
                let is_own = matches!(command, libc::F_OFD_SETLK | libc::F_OFD_SETLKW);
                let mut changed = *registers;
                changed.rsi = if is_own { libc::F_OFD_SETLK } else { libc::F_SETLK } as u64;
                Outcome::Natively(Some(Box::new(changed)), After::Locked)
            }
            // A lease would let another thread wait in its open.
            (None, libc::F_SETLEASE) => failed(EINVAL),
            _ => natively(After::Nothing),
        }
    }

    fn ioctl(&mut self, thread: ThreadId, registers: &Registers) -> Outcome {
        let tid = self.threads[thread].tid;
        let process = self.threads[thread].process;
        let Some(object) = self.object(thread, registers.rdi) else { return natively(After::Nothing) };
        match registers.rsi {
            FIONBIO => {
                self.objects[object].is_nonblocking =
                    tracee::read_u32(tid, registers.rdx).is_some_and(|flag| flag != 0);
                Outcome::Value(0)
            }
            FIONREAD => {
                let count = match &self.objects[object].kind {
                    Kind::Stream(stream) if stream.phase == super::Phase::Listening => return failed(EINVAL),
                    Kind::Stream(stream) => stream.received.len(),
                    Kind::Datagrams(datagrams) => datagrams.received.front().map_or(0, |(_, bytes)| bytes.len()),
                    Kind::Pipe { buffer, .. } => match &self.objects[*buffer].kind {
                        Kind::Buffer { bytes, .. } => bytes.len(),
                        _ => 0,
                    },
                    Kind::Epoll { .. } => return failed(EINVAL),
                    _ => return failed(ENOTTY),
                };
                tracee::write_u32(tid, registers.rdx, count as u32);
                Outcome::Value(0)
            }
            request @ (FIOCLEX | FIONCLEX) => {
                if let Some(descriptor) = self.processes[process].descriptors.get_mut(&(registers.rdi as i32)) {
                    descriptor.closes_at_exec = request == FIOCLEX;
                }
                natively(After::Nothing)
            }
            _ if matches!(self.objects[object].kind, Kind::Stream(_) | Kind::Datagrams(_)) => {
                self.interface_call(thread, registers)
            }
            _ => failed(ENOTTY),
        }
    }
}
