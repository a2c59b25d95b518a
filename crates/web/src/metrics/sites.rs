//! Counters of each site. Their number is bounded, so that no configuration makes a scrape endless.

use super::count::Count;
use hyper::Version;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        let index = find_or_add(&mut self.lock(), name);
        SiteId(u8::try_from(index).unwrap_or(0))
    }

    /// Counts a response with `size_bytes` of body.
    pub fn count(&self, site: SiteId, protocol: Protocol, status: u16, size_bytes: u64) {
        let counts = &self.counts[usize::from(site.0)];
        let class = usize::from((status / 100).clamp(1, 5) - 1);
        counts.requests[protocol as usize][class].add(1);
        counts.response_bytes.add(size_bytes);
    }

    /// Adds what `other` has counted of the sites of the same names.
    pub fn add_all(&self, other: &Self) {
        let mut names = self.lock();
        for (index, site) in other.read().into_iter().enumerate() {
            // Most often both have them in one order.
            let index = match names.get(index) {
                Some(name) if *name == site.name => index,
                _ => find_or_add(&mut names, &site.name),
            };
            self.counts[index].add(&site);
        }
    }

    /// What was counted, in the order in which the sites came.
    pub fn read(&self) -> Vec<SiteReading> {
        let names = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SiteCounts {
    fn add(&self, site: &SiteReading) {
        let counts = self.requests.iter().flatten();
        for (count, &more) in counts.zip(site.requests.iter().flatten()) {
            count.add(more);
        }
        self.response_bytes.add(site.response_bytes);
    }
}

/// The place of `name`, which is that of `other` where there are too many.
fn find_or_add(names: &mut Vec<String>, name: &str) -> usize {
    match names.iter().position(|known| known == name) {
        Some(index) => index,
        None if names.len() < SITES_MAX => {
            names.push(name.into());
            names.len() - 1
        }
        None => 0,
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

    fn counted(names: impl IntoIterator<Item = impl AsRef<str>>, size_bytes: u64) -> Sites {
        let sites = Sites::default();
        for name in names {
            let site = sites.find_or_add(name.as_ref());
            sites.count(site, Protocol::Http11, 200, size_bytes);
        }
        sites
    }

    #[test]
    fn sites_are_added_by_their_names() {
        let sum = counted(["a", "b", "c"], 1);
        sum.add_all(&counted(["c", "a", OTHER, "d"], 10));
        let read = sum.read();
        let bytes = read
            .iter()
            .map(|site| (site.name.as_str(), site.response_bytes));
        let expected = [(OTHER, 10), ("a", 11), ("b", 1), ("c", 11), ("d", 10)];
        assert_eq!(bytes.collect::<Vec<_>>(), expected);
        assert_eq!(read[1].requests[1], [0, 2, 0, 0, 0]);
    }

    #[test]
    fn sites_beyond_the_bound_are_added_to_other() {
        let sum = counted((1..SITES_MAX).map(|site| format!("a {site}")), 1);
        sum.add_all(&counted((1..=3).map(|site| format!("b {site}")), 1));
        let read = sum.read();
        assert_eq!(read.len(), SITES_MAX);
        assert_eq!((read[0].name.as_str(), read[0].response_bytes), (OTHER, 3));
        assert!(read[1..].iter().all(|site| site.response_bytes == 1));
    }
}
