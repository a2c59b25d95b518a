//! Bands of a killed owner, on a device of a network namespace of the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::namespace::Pair;
use sooner_kernel::bands::{self, Bands, BandsError, Became, Replace};
use sooner_kernel::device::{self, Device};
use sooner_kernel::{netns, qdisc};

const TEN_MEGABIT: u64 = 10_000_000;
/// Names the namespace in which the helper holds bands; unset in a normal run of the tests.
const HOLD_IN: &str = "SOONER_KERNEL_TEST_HOLD_IN";

/// Not a test: this binary run again as the owner that gets killed.
#[test]
fn helper_that_holds_bands() {
    let Ok(namespace) = std::env::var(HOLD_IN) else {
        return;
    };
    netns::enter(&namespace).unwrap();
    let _bands = Bands::install(&s0(), TEN_MEGABIT, Replace::Yes).unwrap();
    println!("\nholding");
    std::thread::sleep(std::time::Duration::from_secs(120));
}

/// A process that has bands on `s0`; killed without warning when dropped.
struct Owner(Child);

impl Owner {
    fn start(pair: &Pair) -> Owner {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "leftovers::helper_that_holds_bands",
                "--nocapture",
            ])
            .env(HOLD_IN, pair.sender.name())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert!(
            output.lines().any(|line| line.unwrap() == "holding"),
            "the helper did not install its bands"
        );
        Owner(child)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn s0() -> Device {
    device::by_name("s0").unwrap()
}

fn state(device: &Device) -> (Option<qdisc::Root>, u32, u32) {
    (
        qdisc::root(device).unwrap(),
        device.gso_max_size().unwrap(),
        device.gso_max_segs().unwrap(),
    )
}

fn record() -> PathBuf {
    PathBuf::from(format!(
        "/run/sooner/bands-{}-{}",
        netns::current_id().unwrap(),
        s0().index
    ))
}

/// The names of the devices of which something was taken away.
fn remove_leftovers() -> Result<Vec<String>, BandsError> {
    let left = bands::remove_leftovers()?.into_iter();
    Ok(left.map(|left| left.device).collect())
}

#[test]
fn a_killed_owners_bands_are_removed() {
    let Some(pair) = Pair::new("a_killed_owners_bands_are_removed") else {
        return;
    };
    pair.in_sender(|| {
        let before = state(&s0());
        let owner = Owner::start(&pair);
        assert_ne!(state(&s0()), before);
        drop(owner);
        assert_ne!(state(&s0()), before, "a kill leaves the bands");
        assert_eq!(remove_leftovers().unwrap(), ["s0"]);
        assert_eq!(state(&s0()), before);
        assert!(!record().exists());
        assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_living_owner_is_left_alone_and_named() {
    let Some(pair) = Pair::new("a_living_owner_is_left_alone_and_named") else {
        return;
    };
    pair.in_sender(|| {
        let owner = Owner::start(&pair);
        let during = state(&s0());
        assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new());
        for error in [
            Bands::install(&s0(), TEN_MEGABIT, Replace::Yes).unwrap_err(),
            Bands::check(&s0(), Replace::No).unwrap_err(),
        ] {
            assert!(matches!(error, BandsError::Busy { .. }), "{error}");
            assert!(
                error
                    .to_string()
                    .contains(&format!("process {}", owner.0.id())),
                "{error}"
            );
        }
        assert_eq!(state(&s0()), during);
        drop(owner);
        assert_eq!(remove_leftovers().unwrap(), ["s0"]);
    });
}

/// What stood there before is lost with the record, and that is said.
#[test]
fn of_a_damaged_record_it_is_said_that_it_is_lost() {
    let Some(pair) = Pair::new("of_a_damaged_record_it_is_said_that_it_is_lost") else {
        return;
    };
    pair.in_sender(|| {
        for damage in ["", "pid 1\ndevice s0\npre", "\u{0}\u{1}"] {
            drop(Owner::start(&pair));
            fs::write(record(), damage).unwrap();
            let left = bands::remove_leftovers().unwrap();
            assert_eq!(left[0].became, Became::Cleared, "{damage:?}");
            assert!(left[0].to_string().contains("is not known"), "{}", left[0]);
            assert!(!record().exists());
        }
        drop(Owner::start(&pair));
        fs::remove_file(record()).unwrap();
        // A reader would wait for a writer.
        let made = Command::new("mkfifo").arg(record()).status().unwrap();
        assert!(made.success());
        assert_eq!(
            bands::remove_leftovers().unwrap()[0].became,
            Became::Cleared
        );
        assert!(!record().exists());
    });
}

#[test]
fn without_a_record_the_kernels_defaults_are_restored() {
    let Some(pair) = Pair::new("without_a_record_the_kernels_defaults_are_restored") else {
        return;
    };
    pair.in_sender(|| {
        let before = state(&s0());
        drop(Owner::start(&pair));
        std::fs::remove_file(record()).unwrap();
        assert_eq!(remove_leftovers().unwrap(), ["s0"]);
        assert_eq!(state(&s0()), before);
    });
}

#[test]
fn limits_are_restored_when_only_the_qdisc_was_removed_by_hand() {
    let Some(pair) = Pair::new("limits_are_restored_when_only_the_qdisc_was_removed_by_hand")
    else {
        return;
    };
    pair.in_sender(|| {
        let before = state(&s0());
        drop(Owner::start(&pair));
        pair.tc("qdisc del dev s0 root");
        assert_eq!(remove_leftovers().unwrap(), ["s0"]);
        assert_eq!(state(&s0()), before);
        assert!(!record().exists());
    });
}

#[test]
fn installing_cleans_up_after_a_killed_owner() {
    let Some(pair) = Pair::new("installing_cleans_up_after_a_killed_owner") else {
        return;
    };
    pair.in_sender(|| {
        let before = state(&s0());
        drop(Owner::start(&pair));
        Bands::check(&s0(), Replace::No).unwrap();
        Bands::install(&s0(), TEN_MEGABIT, Replace::No)
            .unwrap()
            .remove()
            .unwrap();
        assert_eq!(state(&s0()), before);
    });
}

#[test]
fn a_configured_queue_comes_back_after_a_kill() {
    let Some(pair) = Pair::new("a_configured_queue_comes_back_after_a_kill") else {
        return;
    };
    pair.tc("qdisc add dev s0 root handle 6: tbf rate 20mbit burst 3000 limit 100000");
    pair.tc("qdisc add dev s0 parent 6:1 handle 60: bfifo limit 54321");
    let before = pair.tc("qdisc show dev s0");
    drop(Owner::start(&pair));
    pair.in_sender(|| assert_eq!(remove_leftovers().unwrap(), ["s0"]));
    assert_eq!(pair.tc("qdisc show dev s0"), before);
    pair.tc("qdisc replace dev s0 root handle 7: pfifo limit 17");
    let before = pair.tc("qdisc show dev s0");
    drop(Owner::start(&pair));
    assert_ne!(pair.tc("qdisc show dev s0"), before);
    pair.in_sender(|| assert_eq!(remove_leftovers().unwrap(), ["s0"]));
    assert_eq!(pair.tc("qdisc show dev s0"), before);
    // Another queue that an operator has put there meanwhile stays.
    drop(Owner::start(&pair));
    pair.tc("qdisc replace dev s0 root handle 9: pfifo limit 5");
    let before = pair.tc("qdisc show dev s0");
    pair.in_sender(|| drop(remove_leftovers().unwrap()));
    assert_eq!(pair.tc("qdisc show dev s0"), before);
}

#[test]
fn records_of_namespaces_that_are_gone_go_too() {
    let name = "records_of_namespaces_that_are_gone_go_too";
    let (Some(pair), Some(other)) = (Pair::new(name), Pair::new(name)) else {
        return;
    };
    let before = pair.in_sender(|| state(&s0()).1);
    drop(Owner::start(&pair));
    let left = pair.in_sender(record);
    other.in_sender(|| {
        assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new());
        assert!(
            left.exists(),
            "its namespace is there, and cleans up itself"
        );
    });
    // The device is elsewhere when its namespace goes, as hardware is.
    pair.ip(&format!("link set s0 netns {}", other.receiver.name()));
    let far_end = format!("link set r0 netns {}", other.sender.name());
    pair.receiver.ip(&far_end).unwrap();
    drop(pair);
    let limits = || state(&s0()).1;
    assert_ne!(other.in_receiver(limits), before);
    other.in_sender(|| assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new()));
    assert!(!left.exists());
    assert_eq!(other.in_receiver(limits), before);
}

#[test]
fn a_device_that_moves_after_a_kill_gets_its_limits_back() {
    let name = "a_device_that_moves_after_a_kill_gets_its_limits_back";
    for cleans_where_it_is in [false, true] {
        let Some(pair) = Pair::new(name) else {
            return;
        };
        let limits = || state(&s0()).1;
        let before = pair.in_sender(limits);
        drop(Owner::start(&pair));
        let left = pair.in_sender(record);
        pair.ip(&format!("link set s0 netns {}", pair.receiver.name()));
        let clean = || assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new());
        match cleans_where_it_is {
            true => pair.in_receiver(clean),
            false => pair.in_sender(clean),
        }
        assert_eq!(pair.in_receiver(limits), before);
        assert!(!left.exists());
    }
}

#[test]
fn a_device_that_is_renamed_after_a_kill_is_restored() {
    let Some(pair) = Pair::new("a_device_that_is_renamed_after_a_kill_is_restored") else {
        return;
    };
    // Limits of the operator's own, which no default of the kernel's is.
    pair.ip("link set s0 gso_max_segs 77 gso_max_size 40000");
    let before = pair.in_sender(|| state(&s0()));
    drop(Owner::start(&pair));
    let left = pair.in_sender(record);
    for words in ["down", "name renamed0", "up"] {
        let device = if words == "up" { "renamed0" } else { "s0" };
        pair.ip(&format!("link set {device} {words}"));
    }
    pair.in_sender(|| {
        assert_eq!(remove_leftovers().unwrap(), ["renamed0"]);
        assert_eq!(state(&device::by_name("renamed0").unwrap()), before);
    });
    assert!(!left.exists());
}

#[test]
fn a_new_device_with_the_number_of_one_that_is_gone_is_left_alone() {
    let Some(pair) = Pair::new("a_new_device_with_the_number_of_one_that_is_gone_is_left_alone")
    else {
        return;
    };
    let index = pair.in_sender(|| s0().index);
    drop(Owner::start(&pair));
    let left = pair.in_sender(record);
    pair.ip("link del s0");
    pair.ip(&format!(
        "link add other0 index {index} type veth peer name other1"
    ));
    pair.ip("link set other0 gso_max_segs 5");
    pair.in_sender(|| {
        let other = || device::by_name("other0").unwrap();
        let before = state(&other());
        assert_eq!(remove_leftovers().unwrap(), Vec::<String>::new());
        assert_eq!(state(&other()), before);
    });
    assert!(!left.exists());
}
