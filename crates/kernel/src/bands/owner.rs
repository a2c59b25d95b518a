//! Who has bands on a device: the process that holds a socket name of the network namespace
//! ([`TakenName`]). Any local process may take the name and thereby keep bands off a device; the
//! error then says so.

use super::error::BandsError;
use super::record::Record;
use crate::device::Device;
use crate::place::TakenName;

/// The right to change the bands of a device, until dropped.
#[derive(Debug)]
pub struct Ownership {
    _name: TakenName,
}

impl Ownership {
    /// Whether no process has the right for the device of this index.
    pub fn is_free(index: u32) -> bool {
        matches!(TakenName::try_once(&name_of(index)), Ok(Some(_)))
    }

    /// Takes the right in the calling thread's network namespace; [`BandsError::Busy`] while
    /// another has it.
    pub fn take(device: &Device) -> Result<Ownership, BandsError> {
        let taken = TakenName::take(&name_of(device.index))
            .map_err(|source| BandsError::kernel("own", device, source))?;
        match taken {
            Some(name) => Ok(Ownership { _name: name }),
            None => Err(BandsError::Busy {
                device: device.name.clone(),
                pid: Record::read(device).map(|record| record.pid),
            }),
        }
    }
}

fn name_of(index: u32) -> String {
    format!("sooner-bands-{index}")
}
