//! Reading traces: the ones that ship, files, and what is said of broken ones.

use flate2::Compression;
use flate2::write::GzEncoder;
use sooner_workload::{Trace, TraceError};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const REQUESTS: &str =
    "t,bytes,client,object,status\n0,100,0,0,200\n0,0,1,0,304\n3,40,1,1,200\n4,100,2,0,200\n";
const OBJECTS: &str = "object,requests,max_bytes,ext\n0,3,100,html\n1,1,50,gif\n";

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("in memory");
    encoder.finish().expect("in memory")
}

fn trace_files(requests: &str, objects: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    fs::write(dir.path().join("web.csv.gz"), gzip(requests)).expect("written");
    fs::write(dir.path().join("web.objects.csv.gz"), gzip(objects)).expect("written");
    let path = dir.path().join("web.csv.gz");
    (dir, path)
}

fn refused(requests: &str, objects: &str) -> String {
    let (_dir, path) = trace_files(requests, objects);
    Trace::load(&path).expect_err("broken").to_string()
}

#[test]
fn the_traces_that_ship_are_what_their_table_says() {
    for (name, objects, requests, dropped, mean_bytes) in [
        ("epa", 6557, 36_699, 11_028, 10_942.3),
        ("nasa", 2161, 32_357, 2_915, 27_349.3),
    ] {
        let trace = Trace::embedded(name).expect(name);
        assert_eq!(trace.name, name);
        assert_eq!(
            (
                trace.objects.len(),
                trace.requests.len(),
                trace.dropped_zero_rows
            ),
            (objects, requests, dropped)
        );
        let bytes: u64 = trace
            .requests
            .iter()
            .map(|request| trace.object_of(request).size_bytes)
            .sum();
        assert!((bytes as f64 / requests as f64 - mean_bytes).abs() < 0.1);
        assert!(trace.requests.is_sorted_by(|a, b| a.time_s <= b.time_s));
        assert!(
            trace
                .requests
                .iter()
                .all(|request| trace.object_of(request).size_bytes > 0)
        );
    }
}

#[test]
fn a_trace_is_read_from_gzip_and_from_plain_files() {
    let (dir, path) = trace_files(REQUESTS, OBJECTS);
    let packed = Trace::open(path.to_str().expect("a plain path")).expect("a trace");
    assert_eq!(
        (
            packed.name.as_str(),
            packed.requests.len(),
            packed.dropped_zero_rows
        ),
        ("web", 3, 1)
    );
    assert_eq!(
        packed.object_of(&packed.requests[1]).size_bytes,
        50,
        "the object's size, not the cut transfer's"
    );
    assert_eq!(packed.objects[1].path(), "/objects/1.gif");

    fs::write(dir.path().join("web.csv"), REQUESTS).expect("written");
    fs::write(dir.path().join("web.objects.csv"), OBJECTS).expect("written");
    assert_eq!(
        Trace::load(&dir.path().join("web.csv")).expect("a trace"),
        packed
    );
}

#[test]
fn a_broken_line_is_named_with_file_and_line() {
    let message = refused(&REQUESTS.replace("3,40", "3,forty"), OBJECTS);
    assert!(
        message.contains("web.csv.gz, line 4: bytes is `forty`; it must be a whole number"),
        "{message}"
    );
    let message = refused(REQUESTS, &OBJECTS.replace("1,1,50", "1,1,fifty"));
    assert!(
        message.contains("web.objects.csv.gz, line 3: max_bytes is `fifty`"),
        "{message}"
    );
}

#[test]
fn tables_that_do_not_fit_together_are_refused() {
    let message = refused(&REQUESTS.replace("1,1,200", "1,2,200"), OBJECTS);
    assert!(
        message.contains("line 4: object 2 is not in the objects table, which has 2"),
        "{message}"
    );
    let message = refused(REQUESTS, &OBJECTS.replace("50", "39"));
    assert!(
        message.contains("line 4: 40 bytes, but object 1 has max_bytes 39"),
        "{message}"
    );
    let message = refused("t,bytes,client,object,status\n0,0,0,0,304\n", OBJECTS);
    assert!(
        message.contains("no request with bytes above 0"),
        "{message}"
    );
}

#[test]
fn damaged_gzip_is_refused_with_the_last_whole_line() {
    let (dir, path) = trace_files(REQUESTS, OBJECTS);
    let whole = fs::read(&path).expect("read");
    fs::write(&path, &whole[..whole.len() - 6]).expect("written");
    let message = Trace::load(&path).expect_err("cut").to_string();
    assert!(
        message.contains("cannot read on after line") && message.contains("fetch the file again"),
        "{message}"
    );
    drop(dir);
}

#[test]
fn what_is_no_trace_is_refused_with_what_to_do() {
    let unknown = Trace::open("wc98").expect_err("not built in").to_string();
    assert_eq!(
        unknown,
        "trace `wc98` is neither built in nor a file; use epa, nasa, surge:SEED, sizes:LAW or the path of a NAME.csv.gz"
    );
    assert!(matches!(
        Trace::load(Path::new("web.txt")),
        Err(TraceError::FileName(_))
    ));
    assert!(matches!(
        Trace::load(Path::new("web.objects.csv.gz")),
        Err(TraceError::FileName(_))
    ));

    let (dir, path) = trace_files(REQUESTS, OBJECTS);
    fs::remove_file(dir.path().join("web.objects.csv.gz")).expect("removed");
    let message = Trace::load(&path).expect_err("no objects").to_string();
    assert!(
        message.contains("web.objects.csv.gz: No such file"),
        "{message}"
    );
}
