//! One emulator as a process: makes the devices, says so, carries packets until it is told to end,
//! and reports.

use std::io;
use std::io::Read;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, ensure};
use sooner_kernel::clock::monotonic_ns;
use sooner_kernel::process::thread_cpu_time_ns;
use sooner_kernel::readiness::Wake;
use sooner_kernel::scheduling::RealTime;
use sooner_kernel::tun::Tun;
use sooner_kernel::{capability, device, netns, timer};
use thiserror::Error;
use tokio::sync::oneshot;

use sooner_kernel::signals::EndSignals;

use super::core::{Bounds, Direction, Emulator};
use super::forward::{self, Devices};
use super::path::Client;
use super::report::{DeviceCounts, Report, Running};
use crate::said::say;

/// Packets that may wait in a device until the emulator reads them: a second of 100 Mbit/s, so that
/// not even a long pause loses any.
const QUEUE_PACKETS_MAX: u32 = 10_000;

/// What to emulate, between which namespaces.
#[derive(Debug, Clone)]
pub struct EmulateOptions {
    /// Where packets to clients come from, as `ip netns` names it.
    pub router_namespace: String,
    /// Where the clients are.
    pub client_namespace: String,
    /// Name of the device in both of them.
    pub device: String,
    /// The paths.
    pub clients: Vec<Client>,
    /// Seed of the losses.
    pub seed: u64,
    /// Whether the end of standard input is the end of the emulator: with a pipe from its parent it
    /// never outlives that.
    pub ends_with_stdin: bool,
}

/// The device was removed under the emulator: the one failure after it said that it is ready.
#[derive(Debug, Error)]
#[error("device {0} is gone while the emulator runs")]
pub struct DeviceGone(String);

/// Says what is missing where this process may not make devices in network namespaces.
pub fn ensure_allowed() -> Result<()> {
    ensure!(
        capability::has_net_admin() && capability::has_sys_admin(),
        "emulated paths need root with CAP_NET_ADMIN and CAP_SYS_ADMIN, for TUN devices in network namespaces; `sooner demo` needs neither"
    );
    Ok(())
}

/// Runs until SIGTERM, SIGINT or SIGHUP (or the end of standard input, if asked); `ready` is called
/// once when both devices exist.
pub fn run(options: &EmulateOptions, ready: fn() -> io::Result<()>) -> Result<Report> {
    ensure_allowed()?;
    let emulator = Emulator::new(&options.clients, options.seed, Bounds::default())?;
    let stop = Arc::new(Wake::new()?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let mut signals = EndSignals::listen()?;
        let closed = stdin_closed(options.ends_with_stdin);
        let (running, ended) = oneshot::channel::<()>();
        let (thread_options, thread_stop) = (options.clone(), Arc::clone(&stop));
        let worker = thread::Builder::new()
            .name("emulator".to_owned())
            .spawn(move || {
                let report = carry(&thread_options, emulator, &thread_stop, ready);
                drop(running);
                report
            })?;
        tokio::select! {
            _ = signals.next() => {}
            () = closed => {}
            // The worker ended by itself: its error is below.
            _ = ended => {}
        }
        stop.wake();
        worker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Resolves at the end of standard input; never unless the caller requests that.
async fn stdin_closed(is_asked: bool) {
    if !is_asked {
        return std::future::pending().await;
    }
    let (open, closed) = oneshot::channel::<()>();
    // Left behind blocked in its read when something else ends the emulator; it ends with the
    // process.
    thread::spawn(move || {
        // What is read means nothing, and an error is an end as well.
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        drop(open);
    });
    // An error is what dropping the other end gives.
    let _ = closed.await;
}

/// The worker's whole life: enters the namespaces, makes the devices, carries packets.
fn carry(
    options: &EmulateOptions,
    mut emulator: Emulator,
    stop: &Wake,
    ready: fn() -> io::Result<()>,
) -> Result<Report> {
    let devices = Devices {
        router: open(&options.router_namespace, &options.device)?,
        client: open(&options.client_namespace, &options.device)?,
    };
    timer::set_timer_slack_ns(1)?;
    let realtime = RealTime::enter();
    if let Err(error) = &realtime {
        say(format_args!(
            "sooner: emulate: no real-time priority ({error}), so packets may be released milliseconds late on a busy machine; \
             give it CAP_SYS_NICE"
        ));
    }
    ready().context("cannot say that the devices exist")?;
    let (start_ns, start_cpu_ns) = (monotonic_ns(), thread_cpu_time_ns());
    let refused_packets = forward::until(stop, &mut emulator, &devices)
        .with_context(|| DeviceGone(options.device.clone()))?;
    let elapsed_ns = monotonic_ns() - start_ns;
    let cpu_ns = thread_cpu_time_ns() - start_cpu_ns;
    let namespaces = [&options.router_namespace, &options.client_namespace];
    let device_counts = Direction::BOTH.map(|direction| DeviceCounts {
        unread_packets: unread_packets(namespaces[direction.index()], &options.device),
        refused_packets: refused_packets[direction.index()],
    });
    let running = Running {
        realtime: realtime.is_ok(),
        elapsed_ns,
        cpu_ns,
        devices: device_counts,
    };
    Ok(Report::new(
        &emulator,
        &options.clients,
        options.seed,
        running,
    ))
}

/// Makes the device in the namespace, with a queue long enough.
fn open(namespace: &str, name: &str) -> Result<Tun> {
    netns::enter(namespace)?;
    let tun = Tun::open(name).with_context(|| format!("network namespace {namespace}"))?;
    device::by_name(name)?
        .set_queue_packets_max(QUEUE_PACKETS_MAX)
        .with_context(|| format!("cannot set the queue length of {name} in {namespace}"))?;
    Ok(tun)
}

/// What the device dropped; `None` when its namespace was removed already.
fn unread_packets(namespace: &str, name: &str) -> Option<u64> {
    netns::enter(namespace).ok()?;
    device::by_name(name).ok()?.tx_dropped_packets().ok()
}
