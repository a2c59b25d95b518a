//! How many files and sockets this process has open, and may have.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most descriptors this process may have open now; u64::MAX is unlimited.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit to `wanted` or as far as the hard limit lets, never lowers it; gives the limit then in force.
pub fn raise_limit(wanted: u64) -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let target = wanted.min(maximum.unwrap_or(u64::MAX));
    if current.is_some_and(|current| current < target) {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(target),
                maximum,
            },
        )?;
    }
    Ok(limit())
}

/// Descriptors open in this process, without the one used for counting.
pub fn open_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?
        .count()
        .saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_never_lowered() {
        let before = limit();
        assert_eq!(raise_limit(1).unwrap(), before);
        assert!(raise_limit(u64::MAX).unwrap() >= before);
    }

    #[test]
    fn counts_what_is_opened() {
        let files: Vec<_> = (0..50)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(open_count().unwrap() >= files.len());
    }
}
