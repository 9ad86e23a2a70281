//! What programs see of the processor, where it lets the controller answer `cpuid`; others show themselves as they are.
//!
//! Programs take random numbers from a processor that has some, and no kernel sees that. So this one has none. It also does not tell
//! on which core it is.

use std::arch::x86_64::__cpuid_count;
use std::io;

use libc::pid_t;

use crate::tracee::{self, Registers};

const FEATURES: u32 = 1;
const MORE_FEATURES: u32 = 7;
const CORES: [u32; 2] = [0xb, 0x1f];
const RDRAND: u32 = 1 << 30; // in ecx of the features
const RDSEED: u32 = 1 << 18; // in ebx of more features
const CORE: u32 = 0xff << 24; // in ebx of the features

/// Lets each `cpuid` of a program end with a signal to the controller, if the processor can. The program stands at its first instruction.
pub fn hide_from(tid: pid_t) -> io::Result<()> {
    const SET_CPUID: u64 = 0x1012; // ARCH_SET_CPUID of the kernel
    let result = tracee::call_in(tid, libc::SYS_arch_prctl, [SET_CPUID, 0, 0, 0, 0, 0])?;
    if result < 0 && result != -i64::from(libc::ENODEV) {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    Ok(())
}

/// Carries out `cpuid` for a thread that stands at it.
pub fn identify(registers: &mut Registers) {
    const SIZE: u64 = 2; // bytes of the instruction
    let (leaf, part) = (registers.rax as u32, registers.rcx as u32);
    let mut seen = __cpuid_count(leaf, part);
    match leaf {
        FEATURES => {
            seen.ecx &= !RDRAND;
            seen.ebx &= !CORE;
        }
        MORE_FEATURES if part == 0 => seen.ebx &= !RDSEED,
        leaf if CORES.contains(&leaf) => seen.edx = 0,
        _ => {}
    }
    registers.rax = seen.eax.into();
    registers.rbx = seen.ebx.into();
    registers.rcx = seen.ecx.into();
    registers.rdx = seen.edx.into();
    registers.rip += SIZE;
}

#[cfg(test)]
mod tests {
    use super::{identify, Registers, FEATURES, MORE_FEATURES, RDRAND, RDSEED};

    fn seen(leaf: u32) -> Registers {
        // SAFETY: the struct is plain numbers, for which zeros are values.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        (registers.rax, registers.rip) = (leaf.into(), 100);
        identify(&mut registers);
        registers
    }

    #[test]
    fn a_processor_has_no_random_numbers_and_its_other_features() {
        assert_eq!(seen(FEATURES).rcx & u64::from(RDRAND), 0);
        assert_eq!(seen(MORE_FEATURES).rbx & u64::from(RDSEED), 0);
        assert_ne!(seen(FEATURES).rdx, 0);
        assert_eq!(seen(0).rip, 102);
    }
}
