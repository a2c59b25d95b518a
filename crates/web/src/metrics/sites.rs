//! Counters of each site. Their number is bounded, so that no configuration makes a scrape endless.

use super::count::Count;
use hyper::Version;
use std::sync::{Mutex, PoisonError};

/// Sites with counters of their own, the one for all others included: 40 KB.
const SITES_MAX: usize = 256;
/// The site of requests that no site answers, and of sites beyond the bound.
const OTHER: &str = "other";

/// Names of the classes of status.
pub const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Names of the protocols, in the order of [`Protocol`].
pub const PROTOCOLS: [&str; 3] = ["HTTP/1.0", "HTTP/1.1", "HTTP/2"];

/// Names a site's counters; the default is `other`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteId(u8);

/// The protocol of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, or older.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
}

impl Protocol {
    /// The protocol of a version.
    pub fn of(version: Version) -> Self {
        match version {
            Version::HTTP_09 | Version::HTTP_10 => Self::Http10,
            Version::HTTP_2 => Self::Http2,
            _ => Self::Http11,
        }
    }
}

/// What was counted of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteReading {
    /// Its name.
    pub name: String,
    /// Responses by protocol and class of status.
    pub requests: [[u64; STATUS_CLASSES.len()]; PROTOCOLS.len()],
    /// Bytes of bodies sent.
    pub response_bytes: u64,
}

/// The counters of all sites.
#[derive(Debug)]
pub struct Sites {
    names: Mutex<Vec<String>>,
    counts: Vec<SiteCounts>,
}

#[derive(Debug, Default)]
struct SiteCounts {
    requests: [[Count; STATUS_CLASSES.len()]; PROTOCOLS.len()],
    response_bytes: Count,
}

impl Default for Sites {
    fn default() -> Self {
        let mut counts = Vec::with_capacity(SITES_MAX);
        counts.resize_with(SITES_MAX, SiteCounts::default);
        Self {
            names: Mutex::new(vec![OTHER.into()]),
            counts,
        }
    }
}

impl Sites {
    /// The counters of `name`.
    pub fn find_or_add(&self, name: &str) -> SiteId {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match names.iter().position(|known| known == name) {
            Some(index) => index,
            None if names.len() < SITES_MAX => {
                names.push(name.into());
                names.len() - 1
            }
            None => 0,
        };
        SiteId(u8::try_from(index).unwrap_or(0))
    }

    /// Counts a response with `size_bytes` of body.
    pub fn count(&self, site: SiteId, protocol: Protocol, status: u16, size_bytes: u64) {
        let counts = &self.counts[usize::from(site.0)];
        let class = usize::from((status / 100).clamp(1, 5) - 1);
        counts.requests[protocol as usize][class].add(1);
        counts.response_bytes.add(size_bytes);
    }

    /// What was counted, in the order in which the sites came.
    pub fn read(&self) -> Vec<SiteReading> {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let sites = names.iter().zip(&self.counts);
        let read = |(name, counts): (&String, &SiteCounts)| SiteReading {
            name: name.clone(),
            requests: std::array::from_fn(|protocol| {
                std::array::from_fn(|status| counts.requests[protocol][status].get())
            }),
            response_bytes: counts.response_bytes.get(),
        };
        sites.map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_keeps_its_counters_and_too_many_share_one() {
        let sites = Sites::default();
        let a = sites.find_or_add("a");
        assert_eq!(sites.find_or_add("a"), a);
        let ids: Vec<_> = (0..2 * SITES_MAX)
            .map(|site| sites.find_or_add(&format!("site {site}")))
            .collect();
        assert_ne!(ids[0], SiteId::default());
        assert_eq!(ids[SITES_MAX], SiteId::default());
        sites.count(a, Protocol::Http2, 999, 5);
        sites.count(a, Protocol::Http2, 0, 5);
        let read = sites.read();
        assert_eq!(read.len(), SITES_MAX);
        assert_eq!((read[0].name.as_str(), read[1].name.as_str()), (OTHER, "a"));
        assert_eq!(read[1].requests[2], [1, 0, 0, 0, 1]);
        assert_eq!(read[1].response_bytes, 10);
    }
}
