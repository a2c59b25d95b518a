//! What a guard may take from others.

/// Service owed: one unit for every `others` units that others get, up to `most`; beyond that where
/// others turned out to have had more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// In units of 1/others.
    parts: u64,
    others: u64,
    most: u64,
}

impl Credit {
    /// One part in `share` of the whole is one unit to every `share - 1` of the others.
    pub(super) fn new(share: u64, most: u64) -> Self {
        Self {
            parts: 0,
            others: share.saturating_sub(1),
            most,
        }
    }

    /// What was owed under the same rule before.
    pub(super) fn take_over(&mut self, before: Self) {
        assert_eq!(self.others, before.others, "the same part is kept");
        *self = Self {
            most: self.most.max(before.most),
            ..before
        };
    }

    /// From now on `amount` can be owed, and as much again.
    pub(super) fn hold(&mut self, amount: u64) {
        self.most = self.most.max(amount.saturating_mul(2));
    }

    pub(super) fn earn(&mut self, amount: u64) {
        let earned = self.parts.saturating_add(amount).min(self.most_parts());
        // What is owed beyond that stays.
        self.parts = self.parts.max(earned);
    }

    /// The same without a bound: others had it already.
    pub(super) fn owe(&mut self, amount: u64) {
        self.parts = self.parts.saturating_add(amount);
    }

    /// Whether more is owed than can be earned.
    pub(super) fn has_excess(&self) -> bool {
        self.parts > self.most_parts()
    }

    /// What is owed beyond what can be earned is owed no more.
    pub(super) fn forget_excess(&mut self) {
        self.parts = self.parts.min(self.most_parts());
    }

    fn most_parts(&self) -> u64 {
        self.most.saturating_mul(self.others)
    }

    pub(super) fn pay(&mut self, amount: u64) {
        self.parts = self
            .parts
            .saturating_sub(amount.saturating_mul(self.others));
    }

    pub(super) fn covers(&self, amount: u64) -> bool {
        self.short_of(amount) == 0
    }

    /// What must still be earned to cover `amount`.
    pub(super) fn short_of(&self, amount: u64) -> u64 {
        amount
            .saturating_mul(self.others)
            .saturating_sub(self.parts)
    }
}
