//! Compiles the stand-in for the vDSO. It is a part of the binary, so that the controller is one file.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=vdso");
    let library = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("vdso.so");
    let flags = [
        "-O2",
        "-fPIC",
        "-fno-stack-protector",
        "-fno-asynchronous-unwind-tables",
        "-fcf-protection=none",
        "-mno-sse",
        "-nostdlib",
        "-shared",
        "-Wl,-soname=linux-vdso.so.1",
        "-Wl,--hash-style=both",
        "-Wl,-Bsymbolic",
        "-Wl,-T,vdso/vdso.lds",
        "vdso/vdso.c",
        "-o",
    ];
    let status = Command::new(env::var("CC").unwrap_or_else(|_| "cc".into())).args(flags).arg(&library).status();
    assert!(status.is_ok_and(|status| status.success()), "expected a C compiler that makes {}", library.display());
}
