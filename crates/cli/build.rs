//! How the binary is linked, where that makes it smaller in memory.
//!
//! A process pays for every page of the binary that it touches, and for each of its relocations. Two linker options help,
//! and each is used only where it surely works:
//! - `--icf=all`: equal functions, of which generic code makes many, are one. It needs `lld`, which is what the toolchain
//!   itself links with on `x86_64-unknown-linux-gnu`, unless somebody has chosen another linker.
//! - `-z pack-relative-relocs`: relocations take a bit each in place of 24 bytes. It needs glibc 2.36 where the binary runs;
//!   so only a binary that is built for the machine it is built on has them.
use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let set = |name: &str| env::var(name).unwrap_or_default();
    let (target, host, flags) = (set("TARGET"), set("HOST"), set("CARGO_ENCODED_RUSTFLAGS"));
    let own_linker = set("RUSTC_LINKER").is_empty() && !flags.contains("link");
    if target != "x86_64-unknown-linux-gnu" || !own_linker {
        return;
    }
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    if target == host && glibc().is_some_and(|it| it >= (2, 36)) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The machine's own C library.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
