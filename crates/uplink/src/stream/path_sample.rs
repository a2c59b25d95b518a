//! What the kernel says of the network to a client, as the scheduler takes it.

use sooner_kernel::socket::TcpInfo;
use sooner_link::path_estimate::PathSample;
use sooner_policy::Time;

const NS_PER_US: u64 = 1_000;

/// The kernel's part of a sample.
pub fn sample_of(info: &TcpInfo, at: Time) -> PathSample {
    let has_rtt = info.min_rtt_us > 0 && info.min_rtt_us < u32::MAX;
    PathSample {
        rtt_ns: has_rtt.then(|| u64::from(info.min_rtt_us) * NS_PER_US),
        segment_bytes: info.mss_bytes.into(),
        delivery_bytes_per_sec: info.delivery_rate_bytes_per_sec,
        is_least: info.delivery_rate_is_app_limited,
        at,
        ..PathSample::default()
    }
}

#[cfg(test)]
mod tests {
    use sooner_link::path_estimate::PathEstimate;
    use sooner_policy::Path;

    use super::*;

    #[test]
    fn what_the_kernel_does_not_know_is_unknown() {
        for min_rtt_us in [0, u32::MAX] {
            let info = TcpInfo {
                min_rtt_us,
                mss_bytes: 1_448,
                ..TcpInfo::default()
            };
            let sample = sample_of(&info, Time::ZERO);
            let mut estimate = PathEstimate::default();
            let path = estimate.add(sample, 1_250_000);
            assert_eq!(path, Path::default());
        }
    }
}
