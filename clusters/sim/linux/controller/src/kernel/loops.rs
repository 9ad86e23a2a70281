//! Whether a thread that makes no calls waits in a loop: whether it will do the same for ever, unless another thread writes.
//!
//! A thread is stepped through a round that begins and ends with the same registers, and through another one. If all registers are
//! the same at each step of both, and each instruction leaves in memory only what registers show, then the memory after both rounds
//! is the same, too. So a third round would be the same. Without the rule about memory, a loop that counts in memory would be taken
//! for one that waits, but only if the controller happens to look at it. So the run would depend on the speed of the machine.
//!
//! A thread that waits is left at the least of the states of a round, with the lowest address. So it stands at the same place
//! wherever in the loop the controller met it.

use super::{Kernel, Run, ThreadId};
use crate::tracee::{self, Registers, Stop, Until};

const MOST_STEPS: usize = 5_000;
const STEP_FLAG: u64 = 0x100; // of eflags: the processor stops after each instruction
const TRAP_FLAGS: u64 = 0x1_0000 | STEP_FLAG; // of eflags, which stepping sets
const PUSH_FLAGS: u8 = 0x9c;
const WORD: u64 = 8;
const MOST_CODE: usize = 15; // bytes of an instruction of x86-64

/// What ends the steps of a thread.
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
            if round.len() == MOST_STEPS {
                return Ok(Steps::Computes);
            }
        }
        for expected in &round {
            let code = tracee::read_some(tid, registers.rip, MOST_CODE);
            if state(&registers) != *expected || !shows_its_effect(&code) {
                return Ok(Steps::Computes);
            }
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

/// Lets a thread carry out one instruction; returns its registers, or another stop.
pub(super) fn step(tid: libc::pid_t, before: &Registers) -> Run<Result<Registers, Stop>> {
    tracee::resume(tid, Until::Stepped, 0)?;
    let stop = tracee::wait_on(tid)?;
    if matches!(stop, Stop::Ended(_)) {
        return Ok(Err(stop));
    }
    let mut registers = tracee::registers(tid)?;
    if registers.eflags & STEP_FLAG != 0 {
        // The kernel takes the flag for the program's own after an instruction that restores flags.
        registers.eflags &= !STEP_FLAG;
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

/// Returns whether an instruction leaves in memory only what registers show before or after it, as far as it is known.
///
/// A store of a register does. An addition to memory does not: nobody sees the sum. The opcodes are those of the manual of Intel
/// (volume 2, appendix A). Instructions of vectors and of floating point are not known.
fn shows_its_effect(code: &[u8]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x66 | 0xf0 | 0xf2 | 0xf3);
    let code = &code[code.iter().take_while(|byte| is_prefix(byte)).count()..];
    let code = if code.first().is_some_and(|byte| matches!(byte, 0x40..=0x4f)) { &code[1..] } else { code };
    let [opcode, operands @ ..] = code else { return false };
    // The byte after the opcode, for instructions that have operands there: a register or memory, and a further part of the opcode.
    let form = |operands: &[u8]| operands.first().map(|byte| (byte >> 6 == 3, byte >> 3 & 7));
    let in_register = form(operands).is_some_and(|(in_register, _)| in_register);
    let part = form(operands).map_or(7, |(_, part)| part);
    match opcode {
        0x0f => {
            let [second, operands @ ..] = operands else { return false };
            let Some((in_register, part)) = form(operands) else {
                return matches!(second, 0x80..=0x8f | 0xc8..=0xcf);
            };
            match second {
                0x0d
                | 0x18
                | 0x1e
                | 0x1f
                | 0x40..=0x4f
                | 0x80..=0x9f
                | 0xa3
                | 0xaf..=0xb1
                | 0xb6..=0xb8
                | 0xbc..=0xc1
                | 0xc8..=0xcf => true,
                0xba => in_register || part == 4,
                0xae => in_register && part >= 5, // the fences
                _ => false,
            }
        }
        0x00..=0x3f => match opcode & 7 {
            0 | 1 => opcode >> 3 == 7 || in_register, // all but a comparison write into the first operand
            2..=5 => true,
            _ => false,
        },
        0x50..=0x5f
        | 0x63
        | 0x68..=0x6b
        | 0x70..=0x7f
        | 0x84..=0x8b
        | 0x8d
        | 0x90
        | 0x98
        | 0x99
        | 0xa8
        | 0xa9
        | 0xb0..=0xbf
        | 0xc2
        | 0xc3
        | 0xc9
        | 0xe0..=0xe3
        | 0xe8
        | 0xe9
        | 0xeb => true,
        0x80 | 0x81 => part == 7 || in_register,
        0x83 => part == 7 || in_register || part <= 1 && adds_zero(operands),
        0xc0 | 0xc1 | 0xd0..=0xd3 => in_register,
        0xc6 | 0xc7 => part == 0,
        0xf6 | 0xf7 => in_register || !matches!(part, 2 | 3),
        0xfe => in_register && part < 2,
        0xff => matches!(part, 2 | 4 | 6) || in_register && part < 2,
        _ => false,
    }
}

/// Returns whether an addition or an `or` of a byte to memory has no effect, as in the fences of compilers for Java.
fn adds_zero(operands: &[u8]) -> bool {
    let [form, rest @ ..] = operands else { return false };
    let (mode, base) = (form >> 6, form & 7);
    let has_index = base == 4;
    let far = |base: u8| if base == 5 { 4 } else { 0 };
    let distance = match mode {
        0 if has_index => far(rest.first().map_or(0, |index| index & 7)),
        0 => far(base),
        1 => 1,
        _ => 4,
    };
    rest.get(usize::from(has_index) + distance) == Some(&0)
}

#[cfg(test)]
mod tests {
    use super::shows_its_effect;

    #[test]
    fn what_registers_show_is_known() {
        for code in [
            &[0x8b, 0x07][..],                  // mov eax, [rdi]
            &[0x48, 0x89, 0x45, 0xf8],          // mov [rbp-8], rax
            &[0x48, 0x85, 0xc0],                // test rax, rax
            &[0x74, 0xf9],                      // je
            &[0x0f, 0x84, 0, 0, 0, 0],          // je, far
            &[0xf3, 0x90],                      // pause
            &[0xf0, 0x0f, 0xb1, 0x0f],          // lock cmpxchg [rdi], ecx
            &[0x3b, 0x06],                      // cmp eax, [rsi]
            &[0x83, 0x3f, 0x00],                // cmp dword [rdi], 0
            &[0xf0, 0x83, 0x04, 0x24, 0x00],    // lock add dword [rsp], 0
            &[0xf0, 0x83, 0x44, 0x24, 0xc0, 0], // lock add dword [rsp-64], 0
            &[0x41, 0x83, 0xc4, 0x01],          // add r12d, 1
            &[0xe8, 0, 0, 0, 0],                // call
            &[0xc3],                            // ret
            &[0xff, 0xe0],                      // jmp rax
            &[0xc7, 0x45, 0xfc, 0, 0, 0, 0],    // mov dword [rbp-4], 0
            &[0x0f, 0xae, 0xf0],                // mfence
        ] {
            assert!(shows_its_effect(code), "{code:x?}");
        }
    }

    #[test]
    fn what_only_memory_shows_is_not() {
        for code in [
            &[0x83, 0x45, 0xfc, 0x01][..],      // add dword [rbp-4], 1
            &[0x01, 0x14, 0x24],                // add [rsp], edx
            &[0x41, 0x29, 0x16],                // sub [r14], edx
            &[0xff, 0x45, 0xfc],                // inc dword [rbp-4]
            &[0xf0, 0x48, 0xff, 0x07],          // lock inc qword [rdi]
            &[0xf7, 0x5d, 0xfc],                // neg dword [rbp-4]
            &[0xd1, 0x65, 0xfc],                // shl dword [rbp-4], 1
            &[0xf0, 0x83, 0x44, 0x24, 0x00, 1], // lock add dword [rsp], 1
            &[0x0f, 0xba, 0x2f, 0x01],          // bts dword [rdi], 1
            &[0xa4],                            // movsb
            &[0x0f, 0x11, 0x07],                // movups [rdi], xmm0
            &[0xf2, 0x0f, 0x58, 0xc1],          // addsd xmm0, xmm1
            &[0xc5, 0xfe, 0x7f, 0x07],          // vmovdqu [rdi], ymm0
            &[0xdd, 0x07],                      // fld qword [rdi]
            &[0x0f, 0x05],                      // syscall
            &[0x9c],                            // pushf, whose flags are not compared
            &[],
        ] {
            assert!(!shows_its_effect(code), "{code:x?}");
        }
    }
}
