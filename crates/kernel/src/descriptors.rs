//! How many files and sockets this process has open, and may have.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most descriptors this process may have open now; u64::MAX is unlimited.
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Raises the limit to `wanted` or as far as the hard limit lets, never lowers it; gives the limit
/// then in force.
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

/// The same, and beyond the hard limit where that is allowed (CAP_SYS_RESOURCE), as far as the
/// kernel lets any process.
pub fn raise_hard_limit(wanted: u64) -> io::Result<u64> {
    let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let target = wanted.min(possible()?);
    if hard < target {
        let both = Rlimit {
            current: Some(target),
            maximum: Some(target),
        };
        if setrlimit(Resource::Nofile, both).is_ok() {
            return Ok(limit());
        }
    }
    raise_limit(wanted)
}

/// The most that the kernel lets any process have.
fn possible() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/sys/fs/nr_open")?;
    text.trim().parse().map_err(io::Error::other)
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
        // Another test raises it meanwhile.
        assert!(raise_limit(1).unwrap() >= before);
        assert!(raise_limit(u64::MAX).unwrap() >= before);
    }

    #[test]
    fn who_may_gets_more_than_the_hard_limit() {
        let hard = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let wanted = hard.saturating_add(1).min(possible().unwrap());
        let found = raise_hard_limit(wanted).unwrap();
        // Without the capability it is the hard limit as before.
        assert!(found == wanted || found == hard.min(wanted), "{found}");
        assert!(found <= possible().unwrap().max(hard));
    }

    #[test]
    fn counts_what_is_opened() {
        let files: Vec<_> = (0..50)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        assert!(open_count().unwrap() >= files.len());
    }
}
