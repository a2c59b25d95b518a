//! A log as a trace: the tables of data/README.md, and beside them what each object was called.

use crate::request::Requested;
use crate::requests::LoggedRequest;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// The files of a trace, compressed.
pub struct TraceFiles {
    /// `NAME.csv.gz`: one request a line.
    pub requests: Vec<u8>,
    /// `NAME.objects.csv.gz`: one object a line.
    pub objects: Vec<u8>,
    /// `NAME.paths.csv.gz`: what each object was in the log.
    pub paths: Vec<u8>,
}

/// Makes the files of a log's requests.
pub fn trace_files(requests: &[LoggedRequest], whats: &[Requested]) -> io::Result<TraceFiles> {
    let mut counts = vec![(0_u64, 0_u64); whats.len()];
    let mut rows = packer("t,bytes,client,object,status")?;
    for request in requests {
        let (times, largest) = &mut counts[request.what as usize];
        *times += 1;
        *largest = (*largest).max(request.bytes);
        writeln!(
            rows,
            "{:.6},{},{},{},{}",
            request.at_ns as f64 / 1e9,
            request.bytes,
            request.client,
            request.what,
            request.status
        )?;
    }
    let mut objects = packer("object,requests,max_bytes,ext")?;
    let mut paths = packer("object,method,target")?;
    for (object, (what, (times, largest))) in whats.iter().zip(&counts).enumerate() {
        writeln!(
            objects,
            "{object},{times},{largest},{}",
            extension(&what.target)
        )?;
        writeln!(paths, "{object},{},\"{}\"", what.method, what.target)?;
    }
    Ok(TraceFiles {
        requests: rows.finish()?,
        objects: objects.finish()?,
        paths: paths.finish()?,
    })
}

fn packer(header: &str) -> io::Result<GzEncoder<Vec<u8>>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    writeln!(packer, "{header}")?;
    Ok(packer)
}

/// 1 to 16 lower-case letters or digits; `dir` or `none` where there is none.
fn extension(target: &str) -> String {
    let path = target.split('?').next().unwrap_or(target);
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.is_empty() {
        return "dir".into();
    }
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    let is_usable = |extension: &String| {
        (1..=16).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    extension.filter(is_usable).unwrap_or_else(|| "none".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_workload::Trace;
    use std::io::BufReader;

    #[test]
    fn the_files_are_a_trace_that_is_read_back() {
        let what = |target: &str| Requested {
            method: "GET".into(),
            target: target.into(),
        };
        let whats = ["/a.HTML?b", "/d/", "/x.tar-gz"].map(what);
        let request = |(at_ns, what, bytes)| LoggedRequest {
            at_ns,
            what,
            client: 1,
            bytes,
            status: 200,
        };
        let requests = [
            (0, 0, 10),
            (500_000_000, 1, 0),
            (1_250_000_000, 0, 30),
            (2_000_000_000, 2, 5),
        ];
        let files = trace_files(&requests.map(request), &whats).expect("memory");
        let unpacked = |bytes: &Vec<u8>| {
            let mut text = String::new();
            let mut reader = flate2::read::GzDecoder::new(bytes.as_slice());
            io::Read::read_to_string(&mut reader, &mut text).expect("gzip");
            text
        };
        let (rows, objects) = (unpacked(&files.requests), unpacked(&files.objects));
        let trace = Trace::read(
            "log",
            (BufReader::new(rows.as_bytes()), "log.csv.gz"),
            (BufReader::new(objects.as_bytes()), "log.objects.csv.gz"),
        )
        .expect("a trace");
        assert_eq!((trace.requests.len(), trace.dropped_zero_rows), (3, 1));
        assert_eq!(trace.requests[1].time_s, 1.25);
        let known: Vec<_> = trace
            .objects
            .iter()
            .map(|one| (one.size_bytes, one.ext.as_str()))
            .collect();
        assert_eq!(known, [(30, "html"), (0, "dir"), (5, "none")]);
        assert!(unpacked(&files.paths).contains("0,GET,\"/a.HTML?b\"\n"));
    }
}
