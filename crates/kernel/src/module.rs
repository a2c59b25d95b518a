//! Modules of the kernel, loaded from their files.

use std::fs::File;
use std::io;

use crate::raw;

/// Loads a module that is not compressed, without parameters; needs `CAP_SYS_MODULE`. One that is
/// there already is no error. What it depends on has to be there.
pub fn load(file: &File) -> io::Result<()> {
    match raw::load_module(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        loaded => loaded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_is_refused() {
        // Without the privilege, or because the file is none.
        assert!(load(&File::open("/dev/null").unwrap()).is_err());
    }
}
