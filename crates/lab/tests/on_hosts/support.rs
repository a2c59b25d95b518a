//! What the tests of hosts and peers need: root, the `sooner` beside the tests, files to serve.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use sooner_kernel::capability;
pub use sooner_testbed::skip;
use tempfile::TempDir;

/// Whether hosts can be made; says so when not.
pub fn may_make_hosts(test: &str) -> bool {
    let may = rustix::process::geteuid().is_root()
        && capability::has_net_admin()
        && capability::has_sys_admin();
    if !may {
        skip(
            test,
            "needs root with CAP_NET_ADMIN and CAP_SYS_ADMIN to make network namespaces",
        );
    }
    may
}

/// The `sooner` that the variable SOONER names, or the one beside the test programs, where `cargo
/// build` or a test of the whole workspace has put it.
pub fn sooner(test: &str) -> Option<PathBuf> {
    let tests = std::env::current_exe().ok()?;
    let beside = tests.parent()?.parent()?.join("sooner");
    let sooner = std::env::var_os("SOONER").map_or(beside, PathBuf::from);
    if !sooner.exists() {
        skip(
            test,
            "needs `sooner` beside it: `cargo build -p sooner-cli`",
        );
        return None;
    }
    Some(sooner)
}

/// Whether that `sooner` can emulate a network; says so when not.
pub fn has_emulator(test: &str, sooner: &PathBuf) -> bool {
    let help = Command::new(sooner).args(["emulate", "--help"]).output();
    let has = help.is_ok_and(|help| help.status.success());
    if !has {
        skip(test, "this `sooner` has no subcommand `emulate`");
    }
    has
}

/// What files are made of: a letter that no head of a response has.
pub const FILLING: u8 = b'#';

/// A folder that all users may enter, with the folder `root` in it.
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// With one file, `/a/1.html`, of this many bytes.
    pub fn with_file(size_bytes: usize) -> Scratch {
        let everybody = fs::Permissions::from_mode(0o755);
        let folder = tempfile::Builder::new()
            .permissions(everybody)
            .tempdir()
            .unwrap();
        fs::create_dir_all(folder.path().join("root/a")).unwrap();
        fs::write(
            folder.path().join("root/a/1.html"),
            vec![FILLING; size_bytes],
        )
        .unwrap();
        Scratch { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().into()
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }
}

/// The processes in this network namespace.
pub fn processes_in(namespace: &str) -> String {
    let output = Command::new("ip")
        .args(["netns", "pids", namespace])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).trim().into()
}
