//! Which packets a path loses: each with the same probability, independently of all others, as
//! Dummynet does it (Rizzo 1997), the tool behind the papers' loss experiments.
//!
//! Every client has two streams of draws of its own, one a direction, so that more packets of one
//! do not change what another loses. One draw a packet, whatever becomes of it: packet number n of
//! a stream is lost or not by the seed alone.

use std::net::Ipv4Addr;

use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng as _, SeedableRng};

use super::core::Direction;

const MILLION: u128 = 1_000_000;

/// The draws of one client and direction.
#[derive(Debug)]
pub struct Draws {
    random: Pcg64,
    loss_ppm: u32,
}

impl Draws {
    /// The stream named by the seed, the client and the direction; loses `loss_ppm` packets in a
    /// million.
    pub fn new(seed: u64, client: Ipv4Addr, direction: Direction, loss_ppm: u32) -> Draws {
        let stream =
            u64::from(u32::from(client)) << 1 | u64::from(direction == Direction::ToServer);
        Draws {
            random: Pcg64::seed_from_u64(seed ^ (stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            loss_ppm,
        }
    }

    /// Whether the next packet is lost.
    pub fn next_is_lost(&mut self) -> bool {
        let draw_ppm = (u128::from(self.random.next_u64()) * MILLION) >> 64;
        draw_ppm < u128::from(self.loss_ppm)
    }

    /// By how much longer the next packet is held, below `most_ns`; nothing is drawn where that is
    /// 0.
    pub fn next_jitter_ns(&mut self, most_ns: u64) -> u64 {
        if most_ns == 0 {
            return 0;
        }
        ((u128::from(self.random.next_u64()) * u128::from(most_ns)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn lost(
        seed: u64,
        client: Ipv4Addr,
        direction: Direction,
        loss_ppm: u32,
        n: usize,
    ) -> Vec<bool> {
        let mut draws = Draws::new(seed, client, direction, loss_ppm);
        (0..n).map(|_| draws.next_is_lost()).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn the_frequency_is_the_probability() {
        for loss_ppm in [10_000, 30_000, 50_000, 150_000, 500_000] {
            let asked = f64::from(loss_ppm) / 1e6;
            let measured = share(&lost(1, CLIENT, Direction::ToClient, loss_ppm, 1_000_000));
            // Four standard deviations; below 1 % of the rate from 15 % on.
            let allowed = 4.0 * (asked * (1.0 - asked) / 1e6).sqrt();
            assert!((measured - asked).abs() < allowed, "{measured} of {asked}");
        }
    }

    #[test]
    fn nothing_and_everything_are_exact() {
        assert_eq!(
            share(&lost(1, CLIENT, Direction::ToClient, 0, 100_000)),
            0.0
        );
        let all = lost(1, CLIENT, Direction::ToClient, 1_000_000, 100_000);
        assert_eq!(share(&all), 1.0);
    }

    #[test]
    fn losses_do_not_come_in_groups() {
        let lost = lost(3, CLIENT, Direction::ToServer, 100_000, 1_000_000);
        let after_a_loss: Vec<bool> = lost
            .windows(2)
            .filter(|pair| pair[0])
            .map(|pair| pair[1])
            .collect();
        // A hundred thousand draws: four standard deviations are 0.004.
        assert!((share(&after_a_loss) - 0.1).abs() < 0.004);
    }

    #[test]
    fn streams_are_repeatable_and_independent() {
        let one = lost(1, CLIENT, Direction::ToClient, 500_000, 10_000);
        assert_eq!(one, lost(1, CLIENT, Direction::ToClient, 500_000, 10_000));
        for other in [
            lost(2, CLIENT, Direction::ToClient, 500_000, 10_000),
            lost(1, CLIENT, Direction::ToServer, 500_000, 10_000),
            lost(
                1,
                Ipv4Addr::new(10, 0, 0, 3),
                Direction::ToClient,
                500_000,
                10_000,
            ),
        ] {
            let equal: Vec<bool> = one.iter().zip(&other).map(|(a, b)| a == b).collect();
            // Half of them by chance; four standard deviations are 0.02.
            assert!((share(&equal) - 0.5).abs() < 0.02);
        }
    }
}
