//! The root's own path, by which a link may name what is below the root.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names on the way to the root from `/`, as the owner wrote them and without links. One that
/// is out of date misses links, and leads nowhere else than below the root.
#[derive(Debug, Default)]
pub struct OwnPath {
    given: Option<Names>,
    real: Option<Names>,
}

type Names = Vec<Box<[u8]>>;

impl OwnPath {
    /// The path of the directory that `path` leads to now.
    pub fn of(path: &Path) -> Self {
        let names = |path: &Path| names(path.as_os_str().as_bytes()).map(Box::from).collect();
        Self {
            given: std::path::absolute(path).ok().map(|path| names(&path)),
            real: path.canonicalize().ok().map(|path| names(&path)),
        }
    }

    /// Where a link leads that stands `depth` directories below the root: how many of them it
    /// leaves behind it, and the path from there; `None` if out of the root. A target that goes up
    /// and comes down to the root again does not lead out.
    pub fn lead<'a>(&self, target: &'a [u8], depth: usize) -> Option<(usize, &'a [u8])> {
        if target.starts_with(b"/") {
            let mut all = self.given.iter().chain(&self.real);
            return all.find_map(|own| below(target, own)).map(|rest| (0, rest));
        }
        let ups = names(target).take_while(|name| *name == b"..").count();
        let Some(outside) = ups.checked_sub(depth).filter(|&outside| outside > 0) else {
            return Some((depth, target));
        };
        let real = self.real.as_ref()?;
        let parent = real.len().checked_sub(outside)?;
        let up = vec![Box::from(&b".."[..]); ups];
        let rest = below(target, &up)?;
        below(rest, &real[parent..]).map(|rest| (0, rest))
    }
}

/// The names in a path, which are not those that stay where they are.
fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = path.split(|&byte| byte == b'/');
    all.filter(|name| !matches!(*name, b"" | b"."))
}

/// What of `path` comes behind `names`, if it begins with all of them.
fn below<'a>(path: &'a [u8], names: &[Box<[u8]>]) -> Option<&'a [u8]> {
    let mut rest = path;
    for expected in names {
        rest = loop {
            let end = rest.iter().position(|&byte| byte == b'/');
            let (name, behind) = match end {
                Some(end) => (&rest[..end], &rest[end + 1..]),
                None => (rest, &b""[..]),
            };
            match name {
                name if *name == **expected => break behind,
                b"" | b"." if end.is_some() => rest = behind,
                _ => return None,
            }
        };
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_below_the_root_by_either_path() {
        let own = |path: &[u8]| Some(names(path).map(Box::from).collect());
        let path = OwnPath {
            given: own(b"/srv/www"),
            real: own(b"/data/sites/www"),
        };
        for (target, depth, expected) in [
            ("/srv/www/a/b", 3, Some((0, "a/b"))),
            ("/srv/www", 1, Some((0, ""))),
            ("/srv/www/", 1, Some((0, ""))),
            ("//srv/./www//a/", 0, Some((0, "/a/"))),
            ("/data/sites/www/a", 0, Some((0, "a"))),
            ("/srv/www/../b", 0, Some((0, "../b"))),
            ("/srv/wwwa", 0, None),
            ("/srv/x/../www/a", 0, None),
            ("/srv", 0, None),
            ("/", 0, None),
            ("/data/sites", 0, None),
            ("a/../../..", 0, Some((0, "a/../../.."))),
            ("../a", 1, Some((1, "../a"))),
            ("./../../a", 2, Some((2, "./../../a"))),
            ("../a", 0, None),
            ("../www/a", 0, Some((0, "a"))),
            (".././../www/a", 1, Some((0, "a"))),
            ("../../sites/www", 0, Some((0, ""))),
            ("../../../../data/sites/www/a", 0, None),
            ("../../www/a", 0, None),
            ("../sites/www/a", 0, None),
        ] {
            let expected = expected.map(|(depth, rest): (_, &str)| (depth, rest.as_bytes()));
            assert_eq!(path.lead(target.as_bytes(), depth), expected, "{target}");
        }
    }

    #[test]
    fn a_root_without_a_path_is_named_by_no_link() {
        let path = OwnPath::default();
        assert_eq!(path.lead(b"/", 0), None);
        assert_eq!(path.lead(b"../a", 0), None);
        assert_eq!(path.lead(b"a", 0), Some((0, &b"a"[..])));
        let all = OwnPath {
            given: Some(Names::new()),
            real: Some(Names::new()),
        };
        assert_eq!(all.lead(b"/etc", 2), Some((0, &b"/etc"[..])));
    }
}
