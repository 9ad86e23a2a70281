//! Compiles the stand-in for the vDSO, and the code that answers calls within programs. Both are parts of the binary, so that the
//! controller is one file.

use std::env;
use std::path::PathBuf;
use std::process::Command;

const BOTH: [&str; 6] = [
    "-O2",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fcf-protection=none",
    "-mno-sse",
    "-nostdlib",
];

fn main() {
    println!("cargo:rerun-if-changed=vdso");
    let library = [
        "-fPIC",
        "-shared",
        "-Wl,-soname=linux-vdso.so.1",
        "-Wl,--hash-style=both",
        "-Wl,-Bsymbolic",
        "-Wl,-T,vdso/vdso.lds",
        "vdso/vdso.c",
    ];
    let code = [
        "-fPIE",
        "-static",
        "-no-pie",
        "-mgeneral-regs-only",
        "-fno-jump-tables",
        "-Wl,--oformat=binary",
        "-Wl,--build-id=none",
        "-Wl,-T,vdso/fast.lds",
        "vdso/fast.c",
    ];
    make(&library, "vdso.so");
    make(&code, "fast.bin");
}

fn make(flags: &[&str], name: &str) {
    let product = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join(name);
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let status = Command::new(compiler).args(BOTH).args(flags).arg("-o").arg(&product).status();
    assert!(status.is_ok_and(|status| status.success()), "expected a C compiler that makes {}", product.display());
}
