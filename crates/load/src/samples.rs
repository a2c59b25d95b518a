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
