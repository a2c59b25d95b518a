//! Strict priorities on a device, eight unless the caller requests fewer: whatever waits in a lower
//! band goes only when nothing waits above it.
//!
//! The root qdisc becomes a HTB at the uplink's rate with a leaf for each. A socket chooses its
//! leaf by `SO_PRIORITY` ([`Bands::priority_of`]); packets without a mark, SYN-ACKs among them,
//! take the top band, so that a saturated lower band cannot delay a handshake. Needs
//! `CAP_NET_ADMIN`, as does the marking.
//!
//! **Guarantees.** Each leaf is guaranteed one frame in 100 ms (at least a thousandth of the rate,
//! at most a 64th; never less than 8 kbit/s): no band falls silent, and no packet waits so long
//! that TCP takes it for lost, sends less, and leaves the link idle later. Everything else goes to
//! the highest band that has something to send, and each may use the whole rate.
//!
//! **Super-packets.** TCP hands a device packets of up to 64 KB, 52 ms at 10 Mbit/s, and HTB sends
//! them whole. While the bands are there, a super-packet is limited to 250 us of the rate (500 us
//! from 1 Gbit/s on), one frame at least; connections older than the bands keep theirs.
//!
//! **What is replaced.** A root qdisc with handle 0: is the kernel's default (noqueue, fq_codel,
//! pfifo_fast, on devices with several hardware queues mq) and comes back by itself when ours goes.
//! On such a device the one HTB serves all hardware queues, behind one lock. A configured qdisc is
//! refused unless [`Replace::Yes`]; then it comes back with its options, where it is of a kind
//! without classes and the kernel takes the options that it tells ([`comes_back`]); so does what
//! stands inside a tbf.
//!
//! **What remains.** Dropping [`Bands`] restores everything. After a kill, [`remove_leftovers`]
//! does: an owner holds a socket name of the network namespace (abstract, freed by the kernel when
//! the process dies), and a file in `/run/sooner` (for other users than root in
//! `$RUNTIME_DIRECTORY` or `$XDG_RUNTIME_DIR/sooner`) says what to restore.

mod error;
mod leftovers;
mod moved;
mod owner;
mod plan;
mod record;
mod replaced;

use std::io;

use crate::capability;
use crate::device::Device;
use crate::netlink::Connection;
use crate::netlink::link::GsoLimits;
use crate::netlink::traffic::{Counters, QdiscReply, ROOT};
use crate::qdisc::{self, Root};
pub use error::BandsError;
pub(crate) use error::unless_gone;
pub use leftovers::{
    Became, Left, devices_left_changed, remove_leftovers, remove_leftovers_of, restore_strays,
};
pub(crate) use owner::Ownership;
pub use plan::{BAND_COUNT, BAND_COUNT_MIN, LOWER_SHARE_PER_MILLE_MAX};
use plan::{DEFAULT_MINOR, HANDLE, Plan, leaf_handle};
use record::Record;
pub use record::runtime_folder;
pub use replaced::comes_back;
use replaced::replaced;

/// Whether a qdisc that the operator configured may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Refuse with [`BandsError::Configured`].
    No,
    /// Replace it; it comes back where [`comes_back`] says so.
    Yes,
}

/// How many bands, and how they divide the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandsOptions {
    /// The uplink's rate.
    pub rate_bits_per_sec: u64,
    /// How many, [`BAND_COUNT_MIN`] to [`BAND_COUNT`].
    pub bands: u8,
    /// What all bands below the top are guaranteed together, thousandths of the link, in equal
    /// parts; at most [`LOWER_SHARE_PER_MILLE_MAX`]. Less than what keeps TCP alive is not given.
    pub lower_share_per_mille: u16,
    /// Whether the bands limit the link to the rate; else a limiter behind them does, and they only
    /// order (sch_prio).
    pub limits_rate: bool,
    /// The rate by which super-packets are limited, where the link's own will change; none: the
    /// link's own.
    pub gso_rate_bits_per_sec: Option<u64>,
    /// Whether a configured qdisc may be replaced.
    pub replace: Replace,
}

impl BandsOptions {
    /// All bands, without a share for the lower ones, and not in place of anything configured.
    pub fn at_rate(rate_bits_per_sec: u64) -> BandsOptions {
        BandsOptions {
            rate_bits_per_sec,
            bands: BAND_COUNT as u8,
            lower_share_per_mille: 0,
            limits_rate: true,
            gso_rate_bits_per_sec: None,
            replace: Replace::No,
        }
    }
}

/// What has become of bands that were installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// They are there, as far as can be told.
    There,
    /// Another program took them away; what the device has instead.
    TakenAway(String),
    /// Their device is gone, or in another network namespace.
    DeviceGone,
}

/// What went through one band since it was installed, link headers included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BandStats {
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets the band's queue had no room for.
    pub drops: u64,
    /// Bytes that wait.
    pub backlog_bytes: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
}

/// The bands of one device; they go when this is dropped.
#[derive(Debug)]
pub struct Bands {
    device: Device,
    /// What was asked for, with the rate of now.
    options: BandsOptions,
    connection: Connection,
    record: Record,
    /// Held until everything is restored.
    _ownership: Ownership,
    installed: bool,
}

impl Bands {
    /// Puts the bands on a device with an uplink of this rate. Nothing is changed when it fails.
    pub fn install(
        device: &Device,
        rate_bits_per_sec: u64,
        replace: Replace,
    ) -> Result<Bands, BandsError> {
        refuse_loopback(device)?;
        Bands::install_even_on_loopback(device, rate_bits_per_sec, replace)
    }

    /// [`Bands::install`] with fewer bands than all, or a share for the lower ones.
    pub fn install_as(device: &Device, options: BandsOptions) -> Result<Bands, BandsError> {
        refuse_loopback(device)?;
        Bands::put_on(device, options)
    }

    /// [`Bands::install`] without its refusal of loopback, where bands delay everything this host
    /// says to itself.
    pub fn install_even_on_loopback(
        device: &Device,
        rate_bits_per_sec: u64,
        replace: Replace,
    ) -> Result<Bands, BandsError> {
        let options = BandsOptions {
            replace,
            ..BandsOptions::at_rate(rate_bits_per_sec)
        };
        Bands::put_on(device, options)
    }

    fn put_on(device: &Device, options: BandsOptions) -> Result<Bands, BandsError> {
        let BandsOptions {
            rate_bits_per_sec,
            bands,
            lower_share_per_mille,
            limits_rate,
            gso_rate_bits_per_sec,
            replace,
        } = options;
        let frame_bytes = device.frame_bytes();
        let plan = Plan::new(rate_bits_per_sec, frame_bytes, bands, lower_share_per_mille)?;
        let gso_rate = gso_rate_bits_per_sec.unwrap_or(rate_bits_per_sec);
        let gso_plan = Plan::new(gso_rate, frame_bytes, bands, lower_share_per_mille)?;
        if !capability::has_net_admin() {
            return Err(BandsError::NotPermitted {
                device: device.name.clone(),
            });
        }
        let mut connection =
            Connection::open().map_err(|source| BandsError::kernel("ask about", device, source))?;
        let ownership = Ownership::take(device)?;
        let left = leftovers::restore(&mut connection, device)?;
        if left == Some(Became::Untouched) {
            let device = device.name.clone();
            return Err(BandsError::OfAnotherUser(Left {
                device,
                became: Became::Untouched,
            }));
        }
        refuse_configured(&mut connection, device, replace)?;
        let replaced = replaced(&mut connection, device)?.come_back;
        let previous = connection
            .link(device.index)
            .map_err(|source| BandsError::kernel("ask about", device, source))?
            .gso;
        let record = Record::write(device, previous, gso_plan.gso_limits(previous), replaced)?;
        let mut bands = Bands {
            device: device.clone(),
            options,
            connection,
            record,
            _ownership: ownership,
            installed: true,
        };
        let (step, put_up) = if limits_rate {
            (error::PUT_UP, bands.put_up(&plan, replace))
        } else {
            (
                error::PUT_UP_PRIO,
                bands.put_up_without_limit(&plan, replace),
            )
        };
        match put_up {
            Ok(()) => Ok(bands),
            Err(source) => Err(BandsError::kernel(step, device, source)),
        }
    }

    /// Whether [`Bands::install`] would work now, without changing anything.
    pub fn check(device: &Device, replace: Replace) -> Result<(), BandsError> {
        refuse_loopback(device)?;
        if !capability::has_net_admin() {
            return Err(BandsError::NotPermitted {
                device: device.name.clone(),
            });
        }
        let _ownership = Ownership::take(device)?;
        let mut connection =
            Connection::open().map_err(|source| BandsError::kernel("ask about", device, source))?;
        refuse_configured(&mut connection, device, replace)
    }

    /// The `SO_PRIORITY` that selects a band: 0 is the top, the last one installed the lowest.
    /// Packets for a band that is not installed go to the top, as those without a mark do.
    pub fn priority_of(band: u8) -> u32 {
        leaf_handle(band)
    }

    /// The device the bands are on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What went through each band so far.
    pub fn stats(&mut self) -> io::Result<[BandStats; BAND_COUNT]> {
        Ok(by_band(&self.connection.classes(self.device.index)?))
    }

    /// What has left through all bands, bytes.
    pub fn sent_bytes(&mut self) -> io::Result<u64> {
        Ok(self.stats()?.iter().map(|band| band.sent_bytes).sum())
    }

    /// Whether they are there still: another program may take them away, and devices go.
    pub fn presence(&mut self) -> Presence {
        let now = match qdisc::root_on(&mut self.connection, self.device.index) {
            Ok(Some(root)) if is_ours(&root) => return Presence::There,
            _ if self.device_is_gone() => return Presence::DeviceGone,
            Err(_) => return Presence::There,
            Ok(Some(root)) if root.is_kernel_default() => format!("the default {}", root.kind),
            Ok(Some(root)) => format!("{} {}", root.kind, root.handle),
            Ok(None) => "no queueing discipline".into(),
        };
        Presence::TakenAway(now)
    }

    fn device_is_gone(&mut self) -> bool {
        let asked = self.connection.link(self.device.index).err();
        asked.is_some_and(|error| error.raw_os_error() == Some(libc::ENODEV))
    }

    /// Limits the link to another rate from now on; what waits goes on waiting. The bands limit it:
    /// [`BandsOptions::limits_rate`].
    pub fn set_rate(&mut self, rate_bits_per_sec: u64) -> Result<(), BandsError> {
        assert!(
            self.options.limits_rate,
            "another limiter is behind these bands"
        );
        let BandsOptions {
            bands,
            lower_share_per_mille,
            ..
        } = self.options;
        let frame_bytes = self.device.frame_bytes();
        let plan = Plan::new(rate_bits_per_sec, frame_bytes, bands, lower_share_per_mille)?;
        for (place, class) in plan.classes(self.device.index) {
            let changed = self.connection.change_htb_class(place, &class);
            changed.map_err(|source| BandsError::kernel(error::CHANGE, &self.device, source))?;
        }
        self.options.rate_bits_per_sec = rate_bits_per_sec;
        Ok(())
    }

    /// Takes the bands away and restores what was before; dropping does the same without an answer.
    pub fn remove(mut self) -> Result<(), BandsError> {
        self.take_down()
    }

    fn put_up(&mut self, plan: &Plan, replace: Replace) -> io::Result<()> {
        let index = self.device.index;
        self.connection.add_htb(
            plan::place(index, HANDLE, ROOT),
            DEFAULT_MINOR,
            replace == Replace::Yes,
        )?;
        for (place, class) in plan.classes(index) {
            self.connection.add_htb_class(place, &class)?;
        }
        for place in plan.queues(index) {
            self.connection
                .add_pfifo(place, plan::QUEUE_LIMIT_PACKETS)?;
        }
        self.connection.set_gso_limits(index, self.record.limited)
    }

    fn put_up_without_limit(&mut self, plan: &Plan, replace: Replace) -> io::Result<()> {
        let index = self.device.index;
        let place = plan::place(index, HANDLE, ROOT);
        let replaces = replace == Replace::Yes;
        self.connection.add_prio(place, plan.bands(), replaces)?;
        self.connection.set_gso_limits(index, self.record.limited)
    }

    fn take_down(&mut self) -> Result<(), BandsError> {
        if !std::mem::take(&mut self.installed) {
            return Ok(());
        }
        if self.device_is_gone() {
            moved::restore(&self.record);
        }
        let limits = (self.record.limited, self.record.previous);
        let replaced = &self.record.replaced;
        take_down(&mut self.connection, &self.device, limits, replaced)?;
        self.record.delete()
    }
}

impl Drop for Bands {
    fn drop(&mut self) {
        // No caller is left to report an error to; the next start finds the record and tries again.
        let _ = self.take_down();
    }
}

/// What went through each band of a device, for a process that does not own them; all zero when
/// there are none.
pub fn stats(device: &Device) -> io::Result<[BandStats; BAND_COUNT]> {
    Ok(by_band(&Connection::open()?.classes(device.index)?))
}

fn by_band(classes: &[(u32, Counters)]) -> [BandStats; BAND_COUNT] {
    std::array::from_fn(|band| {
        let handle = leaf_handle(band as u8);
        let found = classes.iter().find(|(class, _)| *class == handle);
        found.map_or_else(BandStats::default, |(_, counters)| BandStats {
            sent_bytes: counters.sent_bytes,
            sent_packets: counters.sent_packets,
            drops: counters.drops.into(),
            backlog_bytes: counters.backlog_bytes.into(),
            backlog_packets: counters.backlog_packets.into(),
        })
    })
}

fn refuse_loopback(device: &Device) -> Result<(), BandsError> {
    if device.is_loopback {
        return Err(BandsError::Loopback {
            device: device.name.clone(),
        });
    }
    Ok(())
}

fn refuse_configured(
    connection: &mut Connection,
    device: &Device,
    replace: Replace,
) -> Result<(), BandsError> {
    match root_of(connection, device)? {
        Some(root) if replace == Replace::No && !root.is_kernel_default() && !is_ours(&root) => {
            Err(BandsError::Configured {
                device: device.name.clone(),
                kind: root.kind,
                handle: root.handle,
                lost: replaced(connection, device)?.lost,
            })
        }
        _ => Ok(()),
    }
}

fn root_of(connection: &mut Connection, device: &Device) -> Result<Option<Root>, BandsError> {
    qdisc::root_on(connection, device.index)
        .map_err(|source| BandsError::kernel("ask about", device, source))
}

fn is_ours(root: &Root) -> bool {
    root.handle.0 == HANDLE && ["htb", "prio"].contains(&root.kind.as_str())
}

/// Restores the limits, then takes our qdisc away: while limits are ours, the qdisc shows it. A
/// device or qdisc that is gone is fine. What is not ours any more is another's by now, and stays:
/// limits other than `limited`, and whatever stands where our qdisc stood.
fn take_down(
    connection: &mut Connection,
    device: &Device,
    (limited, previous): (GsoLimits, GsoLimits),
    replaced: &[QdiscReply],
) -> Result<(), BandsError> {
    let gone = |result: io::Result<()>, codes: &[i32]| match result {
        Err(error)
            if error
                .raw_os_error()
                .is_some_and(|code| codes.contains(&code)) =>
        {
            Ok(())
        }
        result => result.map_err(|source| BandsError::kernel("restore", device, source)),
    };
    let are_there = qdisc::root_on(connection, device.index)
        .is_ok_and(|root| root.is_some_and(|root| is_ours(&root)));
    let limits = match connection.link(device.index) {
        Ok(link) => {
            let limits = link.gso.back(limited, previous).within(link.tso_max);
            gone(
                connection.set_gso_limits(device.index, limits),
                &[libc::ENODEV],
            )
        }
        Err(_) => Ok(()),
    };
    // Whatever became of the limits: bands without their owner would hold the link to its rate.
    gone(
        connection.delete_root(device.index, HANDLE),
        &[libc::ENODEV, libc::ENOENT, libc::EINVAL],
    )?;
    for qdisc in replaced.iter().filter(|_| are_there) {
        match connection.add_again(device.index, qdisc) {
            // Another one has put a queue there meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => break,
            result => gone(result, &[libc::ENODEV])?,
        }
    }
    limits
}
