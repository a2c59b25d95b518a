//! The BPF programs: compiled once, their object committed, so that neither users nor most
//! developers need clang. Here it is made, and here it is checked that it is what its source says.

use crate::process;
use crate::tally::Tally;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// The name under which the check is counted.
const STEP: &str = "the BPF object";
const SOURCE: &str = "bpf/order.bpf.c";
const OBJECT: &str = "bpf/order.bpf.o";
/// The compiler of the object that is committed: others choose other instructions for the same
/// source.
const CLANG_MAJOR: &str = "14";

/// Compiles the programs and puts the object where it is committed.
pub fn build() -> Result<bool> {
    ensure!(
        is_right_clang()?,
        "clang {CLANG_MAJOR} makes the object that is committed (Debian: clang, llvm, libbpf-dev)"
    );
    compile(Path::new(OBJECT))?;
    println!("{OBJECT} is made");
    Ok(true)
}

/// Whether the committed object has the instructions of its source. Counts as skipped without the
/// compiler.
pub fn check(tally: &mut Tally) -> Result<()> {
    if !["clang", "llvm-objdump"]
        .iter()
        .all(|name| process::is_installed(name))
        || !is_right_clang()?
    {
        let reason =
            format!("no clang {CLANG_MAJOR} with llvm-objdump (Debian: clang, llvm, libbpf-dev)");
        tally.skip(STEP, &reason);
        return Ok(());
    }
    let made = process::root().join("target/order.bpf.o");
    compile(&made)?;
    let is_same = instructions(&made)? == instructions(&process::root().join(OBJECT))?;
    if !is_same {
        println!("{OBJECT} is not what {SOURCE} says: `cargo xtask bpf` makes it anew");
    }
    tally.step(STEP, is_same);
    Ok(())
}

fn compile(object: &Path) -> Result<()> {
    // Where Debian has the kernel's headers of this architecture; the programs use nothing of it
    // but asm/types.h.
    let target = process::output(Command::new("clang").arg("-print-multiarch"))
        .or_else(|_| process::output(Command::new("gcc").arg("-print-multiarch")))
        .unwrap_or_default();
    let headers = format!("-I/usr/include/{}", target.trim());
    let mut clang = Command::new("clang");
    clang
        .current_dir(process::root())
        .args([
            "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror",
        ])
        .args([&headers, "-c", SOURCE, "-o"])
        .arg(object);
    process::output(&mut clang).context(SOURCE)?;
    // Without the compiler's notes for debuggers; the types of the maps stay.
    let mut strip = Command::new("llvm-strip");
    strip.current_dir(process::root()).arg("-g").arg(object);
    process::output(&mut strip).context("llvm-strip")?;
    Ok(())
}

/// The instructions as text, without the first lines, which name the file.
fn instructions(object: &Path) -> Result<String> {
    let text = process::output(Command::new("llvm-objdump").arg("-d").arg(object))?;
    Ok(text.lines().skip(2).collect::<Vec<_>>().join("\n"))
}

fn is_right_clang() -> Result<bool> {
    let version = process::output(Command::new("clang").arg("-dumpversion"))?;
    Ok(version.trim().split('.').next() == Some(CLANG_MAJOR))
}
