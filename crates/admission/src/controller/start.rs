//! Where to begin when nothing is known of a backend but how many processors it may have.

/// The most to begin with.
const START_MAX: usize = 4096;

/// The fewest jobs that cost no more than `loss` where `processors` and one disk for the log have
/// equally much to do: the worst case of the model in the thesis (9.3.5, Figure 9.6), and so rather
/// too many.
///
/// With n jobs in that closed network the throughput is 1 - 1/g of the most there can be, where
/// g(0) = 1 and g(n) = 1 + g(n-1) * min(n, processors) / processors: the normalising constants of
/// its product form, divided by their last term.
pub fn start(processors: usize, loss: f64) -> usize {
    let processors = processors.max(1);
    let mut constant = 1.0;
    for jobs in 1..START_MAX {
        constant = 1.0 + constant * jobs.min(processors) as f64 / processors as f64;
        if 1.0 - 1.0 / constant >= 1.0 - loss {
            return jobs;
        }
    }
    START_MAX
}
