//! Processes and threads: their start, their children, their end, and signals.
//!
//! The kernel keeps ids, memory, signal handlers and masks. Here is only what it must not decide by itself: who runs, and who waits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;

use libc::{c_int, pid_t};

use super::dispatch::{natively, After, Outcome};
use super::loads::Memory;
use super::signals::{Alarm, Coming};
use super::{
    Descriptor, Fatal, Kernel, NodeId, ObjectId, Process, ProcessId, Resume, Run, State, Thread, ThreadId, Wait,
};
use crate::chance::Chance;
use crate::processor;
use crate::start::{self, Program, LIBRARY};
use crate::tracee::{self, Stop, Until};

/// Entries of the auxiliary vector that a program gets; see getauxval(3).
const AT_IGNORE: u64 = 1;
const AT_RANDOM: u64 = 25;
const AT_RSEQ_FEATURE_SIZE: u64 = 27;
const AT_RSEQ_ALIGN: u64 = 28;
const AT_SYSINFO_EHDR: u64 = 33;

/// Returns what the draws of a process are for.
pub(super) fn purpose(process: ProcessId) -> String {
    format!("process {process}")
}

impl Kernel {
    /// Starts a program on a node; it runs when the scheduler picks it.
    ///
    /// Its standard input and output are the object `talks`, if there is one; else nothing and the file of its output.
    pub fn start(
        &mut self,
        node: NodeId,
        arguments: Vec<String>,
        folder: String,
        output: String,
        talks: Option<ObjectId>,
    ) -> Run<ProcessId> {
        self.nodes[node].is_down = false;
        self.say(&format!("start on {}: {}", self.nodes[node].name, arguments.join(" ")));
        let program = Program {
            root: self.folder(node),
            host: self.nodes[node].name.clone(),
            folder,
            output,
            arguments,
            environment: self.nodes[node].environment.clone(),
            trace_all: self.settings.trace_all,
            talks: talks.is_some(),
            shared_memory: self.nodes[node].shared_memory.as_ref().map(AsRawFd::as_raw_fd),
        };
        let pid = start::start(&program, self.pages.as_deref())?;
        if self.nodes[node].shared_memory.is_none() {
            self.nodes[node].shared_memory = Some(Rc::new(File::open(self.root.path_of(pid, "ns/ipc"))?.into()));
        }
        let process = self.add_process(pid, node, program.arguments[0].clone(), None, None);
        if let Some(object) = talks {
            self.objects[object].references += 2;
            let descriptor = Descriptor { object, closes_at_exec: false };
            self.processes[process].descriptors.extend([(0, descriptor), (1, descriptor)]);
        }
        self.executed(process, pid)?;
        self.add_thread(pid, process);
        self.send_held_again();
        Ok(process)
    }

    fn add_process(
        &mut self,
        pid: pid_t,
        node: NodeId,
        program: String,
        parent: Option<ProcessId>,
        memory_of: Option<ProcessId>,
    ) -> ProcessId {
        let process = self.processes.len();
        let descriptors = parent.map_or_else(BTreeMap::new, |parent| self.processes[parent].descriptors.clone());
        for descriptor in descriptors.values() {
            self.objects[descriptor.object].references += 1;
        }
        let number = self.number_of(pid);
        self.processes.push(Process {
            alarm: Alarm::default(),
            pid,
            number,
            node,
            program,
            descriptors,
            is_alive: true,
            is_reaped: false,
            status: 0,
            parent,
            first: parent.map_or(process, |parent| self.processes[parent].first),
            is_paused: false,
            calls: 0,
            threads: Vec::new(),
            chance: Chance::new(self.settings.seed, &purpose(process)),
            memory_of,
            memory: parent.map_or_else(Memory::default, |parent| self.processes[parent].memory.clone()),
        });
        process
    }

    fn add_thread(&mut self, tid: pid_t, process: ProcessId) -> ThreadId {
        let thread = self.threads.len();
        let number = self.number_of(tid);
        self.threads.push(Thread {
            tid,
            number,
            process,
            node: self.processes[process].node,
            state: State::Runnable,
            resume: Resume::Continue,
            wait: Wait::Nothing,
            // SAFETY: the struct is plain numbers, for which zeros are values.
            registers: unsafe { std::mem::zeroed() },
            deadline: None,
            timed_out: false,
            turn: 0,
            clear_tid: 0,
            futex_bits: u32::MAX,
            processor_ns: 0,
            making: (0, 0),
            loops: 0,
            yields: 0,
            pieces: 0,
            syncing: None,
            sync: super::slow::Sync::default(),
            making_step: None,
            refused: None,
            sent: 0,
            is_cut: false,
            binding: None,
            is_refused: false,
            signals: Coming::default(),
            opening: None,
        });
        self.processes[process].threads.push(thread);
        self.runnable.push(thread);
        thread
    }

    /// Returns the id of a thread in the namespace of the programs.
    fn number_of(&self, tid: pid_t) -> pid_t {
        let status = self.root.read_of(tid, "status").unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last()?.parse().ok())
            .unwrap_or(-1)
    }

    /// A process stands at the begin of another program: gives it the stand-in for the vDSO, and random bytes from the seed.
    pub(super) fn executed(&mut self, process: ProcessId, tid: pid_t) -> Run<()> {
        let node = self.processes[process].node;
        tracee::to_first_instruction(tid)?;
        processor::hide_from(tid)?;
        if let Some(pages) = &self.pages {
            pages.map_into(tid, node)?;
        }
        self.answering.forget(process);
        let read =
            |address| tracee::read_u64(tid, address).ok_or_else(|| io::Error::other("its stack is not readable"));
        // The stack has the number of arguments, the arguments, a zero, the variables, a zero, and the auxiliary vector.
        let mut address = tracee::registers(tid)?.rsp;
        address += 8 * (read(address)? + 2);
        while read(address)? != 0 {
            address += 8;
        }
        address += 8;
        loop {
            match read(address)? {
                0 => break,
                AT_SYSINFO_EHDR if self.pages.is_some() => {
                    tracee::write_u64(tid, address + 8, LIBRARY);
                }
                AT_SYSINFO_EHDR | AT_RSEQ_FEATURE_SIZE | AT_RSEQ_ALIGN => {
                    tracee::write_u64(tid, address, AT_IGNORE);
                }
                AT_RANDOM => {
                    let bytes = self.processes[process].chance.bytes(16);
                    tracee::write(tid, read(address + 8)?, &bytes);
                }
                _ => {}
            }
            address += 16;
        }
        Ok(())
    }

    /// A process has executed another program: its close-on-exec descriptors are closed, and a parent of vfork runs again.
    pub(super) fn replaced(&mut self, process: ProcessId, tid: pid_t) -> Run<()> {
        let closing: Vec<i32> = self.processes[process]
            .descriptors
            .iter()
            .filter(|(_, descriptor)| descriptor.closes_at_exec)
            .map(|(number, _)| *number)
            .collect();
        for number in closing {
            if let Some(descriptor) = self.processes[process].descriptors.remove(&number) {
                self.release(descriptor.object);
            }
        }
        self.wake_for_locks();
        self.processes[process].memory_of = None;
        self.processes[process].memory = Memory::default();
        self.workers.remove(&process);
        if let Ok(name) = self.root.read_of(tid, "comm") {
            name.trim_end().clone_into(&mut self.processes[process].program);
        }
        self.free_parent(process);
        self.executed(process, tid)
    }

    /// A process is about to execute another program. With several threads, the kernel would wait until all others have ended.
    pub(super) fn check_alone(&self, thread: ThreadId) -> Run<()> {
        let process = &self.processes[self.threads[thread].process];
        let running = process.threads.iter().filter(|thread| self.threads[**thread].state != State::Dead).count();
        if running == 1 {
            return Ok(());
        }
        Err(Fatal(format!(
            "{} on {} executes another program while it has {running} threads, which the simulation does not know",
            process.program, self.nodes[process.node].name
        )))
    }

    /// Lets the parent of a process of vfork run.
    fn free_parent(&mut self, process: ProcessId) {
        let Some(parent) = self.processes[process].parent else { return };
        for thread in self.processes[parent].threads.clone() {
            if matches!(self.threads[thread].wait, Wait::Vfork) {
                self.wake(thread, Resume::Continue);
            }
        }
    }

    /// A thread has made a thread or a process. Returns whether it waits for it, as vfork does.
    pub(super) fn made(&mut self, thread: ThreadId, child: pid_t, event: c_int) -> Run<bool> {
        let (flags, clear_tid) = self.threads[thread].making;
        let process = self.threads[thread].process;
        tracee::wait_on(child)?; // its first stop
        let has = |flag: c_int| flags & flag as u64 != 0;
        let owner = if has(libc::CLONE_THREAD) {
            process
        } else {
            let node = self.processes[process].node;
            let memory = has(libc::CLONE_VM).then(|| self.memory(thread));
            let program = self.processes[process].program.clone();
            self.add_process(child, node, program, Some(process), memory)
        };
        let new = self.add_thread(child, owner);
        if has(libc::CLONE_CHILD_CLEARTID) {
            self.threads[new].clear_tid = clear_tid;
        }
        if event == libc::PTRACE_EVENT_VFORK {
            self.block(thread, Wait::Vfork, None);
            return Ok(true);
        }
        Ok(false)
    }

    /// A thread ends by its own call.
    pub(super) fn end_thread(&mut self, thread: ThreadId) -> Run<()> {
        let tid = self.threads[thread].tid;
        let process = self.threads[thread].process;
        let is_running = |thread: &ThreadId| matches!(self.threads[*thread].state, State::Runnable | State::Blocked);
        let running = self.processes[process].threads.iter().filter(|thread| is_running(thread)).count();
        tracee::resume(tid, Until::Stops, 0)?;
        if running <= 1 {
            return self.reap(process);
        }
        if tid == self.processes[process].pid {
            // The first thread of a process stays as a zombie until the others have ended, and ptrace says nothing before.
            while !self.root.read_of(tid, "stat").is_ok_and(|stat| stat.contains(") Z") || stat.contains(") X")) {
                std::thread::yield_now();
            }
            self.threads[thread].state = State::Zombie;
        } else {
            Self::reap_thread(tid)?;
            self.bury(thread);
        }
        let (word, memory) = (self.threads[thread].clear_tid, self.memory(thread));
        if word != 0 {
            self.wake_all(memory, word);
        }
        Ok(())
    }

    /// A thread is gone.
    pub(super) fn bury(&mut self, thread: ThreadId) {
        if self.threads[thread].state == State::Dead {
            return;
        }
        if let Wait::Futex(key) = self.threads[thread].wait {
            self.leave_futex(thread, key);
        }
        self.threads[thread].state = State::Dead;
        self.threads[thread].syncing = None;
        self.threads[thread].turn += 1;
        self.threads[thread].wait = Wait::Nothing;
        self.runnable.retain(|other| *other != thread);
    }

    /// Waits until a thread is gone; returns its status, if nobody else has taken it.
    fn reap_thread(tid: pid_t) -> Run<Option<c_int>> {
        loop {
            match tracee::wait_on(tid) {
                Ok(Stop::Ended(status)) => return Ok(Some(status)),
                Ok(_) => tracee::resume(tid, Until::Stops, 0)?,
                Err(_) => return Ok(None), // it is gone already
            }
        }
    }

    /// Waits until all threads of a dying process are gone.
    pub(super) fn reap(&mut self, process: ProcessId) -> Run<()> {
        let pid = self.processes[process].pid;
        for thread in self.processes[process].threads.clone() {
            let tid = self.threads[thread].tid;
            if tid != pid && self.threads[thread].state != State::Dead {
                Self::reap_thread(tid)?;
                self.bury(thread);
            }
        }
        let status = Self::reap_thread(pid)?.unwrap_or(0);
        self.ended(process, status);
        Ok(())
    }

    /// A process has ended, with the status of `waitpid`.
    pub(super) fn ended(&mut self, process: ProcessId, status: c_int) {
        if !self.processes[process].is_alive {
            return;
        }
        for thread in self.processes[process].threads.clone() {
            self.bury(thread);
        }
        self.processes[process].is_alive = false;
        self.processes[process].status = status;
        if self.processes[process].first == process {
            if let Some(outside) = &mut self.outside {
                outside.has_ended = true;
            }
        }
        self.say(&format!(
            "process {process} of {} ended: {status:#x}",
            self.nodes[self.processes[process].node].name
        ));
        for descriptor in std::mem::take(&mut self.processes[process].descriptors).into_values() {
            self.release(descriptor.object);
        }
        self.wake_for_locks();
        self.free_parent(process);
        self.tell_children(process);
        let Some(parent) = self.processes[process].parent.filter(|parent| self.processes[*parent].is_alive) else {
            return;
        };
        for thread in self.processes[parent].threads.clone() {
            if matches!(self.threads[thread].wait, Wait::Child) {
                self.wake(thread, Resume::Retry(true));
            }
        }
        self.notice_signal(parent, libc::SIGCHLD);
    }

    /// Handles a wait for a child: it runs in the kernel if a child has ended or none can, and blocks else.
    pub(super) fn wait_for_child(&mut self, thread: ThreadId, number: pid_t, options: c_int) -> Outcome {
        let process = self.threads[thread].process;
        let mut children = self.processes.iter().filter(|child| {
            child.parent == Some(process) && !child.is_reaped && (number <= 0 || child.number == number)
        });
        let can_end = children.clone().next().is_some();
        let has_ended = children.any(|child| !child.is_alive);
        if has_ended || !can_end || options & libc::WNOHANG != 0 {
            return natively(After::Waited);
        }
        self.block(thread, Wait::Child, None);
        Outcome::Block
    }

    /// A wait has taken the first child that ended.
    pub(super) fn waited(&mut self, thread: ThreadId, result: i64) {
        let parent = self.threads[thread].process;
        let taken = self.processes.iter_mut().find(|child| {
            child.parent == Some(parent)
                && !child.is_alive
                && !child.is_reaped
                && (result <= 0 || i64::from(child.number) == result)
        });
        if let Some(child) = taken {
            child.is_reaped = true;
        }
    }

    /// Returns the processes of a program that are alive: the one that was started, and its descendants.
    fn family(&self, first: ProcessId) -> Vec<ProcessId> {
        (first..self.processes.len())
            .filter(|process| self.processes[*process].first == first && self.processes[*process].is_alive)
            .collect()
    }

    /// Kills all processes of a program.
    pub fn kill_program(&mut self, first: ProcessId) -> Run<()> {
        self.family(first).into_iter().try_for_each(|process| self.kill(process))
    }

    /// Stops all processes of a program, or lets them run again.
    pub fn pause_program(&mut self, first: ProcessId, is_paused: bool) {
        self.processes[first].is_paused = is_paused;
    }

    /// A program loses its power: its connections vanish without a word to their other ends, and its processes end.
    ///
    /// If no other program runs on its node, the node is off until one starts, and answers nothing.
    pub fn lose_power(&mut self, first: ProcessId) -> Run<()> {
        let node = self.processes[first].node;
        let family = self.family(first);
        let objects: BTreeSet<_> = family
            .iter()
            .flat_map(|process| self.processes[*process].descriptors.values())
            .map(|descriptor| descriptor.object)
            .collect();
        for object in objects {
            self.vanish(object);
        }
        family.into_iter().try_for_each(|process| self.kill(process))?;
        self.nodes[node].is_down = !self.processes.iter().any(|process| process.node == node && process.is_alive);
        if self.nodes[node].is_down {
            self.nodes[node].shared_memory = None;
        }
        Ok(())
    }

    /// Kills a process, if it is alive.
    pub fn kill(&mut self, process: ProcessId) -> Run<()> {
        if self.processes[process].is_alive {
            self.note_maps(process);
            // SAFETY: the process is a child of this one that nobody else waits for.
            unsafe { libc::kill(self.processes[process].pid, libc::SIGKILL) };
            self.reap(process)?;
        }
        Ok(())
    }
}
