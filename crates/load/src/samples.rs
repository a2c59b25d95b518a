//! Raw samples as a file: one JSON object a line, for whoever wants to compute something else.

use serde::Serialize;
use sooner_stats::Sample;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    sample: &'a Sample,
    warm_up: bool,
}

/// Writes `samples` to `path` in order of time; the first `warm_up_samples` say so.
pub fn write(path: &Path, samples: &[Sample], warm_up_samples: usize) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for (index, sample) in samples.iter().enumerate() {
        let line = Line {
            sample,
            warm_up: index < warm_up_samples,
        };
        serde_json::to_writer(&mut file, &line)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_stats::Outcome;

    #[test]
    fn one_line_a_request_that_reads_back_as_a_sample() {
        let sample = |arrival_ns| Sample {
            arrival_ns,
            size_bytes: 1000,
            work_bytes: 1500,
            response_ns: Some(7),
            first_byte_ns: Some(5),
            longest_silence_ns: Some(4),
            send_lag_ns: 0,
            outcome: Outcome::Ok,
            ideal_srpt_ns: 3,
            ideal_ps_ns: 4,
        };
        let samples = [sample(1), sample(2)];
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &samples, 1).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("\"warm_up\":true") && lines[1].contains("\"warm_up\":false"));
        assert_eq!(
            serde_json::from_str::<Sample>(lines[1]).unwrap(),
            samples[1]
        );
    }
}
