//! Waiting for processes without blocking the event loop, so that Ctrl-C is always heard.
//!
//! A process is ended when its handle is dropped ([`OwnedChild`]), which happens to all of them
//! when the wait is given up.

use super::OwnedChild;
use anyhow::{Context, Result, anyhow, bail};
use std::process::Command;
use std::time::{Duration, Instant};

/// How often a process is looked at.
const POLL_EVERY: Duration = Duration::from_millis(20);
/// How long something that takes seconds may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command to its end, which must be a success.
pub async fn finish(name: &str, command: &mut Command) -> Result<()> {
    let mut child = spawn(name, command)?;
    wait(name, &mut child, PATIENCE).await
}

/// Starts a command.
pub fn spawn(name: &str, command: &mut Command) -> Result<OwnedChild> {
    OwnedChild::spawn(command).with_context(|| format!("cannot start {name}"))
}

/// Waits for a process to end well.
pub async fn wait(name: &str, child: &mut OwnedChild, patience: Duration) -> Result<()> {
    let is_over = until(patience, || child.has_ended()).await;
    if !is_over {
        bail!(
            "{name} does not come to an end after {} s",
            patience.as_secs()
        );
    }
    match child.end() {
        Some(status) if status.success() => Ok(()),
        _ => Err(failure(name, child)),
    }
}

/// Waits until a process that goes on is ready; its end meanwhile is an error.
pub async fn await_ready(
    name: &str,
    child: &mut OwnedChild,
    mut is_ready: impl FnMut(&mut OwnedChild) -> bool,
) -> Result<()> {
    let mut is_over = false;
    let happened = until(PATIENCE, || {
        is_over = child.has_ended();
        is_over || is_ready(child)
    });
    match happened.await {
        false => bail!("{name} is not ready after {} s", PATIENCE.as_secs()),
        true if is_over => Err(failure(name, child)),
        true => Ok(()),
    }
}

/// Whether something happened in time.
async fn until(patience: Duration, mut has_happened: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !has_happened() {
        if start.elapsed() > patience {
            return false;
        }
        tokio::time::sleep(POLL_EVERY).await;
    }
    true
}

/// The error of a process that ended and should not have, with the last line it wrote.
pub fn failure(name: &str, child: &mut OwnedChild) -> anyhow::Error {
    let status = child.end().map(|status| format!(" ({status})"));
    let message = child.message();
    let last = message
        .split(['\n', '\r'])
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    match last {
        Some(line) => anyhow!("{name} failed: {}", line.trim_start_matches("sooner: ")),
        None => anyhow!(
            "{name} ended without a message{}",
            status.unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn a_failure_is_told_by_its_last_line() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo first >&2; echo no room >&2; exit 1"]);
        let error = block_on(finish("it", &mut shell)).unwrap_err();
        assert_eq!(error.to_string(), "it failed: no room");
    }

    #[test]
    fn what_should_go_on_and_ends_is_a_failure() {
        let mut child = spawn("it", Command::new("sh").args(["-c", "exit 0"])).unwrap();
        let error = block_on(await_ready("it", &mut child, |_| false)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it ended without a message (exit status: 0)"
        );
    }
}
