//! What PgBouncer has by itself, as the installed one tells it: the import says nothing of it.

use sooner_import::{Files, import};
use sooner_testbed::{ChildGuard, port, program, skip};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Rows of SHOW CONFIG: keys and defaults; `None` where it cannot run here.
fn defaults(folder: &Path) -> Option<Vec<(String, String)>> {
    let (bouncer, psql) = (program::find(&["pgbouncer"])?, program::find(&["psql"])?);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let (file, port) = (folder.join("pgbouncer.ini"), port::free().unwrap().port());
    let text = format!(
        "[databases]\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
         unix_socket_dir =\nauth_type = any\nadmin_users = ann\n"
    );
    fs::write(&file, text).unwrap();
    // It refuses to be root, and takes this where another user starts it, too.
    let user = Command::new("id").arg("-u").output().unwrap().stdout;
    let user: &[&str] = if user == b"0\n" {
        &["-u", "nobody"]
    } else {
        &[]
    };
    let child = Command::new(bouncer)
        .args(user)
        .args([Path::new("-q"), &file])
        .stderr(Stdio::null())
        .spawn();
    let _bouncer = ChildGuard(child.unwrap());
    let begin = Instant::now();
    loop {
        let mut psql = Command::new(&psql);
        psql.args(["-XAtq", "-h", "127.0.0.1", "-U", "ann", "-d", "pgbouncer"]);
        let output = psql.args(["-p", &port.to_string(), "-c", "SHOW CONFIG"]);
        let output = output.output().unwrap();
        if output.status.success() {
            let printed = String::from_utf8(output.stdout).unwrap();
            let row = |line: &str| {
                let mut fields = line.split('|');
                let key = fields.next()?.to_owned();
                Some((key, fields.nth(1)?.to_owned()))
            };
            return Some(printed.lines().filter_map(row).collect());
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{output:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn nothing_is_said_of_what_the_installed_pgbouncer_has_by_itself() {
    let folder = tempfile::TempDir::new().unwrap();
    let Some(defaults) = defaults(folder.path()) else {
        let name = "nothing_is_said_of_what_the_installed_pgbouncer_has_by_itself";
        return skip(name, "needs the packages pgbouncer and postgresql-client");
    };
    assert!(defaults.len() > 60, "{defaults:?}");
    let mut text = String::from("[databases]\nshop = host=db\n[pgbouncer]\n");
    for (key, default) in defaults.iter().filter(|(key, _)| key != "conffile") {
        text += &format!("{key} = {default}\n");
    }
    let files = Files {
        folder: folder.path(),
        read: &|_| Ok(text.clone()),
    };
    let imported = import("pgbouncer.ini", &files).unwrap();
    let lines = imported.text.lines();
    let left_out: Vec<&str> = lines.filter(|line| line.contains("not carried")).collect();
    assert_eq!(left_out, [""; 0]);
}
