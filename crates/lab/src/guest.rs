//! A guest: a kernel with every queueing discipline as an ordinary program (user-mode Linux), for
//! machines with a kernel that lacks some.
//!
//! The guest has this machine's files, read-only but for the folders of results, and one processor.
//! Its first process is this program again ([`init`]), which runs the same `sooner lab run` as its
//! caller and hands on what that writes; so programs need not be installed twice, and privilege is
//! needed only inside. The caller holds the guest's third console open. When that ends, by Ctrl-C or
//! because the caller was killed, the command inside is ended and the guest with it.
//!
//! A system call costs some 16 us there, and programs of BPF that need a JIT do not run.

pub mod init;
mod kernel;
mod modules;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::thread::CpuSet;
use serde::{Deserialize, Serialize};
use sooner_kernel::signals::EndSignals;
use sooner_testbed::program;
use sooner_testbed::scratch::Scratch;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::machine;
pub use kernel::Kernel;

/// What the guest may take of this machine's memory, most of it for what servers send.
const MEMORY: &str = "1200M";
/// Where programs are if the caller does not say.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long a guest may take to end after it was told to.
const END_WAIT: Duration = Duration::from_secs(20);
/// What a guest's kernel said last is told when it ends by itself.
const LAST_LINES: usize = 5;
/// How a kernel says why it ends; the stack that it prints behind that says little.
const PANIC: &str = "Kernel panic";
/// What a line from the guest begins with: what its command wrote where, and how it ended.
const OUT: char = 'o';
const ERR: char = 'e';
const CODE: char = 'x';

/// A command of this program and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// This program.
    pub program: PathBuf,
    /// Its words.
    pub words: Vec<String>,
    /// The folders it writes to; they exist.
    pub writable: Vec<PathBuf>,
}

/// What the first process in the guest is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    program: PathBuf,
    words: Vec<String>,
    folder: PathBuf,
    /// Where programs are.
    path: String,
    writable: Vec<PathBuf>,
    /// The modules of the guest's kernel, in a folder for each version.
    modules: Option<PathBuf>,
    /// The machine with the guest, as reports and folders name it.
    host: machine::Host,
}

/// What the command in the guest wrote.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    /// A line of standard output.
    Out(String),
    /// A line of standard error.
    Err(String),
}

/// Runs the job in a guest, telling what it writes as it goes; its exit code. SIGINT, SIGTERM and
/// SIGHUP end it, and the guest.
pub fn run(kernel: &Kernel, job: &Job, tell: &mut dyn FnMut(Said)) -> Result<u8> {
    let scratch = Scratch::new()?;
    let order = Order {
        program: job.program.clone(),
        words: job.words.clone(),
        folder: std::env::current_dir().context("cannot find the current directory")?,
        path: std::env::var("PATH").unwrap_or_else(|_| PATH.into()),
        writable: job.writable.clone(),
        modules: kernel.modules.clone(),
        host: machine::Host::here(),
    };
    // Without a space in its name, whatever the program's is.
    std::os::unix::fs::symlink(&job.program, scratch.path().join("sooner"))?;
    std::fs::write(scratch.path().join("order"), serde_json::to_vec(&order)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(until_ended(command(kernel, scratch.path()), tell))
}

/// The guest's own command line.
fn command(kernel: &Kernel, scratch: &Path) -> Command {
    let own = scratch.display();
    // Before everything else on this machine: a guest that waits is late as a whole.
    let mut command = match program::find(&["chrt"]).filter(|_| may_go_first()) {
        Some(chrt) => {
            let mut command = Command::new(chrt);
            command.args(["-r", "1"]).arg(&kernel.program);
            command
        }
        None => Command::new(&kernel.program),
    };
    command
        .arg("umid=guest")
        .arg(format!("uml_dir={own}/"))
        .arg(format!("mem={MEMORY}"))
        .args([
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "quiet",
        ])
        // What the kernel says, what the command says, whether we are still there.
        .args([
            "con0=null,fd:2",
            "con1=null,fd:1",
            "con2=fd:0,null",
            "con=null",
        ])
        .arg(format!("init={own}/sooner"))
        .args(["--", "lab", "guest"])
        .arg(scratch.join("order"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C reaches only us.
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// Whether this process may give others real time.
fn may_go_first() -> bool {
    sooner_kernel::scheduling::RealTime::enter().is_ok()
}

async fn until_ended(mut command: Command, tell: &mut dyn FnMut(Said)) -> Result<u8> {
    let mut signals = EndSignals::listen()?;
    let mut guest = command.spawn().context("cannot start the guest's kernel")?;
    keep_on_one_processor(&guest);
    let mut held = guest.stdin.take();
    let mut said = lines(guest.stdout.take())?;
    let mut complained = lines(guest.stderr.take())?;
    let mut last = VecDeque::new();
    let mut told_to_end = false;
    let code = loop {
        tokio::select! {
            biased;
            _ = signals.next(), if !told_to_end => {
                told_to_end = true;
                held = None;
            }
            line = complained.next_line() => match line? {
                Some(line) => keep(&mut last, line),
                None => break None,
            },
            line = next_within(&mut said, told_to_end) => match line?.map(|line| read(&line)) {
                Some(Read::Said(line)) => tell(line),
                Some(Read::Ended(code)) => break Some(code),
                Some(Read::Other(line)) => keep(&mut last, line),
                None => break None,
            },
        }
    };
    drop(held);
    end(guest).await;
    match code {
        Some(code) => Ok(code),
        None if told_to_end => bail!("interrupted; the guest was ended"),
        None => bail!(
            "the guest ended before its command did: {}",
            Vec::from(last).join("; ")
        ),
    }
}

/// A guest's processes hand over to each other at every system call. On one processor that takes
/// half as long (16 and 28 to 31 us measured), because no other one has to be woken.
fn keep_on_one_processor(guest: &Child) {
    let pid = guest.id().and_then(|id| i32::try_from(id).ok());
    let pid = pid.and_then(rustix::process::Pid::from_raw);
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return;
    };
    let last = (0..CpuSet::MAX_CPU).rfind(|cpu| allowed.is_set(*cpu));
    if let (Some(pid), Some(last)) = (pid, last) {
        let mut one = CpuSet::new();
        one.set(last);
        // Where it is refused the guest is only slower.
        let _ = rustix::thread::sched_setaffinity(Some(pid), &one);
    }
}

/// The next line; none at the end, or where a guest that was told to end says nothing more.
async fn next_within(
    lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>,
    is_ending: bool,
) -> std::io::Result<Option<String>> {
    match is_ending {
        false => lines.next_line().await,
        true => timeout(END_WAIT, lines.next_line())
            .await
            .unwrap_or(Ok(None)),
    }
}

fn lines<T: AsyncRead + Unpin>(stream: Option<T>) -> Result<Lines<BufReader<T>>> {
    Ok(BufReader::new(stream.context("the guest has no output")?).lines())
}

/// Waits for the guest's end, and then for nothing more of it.
async fn end(mut guest: Child) {
    let group = guest.id().and_then(|id| i32::try_from(id).ok());
    let ended = timeout(END_WAIT, guest.wait()).await;
    // Its processes are our machine's processes: one that is left would never end.
    if let (Err(_), Some(group)) = (ended, group.and_then(rustix::process::Pid::from_raw)) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = guest.wait().await;
    }
}

/// A line of the guest's.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Said(Said),
    Ended(u8),
    /// Not from the command.
    Other(String),
}

fn read(line: &str) -> Read {
    // Consoles end lines as terminals do.
    let line = line.trim_end_matches('\r');
    let mut letters = line.chars();
    let (first, rest) = (letters.next(), letters.as_str());
    match (first, rest.parse()) {
        (Some(CODE), Ok(code)) => Read::Ended(code),
        (Some(OUT), _) => Read::Said(Said::Out(rest.to_owned())),
        (Some(ERR), _) => Read::Said(Said::Err(rest.to_owned())),
        _ => Read::Other(line.to_owned()),
    }
}

fn keep(last: &mut VecDeque<String>, line: String) {
    let line = line.trim_end().to_owned();
    let has_why = last.iter().any(|line: &String| line.contains(PANIC));
    if line.is_empty() || has_why {
        return;
    }
    last.push_back(line);
    if last.len() > LAST_LINES {
        last.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_where_they_belong() {
        assert_eq!(read("oa  b\r"), Read::Said(Said::Out("a  b".into())));
        assert_eq!(read("e"), Read::Said(Said::Err(String::new())));
        assert_eq!(read("x3"), Read::Ended(3));
        assert_eq!(read("xa"), Read::Other("xa".into()));
        assert_eq!(read(""), Read::Other(String::new()));
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let mut last = VecDeque::new();
        for number in 0..9 {
            keep(&mut last, format!("{number}\r"));
            keep(&mut last, String::new());
        }
        keep(&mut last, "Kernel panic - not syncing".into());
        keep(&mut last, "Stack:".into());
        let kept = ["5", "6", "7", "8", "Kernel panic - not syncing"];
        assert_eq!(Vec::from(last), kept);
    }
}
