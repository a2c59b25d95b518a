//! Programs of other people that the tests use, and the Debian packages they come in.

use crate::process;
use std::process::Command;

/// A program, its Debian package, and what it is for.
pub struct Need {
    pub program: &'static str,
    pub package: &'static str,
    pub what_for: &'static str,
}

/// What `cargo xtask test` uses. What is missing is skipped by the tests that would use it.
pub const FOR_TESTS: &[Need] = &[
    Need {
        program: "c++",
        package: "g++",
        what_for: "the fuzzer's engine",
    },
    Need {
        program: "ip",
        package: "iproute2",
        what_for: "tests in network namespaces",
    },
    Need {
        program: "tc",
        package: "iproute2",
        what_for: "tests of kernel bands",
    },
    Need {
        program: "nginx",
        package: "nginx-light",
        what_for: "tests of the load generator over TLS and HTTP/2",
    },
];

/// Installs what is missing with apt, when we are root on a Debian system; says what stays missing.
pub fn install(needs: &[Need]) {
    let missing = |needs: &[Need]| {
        let missing = needs
            .iter()
            .filter(|need| !process::is_installed(need.program));
        missing
            .map(|need| (need.package, need.what_for))
            .collect::<Vec<_>>()
    };
    let wanted = missing(needs);
    if wanted.is_empty() {
        println!("nothing to install");
        return;
    }
    let mut packages: Vec<&str> = wanted.iter().map(|(package, _)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    if is_root() && process::is_installed("apt-get") {
        apt_get(&["update"]);
        apt_get(
            &[
                &["install", "--yes", "--no-install-recommends"],
                packages.as_slice(),
            ]
            .concat(),
        );
    }
    for (package, what_for) in missing(needs) {
        println!("missing: {package}, for {what_for}; as root: apt-get install {package}");
    }
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn apt_get(arguments: &[&str]) {
    let mut command = Command::new("apt-get");
    command
        .arg("--quiet=2")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    // What could not be installed is told by the programs that are still missing.
    if let Err(error) = process::run(&mut command) {
        println!("apt-get: {error}");
    }
}
