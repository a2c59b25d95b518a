//! The keys `compress` and the table `[compression]`.

use super::compressor::{Compressor, Settings};
use super::counts::CompressionCounts;
use super::workshop::Workshop;
use crate::active_config::Means;
use crate::config::Misconfigured;
use serde::Deserialize;
use sooner_config::quantity;
use sooner_http::compression::{DEFAULT_TYPES, MediaTypes};
use sooner_http::negotiation::Coding;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::available_parallelism;
use toml::Spanned;

/// `[compression]`: how responses are compressed where `compress` is on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CompressionTable {
    /// The codings that are offered, the best liked first: it is taken where a client likes several
    /// as much.
    pub codings: Vec<Spanned<Coding>>,
    /// The media types that are compressed: `application/json`, `text/*`, `*+xml`.
    pub types: Vec<Spanned<String>>,
    /// Shorter bodies are left as they are. 1024: less fits one packet with its head, compressed or
    /// not.
    #[serde(deserialize_with = "quantity::bytes")]
    pub minimum_bytes: u64,
    /// 1 to 9. 5, as Caddy has it.
    pub gzip_level: Spanned<u32>,
    /// 0 to 11. 4: 5 and above search much longer.
    pub br_level: Spanned<u32>,
    /// 1 to 19. 3: its own default.
    pub zstd_level: Spanned<u32>,
    /// Memory of compressors at work; where there is none left, responses are sent as they are.
    #[serde(deserialize_with = "quantity::spanned_bytes")]
    pub memory_bytes: Spanned<u64>,
    /// Memory of compressed files that are kept.
    #[serde(deserialize_with = "quantity::bytes")]
    pub cache_bytes: u64,
}

impl Default for CompressionTable {
    fn default() -> Self {
        Self {
            codings: Coding::ALL.map(unspanned).into(),
            types: DEFAULT_TYPES.map(|name| unspanned(name.into())).into(),
            minimum_bytes: 1024,
            gzip_level: unspanned(5),
            br_level: unspanned(4),
            zstd_level: unspanned(3),
            memory_bytes: unspanned(64 << 20),
            cache_bytes: 32 << 20,
        }
    }
}

/// A value that stands in no file.
fn unspanned<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

/// The levels of all codings.
#[derive(Clone, Copy, Debug)]
pub struct Levels {
    /// Of gzip.
    pub gzip: u32,
    /// Of brotli.
    pub br: u32,
    /// Of zstd.
    pub zstd: u32,
}

/// Less memory would not do for one compressor.
const MEMORY_BYTES_MIN: u64 = 4 << 20;

impl CompressionTable {
    /// All that cannot work.
    pub fn mistakes(&self) -> Vec<Misconfigured> {
        let mut mistakes = Vec::new();
        mistakes.extend(self.codings().err());
        mistakes.extend(self.media_types().err());
        for (value, key, range) in [
            (&self.gzip_level, "compression.gzip_level", 1..=9),
            (&self.br_level, "compression.br_level", 0..=11),
            (&self.zstd_level, "compression.zstd_level", 1..=19),
        ] {
            mistakes.extend(check_level(value, key, range).err());
        }
        if *self.memory_bytes.get_ref() < MEMORY_BYTES_MIN {
            let message = format!(
                "{} is too little for one compressor; write {MEMORY_BYTES_MIN} or more",
                self.memory_bytes.get_ref()
            );
            let key = "compression.memory_bytes";
            mistakes.push(Misconfigured::at(&self.memory_bytes, key, message));
        }
        mistakes
    }

    fn codings(&self) -> Result<Vec<Coding>, Misconfigured> {
        let key = "compression.codings";
        let mut codings = Vec::new();
        for coding in &self.codings {
            if codings.contains(coding.get_ref()) {
                let message = format!("{} is named twice", coding.get_ref().token());
                return Err(Misconfigured::at(coding, key, message));
            }
            codings.push(*coding.get_ref());
        }
        if codings.is_empty() {
            let message = "names no coding; name some of \"zstd\", \"br\", \"gzip\", or write compress = false";
            return Err(Misconfigured::without_place(key, message));
        }
        Ok(codings)
    }

    fn media_types(&self) -> Result<MediaTypes, Misconfigured> {
        let mut types = MediaTypes::default();
        for name in &self.types {
            types
                .add(name.get_ref())
                .map_err(|error| Misconfigured::at(name, "compression.types", error))?;
        }
        Ok(types)
    }

    fn levels(&self) -> Levels {
        Levels {
            gzip: *self.gzip_level.get_ref(),
            br: *self.br_level.get_ref(),
            zstd: *self.zstd_level.get_ref(),
        }
    }
}

fn check_level(
    value: &Spanned<u32>,
    key: &str,
    range: RangeInclusive<u32>,
) -> Result<(), Misconfigured> {
    let level = value.get_ref();
    if range.contains(level) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let message = format!("{level} is not a level; choose {least} to {most}");
    Err(Misconfigured::at(value, key, message))
}

/// Which responses of a configuration are compressed, and by what.
pub struct Compression {
    compressor: Rc<Compressor>,
    is_on: bool,
    /// By the site's place.
    sites: Vec<bool>,
}

impl Compression {
    /// The compression of a configuration that says `is_on` and, of each of its sites, `sites`, in
    /// one of the workers among which `means` are shared out.
    pub fn new(
        table: &CompressionTable,
        is_on: bool,
        sites: impl Iterator<Item = Option<bool>>,
        means: Means,
        counts: &Arc<CompressionCounts>,
    ) -> Result<Self, Misconfigured> {
        if let Some(mistake) = table.mistakes().into_iter().next() {
            return Err(mistake);
        }
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        let workshop = Workshop::new(
            // One of each worker is for what answers and sends.
            (processors.saturating_sub(means.workers) / means.workers).max(1),
            (*table.memory_bytes.get_ref() / means.workers as u64).max(MEMORY_BYTES_MIN),
            table.levels(),
            counts.clone(),
        );
        let settings = Settings {
            codings: table.codings()?,
            types: table.media_types()?,
            minimum_bytes: table.minimum_bytes,
            cache_bytes: table.cache_bytes / means.workers as u64,
            cached_files_max: usize::try_from(means.descriptors / 16).unwrap_or(usize::MAX)
                / means.workers,
        };
        Ok(Self {
            compressor: Rc::new(Compressor::new(settings, Arc::new(workshop))),
            is_on,
            sites: sites.map(|site| site.unwrap_or(is_on)).collect(),
        })
    }

    /// What compresses the responses of the site at `index`, unless the route that a request takes
    /// says `of_route`.
    pub fn of(&self, index: usize, of_route: Option<bool>) -> Option<Rc<Compressor>> {
        let of_site = self.sites.get(index).copied().unwrap_or(self.is_on);
        of_route.unwrap_or(of_site).then(|| self.compressor.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_with_their_places() {
        for (text, key) in [
            ("codings = ['gzip', 'gzip']", "compression.codings"),
            ("codings = []", "compression.codings"),
            ("types = ['text']", "compression.types"),
            ("gzip_level = 0", "compression.gzip_level"),
            ("br_level = 12", "compression.br_level"),
            ("zstd_level = 20", "compression.zstd_level"),
            ("memory_bytes = 1000", "compression.memory_bytes"),
        ] {
            let table: CompressionTable = toml::from_str(text).unwrap();
            let mistakes = table.mistakes();
            assert_eq!(mistakes.len(), 1, "{text}");
            assert_eq!(mistakes[0].key, key);
        }
        assert!(CompressionTable::default().mistakes().is_empty());
        assert!(toml::from_str::<CompressionTable>("codings = ['deflate']").is_err());
    }

    #[test]
    fn sizes_have_units() {
        let text = "minimum_bytes = '2KiB'\nmemory_bytes = '8MiB'\ncache_bytes = '0'";
        let table: CompressionTable = toml::from_str(text).unwrap();
        assert_eq!(table.minimum_bytes, 2048);
        assert_eq!(
            (*table.memory_bytes.get_ref(), table.cache_bytes),
            (8 << 20, 0)
        );
    }

    #[test]
    fn a_route_goes_before_its_site_and_a_site_before_all() {
        let table = CompressionTable::default();
        let sites = [None, Some(true), Some(false)].into_iter();
        for is_on in [false, true] {
            let counts = Arc::default();
            let compression =
                Compression::new(&table, is_on, sites.clone(), Means::of_test(), &counts).unwrap();
            let of = |site, route| compression.of(site, route).is_some();
            assert_eq!(
                [of(0, None), of(1, None), of(2, None)],
                [is_on, true, false]
            );
            assert_eq!(of(3, None), is_on);
            assert!(!of(1, Some(false)) && of(2, Some(true)));
        }
    }
}
