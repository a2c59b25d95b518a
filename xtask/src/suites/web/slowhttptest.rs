//! slowhttptest holds connections that send or read slowly: another client must get its answers
//! meanwhile.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::super::case::{Case, Tried};
use super::super::run::Run;
use super::super::servers::die_with_us;
use super::super::{Suite, fetch};
use super::backend::Backend;
use super::needs::{self, program};
use super::pair::{self, Kind, Route, Server, Setup, Way, Which};
use super::visit::is_chosen;
use super::zsync::noise;

/// The suite.
pub const SUITE: Suite = Suite {
    name: "slowhttptest",
    about: "slow clients beside one that is not; needs slowhttptest and curl",
    prepare,
    run,
};

/// Of the slow clients.
const CONNECTIONS: &str = "500";
const SECONDS: u64 = 20;
/// Seconds for one answer to the other client, which is far away from what a user bears.
const ANSWER_SECONDS_MAX: &str = "5";
const PAUSE: Duration = Duration::from_millis(100);
const LARGE_BYTES: usize = 5_000_000;
const READER: &str = include_str!("scripts/reader.py");

/// What slowhttptest is told, and for which path.
type Attack = (&'static str, &'static [&'static str], &'static str);
const ATTACKS: [Attack; 4] = [
    (
        "slow headers",
        &["-H", "-i", "2", "-t", "GET", "-x", "24"],
        "/",
    ),
    (
        "slow body",
        &["-B", "-i", "2", "-t", "POST", "-s", "8192", "-x", "10"],
        "/backend/",
    ),
    (
        "many ranges",
        &["-R", "-t", "GET", "-a", "5", "-b", "3000"],
        "/large.bin",
    ),
    (
        "slow read",
        &[
            "-X", "-w", "512", "-y", "1024", "-n", "2", "-z", "32", "-k", "3",
        ],
        "/large.bin",
    ),
];

fn prepare(_: &Path) -> Result<()> {
    needs::debian(&[
        program("slowhttptest", "slowhttptest"),
        program("curl", "curl"),
        program("python3", "python3"),
    ])
}

fn run(run: &mut Run) -> Result<()> {
    run.version(
        "slowhttptest",
        &fetch::installed_version("slowhttptest").unwrap_or_default(),
    );
    let scratch = tempfile::tempdir()?;
    let root = scratch.path().join("root");
    fs::create_dir(&root)?;
    fs::write(root.join("index.html"), "answered\n")?;
    fs::write(root.join("large.bin"), noise(LARGE_BYTES, 4))?;
    let mut serve = die_with_us();
    serve.arg("python3");
    let backend = Backend::start(serve.args(["-c", READER, "9"]), scratch.path())?;
    let routes = [Route {
        path: "/backend",
        port: backend.port,
        kind: Kind::Http,
    }];
    let setup = Setup {
        root: &root,
        routes: &routes,
    };
    for (case, arguments, path) in ATTACKS {
        if !is_chosen(run, case) {
            continue;
        }
        eprintln!("{case}");
        let (mut tried, mut reference) = (Vec::new(), String::new());
        for way in Way::ALL {
            let mut outcomes = Vec::new();
            for which in [Which::Nginx, Which::Sooner] {
                let folder = scratch.path().join(format!(
                    "{}-{}-{}",
                    case.replace(' ', "-"),
                    which.name(),
                    way.tag()
                ));
                let server = Server::start(run, which, &setup, &folder)?;
                outcomes.push(answers(server, way, arguments, path, &folder)?);
            }
            let (nginx, sooner) = (&outcomes[0], &outcomes[1]);
            eprintln!(
                "{case}, {}: nginx {}, sooner {}",
                way.name(),
                nginx.said,
                sooner.said
            );
            let said = format!("{} (nginx: {})", sooner.said, nginx.said);
            tried.push(Tried::word(way.name(), nginx.word, sooner.word, &said));
            reference = nginx.word.to_owned();
        }
        run.case(&Case {
            name: case.to_owned(),
            reference,
            tried,
        })?;
    }
    Ok(())
}

/// What the other client got.
struct Answers {
    word: &'static str,
    said: String,
}

/// Asks again and again from when the slow clients are there until they have gone.
fn answers(
    mut server: Server,
    way: Way,
    arguments: &[&str],
    path: &str,
    folder: &Path,
) -> Result<Answers> {
    let mut slow = fetch::patient(u32::try_from(SECONDS)? * 3, "slowhttptest");
    slow.args([
        "-c",
        CONNECTIONS,
        "-r",
        "200",
        "-p",
        "5",
        "-l",
        &SECONDS.to_string(),
    ])
    .args(arguments)
    .args(["-u", &server.url(way, path)])
    .current_dir(folder)
    .stdin(Stdio::null())
    .stdout(File::create(folder.join("slowhttptest"))?)
    .stderr(Stdio::null());
    let mut slow = slow.spawn().context("cannot start slowhttptest")?;
    let begin = Instant::now();
    let (mut asked, mut answered) = (0_u32, 0_u32);
    while matches!(slow.try_wait(), Ok(None)) && begin.elapsed().as_secs() < SECONDS * 2 {
        asked += 1;
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--insecure",
            "--noproxy",
            "*",
            "--max-time",
            ANSWER_SECONDS_MAX,
        ]);
        let answer = curl
            .arg(server.url(way, "/"))
            .stdin(Stdio::null())
            .output()?;
        answered += u32::from(answer.stdout == b"answered\n");
        sleep(PAUSE);
    }
    pair::end(&mut slow);
    let word = match (server.is_over(), asked - answered) {
        (true, _) => "the server ended by itself",
        (_, 0) => "all answered",
        (_, missing) if missing == asked => "none answered",
        _ => "some not answered",
    };
    let said = format!(
        "{answered} of {asked} answered in {} s",
        begin.elapsed().as_secs()
    );
    Ok(Answers { word, said })
}
