//! What processes left changed that were killed while attached.

use super::Partly;
use crate::with_causes;
use anyhow::Result;
use serde::Serialize;
use sooner_attach::cpu::changes::Changes;
use sooner_attach::postgres::leftovers::Leftovers;
use sooner_attach::record::{self, Record};
use sooner_attach::web::detach;
use sooner_kernel::device::{self, Device};

/// The command that undoes it.
const REMOVE: &str = "sooner attach remove --killed";

/// What one of them left.
#[derive(Debug, Serialize)]
pub struct Left {
    /// The device that is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<String>,
    /// The first process of the server that is changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_pid: Option<u32>,
    /// What is changed.
    left_by_killed: &'static str,
    /// What undoes it.
    undo: &'static str,
}

impl Left {
    /// For `attach status`.
    pub fn line(&self) -> String {
        let on = match (&self.device, self.server_pid) {
            (Some(device), _) => device.clone(),
            (None, Some(pid)) => format!("server {pid}"),
            (None, None) => String::new(),
        };
        let what = self.left_by_killed;
        format!("{on}: a killed process left {what}; `{REMOVE}` undoes that")
    }
}

/// All that can be seen; with a device, only of that.
pub fn of_killed(name: Option<&str>) -> Result<Partly<Left>> {
    // One that is not there is a mistake; the name may be an alternative one.
    let wanted = name.map(device::by_name).transpose()?;
    let (mut left, mut problems) = (Vec::new(), Vec::new());
    let mut take = |found: Result<Vec<Left>>| match found {
        Ok(found) => left.extend(found),
        Err(error) => problems.push(with_causes(&error)),
    };
    take(of_devices(wanted.as_ref()));
    if name.is_none() {
        take(of_servers::<Leftovers>(
            "settings of its sessions or processes changed",
        ));
        take(of_servers::<Changes>(
            "nice values or weights of its workers changed",
        ));
    }
    Ok((left, problems))
}

fn of_devices(wanted: Option<&Device>) -> Result<Vec<Left>> {
    let devices = detach::devices_left_changed()?.into_iter();
    let devices = devices.filter(|name| wanted.is_none_or(|wanted| wanted.name == *name));
    Ok(devices.map(of_device).collect())
}

fn of_device(device: String) -> Left {
    Left {
        device: Some(device),
        server_pid: None,
        left_by_killed: "its queueing discipline, filters or segment limits changed",
        undo: REMOVE,
    }
}

fn of_servers<R: Record>(what: &'static str) -> Result<Vec<Left>> {
    let of_server = |server| Left {
        device: None,
        server_pid: Some(server),
        left_by_killed: what,
        undo: REMOVE,
    };
    let servers = record::servers_left_changed::<R>()?.into_iter();
    Ok(servers.map(of_server).collect())
}
