//! Bytes as a log of batch jobs: run times above 0, or a mistake on one line.

use sooner_workload::job_log;

/// Tries one input.
pub fn run(bytes: &[u8]) {
    match job_log::read(bytes) {
        Ok(run_s) => assert!(!run_s.is_empty() && run_s.iter().all(|time| *time > 0.0)),
        Err(mistake) => {
            let message = mistake.to_string();
            assert!(!message.contains(['\n', '\r']), "{message:?}");
        }
    }
}
