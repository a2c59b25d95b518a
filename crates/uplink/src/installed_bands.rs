//! The bands on the device: they go when the server ends, and may be taken away before.
//!
//! Another program may remove or replace them, and a device may go away. Both are noticed and said
//! within about a second. Bands come back with their device where this process may still put them
//! there: after a start as root it may not write down what to restore as another user. What another
//! program took away stays away, so that Sooner does not fight it.

use crate::auto_rate::Tell;
use crate::shared_link::SharedLink;
use sooner_kernel::bands::{Bands, BandsError, BandsOptions, Presence, Replace};
use sooner_kernel::device::{self, Device};
use std::fmt;
use std::sync::Weak;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Between two looks at the device.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What was changed in the kernel; goes when this does.
#[derive(Default)]
pub(crate) struct InstalledBands(Option<OnDevice>);

struct OnDevice {
    device_name: String,
    options: BandsOptions,
    bands: Result<Bands, Lost>,
    /// Why they did not come back with their device.
    refusal: Option<String>,
}

/// Why there are none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    /// Another program removed or replaced them.
    TakenAway,
    /// The device is gone, or is in another network namespace.
    DeviceGone,
}

/// What has become of the bands of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BandsNews {
    device_name: String,
    lost: Option<Lost>,
    /// Why they are not on a device that is back.
    refusal: Option<String>,
    is_paced: bool,
}

impl InstalledBands {
    /// Puts bands on a device; nothing is changed when it fails.
    pub(crate) fn install(device: &Device, options: BandsOptions) -> Result<Self, BandsError> {
        let bands = Bands::install_as(device, options)?;
        Ok(Self(Some(OnDevice {
            device_name: device.name.clone(),
            options,
            bands: Ok(bands),
            refusal: None,
        })))
    }

    /// How many were installed, there or lost; `None` where none were.
    pub(crate) fn count(&self) -> Option<u8> {
        Some(self.0.as_ref()?.options.bands)
    }

    /// What has left the device, bytes; none without bands.
    pub(crate) fn sent_bytes(&mut self) -> Option<u64> {
        let bands = self.0.as_mut()?.bands.as_mut().ok()?;
        bands.sent_bytes().ok()
    }

    /// Limits the device to another rate, where there are bands.
    pub(crate) fn set_rate(&mut self, rate_bits_per_sec: u64) -> Result<(), BandsError> {
        let Some(on_device) = &mut self.0 else {
            return Ok(());
        };
        on_device.options.rate_bits_per_sec = rate_bits_per_sec;
        match &mut on_device.bands {
            Ok(bands) => bands.set_rate(rate_bits_per_sec),
            Err(_) => Ok(()),
        }
    }

    /// Why there are no bands where they were installed.
    pub(crate) fn trouble(&self, is_paced: bool) -> Option<BandsNews> {
        let on_device = self.0.as_ref()?;
        let lost = on_device.bands.as_ref().err()?;
        Some(on_device.news(Some(*lost), is_paced))
    }

    /// Looks at the device; gives what has changed since the last look.
    pub(crate) fn review(&mut self, is_paced: bool) -> Option<BandsNews> {
        let on_device = self.0.as_mut()?;
        match &mut on_device.bands {
            Ok(bands) => {
                let lost = match bands.presence() {
                    Presence::There => return None,
                    Presence::TakenAway(_) => Lost::TakenAway,
                    Presence::DeviceGone => Lost::DeviceGone,
                };
                // What is left of them goes: the limits of super-packets.
                on_device.bands = Err(lost);
                Some(on_device.news(Some(lost), is_paced))
            }
            Err(Lost::TakenAway) => None,
            Err(Lost::DeviceGone) => {
                let Ok(device) = device::by_name(&on_device.device_name) else {
                    on_device.refusal = None;
                    return None;
                };
                let options = BandsOptions {
                    // What an operator has configured meanwhile stays.
                    replace: Replace::No,
                    ..on_device.options
                };
                on_device.came_back(Bands::install_as(&device, options), is_paced)
            }
        }
    }
}

impl OnDevice {
    /// The device is there again; a refusal is news once, and tried again.
    fn came_back(&mut self, bands: Result<Bands, BandsError>, is_paced: bool) -> Option<BandsNews> {
        match bands {
            Ok(bands) => {
                (self.bands, self.refusal) = (Ok(bands), None);
                Some(self.news(None, is_paced))
            }
            Err(refusal) => {
                let is_news = self.refusal.is_none();
                self.refusal = Some(refusal.to_string());
                is_news.then(|| self.news(Some(Lost::DeviceGone), is_paced))
            }
        }
    }

    fn news(&self, lost: Option<Lost>, is_paced: bool) -> BandsNews {
        BandsNews {
            device_name: self.device_name.clone(),
            lost,
            refusal: self.refusal.clone(),
            is_paced,
        }
    }
}

impl fmt::Display for BandsNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.device_name;
        let without = match self.is_paced {
            true => "user space orders responses without them",
            false => "responses are not ordered",
        };
        match (self.lost, &self.refusal) {
            (Some(Lost::TakenAway), _) => write!(
                f,
                "the bands on {name} are gone, because another program removed or replaced them: \
                 {without}; restart the server to put them back"
            ),
            (Some(Lost::DeviceGone), None) => write!(
                f,
                "device {name} is gone, and its bands with it: {without}; the server tries to put \
                 them back when it is there"
            ),
            (Some(Lost::DeviceGone), Some(refusal)) => write!(
                f,
                "device {name} is back without its bands: {refusal}; {without}; restart the server \
                 to put them back"
            ),
            (None, _) => write!(f, "device {name} is back, and its bands are"),
        }
    }
}

/// Looks at the device once a second; runs until the uplink is dropped.
pub(crate) async fn watch(shared: Weak<SharedLink>, tell: Option<Tell>) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if let (Some(news), Some(tell)) = (shared.review_bands(), &tell) {
            tell(&news.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_back_without_its_bands_is_told_once() {
        let mut on_device = OnDevice {
            device_name: "ppp0".into(),
            options: BandsOptions::at_rate(1_000_000),
            bands: Err(Lost::DeviceGone),
            refusal: None,
        };
        let gone = on_device.news(Some(Lost::DeviceGone), true).to_string();
        assert!(gone.starts_with("device ppp0 is gone"), "{gone}");
        let told = on_device.came_back(Err(BandsError::NoFolder), true);
        let told = told.unwrap().to_string();
        assert!(
            told.starts_with("device ppp0 is back without its bands: "),
            "{told}"
        );
        assert!(told.contains(&BandsError::NoFolder.to_string()), "{told}");
        assert_eq!(on_device.came_back(Err(BandsError::NoFolder), true), None);
    }
}
