//! Running other programs: what they print passes through to this terminal and is kept for reading.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A program that has ended.
pub struct Finished {
    /// Whether its exit code was 0.
    pub success: bool,
    /// Standard output, then standard error, by line.
    pub lines: Vec<String>,
}

/// The workspace's root folder.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// `cargo` (the one that started us) with these arguments, in the workspace's root.
pub fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    // What `cargo run` says of xtask would make build scripts that look at it run anew.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    // What is built once and thrown away needs no notes for the next time, and not many small units
    // that are built anew one by one: all of them together are more work.
    if std::env::var_os("CI").is_some() {
        command.env("CARGO_INCREMENTAL", "0");
        command.env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "2");
    }
    command
}

/// The same command, run only while no other process wants a processor; where `chrt` is missing, at
/// the lowest priority.
pub fn at_idle(command: &Command) -> Command {
    let words: &[&str] = if is_installed("chrt") {
        &["chrt", "--idle", "0"]
    } else {
        &["nice", "-n", "19"]
    };
    let mut idle = Command::new(words[0]);
    idle.args(&words[1..])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        idle.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => idle.env(name, value),
            None => idle.env_remove(name),
        };
    }
    idle
}

/// Runs a command to its end, passing on and keeping what it prints.
pub fn run(command: &mut Command) -> io::Result<Finished> {
    eprintln!("$ {}", shown(command));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let lines = thread::scope(|scope| {
        let err = scope.spawn(|| pass_on(err, &mut io::stderr()));
        let mut lines = pass_on(out, &mut io::stdout());
        lines.extend(err.join().unwrap_or_default());
        lines
    });
    Ok(Finished {
        success: child.wait()?.success(),
        lines,
    })
}

/// Runs a command to its end, keeping its standard output to itself.
pub fn run_showing_errors(command: &mut Command) -> io::Result<Finished> {
    eprintln!("$ {}", shown(command));
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    Ok(Finished {
        success: output.status.success(),
        lines: lines(&output.stdout),
    })
}

/// Runs a command to its end, keeping what it prints to itself.
pub fn run_quietly(command: &mut Command) -> io::Result<Finished> {
    let output = command.stdin(Stdio::null()).output()?;
    Ok(Finished {
        success: output.status.success(),
        lines: [lines(&output.stdout), lines(&output.stderr)].concat(),
    })
}

fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::to_owned).collect()
}

/// Runs a command quietly and returns its standard output; an error says what it wrote to standard
/// error.
pub fn output(command: &mut Command) -> io::Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!(
        "`{}` failed: {}",
        shown(command),
        said.trim()
    )))
}

/// Whether a program of this name is on the PATH (or in the system folders a plain user's PATH
/// lacks).
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .any(|folder| folder.join(program).is_file())
}

/// The command as a line: its program and its arguments.
pub fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let words = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(name.to_string_lossy())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn pass_on(from: Option<impl Read>, to: &mut impl Write) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(from) = from else { return lines };
    let mut reader = BufReader::new(from);
    let mut line = Vec::new();
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
        // A closed terminal must not stop the tests: what was read is still counted.
        let _ = to.write_all(&line);
        lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    lines
}
