//! Who waits under another order, in other classes, within other caps, and with less expected.

use super::{AdmissionQueue, Request, Waiting};
use crate::order::{AccountsOf, Order, Ranking, Within};
use sooner_policy::{JobId, Time};

impl AdmissionQueue {
    /// From now on those who are here are what `renewed` says, and who waits goes in by `order`;
    /// each as if it had come under it when it came, and as if it lacked no more than it does in the
    /// imagination.
    pub fn set_order(
        &mut self,
        order: Order,
        renewed: impl Fn(JobId, Request) -> Request,
        now: Time,
    ) {
        self.set_classes(order, renewed, Some, now);
    }

    /// The same where classes have other numbers: `kept` has that of each that is still there. What
    /// was charged to an account that there is no more, or to another one, was not charged.
    pub(crate) fn set_classes(
        &mut self,
        order: Order,
        renewed: impl Fn(JobId, Request) -> Request,
        kept: impl Fn(u8) -> Option<u8>,
        now: Time,
    ) {
        let accounts = order.accounts();
        let are_carried = accounts == self.order.accounts();
        let is_charged_alike = |before: &Request, after: &Request| {
            let is_one = match accounts {
                None => true,
                Some(AccountsOf::Classes) => kept(before.class) == Some(after.class),
                Some(AccountsOf::Payers) => before.payer == after.payer,
            };
            are_carried && is_one
        };
        let mut is_same = order == self.order;
        for (&job, one) in &mut self.waiting {
            let before = one.request;
            let after = renewed(job, before);
            one.request = after;
            is_same &= (before.class, before.promise) == (after.class, after.promise);
            if !is_charged_alike(&before, &after) {
                one.charged_ns = 0;
                is_same = false;
            }
        }
        for (&job, request) in &mut self.inside {
            let before = *request;
            *request = renewed(job, before);
            if !is_charged_alike(&before, request)
                && let Some(charged) = self.charged.get_mut(&job)
            {
                charged.charged_ns = 0;
            }
        }
        for back in self.back.values_mut() {
            let before = back.request;
            back.request = renewed(back.job, before);
            if !is_charged_alike(&before, &back.request) {
                back.charged_ns = 0;
            }
        }
        self.ranking.renumber(kept);
        if is_same {
            self.set_caps(&self.caps.maxima(), now);
            return;
        }
        self.order = order;
        self.reorder(now);
    }

    /// Who waits is expected to take what `expected_ns` says, where that is less than was expected
    /// until now. So all bounds hold with what was expected when a job came. What a job had in the
    /// imagination counts for as large a part of it as before. Under `nudge`, where each new order lets
    /// more jobs pass the same one, only if it is less by a quarter for one.
    pub fn expect_less(&mut self, expected_ns: impl Fn(JobId) -> Option<u64>, now: Time) {
        let is_nudge = self.order.within() == Some(Within::Nudge);
        if is_nudge && !self.has_fallen(&expected_ns) {
            return;
        }
        let mut is_same = true;
        for (&job, one) in &mut self.waiting {
            let (Some(before_ns), Some(ns)) = (one.request.size_ns(), expected_ns(job)) else {
                continue;
            };
            let ns = ns.max(1);
            if ns < before_ns {
                one.request.expected_ns = Some(ns);
                one.left_ns = part(one.left_ns, ns, before_ns);
                is_same = false;
                let had_ns = ns.saturating_sub(one.left_ns).min(one.charged_ns);
                if had_ns < one.charged_ns {
                    let scheduler = self.ranking.scheduler();
                    scheduler.settle(&one.charged(job), had_ns, one.charged_at);
                    one.charged_ns = had_ns;
                }
            }
        }
        if !is_same {
            self.reorder(now);
        }
    }

    /// Whether one that waits is expected to take less by a quarter than was expected until now.
    fn has_fallen(&self, expected_ns: impl Fn(JobId) -> Option<u64>) -> bool {
        self.waiting.iter().any(|(&job, one)| {
            let pair = one.request.size_ns().zip(expected_ns(job));
            pair.is_some_and(|(before_ns, ns)| ns <= before_ns - before_ns / 4)
        })
    }

    /// Puts all who wait into a new order, as if they came again in their turn.
    pub(super) fn reorder(&mut self, now: Time) {
        let ranking = Ranking::new(self.order, &self.tuning);
        let before = std::mem::replace(&mut self.ranking, ranking);
        self.ranking.take_accounts(before);
        for (&class, &weight) in &self.weights {
            self.ranking.set_weight(class, weight);
        }
        self.caps.reset(self.caps.maxima());
        self.count_inside();
        let waiting = self.waiting.iter();
        let mut waiting: Vec<(JobId, Waiting)> = waiting.map(|(&job, &one)| (job, one)).collect();
        waiting.sort_unstable_by_key(|(_, one)| one.sequence);
        waiting.retain(|&(job, one)| !self.enqueue(job, one));
        // After all of them: time does not go back.
        let scheduler = self.ranking.scheduler();
        waiting
            .iter()
            .for_each(|&(job, _)| scheduler.block(job, now));
    }

    /// From now on at most so many of these classes, by number, may be inside; those beyond it stay
    /// until they leave.
    pub fn set_caps(&mut self, maxima: &[(u8, usize)], now: Time) {
        let scheduler = self.ranking.scheduler();
        for job in self.caps.out_of_order() {
            scheduler.unblock(job, now);
        }
        self.caps.reset(maxima.iter().copied());
        self.count_inside();
        let all = self.waiting.iter();
        let all: Vec<_> = all
            .map(|(&job, one)| (job, one.request, one.sequence))
            .collect();
        for (job, request, sequence) in all {
            if !self.hold(job, request, sequence) {
                self.ranking.scheduler().block(job, now);
            }
        }
    }

    fn count_inside(&mut self) {
        let all = self.inside.values();
        all.for_each(|request| self.caps.entered(request.number));
    }
}

/// Of `left_ns` as much as `ns` is of `whole_ns`, at least 1.
fn part(left_ns: u64, ns: u64, whole_ns: u64) -> u64 {
    let product = u128::from(left_ns) * u128::from(ns);
    let part = product.div_ceil(u128::from(whole_ns));
    u64::try_from(part).unwrap_or(u64::MAX).max(1)
}
