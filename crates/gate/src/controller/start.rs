//! Where to begin when nothing is known of a backend but how many processors it may have.

use sooner_theory::closed::{Station, users_for_share};

/// Where the model has no answer.
const OTHERWISE: usize = 16;

/// The fewest jobs that cost no more than `loss` where `processors` and one disk for the log have equally much to do: the worst case of the model
/// in the thesis (9.3.5, Figure 9.6), and so rather too many.
pub fn start(processors: usize, loss: f64) -> usize {
    let processors = processors.max(1);
    let stations = [
        Station::Servers {
            demand: processors as f64,
            count: processors,
        },
        Station::Queue { demand: 1.0 },
    ];
    let found = users_for_share(&stations, 1.0 - loss);
    found.ok().flatten().unwrap_or(OTHERWISE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_processors_and_less_loss_need_more_inside() {
        let few = start(1, 0.05);
        // Two equal queues: m / (m + 1).
        assert_eq!(few, 19);
        assert!(start(8, 0.05) > few && start(1, 0.2) < few);
        assert_eq!(start(0, 0.05), few);
    }
}
