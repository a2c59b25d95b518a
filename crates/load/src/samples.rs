//! Raw samples as a file: one JSON object a line, for users who want to compute something else.

use flate2::Compression;
use flate2::write::GzEncoder;
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

/// Writes `samples` to `path` in order of time, as gzip when the name ends in `.gz`; those that are
/// not `measured` are said to be warm-up.
pub fn write(path: &Path, samples: &[Sample], measured: &[bool]) -> io::Result<()> {
    write_to(File::create(path)?, path, samples, measured)
}

/// The same, to a file that is open already.
pub fn write_to(
    file: impl Write,
    path: &Path,
    samples: &[Sample],
    measured: &[bool],
) -> io::Result<()> {
    let file = BufWriter::new(file);
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packer = GzEncoder::new(file, Compression::fast());
        write_lines(&mut packer, samples, measured)?;
        packer.finish()?.flush()
    } else {
        let mut file = file;
        write_lines(&mut file, samples, measured)?;
        file.flush()
    }
}

fn write_lines(writer: &mut impl Write, samples: &[Sample], measured: &[bool]) -> io::Result<()> {
    for (sample, measured) in samples.iter().zip(measured) {
        let line = Line {
            sample,
            warm_up: !measured,
        };
        serde_json::to_writer(&mut *writer, &line)?;
        writer.write_all(b"\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use sooner_stats::Outcome;
    use std::io::Read;

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
            client: 0,
            aborts: 0,
            ideal_srpt_ns: 3,
            ideal_las_ns: 5,
            ideal_ps_ns: 4,
        };
        let samples = [sample(1), sample(2)];
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (
            folder.path().join("a.jsonl"),
            folder.path().join("a.jsonl.gz"),
        );
        write(&plain, &samples, &[false, true]).unwrap();
        write(&packed, &samples, &[false, true]).unwrap();
        let text = std::fs::read_to_string(&plain).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("\"warm_up\":true") && lines[1].contains("\"warm_up\":false"));
        assert_eq!(
            serde_json::from_str::<Sample>(lines[1]).unwrap(),
            samples[1]
        );
        let mut unpacked = String::new();
        GzDecoder::new(File::open(packed).unwrap())
            .read_to_string(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, text);
    }
}
