//! git clones, fetches and pushes: from files, and through `git http-backend` behind a route.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::super::run::Run;
use super::super::servers::die_with_us;
use super::super::{Suite, fetch};
use super::backend::Backend;
use super::needs::{self, program};
use super::pair::{Kind, Route, Setup, Way};
use super::visit::{Counted, Visit, compare, limited};
use super::zsync::noise;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "git",
    about: "git over HTTP, from files and with http-backend; needs git and python3",
    prepare,
    run,
};

const PATIENCE_S: u32 = 60;
const BACKEND: &str = include_str!("scripts/git_backend.py");
/// What is pushed: more than any buffer between here and there.
const PUSHED_BYTES: usize = 5_000_000;

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[program("git", "git"), program("python3", "python3")])
}

/// The repositories: one to begin with, and the folder that the backend serves.
struct Repositories {
    /// A bare one of some commits.
    origin: PathBuf,
    served: PathBuf,
}

type Case = (
    &'static str,
    fn(&mut Visit, &Repositories) -> Result<Counted>,
);
const CASES: [Case; 12] = [
    ("files: clone", |visit, repositories| {
        as_files(visit, repositories)?;
        clone(visit, "/files.git", &[])?;
        Ok(Counted::Requests)
    }),
    ("files: fetch", |visit, repositories| {
        as_files(visit, repositories)?;
        clone(visit, "/files.git", &[])?;
        more_commits(visit, &visit.root.join("files.git"))?;
        fetch(visit)?;
        Ok(Counted::KindsOfStatuses)
    }),
    ("files: push is refused", |visit, repositories| {
        as_files(visit, repositories)?;
        clone(visit, "/files.git", &[])?;
        commit(visit, 1000)?;
        visit.may_fail = true;
        push(visit, &[])?;
        Ok(Counted::Nothing)
    }),
    ("backend: clone", |visit, _| {
        clone(visit, "/smart/repository.git", &[])?;
        Ok(Counted::Requests)
    }),
    ("backend: clone of one commit", |visit, _| {
        clone(visit, "/smart/repository.git", &["--depth", "1"])?;
        let deepen = git(visit, &["-C", "clone", "fetch", "--quiet", "--unshallow"]);
        visit.run("fetch --unshallow", PATIENCE_S, &deepen)?;
        state(visit, "clone");
        Ok(Counted::Requests)
    }),
    ("backend: clone with the protocol of old", |visit, _| {
        clone(
            visit,
            "/smart/repository.git",
            &["-c", "protocol.version=0"],
        )?;
        Ok(Counted::Requests)
    }),
    ("backend: fetch", |visit, repositories| {
        clone(visit, "/smart/repository.git", &[])?;
        more_commits(visit, &repositories.served.join("repository.git"))?;
        fetch(visit)?;
        Ok(Counted::Requests)
    }),
    ("backend: push", |visit, repositories| {
        clone(visit, "/smart/repository.git", &[])?;
        commit(visit, PUSHED_BYTES)?;
        push(visit, &["-c", "http.postBuffer=100000000"])?;
        served(visit, repositories);
        Ok(Counted::Requests)
    }),
    ("backend: push in chunks", |visit, repositories| {
        clone(visit, "/smart/repository.git", &[])?;
        commit(visit, PUSHED_BYTES)?;
        push(visit, &["-c", "http.postBuffer=65536"])?;
        served(visit, repositories);
        Ok(Counted::Requests)
    }),
    (
        "backend: push that waits to be told to go on",
        |visit, repositories| {
            clone(visit, "/smart/repository.git", &[])?;
            commit(visit, PUSHED_BYTES)?;
            let expect = "http.extraHeader=Expect: 100-continue";
            push(
                visit,
                &[
                    "-c",
                    expect,
                    "-c",
                    "http.version=HTTP/1.1",
                    "-c",
                    "http.postBuffer=65536",
                ],
            )?;
            served(visit, repositories);
            Ok(Counted::Requests)
        },
    ),
    (
        "backend: push that the repository refuses",
        |visit, repositories| {
            clone(visit, "/smart/repository.git", &[])?;
            let amend = git(
                visit,
                &["-C", "clone", "commit", "--quiet", "--amend", "-m", "other"],
            );
            visit.run("commit --amend", PATIENCE_S, &amend)?;
            visit.may_fail = true;
            push(visit, &["-c", "push.default=current"])?;
            served(visit, repositories);
            Ok(Counted::Requests)
        },
    ),
    ("backend: no such repository", |visit, _| {
        visit.may_fail = true;
        clone(visit, "/smart/other.git", &[])?;
        Ok(Counted::Requests)
    }),
];

fn run(run: &mut Run) -> Result<()> {
    run.version("git", &fetch::installed_version("git").unwrap_or_default());
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    let repositories = Repositories {
        origin: scratch.path().join("origin.git"),
        served: scratch.path().join("served"),
    };
    for folder in [&root, &repositories.served] {
        fs::create_dir(folder)?;
    }
    origin(&repositories.origin, scratch.path())?;
    let mut serve = die_with_us();
    serve.arg("python3");
    serve.args(["-c", BACKEND]).arg(&repositories.served);
    let backend = Backend::start(&mut serve, scratch.path())?;
    let routes = [Route {
        path: "/smart",
        port: backend.port,
        kind: Kind::Http,
    }];
    let setup = Setup {
        root: &root,
        routes: &routes,
    };
    for (name, talk) in CASES {
        compare(run, name, &Way::ALL, &setup, |visit| {
            let _ = fs::remove_dir_all(repositories.served.join("repository.git"));
            copy(
                &repositories.origin,
                &repositories.served.join("repository.git"),
            )?;
            talk(visit, &repositories)
        })?;
    }
    Ok(())
}

/// git without what the user has configured; the same moment for each commit, so the same names.
fn git_in(folder: &Path, arguments: &[&str]) -> Command {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(folder);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_AUTHOR_NAME", "suite"),
        ("GIT_AUTHOR_EMAIL", "suite@example.org"),
        ("GIT_COMMITTER_NAME", "suite"),
        ("GIT_COMMITTER_EMAIL", "suite@example.org"),
        ("GIT_AUTHOR_DATE", "2020-02-02T02:02:02Z"),
        ("GIT_COMMITTER_DATE", "2020-02-02T02:02:02Z"),
    ] {
        git.env(name, value);
    }
    git
}

fn git(visit: &Visit, arguments: &[&str]) -> Command {
    let mut git = git_in(&visit.folder, arguments);
    git.env("GIT_SSL_CAINFO", &visit.authority);
    git
}

/// Runs git where no server takes part.
fn locally(folder: &Path, arguments: &[&str]) -> Result<()> {
    let output = limited(PATIENCE_S, &git_in(folder, arguments), folder)?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "git {}: {said}",
        arguments.join(" ")
    );
    Ok(())
}

/// A bare repository with commits in a pack and loose, two branches and a tag.
fn origin(origin: &Path, scratch: &Path) -> Result<()> {
    let work = scratch.join("work");
    fs::create_dir(&work)?;
    locally(&work, &["init", "--quiet", "--initial-branch=main"])?;
    for number in 0..20 {
        fs::write(work.join(format!("file{number}")), noise(20_000, number))?;
        locally(&work, &["add", "."])?;
        locally(
            &work,
            &["commit", "--quiet", "-m", &format!("commit {number}")],
        )?;
        if number == 10 {
            locally(&work, &["tag", "-a", "v1", "-m", "a tag"])?;
            locally(&work, &["branch", "older"])?;
            locally(&work, &["gc", "--quiet"])?;
        }
    }
    let (from, to) = (work.display().to_string(), origin.display().to_string());
    locally(
        scratch,
        &["clone", "--quiet", "--bare", "--no-local", &from, &to],
    )?;
    locally(origin, &["config", "http.receivepack", "true"])?;
    locally(origin, &["config", "receive.denyNonFastForwards", "true"])?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    crate::process::output(Command::new("cp").arg("-a").args([from, to]))?;
    Ok(())
}

/// Puts the repository among the files that are served.
fn as_files(visit: &Visit, repositories: &Repositories) -> Result<()> {
    let files = visit.root.join("files.git");
    copy(&repositories.origin, &files)?;
    locally(&files, &["update-server-info"])
}

fn clone(visit: &mut Visit, path: &str, more: &[&str]) -> Result<()> {
    let url = visit.url(path);
    let clone = git(
        visit,
        &[&["clone", "--quiet"], more, &[&url, "clone"]].concat(),
    );
    visit.run("clone", PATIENCE_S, &clone)?;
    state(visit, "clone");
    Ok(())
}

/// Commits that the clone does not have, in a repository that is served.
fn more_commits(visit: &Visit, repository: &Path) -> Result<()> {
    let work = visit.folder.join("more");
    let (from, to) = (repository.display().to_string(), work.display().to_string());
    locally(&visit.folder, &["clone", "--quiet", &from, &to])?;
    for number in 50..53 {
        fs::write(work.join(format!("file{number}")), noise(300_000, number))?;
        locally(&work, &["add", "."])?;
        locally(&work, &["commit", "--quiet", "-m", "more"])?;
    }
    locally(&work, &["push", "--quiet"])?;
    locally(repository, &["update-server-info"])?;
    // Files in memory are looked at once a second.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    Ok(())
}

fn fetch(visit: &mut Visit) -> Result<()> {
    let fetch = git(visit, &["-C", "clone", "fetch", "--quiet"]);
    visit.run("fetch", PATIENCE_S, &fetch)?;
    state(visit, "clone");
    Ok(())
}

/// A commit in the clone, with so many bytes that cannot be compressed.
fn commit(visit: &Visit, bytes: usize) -> Result<()> {
    let clone = visit.folder.join("clone");
    fs::write(clone.join("pushed"), noise(bytes, 77))?;
    locally(&clone, &["add", "."])?;
    locally(&clone, &["commit", "--quiet", "-m", "pushed"])
}

fn push(visit: &mut Visit, more: &[&str]) -> Result<()> {
    let push = git(
        visit,
        &[&["-C", "clone"], more, &["push", "--quiet", "--force"]].concat(),
    );
    visit.run("push", PATIENCE_S, &push)?;
    Ok(())
}

/// Notes the branches and whether all objects are there and right.
fn state(visit: &mut Visit, repository: &str) {
    let (folder, at) = (visit.folder.clone(), visit.folder.join(repository));
    for arguments in [
        &["show-ref"] as &[&str],
        &["fsck", "--full", "--no-dangling", "--no-progress"],
    ] {
        match limited(PATIENCE_S, &git_in(&at, arguments), &folder) {
            Ok(output) => {
                visit.text(&output.stdout);
                visit.note(format!("{}: {}", arguments[0], output.status));
            }
            Err(_) => visit.note(format!("no {repository}")),
        }
    }
}

/// The same of the repository that was pushed to.
fn served(visit: &mut Visit, repositories: &Repositories) {
    let path = repositories.served.join("repository.git");
    state(visit, &path.display().to_string());
}
