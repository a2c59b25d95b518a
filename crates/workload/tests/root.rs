//! Document roots: right, repeatable, and never over the files of another program or trace.

use sooner_workload::{RootError, Trace, content, mkroot};
use std::fs;
use std::path::Path;

fn trace(name: &str) -> Trace {
    let requests = "t,bytes,client,object,status\n0,100,0,0,200\n0,0,1,1,304\n3,70000,1,2,200\n";
    let objects = "object,requests,max_bytes,ext\n0,1,100,html\n1,1,0,gif\n2,1,70000,unfinished\n";
    Trace::read(name, (requests.as_bytes(), "a"), (objects.as_bytes(), "b")).expect("a trace")
}

fn holds_object(dir: &Path, trace: &Trace, id: usize) -> bool {
    let bytes = fs::read(dir.join(&trace.objects[id].path()[1..])).expect("a file");
    bytes.len() as u64 == trace.objects[id].size_bytes && content::matches(id as u32, 0, &bytes)
}

#[test]
fn writes_every_object_with_bytes_once() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (trace, dir) = (trace("web"), scratch.path().join("new/root"));
    let first = mkroot(&trace, &dir).expect("made");
    assert_eq!(
        (first.written_files, first.written_bytes, first.kept_files),
        (2, 70_100, 0)
    );
    assert!(holds_object(&dir, &trace, 0) && holds_object(&dir, &trace, 2));
    assert_eq!(
        fs::read_dir(dir.join("objects")).expect("listed").count(),
        2
    );

    let second = mkroot(&trace, &dir).expect("made again");
    assert_eq!(
        (second.written_files, second.kept_files, second.kept_bytes),
        (0, 2, 70_100)
    );
}

#[test]
fn wrong_and_missing_files_are_made_again() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let (trace, dir) = (trace("web"), scratch.path());
    mkroot(&trace, dir).expect("made");
    let path = dir.join("objects/2.unfinished");
    let mut bytes = fs::read(&path).expect("a file");
    bytes[69_999] ^= 1;
    fs::write(&path, bytes).expect("written");
    fs::remove_file(dir.join("objects/0.html")).expect("removed");
    assert_eq!(mkroot(&trace, dir).expect("mended").written_files, 2);
    assert!(holds_object(dir, &trace, 0) && holds_object(dir, &trace, 2));
}

#[test]
fn a_directory_with_other_contents_is_left_alone() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    fs::write(scratch.path().join("thesis.txt"), "mine").expect("written");
    let error = mkroot(&trace("web"), scratch.path()).expect_err("not ours");
    assert!(matches!(error, RootError::NotOurs(_)), "{error}");
    assert_eq!(fs::read_dir(scratch.path()).expect("listed").count(), 1);
}

#[test]
fn what_a_full_disk_left_of_the_marker_is_ours_where_nothing_else_is() {
    for (name, text) in [
        (".sooner-mkroot", ""),
        (".sooner-mkroot.unfinished", ""),
        (".sooner-mkroot.unfinished", "we"),
    ] {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let dir = scratch.path();
        fs::write(dir.join(name), text).expect("written");
        assert_eq!(mkroot(&trace("web"), dir).expect(name).written_files, 2);
        let marker = fs::read_to_string(dir.join(".sooner-mkroot"));
        assert_eq!(marker.expect("a marker"), "web\n");
        assert_eq!(fs::read_dir(dir).expect("listed").count(), 2);

        let scratch = tempfile::tempdir().expect("a scratch directory");
        let dir = scratch.path();
        fs::write(dir.join(name), text).expect("written");
        fs::write(dir.join("thesis.txt"), "mine").expect("written");
        let error = mkroot(&trace("web"), dir).expect_err("not ours");
        assert!(matches!(error, RootError::NotOurs(_)), "{error}");
    }
}

#[test]
fn another_traces_root_is_left_alone() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    mkroot(&trace("web"), scratch.path()).expect("made");
    let message = mkroot(&trace("shop"), scratch.path())
        .expect_err("another trace")
        .to_string();
    assert!(
        message.ends_with("holds the files of trace `web`; give another directory for `shop`"),
        "{message}"
    );
}

#[test]
fn a_file_in_the_directorys_place_is_an_error_with_its_name() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let path = scratch.path().join("file");
    fs::write(&path, "mine").expect("written");
    let error = mkroot(&trace("web"), &path).expect_err("a file");
    assert!(
        matches!(error, RootError::Io { .. }) && error.to_string().contains("file"),
        "{error}"
    );
}
