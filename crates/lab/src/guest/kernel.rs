//! Where the guest's kernel is.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use sooner_testbed::program;

/// Debian's program has the first name, one that was built from the kernel's sources the second.
const PROGRAMS: [&str; 2] = ["linux.uml", "linux"];
/// Where Debian's package has the modules, a folder for each version.
const MODULES: &str = "usr/lib/uml/modules";

/// A kernel that is an ordinary program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The program.
    pub program: PathBuf,
    /// Its modules, in a folder for each version; none: it has all it needs.
    pub modules: Option<PathBuf>,
}

impl Kernel {
    /// The installed one, or the one in a folder into which the package was unpacked.
    pub fn find(folder: Option<&Path>) -> Result<Kernel> {
        let Some(folder) = folder else {
            return match program::find(&PROGRAMS) {
                Some(program) => Ok(Kernel::with(program, Path::new("/"))),
                None => bail!(
                    "--guest needs a kernel that runs as a program; install the package user-mode-linux, or unpack it and name the folder with --guest-kernel DIR"
                ),
            };
        };
        let inside = |name: &str| [folder.join("usr/bin").join(name), folder.join(name)];
        match PROGRAMS
            .into_iter()
            .flat_map(inside)
            .find(|file| file.is_file())
        {
            Some(program) => Ok(Kernel::with(
                program.canonicalize()?,
                &folder.canonicalize()?,
            )),
            None => bail!(
                "--guest-kernel {}: there is no usr/bin/linux.uml in it; unpack the package user-mode-linux there",
                folder.display()
            ),
        }
    }

    fn with(program: PathBuf, folder: &Path) -> Kernel {
        let modules = folder.join(MODULES);
        Kernel {
            program,
            modules: modules.is_dir().then_some(modules),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_package_or_only_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let error = Kernel::find(Some(&root)).unwrap_err().to_string();
        assert!(error.contains("package user-mode-linux"), "{error}");
        std::fs::write(root.join("linux"), "").unwrap();
        let found = Kernel::find(Some(&root)).unwrap();
        assert_eq!((found.program, found.modules), (root.join("linux"), None));
        std::fs::create_dir_all(root.join("usr/bin")).unwrap();
        std::fs::create_dir_all(root.join(MODULES)).unwrap();
        std::fs::write(root.join("usr/bin/linux.uml"), "").unwrap();
        let found = Kernel::find(Some(&root)).unwrap();
        assert_eq!(found.program, root.join("usr/bin/linux.uml"));
        assert_eq!(found.modules, Some(root.join(MODULES)));
    }
}
