//! Traces of real requests: which object a client requested, and when.
//!
//! A trace is two tables: `NAME.csv.gz` with one request a line (`t,bytes,client,object,status`,
//! sorted by time) and beside it `NAME.objects.csv.gz` with one object a line
//! (`object,requests,max_bytes,ext`). Plain `.csv` files are read as well.
//!
//! A response is as large as its object (`max_bytes`), because the logged bytes of a cut transfer
//! are fewer than the file has. Rows with zero bytes (304s and the like) are dropped and counted.
//! Times logged in whole seconds are spread inside their second by a fixed rule, see [`spread`].

pub mod parse;
pub mod spread;

use crate::job_log::{self, JobLogError};
use crate::sizes::Distribution;
use crate::surge::{self, SurgeError, SurgeModel};
use crate::synthetic;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

/// One file of the traced server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its number: the index in [`Trace::objects`].
    pub id: u32,
    /// Size in bytes; 0 if no request ever carried any of it.
    pub size_bytes: u64,
    /// File name extension: 1 to 16 lower-case letters or digits.
    pub ext: String,
}

impl Object {
    /// Its URL path, and its place below the document root, like `/objects/17.html`.
    pub fn path(&self) -> String {
        format!("/objects/{}.{}", self.id, self.ext)
    }
}

/// One request of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TraceRequest {
    /// Seconds since the first request, spread inside the logged second.
    pub time_s: f64,
    /// Index of the requested object.
    pub object: u32,
    /// Number of the client.
    pub client: u32,
}

/// A trace: its objects and its requests in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Name, from the file's.
    pub name: String,
    /// All objects; the index is the id.
    pub objects: Vec<Object>,
    /// The requests that carried bytes, in order of time; never empty.
    pub requests: Vec<TraceRequest>,
    /// Rows with zero bytes, which were dropped.
    pub dropped_zero_rows: usize,
}

/// A trace that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No trace of that name is built in, and it is no file either.
    #[error(
        "trace `{0}` is neither built in nor a file; use epa, nasa, surge:SEED, sizes:LAW or the path of a NAME.csv.gz"
    )]
    Unknown(String),
    /// The seed of a SURGE trace is no number.
    #[error("trace `surge:{0}`: not a seed; write a whole number, as in surge:1")]
    Seed(String),
    /// A trace of sizes by a law cannot be made.
    #[error("trace `sizes:{law}`: {problem}; write a law, as in sizes:exp:mean=12000")]
    Sizes {
        /// The law.
        law: String,
        /// What is wrong.
        problem: String,
    },
    /// A SURGE trace cannot be made.
    #[error(transparent)]
    Surge(#[from] SurgeError),
    /// A log of batch jobs says nothing of objects.
    #[error(
        "`{0}` is a log of batch jobs: it has run times, and nothing that could be asked of a server; use a trace of requests, or sizes:LAW"
    )]
    IsJobLog(String),
    /// The file's name does not say what it is.
    #[error("{}: not the name of a trace; a trace is NAME.csv.gz or NAME.csv with NAME.objects.csv.gz or .csv beside it", .0.display())]
    FileName(PathBuf),
    /// A file could not be opened.
    #[error("{}: {source}; a trace needs NAME.csv.gz and NAME.objects.csv.gz side by side", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Reading stopped in the middle, as in a damaged gzip file.
    #[error("{file}: cannot read on after line {line}: {source}; fetch the file again")]
    Read {
        /// Name of the file.
        file: String,
        /// Last line that was read whole.
        line: usize,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is broken.
    #[error("{file}, line {line}: {problem}; {remedy}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, the header being 1.
        line: usize,
        /// What is wrong.
        problem: String,
        /// What would be right.
        remedy: &'static str,
    },
    /// A job log could not be read.
    #[error("{}: {source}", path.display())]
    JobLog {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: JobLogError,
    },
    /// No request carried any bytes.
    #[error("{file}: no request with bytes above 0; a trace needs at least one")]
    Empty {
        /// Name of the file.
        file: String,
    },
}

/// A request as a queue sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Time since the request before it, in seconds.
    pub gap_s: f64,
    /// Size of the response in bytes.
    pub size_bytes: f64,
}

impl Trace {
    /// All requests in their order.
    pub fn rows(&self) -> Vec<Row> {
        let row = |(index, request)| Row {
            gap_s: self.gap_s(index),
            size_bytes: self.object_of(request).size_bytes as f64,
        };
        (0..).zip(&self.requests).map(row).collect()
    }

    /// Seconds between request `index` and the one before it; the trace repeats, with one mean gap
    /// between its last request and its first.
    pub(crate) fn gap_s(&self, index: u64) -> f64 {
        let requests = &self.requests;
        match (index % requests.len() as u64) as usize {
            0 => {
                let span_s = requests[requests.len() - 1].time_s - requests[0].time_s;
                span_s / requests.len() as f64
            }
            at => requests[at].time_s - requests[at - 1].time_s,
        }
    }

    /// A built-in trace (`epa`, `nasa`), SURGE's requests (`surge:SEED`), sizes by a law
    /// (`sizes:LAW`) or the trace at a path.
    pub fn open(name_or_path: &str) -> Result<Self, TraceError> {
        if job_log::is_named(name_or_path) {
            return Err(TraceError::IsJobLog(name_or_path.into()));
        }
        if let Some(seed) = name_or_path.strip_prefix("surge:") {
            let seed = seed.parse().map_err(|_| TraceError::Seed(seed.into()))?;
            return Ok(surge::trace(&SurgeModel::default(), seed, surge::ROUNDS)?);
        }
        if let Some(law) = name_or_path.strip_prefix("sizes:") {
            let parsed = law
                .parse::<Distribution>()
                .map_err(|error| error.to_string());
            let trace = parsed.and_then(|sizes| synthetic::trace(name_or_path, &sizes));
            return trace.map_err(|problem| TraceError::Sizes {
                law: law.into(),
                problem,
            });
        }
        match Self::embedded(name_or_path) {
            Err(TraceError::Unknown(_)) if Path::new(name_or_path).is_file() => {
                Self::load(Path::new(name_or_path))
            }
            result => result,
        }
    }

    /// A trace that ships inside the program: `epa` or `nasa` (data/README.md says where they come
    /// from).
    pub fn embedded(name: &str) -> Result<Self, TraceError> {
        let (requests, objects): (&[u8], &[u8]) = match name {
            "epa" => (
                include_bytes!("../../../data/epa_19950829.csv.gz"),
                include_bytes!("../../../data/epa_19950829.objects.csv.gz"),
            ),
            "nasa" => (
                include_bytes!("../../../data/nasa_19950709.csv.gz"),
                include_bytes!("../../../data/nasa_19950709.objects.csv.gz"),
            ),
            _ => return Err(TraceError::Unknown(name.into())),
        };
        Self::read(
            name,
            (
                BufReader::new(MultiGzDecoder::new(requests)),
                &format!("{name}.csv.gz"),
            ),
            (
                BufReader::new(MultiGzDecoder::new(objects)),
                &format!("{name}.objects.csv.gz"),
            ),
        )
    }

    /// The trace at `path` (`NAME.csv.gz` or `NAME.csv`), its objects table beside it.
    pub fn load(path: &Path) -> Result<Self, TraceError> {
        let file_name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let (name, suffix) = ["csv.gz", "csv"]
            .into_iter()
            .find_map(|suffix| Some((file_name.strip_suffix(suffix)?.strip_suffix('.')?, suffix)))
            .filter(|(name, _)| !name.is_empty() && !name.ends_with(".objects"))
            .ok_or_else(|| TraceError::FileName(path.into()))?;
        let objects_path = path.with_file_name(format!("{name}.objects.{suffix}"));
        Self::read(
            name,
            (open(path)?, &path.display().to_string()),
            (open(&objects_path)?, &objects_path.display().to_string()),
        )
    }

    /// Reads both tables, each with the name to call it by in errors.
    pub fn read(
        name: &str,
        requests: (impl BufRead, &str),
        objects: (impl BufRead, &str),
    ) -> Result<Self, TraceError> {
        let rows = parse::parse_requests(requests.0, requests.1)?;
        let objects = parse::parse_objects(objects.0, objects.1)?;
        Self::join(name, requests.1, &rows, objects)
    }

    /// Puts the two tables together; `file` names the requests table in errors.
    fn join(
        name: &str,
        file: &str,
        rows: &[parse::RequestRow],
        objects: Vec<Object>,
    ) -> Result<Self, TraceError> {
        let mut requests = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            parse::check_object(row, &objects).map_err(|problem| TraceError::Line {
                file: file.into(),
                line: index + 2,
                problem,
                remedy: "the objects table must have a line for every object, with its largest size as max_bytes",
            })?;
            if row.bytes > 0 {
                requests.push(TraceRequest {
                    time_s: row.time_s,
                    object: row.object,
                    client: row.client,
                });
            }
        }
        if requests.is_empty() {
            return Err(TraceError::Empty { file: file.into() });
        }
        spread::within_seconds(&mut requests);
        let dropped_zero_rows = rows.len() - requests.len();
        Ok(Self {
            name: name.into(),
            objects,
            requests,
            dropped_zero_rows,
        })
    }

    /// The object a request asks for.
    pub fn object_of(&self, request: &TraceRequest) -> &Object {
        &self.objects[request.object as usize]
    }
}

/// Run times in the job log at `path`, in seconds.
pub fn job_run_times(path: &Path) -> Result<Vec<f64>, TraceError> {
    let log = open(path).map_err(|error| match error {
        TraceError::Open { path, source } => TraceError::JobLog {
            path,
            source: JobLogError::Read { line: 0, source },
        },
        other => other,
    })?;
    job_log::read(log).map_err(|source| TraceError::JobLog {
        path: path.into(),
        source,
    })
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, TraceError> {
    let file = File::open(path).map_err(|source| TraceError::Open {
        path: path.into(),
        source,
    })?;
    let reader = BufReader::new(file);
    if path.extension().is_some_and(|ext| ext == "gz") {
        return Ok(Box::new(BufReader::new(MultiGzDecoder::new(reader))));
    }
    Ok(Box::new(reader))
}
