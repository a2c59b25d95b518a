//! Bands come, go and are refused, on a device of a network namespace of the test's own.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::thread;

use crate::namespace::{Pair, RECEIVER, SENDER};
use crate::sender::{TEN_MEGABIT, s0, socket_in_band, until};
use sooner_kernel::bands::{self, BAND_COUNT, BandStats, Bands, BandsError, BandsOptions, Replace};
use sooner_kernel::device::{self, Device};
use sooner_kernel::{capability, netns, probe, qdisc, socket};
use sooner_testbed::skip;

fn state(device: &Device) -> (Option<qdisc::Root>, u32, u32) {
    (
        qdisc::root(device).unwrap(),
        device.gso_max_size().unwrap(),
        device.gso_max_segs().unwrap(),
    )
}

#[test]
fn priorities_without_a_limit_come_and_go() {
    let Some(pair) = Pair::new("priorities_without_a_limit_come_and_go") else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let before = state(&device);
        let options = BandsOptions {
            limits_rate: false,
            ..BandsOptions::at_rate(TEN_MEGABIT)
        };
        match Bands::install_as(&device, options) {
            Ok(installed) => {
                let kind = qdisc::root(&device).unwrap().unwrap().kind;
                assert_eq!(kind, "prio");
                drop(installed);
            }
            Err(BandsError::NoPrio) => {
                // Written past the test harness, which would keep it to itself.
                let name = "priorities_without_a_limit_come_and_go";
                skip(name, "this kernel has no sch_prio");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(state(&device), before);
    });
}

#[test]
fn two_bands_have_two_leaves_and_what_is_for_neither_takes_the_top() {
    let Some(pair) = Pair::new("two_bands_have_two_leaves_and_what_is_for_neither_takes_the_top")
    else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let mut installed = Bands::install_as(
            &device,
            BandsOptions {
                bands: 2,
                ..BandsOptions::at_rate(100_000_000)
            },
        )
        .unwrap();
        for (band, packets) in [(1, 3), (7, 5)] {
            let sending = socket_in_band(band);
            for _ in 0..packets {
                sending.send_to(&[0; 1000], (RECEIVER, 9)).unwrap();
            }
        }
        let of_1042_bytes = |stats: &BandStats| stats.sent_bytes / 1042;
        until(|| {
            let stats = installed.stats().unwrap();
            stats[1].sent_packets == 3 && of_1042_bytes(&stats[0]) >= 5
        });
        let below = &installed.stats().unwrap()[2..];
        assert!(below.iter().all(|band| *band == BandStats::default()));
        installed.remove().unwrap();
        assert_eq!(bands::stats(&device).unwrap(), [BandStats::default(); 8]);
    });
}

#[test]
fn super_packets_are_limited_while_ordering() {
    let Some(pair) = Pair::new("super_packets_are_limited_while_ordering") else {
        return;
    };
    let listener = pair.in_receiver(|| TcpListener::bind((RECEIVER, 80)).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| listener.accept().unwrap().0.read_to_end(&mut Vec::new()));
        pair.in_sender(|| {
            let device = s0();
            let mut installed = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap();
            assert_eq!(device.gso_max_segs().unwrap(), 1);
            let mut stream = TcpStream::connect((RECEIVER, 80)).unwrap();
            socket::set_priority(&stream, Bands::priority_of(3)).unwrap();
            stream.set_nonblocking(true).unwrap();
            until(|| {
                while stream.write(&[0; 65536]).is_ok() {}
                let band = installed.stats().unwrap()[3];
                assert!(
                    band.backlog_bytes <= band.backlog_packets * 1514,
                    "{band:?}"
                );
                band.sent_bytes > 200_000 && band.backlog_packets > 0
            });
        });
    });
}

#[test]
fn removing_restores_what_was() {
    let Some(pair) = Pair::new("removing_restores_what_was") else {
        return;
    };
    pair.in_sender(|| {
        let device = s0();
        let before = state(&device);
        let installed = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap();
        assert_eq!(
            qdisc::root(&device).unwrap().unwrap().handle.to_string(),
            "5005:"
        );
        assert_ne!(state(&device), before);
        installed.remove().unwrap();
        assert_eq!(state(&device), before);
        drop(Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap());
        assert_eq!(state(&device), before);
    });
}

#[test]
fn the_kernels_default_comes_back_whatever_it_is() {
    let Some(pair) = Pair::new("the_kernels_default_comes_back_whatever_it_is") else {
        return;
    };
    pair.ip("tuntap add single0 mode tun");
    pair.ip("tuntap add multi0 mode tun multi_queue");
    pair.ip("link add down0 type veth peer name down1");
    pair.ip("link set single0 up");
    pair.ip("link set multi0 up");
    pair.in_sender(|| {
        for name in ["single0", "multi0", "down0"] {
            let device = device::by_name(name).unwrap();
            let before = state(&device);
            assert!(before.0.as_ref().is_none_or(qdisc::Root::is_kernel_default));
            let installed = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap();
            assert_eq!(qdisc::root(&device).unwrap().unwrap().kind, "htb");
            installed.remove().unwrap();
            assert_eq!(state(&device), before, "{name}");
        }
    });
}

#[test]
fn a_device_that_went_away_is_no_trouble() {
    let Some(pair) = Pair::new("a_device_that_went_away_is_no_trouble") else {
        return;
    };
    pair.in_sender(|| {
        let installed = Bands::install(&s0(), TEN_MEGABIT, Replace::No).unwrap();
        pair.ip("link del s0");
        installed.remove().unwrap();
    });
}

#[test]
fn a_device_that_was_moved_gets_its_limits_back() {
    let Some(pair) = Pair::new("a_device_that_was_moved_gets_its_limits_back") else {
        return;
    };
    let limits = |device: Device| -> std::io::Result<_> {
        let segments = device.gso_max_segs()?;
        Ok((device.gso_max_size()?, segments))
    };
    pair.in_sender(|| {
        let before = limits(s0()).unwrap();
        let installed = Bands::install(&s0(), TEN_MEGABIT, Replace::No).unwrap();
        assert_ne!(limits(s0()).unwrap(), before);
        pair.ip(&format!("link set s0 netns {}", pair.receiver.name()));
        installed.remove().unwrap();
        let moved = netns::inside(pair.receiver.name(), || limits(device::by_name("s0")?));
        assert_eq!(moved.unwrap(), before);
    });
}

#[test]
fn a_configured_queue_is_the_operators() {
    let Some(pair) = Pair::new("a_configured_queue_is_the_operators") else {
        return;
    };
    pair.tc("qdisc add dev s0 root handle 7: tbf rate 20mbit burst 3000 limit 100000");
    pair.in_sender(|| {
        let device = s0();
        let before = state(&device);
        let error = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap_err();
        assert!(matches!(error, BandsError::Configured { .. }));
        let message = error.to_string();
        for part in ["`s0`", "tbf 7:", "--replace-qdisc", "comes back"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(
            Bands::check(&device, Replace::No).unwrap_err().to_string(),
            message
        );
        assert_eq!(state(&device), before);
        Bands::check(&device, Replace::Yes).unwrap();
        let installed = Bands::install(&device, TEN_MEGABIT, Replace::Yes).unwrap();
        assert_eq!(qdisc::root(&device).unwrap().unwrap().kind, "htb");
        installed.remove().unwrap();
        assert_eq!(state(&device), before);
    });
}

#[test]
fn a_configured_queue_comes_back_as_it_was() {
    let Some(pair) = Pair::new("a_configured_queue_comes_back_as_it_was") else {
        return;
    };
    let kinds = [
        "handle 7: tbf rate 20mbit burst 3000 limit 100000",
        "handle 8: pfifo limit 17",
        "handle 9: bfifo limit 12345",
    ];
    for kind in kinds {
        pair.tc(&format!("qdisc add dev s0 root {kind}"));
        let before = pair.tc("qdisc show dev s0");
        assert!(before.contains(kind.split(' ').nth(1).unwrap()), "{before}");
        pair.in_sender(|| {
            let installed = Bands::install(&s0(), TEN_MEGABIT, Replace::Yes).unwrap();
            assert_eq!(qdisc::root(&s0()).unwrap().unwrap().kind, "htb");
            installed.remove().unwrap();
        });
        assert_eq!(pair.tc("qdisc show dev s0"), before);
        pair.tc("qdisc del dev s0 root");
    }
    // What was put inside comes back with it, as deep as it goes.
    let inner = [
        "root handle 7: tbf rate 20mbit burst 3000 limit 100000",
        "parent 7:1 handle 70: tbf rate 30mbit burst 3000 limit 100000",
        "parent 70:1 handle 700: bfifo limit 54321",
    ];
    for one in inner {
        pair.tc(&format!("qdisc add dev s0 {one}"));
    }
    let before = pair.tc("qdisc show dev s0");
    assert!(before.contains("limit 54321"), "{before}");
    pair.in_sender(|| {
        let error = Bands::install(&s0(), TEN_MEGABIT, Replace::No).unwrap_err();
        assert!(error.to_string().contains("comes back as it is"), "{error}");
        let installed = Bands::install(&s0(), TEN_MEGABIT, Replace::Yes).unwrap();
        installed.remove().unwrap();
    });
    assert_eq!(pair.tc("qdisc show dev s0"), before);
    // What does not come back is named.
    pair.tc("qdisc replace dev s0 parent 70:1 handle 701: htb");
    pair.in_sender(|| {
        let error = Bands::install(&s0(), TEN_MEGABIT, Replace::No).unwrap_err();
        let words = "comes back without the htb 701: inside it";
        assert!(error.to_string().contains(words), "{error}");
    });
    pair.tc("qdisc del dev s0 root");
    // What has classes does not, and the refusal says so.
    pair.tc("qdisc add dev s0 root handle 7: htb");
    pair.in_sender(|| {
        let error = Bands::install(&s0(), TEN_MEGABIT, Replace::No).unwrap_err();
        assert!(error.to_string().contains("does not come back"), "{error}");
        let installed = Bands::install(&s0(), TEN_MEGABIT, Replace::Yes).unwrap();
        installed.remove().unwrap();
        assert!(qdisc::root(&s0()).unwrap().unwrap().is_kernel_default());
    });
}

#[test]
fn loopback_needs_to_be_asked_for() {
    let Some(pair) = Pair::new("loopback_needs_to_be_asked_for") else {
        return;
    };
    pair.in_sender(|| {
        let device = device::by_name("lo").unwrap();
        let before = state(&device);
        assert!(matches!(
            Bands::install(&device, TEN_MEGABIT, Replace::No),
            Err(BandsError::Loopback { .. })
        ));
        assert_eq!(state(&device), before);
        let installed = Bands::install_even_on_loopback(&device, TEN_MEGABIT, Replace::No).unwrap();
        assert_eq!(qdisc::root(&device).unwrap().unwrap().kind, "htb");
        installed.remove().unwrap();
        assert_eq!(state(&device), before);
    });
}

#[test]
fn without_privilege_the_missing_capability_is_named() {
    let Some(pair) = Pair::new("without_privilege_the_missing_capability_is_named") else {
        return;
    };
    pair.in_sender(|| {
        let mut sets = rustix::thread::capabilities(None).unwrap();
        sets.effective = rustix::thread::CapabilitySet::empty();
        rustix::thread::set_capabilities(None, sets).unwrap();
        assert!(!capability::has_net_admin());
        let device = s0();
        let error = Bands::install(&device, TEN_MEGABIT, Replace::No).unwrap_err();
        assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
        let report = probe::probe(&device, Replace::No);
        assert!(matches!(report.bands, Err(BandsError::NotPermitted { .. })));
        assert_eq!(
            report.any_priority.unwrap_err().to_string(),
            "needs CAP_NET_ADMIN"
        );
        assert_eq!(
            report.realtime.unwrap_err().to_string(),
            "needs CAP_SYS_NICE"
        );
        let unprivileged = UdpSocket::bind((SENDER, 0)).unwrap();
        let refused = socket::set_priority(&unprivileged, Bands::priority_of(0)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        socket::set_priority(&unprivileged, 6).unwrap();
        assert_eq!(bands::remove_leftovers().unwrap(), []);
        assert_eq!(qdisc::backlog_bytes(&device).unwrap(), 0);
        assert!(qdisc::root(&device).unwrap().unwrap().is_kernel_default());
        assert_eq!(
            bands::stats(&device).unwrap(),
            [BandStats::default(); BAND_COUNT]
        );
    });
}

#[test]
fn with_privilege_everything_is_there() {
    let Some(pair) = Pair::new("with_privilege_everything_is_there") else {
        return;
    };
    pair.in_sender(|| {
        let before = state(&s0());
        let report = probe::probe(&s0(), Replace::No);
        assert!(report.bands.is_ok() && report.any_priority.is_ok());
        assert_eq!(state(&s0()), before);
    });
}

#[test]
fn the_device_of_an_address_is_found() {
    let Some(pair) = Pair::new("the_device_of_an_address_is_found") else {
        return;
    };
    pair.in_sender(|| {
        let carrying = |address: &str| {
            device::carrying(address.parse().unwrap())
                .unwrap()
                .map(|device| device.name)
        };
        assert_eq!(carrying(SENDER), Some("s0".into()));
        assert_eq!(carrying(&format!("::ffff:{SENDER}")), Some("s0".into()));
        assert_eq!(carrying("127.0.0.1"), Some("lo".into()));
        pair.ip("addr add fd77::1/64 dev s0 nodad");
        assert_eq!(carrying("fd77::1"), Some("s0".into()));
        assert_eq!((carrying(RECEIVER), carrying("fd77::2")), (None, None));
        assert_eq!(carrying("0.0.0.0"), None);
        assert_eq!(
            device::towards(RECEIVER.parse().unwrap())
                .unwrap()
                .unwrap()
                .name,
            "s0"
        );
        pair.ip(&format!("route add default via {RECEIVER}"));
        assert_eq!(
            (carrying("0.0.0.0"), carrying("::")),
            (Some("s0".into()), Some("s0".into()))
        );
        let before = s0().tx_bytes().unwrap();
        UdpSocket::bind((SENDER, 0))
            .unwrap()
            .send_to(&[0; 1000], (RECEIVER, 9))
            .unwrap();
        until(|| s0().tx_bytes().unwrap() >= before + 1042);
    });
}

#[test]
fn the_queue_of_a_device_that_comes_back_is_watched_again() {
    let Some(pair) = Pair::new("the_queue_of_a_device_that_comes_back_is_watched_again") else {
        return;
    };
    pair.in_sender(|| {
        let mut probe = qdisc::BacklogProbe::open(&s0()).unwrap();
        assert_eq!(probe.backlog_bytes(0).unwrap(), 0);
        pair.ip("link del s0");
        assert!(probe.backlog_bytes(0).is_err());
        pair.ip("link add s0 type veth peer name s1");
        until(|| probe.backlog_bytes(0).is_ok());
    });
}
