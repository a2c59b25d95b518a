//! The first process in a guest: puts up what programs expect, runs one command of this program,
//! hands on what it writes, and turns the guest off.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use super::{CODE, ERR, OUT, Order, modules};
use crate::machine;

/// Folders of this machine that a guest has afresh.
const FRESH: [&str; 4] = ["/run", "/var/lib", "/var/log", "/dev/shm"];
/// What servers expect there.
const EXPECTED: [&str; 5] = [
    "/run/netns",
    "/run/lock",
    "/var/log/nginx",
    "/var/lib/nginx",
    SCRATCH,
];
/// For what the command writes beside its results.
const SCRATCH: &str = "/run/sooner-scratch";
/// Consoles: what the command says, and what ends with the caller.
const SAYS: &str = "/dev/tty1";
const LIFELINE: &str = "/dev/tty2";
/// How long the command may take to end when the caller is gone.
const END_WAIT: Duration = Duration::from_secs(8);
/// How long the caller may take to hear the exit code.
const HEAR_WAIT: Duration = Duration::from_secs(5);

/// Carries out the order in a file, as the first process of a guest; does not return then.
pub fn run(order: &Path) -> Result<()> {
    ensure!(
        std::process::id() == 1 && machine::is_guest(),
        "this is the first process of a guest, which `sooner lab run NAME --guest` starts"
    );
    let done = carry_out(order);
    if let Err(error) = &done {
        tell(&format!("{ERR}sooner: in the guest: {error:#}\n{CODE}2\n"));
    }
    turn_off()
}

/// Whole lines, so that those of several threads do not mix.
fn tell(lines: &str) {
    static CONSOLE: Mutex<Option<File>> = Mutex::new(None);
    let mut console = CONSOLE.lock().unwrap_or_else(PoisonError::into_inner);
    if console.is_none() {
        *console = OpenOptions::new().write(true).open(SAYS).ok();
    }
    if let Some(console) = console.as_mut() {
        let _ = console.write_all(lines.as_bytes());
    }
}

fn carry_out(order: &Path) -> Result<()> {
    let order = fs::read(order).with_context(|| format!("{}", order.display()))?;
    let order: Order = serde_json::from_slice(&order)?;
    put_up(&order)?;
    let mut child = Command::new(&order.program)
        .args(&order.words)
        .current_dir(&order.folder)
        .env("PATH", &order.path)
        .env("HOME", "/root")
        .env("TMPDIR", SCRATCH)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{}", order.program.display()))?;
    let copies = [
        child.stdout.take().map(|stream| copied(OUT, stream)),
        child.stderr.take().map(|stream| copied(ERR, stream)),
    ];
    let caller = end_with_caller(&child);
    let code = ended(&child);
    for copy in copies.into_iter().flatten() {
        let _ = copy.join();
    }
    tell(&format!("{CODE}{code}\n"));
    // It closes its end when it has heard.
    let mut waited = Duration::ZERO;
    while !caller.is_finished() && waited < HEAR_WAIT {
        let pause = Duration::from_millis(20);
        thread::sleep(pause);
        waited += pause;
    }
    Ok(())
}

/// File systems, modules, the loopback device.
fn put_up(order: &Order) -> Result<()> {
    mount(&["-t", "proc", "proc", "/proc"])?;
    mount(&["-t", "sysfs", "sys", "/sys"])?;
    let covered = |path: &&PathBuf| FRESH.iter().any(|fresh| path.starts_with(fresh));
    let needed = [
        order.program.parent(),
        Some(&order.folder),
        order.modules.as_deref(),
    ];
    let needed: Vec<PathBuf> = needed.into_iter().flatten().map(Path::to_owned).collect();
    for folder in FRESH.iter().filter(|folder| Path::new(folder).is_dir()) {
        mount(&["-t", "tmpfs", "tmp", folder])?;
    }
    for folder in EXPECTED {
        fs::create_dir_all(folder).with_context(|| folder.to_owned())?;
    }
    // Without it some set-ups are refused, which is said then.
    let _ = mount(&["-t", "cgroup2", "cgroup", "/sys/fs/cgroup"]);
    for folder in needed.iter().filter(covered) {
        of_the_host(folder, "ro,")?;
    }
    for folder in &order.writable {
        of_the_host(folder, "")?;
    }
    order.host.keep().context("the machine's name")?;
    let version = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    if let Some(folder) = &order.modules {
        modules::load(&folder.join(version.trim()));
    }
    ran(Command::new("ip").args(["link", "set", "lo", "up"]))
}

/// A folder of the machine with the guest, in its own place.
fn of_the_host(folder: &Path, options: &str) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    let path = folder
        .to_str()
        .context("a folder with a name that is no text")?;
    mount(&[
        "-t",
        "hostfs",
        "-o",
        &format!("{options}{path}"),
        "none",
        path,
    ])
}

fn mount(words: &[&str]) -> Result<()> {
    ran(Command::new("mount").args(words))
}

fn ran(command: &mut Command) -> Result<()> {
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let name = format!("{command:?}");
    let output = command.output().with_context(|| name.clone())?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name}: {}", message.trim());
    Ok(())
}

/// Hands on each line as it comes, behind a letter.
fn copied(letter: char, stream: impl Read + Send + 'static) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(stream.read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line);
            tell(&format!("{letter}{}\n", text.trim_end_matches('\n')));
            line.clear();
        }
    })
}

/// Asks the command to end when the caller's end of the console is closed; the thread ends then.
fn end_with_caller(child: &Child) -> thread::JoinHandle<()> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    thread::spawn(move || {
        if let Ok(mut console) = File::open(LIFELINE) {
            let mut rest = [0; 64];
            while matches!(console.read(&mut rest), Ok(1..)) {}
        }
        let Some(pid) = pid else { return };
        let _ = kill_process(pid, Signal::TERM);
        thread::spawn(move || {
            thread::sleep(END_WAIT);
            let _ = kill_process(pid, Signal::KILL);
        });
    })
}

/// Waits for the command, and for all that lose their parents meanwhile; its exit code.
fn ended(child: &Child) -> u8 {
    let own = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == own => {
                let status = std::process::ExitStatus::from_raw(status.as_raw());
                let by_signal = status.signal().map(|signal| signal + 128);
                let code = status.code().or(by_signal).unwrap_or(1);
                return u8::try_from(code).unwrap_or(1);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 1,
        }
    }
}

/// Ends the guest's kernel.
fn turn_off() -> Result<()> {
    let _ = Command::new("/bin/sync").status();
    fs::write("/proc/sysrq-trigger", "o").context("cannot turn the guest off")?;
    loop {
        thread::sleep(HEAR_WAIT);
    }
}
