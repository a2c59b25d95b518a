//! M/M/k: Poisson arrivals, exponential sizes, k servers that share the speed, first come first
//! served (Erlang C).
//!
//! Sharing has the same mean: whatever is served when, so many servers are at work as there are
//! jobs.

use crate::TheoryError;

/// Most servers.
pub const SERVERS_MAX: u32 = 1_000_000;

/// Mean response time in mean sizes, each of `servers` servers having that part of the whole speed.
pub fn mean_response(servers: u32, load: f64) -> Result<f64, TheoryError> {
    if !(load > 0.0 && load < 1.0) {
        return Err(TheoryError::Load(load));
    }
    if !(1..=SERVERS_MAX).contains(&servers) {
        return Err(TheoryError::Servers(servers));
    }
    let k = f64::from(servers);
    // A job takes k on its server, and waits 1 / (1 - load) if it must.
    Ok(k + waiting(servers, load) / (1.0 - load))
}

/// Probability that a job must wait, by Erlang's recursion on the loss probability, which never
/// leaves [0, 1].
pub fn waiting(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    let loss = (1..=servers).fold(1.0, |loss, n| {
        offered * loss / (f64::from(n) + offered * loss)
    });
    loss / (1.0 - load * (1.0 - loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let near = |found: f64, exact: f64| {
            assert!((found / exact - 1.0).abs() < 1e-12, "{found} {exact}")
        };
        near(mean_response(1, 0.8).expect("a queue"), 5.0);
        // Two servers: 2 / (1 - load^2).
        near(mean_response(2, 0.8).expect("a queue"), 2.0 / 0.36);
        near(mean_response(2, 0.5).expect("a queue"), 2.0 / 0.75);
        // Many servers, none waits: a job takes its time on one.
        let many = mean_response(1000, 0.5).expect("a queue");
        near(many, 1000.0);
    }

    #[test]
    fn what_cannot_be_is_said() {
        assert_eq!(mean_response(2, 1.0), Err(TheoryError::Load(1.0)));
        assert_eq!(mean_response(0, 0.5), Err(TheoryError::Servers(0)));
    }
}
