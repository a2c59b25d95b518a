//! Instants as values, so that a policy never reads a clock.

/// An instant, in nanoseconds since an origin that the caller chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// The instant `delay_ns` later.
    #[must_use]
    pub const fn after(self, delay_ns: u64) -> Self {
        Self(self.0.saturating_add(delay_ns))
    }

    /// Nanoseconds from `earlier` to this instant; 0 if `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
