//! Bytes as a log of batch jobs: run times above 0, or a mistake on one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sooner_workload::job_log;

fuzz_target!(|bytes: &[u8]| {
    match job_log::read(bytes) {
        Ok(run_s) => assert!(!run_s.is_empty() && run_s.iter().all(|time| *time > 0.0)),
        Err(mistake) => {
            let message = mistake.to_string();
            assert!(!message.contains(['\n', '\r']), "{message:?}");
        }
    }
});
