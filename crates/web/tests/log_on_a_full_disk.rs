//! The access log on a disk that fills up and gets room again. Needs the right to mount; without it
//! there is nothing to see here, and the same is tested with a disk made of memory in
//! `access_log::output`.

use sooner_link::JobReport;
use sooner_web::access_log::{AccessLog, Destination, LogFormat, Remote, ResponseFacts, WallClock};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const REPORT: JobReport = JobReport {
    wait_ns: 0,
    service_ns: 0,
    sent_bytes: 0,
    policy: "fair",
    rank_at_start: 0,
    bytes_of_others_meanwhile: 0,
    completed: true,
};

/// A small disk, gone when this is.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "sooner-test"])
            .arg(folder.path())
            .output();
        done.is_ok_and(|done| done.status.success())
            .then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn write_lines(log: &AccessLog, count: u64) {
    let remote = Remote::new("[::1]:1".parse().unwrap(), None);
    let now = Instant::now();
    let mut clock = WallClock::new(now);
    let request = hyper::Request::new(());
    for _ in 0..count {
        let begun = log.begin(&mut clock, now, &remote, &request).unwrap();
        log.write(
            &begun.with_response(ResponseFacts::default()),
            &REPORT,
            None,
        );
    }
}

#[test]
fn lines_are_whole_or_lost_and_counted() {
    let Some(disk) = Disk::mount() else {
        eprintln!("skipped: lines_are_whole_or_lost_and_counted: no right to mount");
        return;
    };
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 40 << 10]).unwrap();
    let path = disk.path().join("access.log");
    let (log, closer) = AccessLog::open(&Destination::File(path.clone()), LogFormat::Json).unwrap();
    write_lines(&log, 300);
    let deadline = Instant::now() + Duration::from_secs(20);
    while log.lost_lines() == 0 {
        assert!(
            Instant::now() < deadline,
            "the disk is full and nothing was lost"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::remove_file(filler).unwrap();
    write_lines(&log, 10);
    drop(closer);
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().inspect(|line| {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    });
    assert_eq!(lines.count() as u64 + log.lost_lines(), 310);
}
