//! The `Accept-Encoding` request header (RFC 9110, 12.5.3): which form of a file a client wants.

use super::quality::{self, Weight};
use serde::Deserialize;

/// A content coding that every browser of today reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Zstandard (RFC 8878); `.zst`.
    Zstd,
    /// Brotli (RFC 7932); `.br`.
    Br,
    /// gzip (RFC 1952); `.gz`.
    Gzip,
}

impl Coding {
    /// Every coding there is.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Br, Self::Gzip];

    /// Its name in `Accept-Encoding` and `Content-Encoding`.
    pub fn token(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Br => "br",
            Self::Gzip => "gzip",
        }
    }

    /// What is added to the name of a file for the name of its compressed form.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Zstd => ".zst",
            Self::Br => ".br",
            Self::Gzip => ".gz",
        }
    }
}

/// How much a client wants each coding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptEncoding {
    zstd: Option<Weight>,
    br: Option<Weight>,
    gzip: Option<Weight>,
    identity: Option<Weight>,
    others: Option<Weight>,
}

impl AcceptEncoding {
    /// Reads the values of all `Accept-Encoding` headers of a request. Total; O(length).
    pub fn parse<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut wanted = Self::default();
        for (name, weight) in quality::elements(values) {
            let is = |coding: &str| name.eq_ignore_ascii_case(coding.as_bytes());
            let named = match name {
                b"*" => &mut wanted.others,
                _ if is("zstd") => &mut wanted.zstd,
                _ if is("br") => &mut wanted.br,
                _ if is("gzip") || is("x-gzip") => &mut wanted.gzip,
                _ if is("identity") => &mut wanted.identity,
                _ => continue,
            };
            *named = Some(weight);
        }
        wanted
    }

    /// Which of the codings `offered` to send, the one the server likes best first; `None` is the
    /// file as it is.
    ///
    /// The client's weights decide, then the server's order. A compressed form is taken before the
    /// file itself, unless the client gave that more weight. A client that excludes all there is
    /// gets the file: better than nothing.
    pub fn choose(&self, offered: impl Iterator<Item = Coding>) -> Option<Coding> {
        let mut best: Option<(Coding, Weight)> = None;
        for coding in offered {
            let weight = self.weight_of(coding);
            if weight > best.map_or(0, |(_, weight)| weight) {
                best = Some((coding, weight));
            }
        }
        let identity = self.identity.or(self.others).unwrap_or(0);
        best.filter(|&(_, weight)| weight >= identity)
            .map(|(coding, _)| coding)
    }

    /// Whether the client refuses the file as it is (`identity;q=0`, or `*;q=0` without a word of
    /// it).
    pub fn excludes_identity(&self) -> bool {
        self.identity.or(self.others) == Some(0)
    }

    fn weight_of(&self, coding: Coding) -> Weight {
        let named = match coding {
            Coding::Zstd => self.zstd,
            Coding::Br => self.br,
            Coding::Gzip => self.gzip,
        };
        named.or(self.others).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chosen(values: &[&str], offered: &[Coding]) -> Option<Coding> {
        AcceptEncoding::parse(values.iter().map(|value| value.as_bytes()))
            .choose(offered.iter().copied())
    }

    #[test]
    fn the_client_decides_then_the_order() {
        use Coding::{Br, Gzip, Zstd};
        let all = &Coding::ALL[..];
        for (values, offered, coding) in [
            (&[][..], all, None),
            (&[""], all, None),
            (&["gzip, deflate, br, zstd"], all, Some(Zstd)),
            (&["gzip, deflate, br, zstd"], &[Br, Zstd, Gzip], Some(Br)),
            (&["gzip, deflate, br"], all, Some(Br)),
            (&["gzip", "br"], all, Some(Br)),
            (&["gzip"], &[Br], None),
            (&["X-GZIP"], all, Some(Gzip)),
            (&["gzip;q=1, br;q=0.9"], all, Some(Gzip)),
            (&["gzip;q=0, br;q=0.001"], all, Some(Br)),
            (&["gzip;q=0"], &[Gzip], None),
            (&["*"], all, Some(Zstd)),
            (&["*;q=0"], all, None),
            (&["*;q=0, gzip"], all, Some(Gzip)),
            (&["br;q=0, *"], &[Br, Gzip], Some(Gzip)),
            (&["identity"], all, None),
            (&["identity;q=1, *;q=0"], all, None),
            (&["identity;q=0, gzip;q=0.1"], all, Some(Gzip)),
            (&["identity;q=0"], all, None),
            (&["gzip;q=0.5, identity"], all, None),
            (&["gzip;q=0.5, identity;q=0.5"], all, Some(Gzip)),
            (&["gzip;q=0.3, *;q=0.5"], &[Gzip], None),
            (&["gzip;q=oops, br"], &[Gzip], None),
            (&["compress, deflate"], all, None),
        ] {
            assert_eq!(chosen(values, offered), coding, "{values:?} of {offered:?}");
        }
    }

    #[test]
    fn a_client_can_refuse_the_file_as_it_is() {
        for (value, is_refused) in [
            ("", false),
            ("gzip", false),
            ("gzip, identity;q=0", true),
            ("gzip, *;q=0", true),
            ("identity;q=0.1, *;q=0", false),
            ("*", false),
        ] {
            let wanted = AcceptEncoding::parse(std::iter::once(value.as_bytes()));
            assert_eq!(wanted.excludes_identity(), is_refused, "{value}");
        }
    }

    proptest! {
        #[test]
        fn is_total_and_takes_only_what_is_wanted(value in "((gzip|br|zstd|identity|\\*|\\PC{0,5})(;q=[01]\\.?[0-9]{0,3})?,? ?){0,6}") {
            let wanted = AcceptEncoding::parse(std::iter::once(value.as_bytes()));
            if let Some(coding) = wanted.choose(Coding::ALL.into_iter()) {
                prop_assert!(wanted.weight_of(coding) > 0);
            }
            prop_assert_eq!(wanted.choose(std::iter::empty()), None);
        }
    }
}
