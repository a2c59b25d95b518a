//! The BPF programs: compiled once, their objects committed, so that neither users nor most
//! developers need clang. Here it is made, and here it is checked that it is what its source says.

use crate::process;
use crate::tally::Tally;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// The name under which the check is counted.
const STEP: &str = "the BPF objects";
/// Each is `bpf/NAME.bpf.c`, and its object beside it.
const NAMES: [&str; 2] = ["order", "workers"];
/// The compiler of the objects that are committed: others choose other instructions for the same
/// source.
const CLANG_MAJOR: &str = "14";

fn source(name: &str) -> String {
    format!("bpf/{name}.bpf.c")
}

fn object(name: &str) -> String {
    format!("bpf/{name}.bpf.o")
}

/// Compiles the programs and puts the objects where they are committed.
pub fn build() -> Result<bool> {
    ensure!(
        is_right_clang()?,
        "clang {CLANG_MAJOR} makes the objects that are committed (Debian: clang, llvm, libbpf-dev)"
    );
    for name in NAMES {
        compile(&source(name), Path::new(&object(name)))?;
        println!("{} is made", object(name));
    }
    Ok(true)
}

/// Whether the committed objects have the instructions of their sources. Counts as skipped without the
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
    let mut are_same = true;
    for name in NAMES {
        let made = process::root().join(format!("target/{name}.bpf.o"));
        let (source, object) = (source(name), object(name));
        compile(&source, &made)?;
        let is_same = instructions(&made)? == instructions(&process::root().join(&object))?;
        if !is_same {
            println!("{object} is not what {source} says: `cargo xtask bpf` makes it anew");
        }
        are_same &= is_same;
    }
    tally.step(STEP, are_same);
    Ok(())
}

fn compile(source: &str, object: &Path) -> Result<()> {
    // Where Debian has the kernel's headers of this architecture; the programs use nothing of it
    // but asm/types.h.
    let target = process::output(Command::new("clang").arg("-print-multiarch"))
        .or_else(|_| process::output(Command::new("gcc").arg("-print-multiarch")))
        .unwrap_or_default();
    let headers = format!("-I/usr/include/{}", target.trim());
    // The object names the sources: alike wherever the clone is.
    let places = format!("-ffile-prefix-map={}/=", process::root().display());
    let mut clang = Command::new("clang");
    clang
        .current_dir(process::root())
        .args([
            "-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror",
        ])
        .args(["-fdebug-compilation-dir=.", &places])
        .args([&headers, "-c", source, "-o"])
        .arg(object);
    process::output(&mut clang).context(source.to_owned())?;
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
