//! The pages with which programs answer some calls themselves, without a stop; `vdso/fast.c` is the code that does.
//!
//! A stop costs two switches of the processor, which is most of the time of a call. The controller looks at the first call from a
//! place in a program. If the code there is `mov eax, NUMBER; syscall`, it becomes a jump before the `syscall`. The code behind the jump
//! answers the call, or leads back to the `syscall`. It does what the controller does: the same time, the same numbers in the digest,
//! the same registers. So a run has the same digest with and without it.

use std::collections::HashMap;
use std::ptr;

use libc::{c_long, pid_t};

use crate::start::PAGE;
use crate::tracee;

const CODE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/fast.bin"));

/// Where a program finds the pages that it writes.
pub const WRITTEN: u64 = 0x6fff_0000_2000;
/// Where it finds the code: close to libraries, to programs with fixed addresses and with others, and to the stand-in for the vDSO. The
/// kernel maps nothing there by itself.
pub const CODE_AT: [u64; 4] = [0x7fff_f800_0000, 0x10_0000, 0x5555_5550_0000, 0x6fff_0002_0000];
pub const WRITTEN_PAGES: usize = 9;
pub const CODE_PAGES: usize = 5;
pub const PAGES: usize = WRITTEN_PAGES + CODE_PAGES;

const WORDS: usize = PAGE as usize / 8;
const BUCKETS: u64 = 2048;
const BUCKET_WORDS: usize = 2;
/// An address and the number of its memory are one word.
const ADDRESS_BITS: u32 = 48;
pub const MOST_MEMORY: u64 = (1 << (64 - ADDRESS_BITS)) - 2;
const NO_WORD: u64 = u64::MAX;
const MOST_WAKES: usize = 16;
const SLOT: usize = 32; // bytes of the code for a place in a program
const JUMP: u8 = 0xe9;
const JUMP_SIZE: u64 = 5;
const CALL: [u8; 2] = [0x0f, 0x05];
const SITE: u64 = 7; // bytes of `mov eax, NUMBER; syscall`
pub const MOST_QUANTA: usize = 64;

/// The words of the first page; see `struct fast` in `vdso/fast.c`.
#[derive(Clone, Copy)]
enum Place {
    Before,
    Next,
    Low,
    High,
    Thread,
    Memory,
    Cost,
    Later,
    Quiet,
    Brief,
    HasWaited,
    Epoll,
    Quanta,
    Begun,
    Wakes,
    Sleeps,
    Waits,
    PatientWaits,
    HasAnswered,
    Ends,
    Woken,
    Clocks,
    Processor,
    Quantum = 32,
    Wake = 32 + MOST_QUANTA as isize,
}

/// What a thread that runs may answer itself.
pub struct Offer<'a> {
    /// From this time on, reads of the clock are calls, whatever the quantum.
    pub before: u64,
    /// From this time on, calls stop.
    pub next: u64,
    pub digest: (u64, u64),
    pub thread: u64,
    pub memory: u64,
    pub quantum_ends: u64,
    /// Its processor time.
    pub processor: u64,
    /// From this time on, its node has heard nothing for long.
    pub quiet: u64,
    pub has_waited: bool,
    /// Its epoll that has nothing to report.
    pub epoll: Option<u32>,
    /// How long it runs after each of its next sleeps, if nobody else can run.
    pub quanta: &'a [u64],
}

/// What it has answered.
pub struct Answers {
    pub digest: (u64, u64),
    pub calls: [(c_long, u64); 5],
    /// The addresses of words for which threads have to wake, and how many.
    pub wakes: Vec<(u64, u64)>,
    /// The number of sleeps, and the end of its quantum after the last of them.
    pub sleeps: usize,
    pub quantum_ends: u64,
    /// Whether its last wait had an end, and whether it has made a call that does not wait.
    pub has_waited: bool,
    pub has_answered: bool,
}

/// The pages, as the controller sees them.
#[derive(Clone)]
pub struct Fast {
    memory: *mut u64,
    /// The slots of the places that jump, by the address after the call and its number.
    slots: HashMap<(u64, c_long), usize>,
}

impl Fast {
    /// Fills pages that are new.
    ///
    /// `memory` are `PAGES` pages that live as long as the process.
    pub fn new(memory: *mut u64, call: u64, brief: u64, later: u64) -> Self {
        assert!(CODE.len() <= PAGE as usize, "the code has one page");
        let fast = Self { memory, slots: HashMap::new() };
        fast.set(Place::Cost, call);
        fast.set(Place::Brief, brief);
        fast.set(Place::Later, later);
        fast.write_code(0, CODE);
        fast
    }

    fn set(&self, place: Place, value: u64) {
        // SAFETY: the place is within the pages. No program runs while the controller does.
        unsafe { self.memory.add(place as usize).write_volatile(value) }
    }

    fn get(&self, place: Place) -> u64 {
        // SAFETY: as for `set`.
        unsafe { self.memory.add(place as usize).read_volatile() }
    }

    fn write_code(&self, offset: usize, code: &[u8]) {
        // SAFETY: the callers stay within the pages of the code.
        unsafe {
            let start = self.memory.add(WRITTEN_PAGES * WORDS).cast::<u8>();
            ptr::copy_nonoverlapping(code.as_ptr(), start.add(offset), code.len());
        }
    }

    /// A word of a memory has another number of threads that wait for it: 0, or as many as there were before and now.
    pub fn waited_for(&self, memory: u64, address: u64, before: usize, now: usize) {
        if memory > MOST_MEMORY {
            return;
        }
        let bucket = ((address / 4) ^ memory.wrapping_mul(0x9E5)) % BUCKETS;
        let key = memory << ADDRESS_BITS | address;
        // SAFETY: the bucket is within the pages after the first; see `struct words` in `vdso/fast.c`.
        unsafe {
            let place = self.memory.add(WORDS + bucket as usize * BUCKET_WORDS);
            let (mut word, mut words) = (place.read_volatile(), place.add(1).cast::<u32>().read_volatile());
            match (before, now) {
                (0, 0) => return,
                (0, _) => {
                    words += 1;
                    word = if words == 1 { key } else { NO_WORD };
                }
                (_, 0) => {
                    words -= 1;
                    word = NO_WORD;
                }
                _ => {}
            }
            place.write_volatile(word);
            place.add(1).cast::<u32>().write_volatile(words);
            if word == key {
                place.add(1).cast::<u32>().add(1).write_volatile(now as u32);
            }
        }
    }

    /// A thread runs from now on, and may answer calls.
    pub fn offer(&self, offer: &Offer) {
        self.set(Place::Before, offer.before);
        self.set(Place::Next, offer.next);
        self.set(Place::Low, offer.digest.0);
        self.set(Place::High, offer.digest.1);
        self.set(Place::Thread, offer.thread);
        self.set(Place::Memory, offer.memory);
        self.set(Place::Quiet, offer.quiet);
        self.set(Place::HasWaited, offer.has_waited.into());
        self.set(Place::Epoll, offer.epoll.map_or(u64::MAX, u64::from));
        self.set(Place::Processor, offer.processor);
        self.set(Place::Ends, offer.quantum_ends);
        self.set(Place::Quanta, offer.quanta.len() as u64);
        for (place, quantum) in offer.quanta.iter().take(MOST_QUANTA).enumerate() {
            // SAFETY: as for `set`.
            unsafe { self.memory.add(Place::Quantum as usize + place).write_volatile(*quantum) }
        }
    }

    /// A thread runs from now on, and answers nothing.
    pub fn refuse(&self) {
        self.set(Place::Next, 0);
    }

    /// Returns what the thread has answered since the last offer, if it has answered anything.
    pub fn take(&self) -> Option<Answers> {
        if self.get(Place::HasAnswered) | self.get(Place::Begun) == 0 {
            return None;
        }
        let sleeps = self.get(Place::Sleeps);
        // SAFETY: as for `set`; the place is one of a wake.
        let wake = |word: usize| unsafe { self.memory.add(Place::Wake as usize + word).read_volatile() };
        let woken = (self.get(Place::Woken) as usize).min(MOST_WAKES);
        let answers = Answers {
            digest: (self.get(Place::Low), self.get(Place::High)),
            calls: [
                (libc::SYS_futex, self.get(Place::Wakes)),
                (libc::SYS_nanosleep, sleeps),
                (libc::SYS_epoll_wait, self.get(Place::Waits)),
                (libc::SYS_epoll_pwait, self.get(Place::PatientWaits)),
                (libc::SYS_clock_gettime, self.get(Place::Clocks)),
            ],
            wakes: (0..woken).map(|place| (wake(2 * place), wake(2 * place + 1))).collect(),
            sleeps: sleeps as usize,
            quantum_ends: self.get(Place::Ends),
            has_waited: self.get(Place::HasWaited) != 0,
            has_answered: self.get(Place::HasAnswered) != 0,
        };
        for place in [
            Place::HasAnswered,
            Place::Begun,
            Place::Wakes,
            Place::Sleeps,
            Place::Waits,
            Place::PatientWaits,
            Place::Woken,
            Place::Clocks,
        ] {
            self.set(place, 0);
        }
        Some(answers)
    }

    /// Lets the place of a call jump to the code, if it is `mov eax, NUMBER; syscall` and the code is close.
    ///
    /// `after` is the address after the call. All threads of the program stand still.
    pub fn lead(&mut self, tid: pid_t, after: u64, number: c_long) {
        let site = after.wrapping_sub(SITE);
        let mut code = vec![0xb8];
        code.extend((number as u32).to_le_bytes());
        code.extend(CALL);
        let Some(old) = tracee::read_u64(tid, site) else { return };
        if old.to_le_bytes()[..SITE as usize] != code {
            return;
        }
        let most = (CODE_PAGES - 1) * PAGE as usize / SLOT;
        let next = self.slots.len();
        let slot = *self.slots.entry((after, number)).or_insert(next);
        if slot >= most {
            self.slots.remove(&(after, number));
            return;
        }
        let offset = PAGE as usize + slot * SLOT;
        // mov rcx, AFTER; mov eax, NUMBER; jmp to the start of the code
        let mut lead = vec![0x48, 0xb9];
        lead.extend(after.to_le_bytes());
        lead.extend(&code[..JUMP_SIZE as usize]);
        lead.push(JUMP);
        lead.extend((-((offset + lead.len() + 4) as i32)).to_le_bytes());
        self.write_code(offset, &lead);
        let near = CODE_AT.iter().find_map(|start| {
            let target = start + offset as u64;
            let distance = i32::try_from(target.wrapping_sub(site + JUMP_SIZE) as i64).ok()?;
            (tracee::read(tid, target, lead.len())? == lead).then_some(distance)
        });
        let Some(distance) = near else { return };
        let mut new = old.to_le_bytes();
        new[0] = JUMP;
        new[1..JUMP_SIZE as usize].copy_from_slice(&distance.to_le_bytes());
        tracee::change_code(tid, site, u64::from_le_bytes(new));
    }
}

/// Returns whether an instruction is of the code that answers calls.
pub fn is_code(address: u64) -> bool {
    CODE_AT.iter().any(|start| (*start..start + PAGE * CODE_PAGES as u64).contains(&address))
}

#[cfg(test)]
mod tests {
    use super::{Fast, ADDRESS_BITS, BUCKETS, MOST_MEMORY, NO_WORD, PAGES, WORDS};

    const ADDRESS: u64 = 0x7000_0000;

    /// Returns the word of the bucket of an address of memory 0, how many words it has, and for how many threads.
    fn bucket(memory: &[u64], address: u64) -> (u64, u64, u64) {
        let place = WORDS + (address / 4 % BUCKETS) as usize * 2;
        (memory[place], memory[place + 1] & 0xffff_ffff, memory[place + 1] >> 32)
    }

    #[test]
    fn a_bucket_names_its_only_word() {
        let mut memory = vec![0_u64; PAGES * WORDS];
        let fast = Fast::new(memory.as_mut_ptr(), 1, 2, 3);
        let other = ADDRESS + 4 * BUCKETS; // in the same bucket
        fast.waited_for(0, ADDRESS, 0, 0);
        assert_eq!(bucket(&memory, ADDRESS), (0, 0, 0));
        fast.waited_for(0, ADDRESS, 0, 1);
        fast.waited_for(0, ADDRESS, 1, 2);
        assert_eq!(bucket(&memory, ADDRESS), (ADDRESS, 1, 2));
        fast.waited_for(0, other, 0, 1);
        assert_eq!(bucket(&memory, ADDRESS).0, NO_WORD);
        assert_eq!(bucket(&memory, ADDRESS).1, 2);
        fast.waited_for(0, ADDRESS, 2, 0);
        fast.waited_for(0, other, 1, 2);
        assert_eq!((bucket(&memory, other).0, bucket(&memory, other).1), (NO_WORD, 1)); // the controller has not kept which
        fast.waited_for(0, other, 2, 0);
        fast.waited_for(0, other, 0, 3);
        assert_eq!(bucket(&memory, other), (other, 1, 3));
    }

    #[test]
    fn words_of_memories_differ() {
        let mut memory = vec![0_u64; PAGES * WORDS];
        let fast = Fast::new(memory.as_mut_ptr(), 1, 2, 3);
        fast.waited_for(MOST_MEMORY + 1, ADDRESS, 0, 1);
        assert!(memory[WORDS..9 * WORDS].iter().all(|word| *word == 0));
        fast.waited_for(MOST_MEMORY, ADDRESS, 0, 1);
        assert!(memory.contains(&(MOST_MEMORY << ADDRESS_BITS | ADDRESS)));
    }
}
