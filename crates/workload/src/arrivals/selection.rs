//! Chooses the requests of a phase: consecutive ones with the work that the phase asks for.

use crate::trace::Trace;
use crate::wire::WireModel;
use std::ops::Range;

/// Answers "which run of consecutive requests has so much work" on a trace repeated without end.
pub struct Selector {
    /// `work_before[i]`: bytes of the first i requests, connections left out.
    work_before: Vec<u128>,
    /// Bytes of one new connection.
    connection_bytes: u64,
}

impl Selector {
    /// Prepares the requests of `trace`.
    pub fn new(trace: &Trace, wire: WireModel, head_bytes: u64) -> Self {
        let mut work_before = vec![0];
        let mut sum = 0;
        for request in &trace.requests {
            sum +=
                u128::from(wire.work_bytes(trace.object_of(request).size_bytes, head_bytes, false));
            work_before.push(sum);
        }
        Self {
            work_before,
            connection_bytes: wire.connection_bytes(),
        }
    }

    /// Mean work of a request in bytes, connections left out.
    pub fn mean_work_bytes(&self) -> f64 {
        self.before(self.len()) as f64 / self.len() as f64
    }

    /// The first run at or after `from` that can end where its work is `target_bytes` within the
    /// share `tolerance`, ended where it is nearest; none if none starts within one round of the
    /// trace. Indices count on through the repetitions of the trace. `connections` says how many
    /// the first n requests of a run open.
    pub fn choose(
        &self,
        from: u64,
        target_bytes: f64,
        tolerance: f64,
        connections: &mut dyn FnMut(u64) -> u64,
    ) -> Option<Range<u64>> {
        let mut work = |run: Range<u64>| self.work(run.clone(), connections(run.end - run.start));
        let mut end = from;
        for start in from..from + self.len() {
            end = end.max(start + 1);
            while (work(start..end) as f64) < target_bytes {
                end += 1;
            }
            let mut miss_bytes = |end: u64| (work(start..end) as f64 - target_bytes).abs();
            let nearest = if end > start + 1 && miss_bytes(end - 1) < miss_bytes(end) {
                end - 1
            } else {
                end
            };
            if miss_bytes(nearest) <= target_bytes * tolerance {
                return Some(start..nearest);
            }
        }
        None
    }

    /// Bytes on the wire of a run that opens so many connections.
    fn work(&self, run: Range<u64>, connections: u64) -> u128 {
        self.before(run.end) - self.before(run.start)
            + u128::from(connections * self.connection_bytes)
    }

    fn before(&self, index: u64) -> u128 {
        let (rounds, rest) = (index / self.len(), index % self.len());
        u128::from(rounds) * self.work_before[self.len() as usize] + self.work_before[rest as usize]
    }

    fn len(&self) -> u64 {
        self.work_before.len() as u64 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of 34 bytes and one of 1234; with the header of their segment 100 and 1300 bytes.
    fn selector(large_at: usize, count: usize) -> Selector {
        let lines: String = (0..count)
            .map(|at| format!("{at},1,0,{},200\n", u32::from(at == large_at)))
            .collect();
        let requests = format!("t,bytes,client,object,status\n{lines}");
        let objects = "object,requests,max_bytes,ext\n0,1,34,html\n1,1,1234,html\n";
        let trace = Trace::read("web", (requests.as_bytes(), "a"), (objects.as_bytes(), "b"))
            .expect("a trace");
        Selector::new(&trace, WireModel::default(), 0)
    }

    /// One connection every `k` requests.
    fn choose(
        selector: &Selector,
        k: u64,
        from: u64,
        target_bytes: f64,
        tolerance: f64,
    ) -> Option<Range<u64>> {
        selector.choose(from, target_bytes, tolerance, &mut |count| {
            count.div_ceil(k)
        })
    }

    #[test]
    fn a_run_ends_where_its_work_is_done() {
        // One connection: 264 bytes and 100 a request.
        assert_eq!(choose(&selector(9, 10), 100, 2, 664.0, 0.01), Some(2..6));
    }

    #[test]
    fn the_start_moves_on_until_a_run_fits() {
        // From 2 on, four small requests would reach the large one at 4: the first run that fits
        // begins after it.
        let selector = selector(4, 10);
        assert_eq!(choose(&selector, 100, 2, 664.0, 0.01), Some(5..9));
        // With more work the large one fits in, and it is not passed over.
        assert_eq!(choose(&selector, 100, 2, 264.0 + 1500.0, 0.01), Some(2..5));
    }

    #[test]
    fn the_trace_goes_on_with_its_first_request() {
        let selector = selector(5, 10);
        assert_eq!(choose(&selector, 100, 8, 664.0, 0.01), Some(8..12));
        // All ten requests twice and a small one.
        let twice = 264.0 + 2.0 * 2200.0 + 100.0;
        assert_eq!(choose(&selector, 100, 0, twice, 0.001), Some(0..21));
    }

    #[test]
    fn connections_count_where_they_are_new() {
        let selector = selector(9, 10);
        assert_eq!(choose(&selector, 1, 0, 3.0 * 364.0, 0.01), Some(0..3));
        let two = 3.0 * 100.0 + 2.0 * 264.0;
        assert_eq!(choose(&selector, 2, 0, two, 0.01), Some(0..3));
    }

    #[test]
    fn too_little_work_is_not_met() {
        assert_eq!(choose(&selector(5, 10), 1, 0, 100.0, 0.01), None);
    }
}
