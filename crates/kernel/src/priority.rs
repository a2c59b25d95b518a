//! Which processes the processor goes to first: other processes' scheduling, set and put back.
//!
//! Three means. Real-time round robin goes before everything ordinary, and needs a budget in the
//! process's control group. The nice value of an autogroup weighs a whole session of processes
//! against other sessions, in the root control group where autogroups are on. The nice value of a
//! process weighs it inside its autogroup or control group.

use std::fs;
use std::io;

use rustix::process::{Pid, getpriority_process, setpriority_process};

use crate::raw;

/// What marks real time that was set from here.
const FLAGS: libc::c_int = libc::SCHED_RESET_ON_FORK;

fn pid_of(process: u32) -> io::Result<Pid> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Gives a process's first thread real time, round robin, at a priority from 1 to 99. What it
/// starts is ordinary.
pub fn set_round_robin(process: u32, priority: u8) -> io::Result<()> {
    let thread = pid_of(process)?.as_raw_nonzero().get();
    raw::set_scheduler(thread, libc::SCHED_RR | FLAGS, priority.into())
}

/// The ordinary policies, as the kernel numbers them: the usual one, `SCHED_BATCH`, `SCHED_IDLE`.
const ORDINARY: [libc::c_int; 3] = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
/// That of work that waits a little to disturb less.
pub const BATCH: i32 = libc::SCHED_BATCH;
/// That of work that gets what others leave; nice values have no effect on it.
pub const IDLE: i32 = libc::SCHED_IDLE;

/// Which of the ordinary policies a process's first thread has; an error where it has real time.
pub fn ordinary(process: u32) -> io::Result<i32> {
    let thread = pid_of(process)?.as_raw_nonzero().get();
    let policy = raw::scheduler(thread)?.0 & !libc::SCHED_RESET_ON_FORK;
    let other = || io::Error::other("it has real time already, or a deadline");
    ORDINARY
        .contains(&policy)
        .then_some(policy)
        .ok_or_else(other)
}

/// Gives a process's first thread an ordinary policy. Without `CAP_SYS_NICE` what it starts stays
/// ordinary in any case: only a privileged one may take that back.
pub fn set_ordinary(process: u32, policy: i32) -> io::Result<()> {
    if !ORDINARY.contains(&policy) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let thread = pid_of(process)?.as_raw_nonzero().get();
    let set = |flags| raw::set_scheduler(thread, policy | flags, 0);
    match set(0) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            set(libc::SCHED_RESET_ON_FORK)
        }
        set => set,
    }
}

/// Gives a thread an ordinary policy and a nice value from -20 to 19. What it begins has a nice
/// value of 0 at the lowest.
pub fn set_ordinary_alone(process: u32, policy: i32, nice: i32) -> io::Result<()> {
    if !ORDINARY.contains(&policy) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let thread = pid_of(process)?.as_raw_nonzero().get();
    raw::set_ordinary_attributes(thread, policy, nice)
}

/// Whether what a process begins does not get its priority.
pub fn is_alone(process: u32) -> io::Result<bool> {
    let thread = pid_of(process)?.as_raw_nonzero().get();
    Ok(raw::scheduler(thread)?.0 & libc::SCHED_RESET_ON_FORK != 0)
}

/// Whether the kernel keeps something of each processor for others than real time.
pub fn real_time_is_bounded() -> bool {
    let most = fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us");
    // A kernel that does not say so has no way to switch it off.
    most.map_or(true, |text| is_bounded(&text))
}

/// -1 is without a bound.
fn is_bounded(runtime_us: &str) -> bool {
    !runtime_us.trim_start().starts_with('-')
}

/// Whether a process's first thread has real time of the kind that [`set_round_robin`] gives.
pub fn has_round_robin(process: u32) -> io::Result<bool> {
    let thread = pid_of(process)?.as_raw_nonzero().get();
    let (policy, _) = raw::scheduler(thread)?;
    Ok(policy == libc::SCHED_RR | FLAGS)
}

/// Sets a process's nice value, -20 to 19.
pub fn set_nice(process: u32, nice: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(pid_of(process)?), nice)?)
}

/// A process's nice value.
pub fn nice(process: u32) -> io::Result<i32> {
    Ok(getpriority_process(Some(pid_of(process)?))?)
}

/// Sets the nice value of a process's autogroup, -20 to 19.
pub fn set_autogroup(process: u32, nice: i32) -> io::Result<()> {
    fs::write(format!("/proc/{process}/autogroup"), nice.to_string())
}

/// The nice value of a process's autogroup; an error where the kernel has none.
pub fn autogroup(process: u32) -> io::Result<i32> {
    let text = fs::read_to_string(format!("/proc/{process}/autogroup"))?;
    nice_of(&text).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// What a process's autogroup is called; an error where the kernel has none.
pub fn autogroup_name(process: u32) -> io::Result<String> {
    let text = fs::read_to_string(format!("/proc/{process}/autogroup"))?;
    let name = text.split_ascii_whitespace().next();
    name.map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// `/autogroup-77 nice 0`; nothing for processes in none.
fn nice_of(text: &str) -> Option<i32> {
    let (_, nice) = text.trim_end().rsplit_once(" nice ")?;
    nice.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_is_set_is_read_and_put_back() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        assert!(!has_round_robin(pid).unwrap());
        assert!(set_ordinary(pid, libc::SCHED_FIFO).is_err());
        for policy in [ordinary(pid).unwrap(), BATCH] {
            set_ordinary(pid, policy).unwrap();
            match set_round_robin(pid, 2) {
                Ok(()) => {
                    assert!(has_round_robin(pid).unwrap() && ordinary(pid).is_err());
                    set_ordinary(pid, policy).unwrap();
                    assert!(!has_round_robin(pid).unwrap());
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
            }
            assert_eq!(ordinary(pid).unwrap(), policy);
        }
        let before = nice(pid).unwrap();
        set_nice(pid, before + 1).unwrap();
        assert_eq!(nice(pid).unwrap(), before + 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(nice(u32::MAX).is_err());
    }

    #[test]
    fn real_time_without_a_bound_is_seen() {
        assert!(is_bounded("950000\n") && !is_bounded("-1\n"));
    }

    #[test]
    fn an_autogroups_nice_value_is_its_last_word() {
        assert_eq!(nice_of("/autogroup-77 nice -20\n"), Some(-20));
        assert_eq!(nice_of(""), None);
    }
}
