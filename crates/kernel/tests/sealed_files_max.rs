//! How many sealed files there may be: a test in a process of its own, because it takes them all:
//! this test program, started again.

use std::process::Command;

use sooner_kernel::descriptors::limit;
use sooner_kernel::sealed_file::{SealedFile, find};

#[test]
fn sealed_files_leave_most_descriptors_to_others() {
    const INSIDE: &str = "SOONER_TEST_SEALED_FILES";
    if std::env::var_os(INSIDE).is_none() {
        let name = "sealed_files_max::sealed_files_leave_most_descriptors_to_others";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(INSIDE, "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
        return;
    }
    let mut files = Vec::new();
    let refused = loop {
        match SealedFile::new(b"content") {
            Ok(file) => files.push(file),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::QuotaExceeded);
    assert_eq!(files.len() as u64, (limit() / 8).min(1024));
    assert!(files.iter().all(|file| find(file.as_ref()).is_some()));
    files.pop();
    assert!(SealedFile::new(b"content").is_ok());
}
