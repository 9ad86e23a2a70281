//! Whether a thread that makes no calls waits in a loop: whether it will do the same for ever, unless another thread writes.
//!
//! A thread is stepped through a round that begins and ends with the same registers, and through two more. If all registers are the
//! same at each step of both, and each instruction leaves in memory only what registers show or what it changes in the same way, then
//! the memory after both rounds is the same, too. So a fourth round would be the same. Without the rule about memory, a loop that
//! counts in memory would be taken for one that waits, but only if the controller happens to look at it. So the run would depend on
//! the speed of the machine.
//!
//! A thread that waits is left at the least of the states of a round, with the lowest address. So it stands at the same place
//! wherever in the loop the controller met it.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Kernel, Run, ThreadId};
use crate::fast;
use crate::tracee::{self, Registers, Stop, Until};

const MOST_STEPS: usize = 5_000;
const STEP_FLAG: u64 = 0x100; // of eflags: the processor stops after each instruction
const TRAP_FLAGS: u64 = 0x1_0000 | STEP_FLAG; // of eflags, which stepping sets
const PUSH_FLAGS: u8 = 0x9c;
const WORD: u64 = 8;
const MOST_CODE: usize = 15; // bytes of an instruction of x86-64

/// What ends the steps of a thread.
#[derive(Clone)]
pub(super) enum Steps {
    /// It waits in a loop, and stands at its lowest address.
    Loop(u64),
    /// It computes, as far as can be told.
    Computes,
    /// It has stopped for another reason.
    Stopped(Stop),
}

/// All registers but those of vectors and of floating point. The first is the address of the next instruction.
type State = [u64; 18];

fn state(registers: &Registers) -> State {
    [
        registers.rip,
        registers.rax,
        registers.rbx,
        registers.rcx,
        registers.rdx,
        registers.rsi,
        registers.rdi,
        registers.rbp,
        registers.rsp,
        registers.r8,
        registers.r9,
        registers.r10,
        registers.r11,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
        registers.eflags & !TRAP_FLAGS,
    ]
}

impl Kernel {
    /// Steps a thread that stands still, to tell whether it waits in a loop.
    pub(super) fn step_through_loop(&self, thread: ThreadId) -> Run<Steps> {
        let tid = self.threads[thread].tid;
        let mut registers = tracee::registers(tid)?;
        let first = state(&registers);
        let mut round = Vec::new();
        loop {
            round.push(state(&registers));
            match step(tid, &registers)? {
                Ok(next) => registers = next,
                Err(stop) => return Ok(Steps::Stopped(stop)),
            }
            if state(&registers) == first {
                break;
            }
            if fast::is_code(registers.rip) {
                return Ok(Steps::Computes); // its call takes time, so it does not do the same for ever
            }
            if round.len() == MOST_STEPS {
                return Ok(Steps::Computes);
            }
        }
        let mut prints = Vec::with_capacity(round.len());
        for place in 0..2 * round.len() {
            let Some(print) = fingerprint(tid, &registers)? else { return Ok(Steps::Computes) };
            let is_same = match place.checked_sub(round.len()) {
                None => state(&registers) == round[place],
                Some(before) => print == prints[before],
            };
            if !is_same {
                return Ok(Steps::Computes);
            }
            prints.push(print);
            match step(tid, &registers)? {
                Ok(next) => registers = next,
                Err(stop) => return Ok(Steps::Stopped(stop)),
            }
        }
        let least = *round.iter().min().unwrap_or(&first);
        for _ in 0..=round.len() {
            if state(&registers) == least {
                return Ok(Steps::Loop(least[0]));
            }
            match step(tid, &registers)? {
                Ok(next) => registers = next,
                Err(stop) => return Ok(Steps::Stopped(stop)),
            }
        }
        Ok(Steps::Computes) // a signal or the like has led it out
    }
}

/// Returns a number for all that decides about the effect of the next instruction, or None if the effect is not known.
fn fingerprint(tid: libc::pid_t, registers: &Registers) -> Run<Option<u64>> {
    let code = tracee::read_some(tid, registers.rip, MOST_CODE);
    let mut print = DefaultHasher::new();
    match effect(&code) {
        Effect::Shown => {}
        Effect::Changes(operand) => {
            let Some(old) = tracee::read_u64(tid, operand.address(registers)) else { return Ok(None) };
            old.hash(&mut print);
        }
        Effect::Unknown => return Ok(None),
    }
    state(registers).hash(&mut print);
    tracee::values_of_vectors(tid)?.hash(&mut print);
    Ok(Some(print.finish()))
}

/// Lets a thread carry out one instruction; returns its registers, or another stop.
pub(super) fn step(tid: libc::pid_t, before: &Registers) -> Run<Result<Registers, Stop>> {
    tracee::resume(tid, Until::Stepped, 0)?;
    let stop = tracee::wait_on(tid)?;
    if matches!(stop, Stop::Ended(_)) {
        return Ok(Err(stop));
    }
    let mut registers = tracee::registers(tid)?;
    // The kernel takes the flag for the program's own after an instruction that restores flags, and a call leaves flags in `r11`.
    let shown = if stop == Stop::Call { registers.eflags | registers.r11 } else { registers.eflags };
    if shown & STEP_FLAG != 0 {
        registers.eflags &= !STEP_FLAG;
        if stop == Stop::Call {
            registers.r11 &= !STEP_FLAG;
        }
        tracee::set_registers(tid, &registers)?;
    }
    if stop != Stop::Signal(libc::SIGTRAP) {
        return Ok(Err(stop));
    }
    if registers.rsp == before.rsp.wrapping_sub(WORD) {
        hide_step(tid, before.rip, registers.rsp);
    }
    Ok(Ok(registers))
}

/// A program that saves its flags while it is stepped saves the flag of stepping with them. It would step itself when it restores
/// them.
fn hide_step(tid: libc::pid_t, instruction: u64, saved_at: u64) {
    if tracee::read_some(tid, instruction, 1) != [PUSH_FLAGS] {
        return;
    }
    if let Some(flags) = tracee::read_u64(tid, saved_at) {
        tracee::write_u64(tid, saved_at, flags & !STEP_FLAG);
    }
}

/// What an instruction leaves in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// What registers show before or after it, such as a store of a register, or nothing.
    Shown,
    /// It changes a number of at most 64 bits there, by what registers and its code show.
    Changes(Operand),
    Unknown,
}

/// A place in memory that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Operand {
    base: Option<u8>,
    index: Option<(u8, u8)>,
    distance: i64,
    /// The length of the instruction, if the distance counts from its end.
    after: Option<u64>,
    segment: Segment,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Segment {
    #[default]
    None,
    Fs,
    Gs,
}

impl Operand {
    /// Reads the operand of an instruction whose byte of its form is at `at`; `more` bytes follow the operand.
    fn read(code: &[u8], at: usize, rex: u8, more: usize, segment: Segment) -> Option<Self> {
        const NO_INDEX: u8 = 4;
        const WITH_INDEX: u8 = 4;
        const NO_BASE: u8 = 5;
        let form = *code.get(at)?;
        let (place, register) = (form >> 6, form & 7);
        let mut operand = Self { segment, ..Self::default() };
        let mut next = at + 1;
        let mut base = register;
        if register == WITH_INDEX {
            let parts = *code.get(next)?;
            next += 1;
            let index = parts >> 3 & 7 | rex << 2 & 8;
            operand.index = (index != NO_INDEX).then_some((index, parts >> 6));
            base = parts & 7;
        }
        let has_none = base == NO_BASE && place == 0;
        if !has_none {
            operand.base = Some(base | rex << 3 & 8);
        }
        let size = match place {
            0 if has_none => 4,
            0 => 0,
            1 => 1,
            _ => 4,
        };
        let bytes = code.get(next..next + size)?;
        operand.distance = match *bytes {
            [] => 0,
            [byte] => i64::from(byte as i8),
            _ => i64::from(tracee::u32_at(bytes, 0) as i32),
        };
        if has_none && register != WITH_INDEX {
            operand.after = Some((next + size + more) as u64);
        }
        Some(operand)
    }

    fn address(&self, registers: &Registers) -> u64 {
        let of = |number: u8| {
            [
                registers.rax,
                registers.rcx,
                registers.rdx,
                registers.rbx,
                registers.rsp,
                registers.rbp,
                registers.rsi,
                registers.rdi,
                registers.r8,
                registers.r9,
                registers.r10,
                registers.r11,
                registers.r12,
                registers.r13,
                registers.r14,
                registers.r15,
            ][usize::from(number)]
        };
        let segment = match self.segment {
            Segment::None => 0,
            Segment::Fs => registers.fs_base,
            Segment::Gs => registers.gs_base,
        };
        let parts = [
            self.base.map_or(0, of),
            self.index.map_or(0, |(index, scale)| of(index) << scale),
            self.after.map_or(0, |length| registers.rip.wrapping_add(length)),
            segment,
        ];
        parts.into_iter().fold(self.distance as u64, u64::wrapping_add)
    }
}

/// Returns what an instruction leaves in memory. The opcodes are those of the manual of Intel (volume 2, appendix A).
fn effect(whole: &[u8]) -> Effect {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = whole.iter().take_while(|byte| is_prefix(byte)).count();
    if whole[..prefixes].contains(&0x67) {
        return Effect::Unknown; // addresses of 32 bits
    }
    let segment = match whole[..prefixes].iter().rfind(|byte| matches!(byte, 0x64 | 0x65)) {
        Some(0x64) => Segment::Fs,
        Some(_) => Segment::Gs,
        None => Segment::None,
    };
    let rex = whole.get(prefixes).copied().filter(|byte| matches!(byte, 0x40..=0x4f)).unwrap_or(0);
    let at = prefixes + usize::from(rex != 0);
    let Some((opcode, operands)) = whole.get(at..).and_then(<[u8]>::split_first) else { return Effect::Unknown };
    // The byte after the opcode, for instructions that have operands there: a register or memory, and a further part of the opcode.
    let form = |operands: &[u8]| operands.first().map(|byte| (byte >> 6 == 3, byte >> 3 & 7));
    let changes = |form_at: usize, more: usize| {
        Operand::read(whole, form_at, rex, more, segment).map_or(Effect::Unknown, Effect::Changes)
    };
    let shown = |is_shown: bool| if is_shown { Effect::Shown } else { Effect::Unknown };
    if *opcode == 0x0f {
        let Some((second, operands)) = operands.split_first() else { return Effect::Unknown };
        let (in_register, part) = form(operands).unwrap_or((false, 7));
        return match second {
            0xba if in_register || part == 4 => Effect::Shown,
            0xba => changes(at + 2, 1),               // the bit is within the operand
            0xae => shown(in_register && part >= 5),  // the fences
            0xc7 => shown(!in_register && part == 1), // cmpxchg16b
            // Moves and arithmetic of vectors, conditional moves and jumps, tests and changes of registers.
            0x0d
            | 0x10..=0x18
            | 0x1e
            | 0x1f
            | 0x28..=0x2f
            | 0x38
            | 0x3a
            | 0x40..=0x76
            | 0x7e..=0xa3
            | 0xaf..=0xb1
            | 0xb6..=0xb8
            | 0xbc..=0xc6
            | 0xc8..=0xfe => shown(!matches!(second, 0xa0..=0xa2)),
            _ => Effect::Unknown,
        };
    }
    let (in_register, part) = form(operands).unwrap_or((false, 7));
    match opcode {
        0x00..=0x3f => match opcode & 7 {
            0 | 1 if opcode >> 3 == 7 || in_register => Effect::Shown, // all but a comparison write into the first operand
            0 | 1 => changes(at + 1, 0),
            2..=5 => Effect::Shown,
            _ => Effect::Unknown,
        },
        0x50..=0x5f
        | 0x62 // the next three: instructions of vectors with longer codes
        | 0xc4
        | 0xc5
        | 0x63
        | 0x68..=0x6b
        | 0x70..=0x7f
        | 0x84..=0x8b
        | 0x8d
        | 0x90
        | 0x98
        | 0x99
        | 0xa8..=0xab
        | 0xb0..=0xbf
        | 0xc2
        | 0xc3
        | 0xc9
        | 0xe0..=0xe3
        | 0xe8
        | 0xe9
        | 0xeb => Effect::Shown,
        0x80 | 0x81 | 0x83 if part == 7 || in_register => Effect::Shown,
        0x81 if whole[..prefixes].contains(&0x66) => changes(at + 1, 2),
        0x81 => changes(at + 1, 4),
        0xc0 | 0xc1 | 0xd0..=0xd3 if in_register => Effect::Shown,
        0x80 | 0x83 | 0xc0 | 0xc1 => changes(at + 1, 1),
        0xc6 | 0xc7 => shown(part == 0),
        0xf6 | 0xf7 if in_register || !matches!(part, 2 | 3) => Effect::Shown,
        0xd0..=0xd3 | 0xf6 | 0xf7 => changes(at + 1, 0),
        0xfe | 0xff if part < 2 && in_register => Effect::Shown,
        0xfe | 0xff if part < 2 => changes(at + 1, 0),
        0xff => shown(matches!(part, 2 | 4 | 6)),
        _ => Effect::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{effect, Effect, Registers};

    #[test]
    fn what_registers_show_is_known() {
        for code in [
            &[0x8b, 0x07][..],               // mov eax, [rdi]
            &[0x48, 0x89, 0x45, 0xf8],       // mov [rbp-8], rax
            &[0x48, 0x85, 0xc0],             // test rax, rax
            &[0x74, 0xf9],                   // je
            &[0x0f, 0x84, 0, 0, 0, 0],       // je, far
            &[0xf3, 0x90],                   // pause
            &[0xf0, 0x0f, 0xb1, 0x0f],       // lock cmpxchg [rdi], ecx
            &[0xf0, 0x0f, 0xc1, 0x07],       // lock xadd [rdi], eax
            &[0x3b, 0x06],                   // cmp eax, [rsi]
            &[0x83, 0x3f, 0x00],             // cmp dword [rdi], 0
            &[0x41, 0x83, 0xc4, 0x01],       // add r12d, 1
            &[0xe8, 0, 0, 0, 0],             // call
            &[0xc3],                         // ret
            &[0xff, 0xe0],                   // jmp rax
            &[0xc7, 0x45, 0xfc, 0, 0, 0, 0], // mov dword [rbp-4], 0
            &[0x0f, 0xae, 0xf0],             // mfence
            &[0x0f, 0x11, 0x07],             // movups [rdi], xmm0
            &[0x44, 0x0f, 0x11, 0x3c, 0x24], // movups [rsp], xmm15
            &[0xf2, 0x0f, 0x58, 0xc1],       // addsd xmm0, xmm1
            &[0xc5, 0xfe, 0x7f, 0x07],       // vmovdqu [rdi], ymm0
        ] {
            assert_eq!(effect(code), Effect::Shown, "{code:x?}");
        }
    }

    #[test]
    fn what_changes_memory_has_an_address() {
        // SAFETY: the struct is plain numbers, for which zeros are values.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        (registers.rip, registers.rsp, registers.rbp, registers.rdi) = (0x1000, 0x2000, 0x3000, 0x4000);
        (registers.r12, registers.r14, registers.rcx, registers.fs_base) = (0x5000, 0x6000, 8, 0x7000);
        for (code, address) in [
            (&[0x83, 0x45, 0xfc, 0x01][..], 0x2ffc),            // add dword [rbp-4], 1
            (&[0x01, 0x14, 0x24], 0x2000),                      // add [rsp], edx
            (&[0x41, 0x29, 0x16], 0x6000),                      // sub [r14], edx
            (&[0x41, 0x29, 0x14, 0x24], 0x5000),                // sub [r12], edx
            (&[0xff, 0x45, 0xfc], 0x2ffc),                      // inc dword [rbp-4]
            (&[0xf0, 0x48, 0xff, 0x07], 0x4000),                // lock inc qword [rdi]
            (&[0xf7, 0x5d, 0xfc], 0x2ffc),                      // neg dword [rbp-4]
            (&[0xd1, 0x65, 0xfc], 0x2ffc),                      // shl dword [rbp-4], 1
            (&[0xf0, 0x83, 0x44, 0x24, 0xc0, 0], 0x1fc0),       // lock add dword [rsp-64], 0
            (&[0x0f, 0xba, 0x2f, 0x01], 0x4000),                // bts dword [rdi], 1
            (&[0x83, 0x05, 0x10, 0, 0, 0, 1], 0x1017),          // add dword [rip+16], 1
            (&[0x81, 0x05, 0x10, 0, 0, 0, 1, 0, 0, 0], 0x101a), // add dword [rip+16], 1, longer
            (&[0xff, 0x44, 0xcf, 0x08], 0x4048),                // inc dword [rdi+rcx*8+8]
            (&[0xff, 0x04, 0x25, 0x10, 0, 0, 0], 0x10),         // inc dword [0x10]
            (&[0x64, 0x48, 0xff, 0x07], 0xb000),                // inc qword fs:[rdi]
        ] {
            let Effect::Changes(operand) = effect(code) else { panic!("{code:x?}") };
            assert_eq!(operand.address(&registers), address, "{code:x?}");
        }
    }

    #[test]
    fn other_effects_are_not_known() {
        for code in [
            &[0xa4][..],         // movsb
            &[0xdd, 0x1f],       // fstp qword [rdi]
            &[0x0f, 0x05],       // syscall
            &[0x0f, 0xa2],       // cpuid
            &[0x9c],             // pushf, whose flags are not compared
            &[0x67, 0xff, 0x07], // inc dword [edi]
            &[0xff],
            &[],
        ] {
            assert_eq!(effect(code), Effect::Unknown, "{code:x?}");
        }
    }
}
