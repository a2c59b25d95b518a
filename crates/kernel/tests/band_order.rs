//! What bands do to packets that wait: which leave first, what the others keep. On a device of a
//! network namespace of the test's own.

use crate::sender;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::namespace::{Pair, RECEIVER, SENDER};
use crate::sender::{TEN_MEGABIT, s0, socket_in_band, until};
use sooner_kernel::bands::{self, BAND_COUNT, BandStats, Bands, BandsOptions, Replace};
use sooner_kernel::qdisc::{self, BacklogProbe};

/// Ends the other threads of a test, also when an assertion fails.
struct Finish<'a>(&'a AtomicBool);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_packets_priority_chooses_its_band() {
    let Some(pair) = Pair::new("a_packets_priority_chooses_its_band") else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let mut installed = Bands::install(&device, 100_000_000, Replace::No).unwrap();
        for band in 0..BAND_COUNT as u8 {
            let sending = socket_in_band(band);
            for _ in 0..=band {
                sending.send_to(&[0; 1000], (RECEIVER, 9)).unwrap();
            }
        }
        let sent = |stats: &[BandStats]| {
            stats
                .iter()
                .map(|band| band.sent_packets)
                .collect::<Vec<_>>()
        };
        until(|| sent(&installed.stats().unwrap())[1..] == [2, 3, 4, 5, 6, 7, 8]);
        let before = installed.stats().unwrap();
        assert_eq!(before[2].sent_bytes, 3 * (1000 + 8 + 20 + 14));
        UdpSocket::bind((SENDER, 0))
            .unwrap()
            .send_to(&[0; 1000], (RECEIVER, 9))
            .unwrap();
        until(|| bands::stats(&device).unwrap()[0].sent_bytes >= before[0].sent_bytes + 1042);
        assert_eq!(
            sent(&bands::stats(&device).unwrap())[1..],
            sent(&before)[1..],
            "an unmarked packet goes to the top band"
        );
    });
}

/// Round trips of one probe in this band against an echo on the other side; None where it was lost.
fn round_trips(band: u8, count: usize) -> Vec<Duration> {
    let sending = socket_in_band(band);
    sending.set_read_timeout(Some(sender::PATIENCE)).unwrap();
    let one = |_| {
        let start = Instant::now();
        sending.send_to(&[1; 100], (RECEIVER, 7)).unwrap();
        sending.recv(&mut [0; 100]).unwrap();
        start.elapsed()
    };
    (0..count).map(one).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_saturated_low_band_leaves_a_high_band_fast() {
    let Some(pair) = Pair::new("a_saturated_low_band_leaves_a_high_band_fast") else {
        return;
    };
    let echo = pair.in_receiver(|| UdpSocket::bind((RECEIVER, 7)).unwrap());
    echo.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let listener = pair.in_receiver(|| TcpListener::bind((RECEIVER, 80)).unwrap());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _finish = Finish(&done);
        scope.spawn(|| {
            let mut buffer = [0; 200];
            while !done.load(Ordering::Relaxed) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    echo.send_to(&buffer[..length], from).unwrap();
                }
            }
        });
        pair.in_sender(|| {
            let device = s0();
            let _installed = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap();
            thread::scope(|scope| {
                let _finish = Finish(&done);
                scope.spawn(|| {
                    let flood = socket_in_band(6);
                    while !done.load(Ordering::Relaxed) {
                        flood.send_to(&[0; 1472], (RECEIVER, 9)).unwrap();
                    }
                });
                until(|| bands::stats(&device).unwrap()[6].backlog_packets > 20);
                let (top, low) = (median(round_trips(0, 21)), median(round_trips(6, 5)));
                assert!(top * 4 < low, "top band {top:?}, saturated band {low:?}");
                let start = Instant::now();
                TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                assert!(
                    start.elapsed() < low,
                    "an unmarked handshake takes the top band"
                );
                assert!(qdisc::backlog_bytes(&device).unwrap() > 1514);
                let mut probe = BacklogProbe::of_bands(&device, BAND_COUNT as u8).unwrap();
                assert_eq!(probe.backlog_bytes(5).unwrap(), 0);
                assert!(probe.backlog_bytes(6).unwrap() > 1514);
            });
        });
    });
}

#[test]
fn a_low_band_is_never_silent() {
    let Some(pair) = Pair::new("a_low_band_is_never_silent") else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let _installed = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let _finish = Finish(&done);
            for band in [0, 7] {
                let done = &done;
                scope.spawn(move || {
                    let flood = socket_in_band(band);
                    flood
                        .set_write_timeout(Some(Duration::from_millis(100)))
                        .unwrap();
                    while !done.load(Ordering::Relaxed) {
                        let _ = flood.send_to(&[0; 1472], (RECEIVER, 9));
                    }
                });
            }
            let both_wait = |stats: [BandStats; BAND_COUNT]| {
                stats[0].backlog_packets > 5 && stats[7].backlog_packets > 5
            };
            until(|| both_wait(bands::stats(&device).unwrap()));
            let before = bands::stats(&device).unwrap();
            until(|| bands::stats(&device).unwrap()[7].sent_packets >= before[7].sent_packets + 2);
            let after = bands::stats(&device).unwrap();
            let (top, low) = (
                after[0].sent_bytes - before[0].sent_bytes,
                after[7].sent_bytes - before[7].sent_bytes,
            );
            assert!(
                low * 20 < top,
                "the low band took {low} bytes while the top one took {top}"
            );
        });
    });
}

#[test]
fn the_lower_bands_keep_their_share_of_a_saturated_link() {
    let Some(pair) = Pair::new("the_lower_bands_keep_their_share_of_a_saturated_link") else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let options = BandsOptions {
            lower_share_per_mille: 280,
            ..BandsOptions::at_rate(TEN_MEGABIT)
        };
        let _installed = Bands::install_as(&device, options).unwrap();
        let floods = [0, 1, 2, 3, 4, 5, 6, 7].map(socket_in_band);
        for flood in &floods {
            flood.set_nonblocking(true).unwrap();
        }
        let fill = |flood: &UdpSocket| while flood.send_to(&[0; 1472], (RECEIVER, 9)).is_ok() {};
        let fill_all = || floods.iter().for_each(fill);
        let stats = || bands::stats(&device).unwrap();
        until(|| {
            fill_all();
            stats().iter().all(|band| band.backlog_packets > 5)
        });
        let before = stats().map(|band| band.sent_bytes);
        let sent_since = || -> Vec<u64> {
            let pairs = stats().into_iter().zip(before);
            pairs
                .map(|(band, before)| band.sent_bytes - before)
                .collect()
        };
        until(|| {
            fill_all();
            sent_since().iter().sum::<u64>() >= 2_000_000
        });
        let sent = sent_since();
        let share_of = |bytes: u64| bytes as f64 / sent.iter().sum::<u64>() as f64;
        let lower = share_of(sent[1..].iter().sum());
        assert!((0.26..0.30).contains(&lower), "{lower}: {sent:?}");
        assert!(
            sent[1..].iter().all(|bytes| share_of(*bytes) > 0.03),
            "{sent:?}"
        );
    });
}
