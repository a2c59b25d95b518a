//! The best that any server could have done for the arrivals that really happened.
//!
//! Three servers without overheads play the same requests on the same link: one in the order of
//! shortest remaining work (no order has a lower mean), one in the order of least attained work,
//! the best that can be had without knowing sizes (where they are heavy-tailed), and one that
//! shares exactly. Sizes are work on the wire; the unit of service is a nanosecond of the link's
//! time.

use sooner_simulator::{Policy, given};

/// A request as the link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// When it arrived, ns since the start of the run.
    pub arrival_ns: u64,
    /// What it costs on the wire, bytes.
    pub work_bytes: u64,
}

/// Response times without overheads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ideal {
    /// Under shortest remaining first, ns.
    pub srpt_ns: u64,
    /// Under least attained first, ns.
    pub las_ns: u64,
    /// Under processor sharing, ns.
    pub ps_ns: u64,
}

/// The ideal response times of `works`, which are sorted by arrival, on a link of
/// `rate_bits_per_sec`.
pub fn responses(works: &[Work], rate_bits_per_sec: u64) -> Vec<Ideal> {
    let job = |work: &Work| {
        (
            work.arrival_ns,
            transmission_ns(work.work_bytes, rate_bits_per_sec),
        )
    };
    let jobs: Vec<given::Job> = works.iter().map(job).collect();
    let [srpt, las, ps] =
        [Policy::SRPT, Policy::LAS, Policy::FAIR].map(|policy| given::responses(policy, &jobs));
    let of = |((srpt_ns, las_ns), ps_ns)| Ideal {
        srpt_ns,
        las_ns,
        ps_ns,
    };
    srpt.into_iter().zip(las).zip(ps).map(of).collect()
}

/// The time of `bytes` on the link, ns, at least 1.
fn transmission_ns(bytes: u64, rate_bits_per_sec: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 8_000_000_000 / u128::from(rate_bits_per_sec.max(1)))
        .unwrap_or(u64::MAX)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTE_A_NANOSECOND: u64 = 8_000_000_000;

    fn works(list: &[(u64, u64)]) -> Vec<Work> {
        list.iter()
            .map(|&(arrival_ns, work_bytes)| Work {
                arrival_ns,
                work_bytes,
            })
            .collect()
    }

    #[test]
    fn a_lone_request_takes_its_time_on_the_wire() {
        let ideal = responses(&works(&[(50, 100)]), BYTE_A_NANOSECOND);
        assert_eq!(
            ideal,
            [Ideal {
                srpt_ns: 100,
                las_ns: 100,
                ps_ns: 100
            }]
        );
    }

    #[test]
    fn a_short_request_overtakes_or_shares() {
        let ideal = responses(&works(&[(0, 100), (10, 20)]), BYTE_A_NANOSECOND);
        assert_eq!(
            ideal,
            [
                Ideal {
                    srpt_ns: 120,
                    las_ns: 120,
                    ps_ns: 120
                },
                Ideal {
                    srpt_ns: 20,
                    las_ns: 30,
                    ps_ns: 40
                }
            ]
        );
    }

    /// M/M/1 at load 0.8, mean size 1: 5 under sharing and under LAS (exponential sizes have no
    /// memory), 2.352773 under SRPT (exact values, facts on golden values).
    #[test]
    fn the_means_agree_with_queueing_theory() {
        use rand::SeedableRng;
        use rand_distr::{Distribution, Exp};
        let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(1);
        let (size, gap) = (
            Exp::new(1e-6).expect("a rate"),
            Exp::new(0.8e-6).expect("a rate"),
        );
        let mut now = 0.0;
        let works: Vec<Work> = (0..400_000)
            .map(|_| {
                now += gap.sample(&mut rng);
                Work {
                    arrival_ns: now as u64,
                    work_bytes: size.sample(&mut rng) as u64,
                }
            })
            .collect();
        let ideal = responses(&works, BYTE_A_NANOSECOND);
        let mean = |of: fn(&Ideal) -> u64| {
            ideal.iter().map(|ideal| of(ideal) as f64).sum::<f64>() / ideal.len() as f64 / 1e6
        };
        let (sharing, srpt) = (mean(|ideal| ideal.ps_ns), mean(|ideal| ideal.srpt_ns));
        assert!((sharing - 5.0).abs() < 0.25, "sharing {sharing}");
        let las = mean(|ideal| ideal.las_ns);
        assert!(
            (las / sharing - 1.0).abs() < 0.03,
            "las {las} sharing {sharing}"
        );
        assert!((srpt - 2.352_773).abs() < 0.08, "srpt {srpt}");
    }
}
