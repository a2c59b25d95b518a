//! Another configuration while jobs are here.

use super::Admission;
use crate::goals::Goal;
use crate::order::Order;
use crate::queue::Request;
use sooner_policy::{JobId, Payer, Promise, Time};
use std::collections::HashMap;

/// What a job that is here is by another configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The number of its class.
    pub class: u8,
    /// Who is charged for it; `None`: as before.
    pub payer: Option<Payer>,
}

impl From<u8> for Renewed {
    fn from(class: u8) -> Self {
        Self { class, payer: None }
    }
}

impl Admission {
    /// From now on classes have these goals, by number, and those who wait go in by `order`, as if
    /// they had come under these goals: each in the class that `known` has for it, or else in that
    /// of its name, or where that is gone, in the last one. Without goals classes have no names, and
    /// each is in its plain one ([`Request::plain_class`]). What was learned of classes that stay,
    /// stays, and so does what was promised to jobs of a class that is to get the same as before.
    pub fn set_goals(
        &mut self,
        order: Order,
        goals: Vec<Goal>,
        known: &HashMap<JobId, Renewed>,
        now: Time,
    ) {
        self.order = order;
        self.learns_at = 0;
        self.learn(now);
        for (number, goal) in (0..=u8::MAX).zip(&goals) {
            self.queue.set_weight(number, goal.weight);
        }
        let numbered = (0..=u8::MAX).zip(&goals);
        let caps = numbered.filter_map(|(number, goal)| Some((number, goal.inside_max?)));
        let caps: Vec<(u8, usize)> = caps.collect();
        let by_name = self.goals.renumbered(&goals);
        let kept = self.goals.kept(&goals);
        let last = u8::try_from(goals.len().saturating_sub(1)).unwrap_or(u8::MAX);
        let have_names = !goals.is_empty();
        self.goals.replace(goals);
        let goals = &self.goals;
        let renewed = |job: JobId, request: Request| {
            let named = by_name.get(usize::from(request.number)).copied();
            let (otherwise, is_same) = match have_names {
                true => named.unwrap_or((last, false)),
                false => (request.plain_class.unwrap_or(request.number), false),
            };
            let known = known.get(&job);
            let number = known.map_or(otherwise, |known| known.class);
            let promise = if is_same && number == otherwise {
                request.promise.map(|promise| Promise {
                    group: number,
                    ..promise
                })
            } else {
                goals.promise(number, request.expected_ns, request.came_ns)
            };
            Request {
                class: goals.rank(order, number),
                number,
                promise,
                payer: known.and_then(|known| known.payer).or(request.payer),
                ..request
            }
        };
        let kept = |number: u8| kept.get(usize::from(number)).copied().flatten();
        let order = order.resolved(self.taken);
        self.queue.set_classes(order, renewed, kept, now);
        self.queue.set_caps(&caps, now);
        self.goals.count_present(self.queue.numbers());
    }
}
