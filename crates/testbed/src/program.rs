//! Where a program is.

use std::env;
use std::path::PathBuf;

/// Where servers are that no user's PATH has.
const MORE_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// The first of these programs that is there.
pub fn find(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .chain(MORE_FOLDERS.map(PathBuf::from))
        .collect();
    let candidates = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// Whether none of these programs is there.
pub fn missing(names: &[&str]) -> bool {
    find(names).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_there_is_taken() {
        assert!(missing(&["sooner-no-such-program"]));
        let found = find(&["sooner-no-such-program", "sh"]).unwrap();
        assert!(found.ends_with("sh"));
    }
}
