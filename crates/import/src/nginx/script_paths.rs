//! Paths of scripts, and which scripts are among other paths.

use super::fastcgi::ENDING;
use super::locations::Location;
use sooner_http::forwarding::routes;
use sooner_http::path_pattern::{self, PathPattern};

/// The most stars that a text may have.
pub const STARS_MAX: usize = 4;

/// The longer of two times, if there is one.
pub fn longer(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        _ => one.or(other),
    }
}

/// Whether two paths are one but for a slash at the end.
pub fn same_path(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

/// Whether a text ends so.
pub fn ends_with(text: &str, end: &str, ignores_case: bool) -> bool {
    if ignores_case {
        text.to_ascii_lowercase().ends_with(end)
    } else {
        text.ends_with(end)
    }
}

/// Whether scripts are among these paths by the end of their names.
pub fn is_of_scripts(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let name = lower.strip_suffix("/*").or_else(|| lower.strip_suffix('*'));
    name.unwrap_or(&lower).ends_with(ENDING)
}

/// The directory that all of these paths are below, if it is not the root.
pub fn own_folder(texts: &[String]) -> Option<String> {
    let folder = |text: &String| {
        let begin = text.split('*').next().unwrap_or_default();
        begin
            .rsplit_once('/')
            .map(|(folder, _)| format!("{folder}/"))
    };
    let first = folder(texts.first()?)?;
    let is_one = texts
        .iter()
        .all(|text| folder(text).as_ref() == Some(&first));
    (is_one && first != "/" && routes::check_path(&first).is_ok()).then_some(first)
}

/// The scripts among the paths of a location that lets requests through to a route; `None` where
/// they cannot be said.
pub fn plain_guards(location: &Location<'_>) -> Option<Vec<String>> {
    let paths = location.paths().filter(|paths| paths.is_exact)?;
    let all: Option<Vec<Vec<String>>> = paths.texts.iter().map(|text| guards(text)).collect();
    Some(all?.concat())
}

/// The scripts among paths with stars, and what goes on behind their names.
pub fn guards(text: &str) -> Option<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let pieces: Vec<&str> = lower.split('*').collect();
    let (_, before_stars) = pieces.split_last()?;
    let may_begin = |piece: &&str| {
        let name = piece.rsplit('/').next();
        name.is_some_and(|name| name.contains('.'))
    };
    if lower.contains(ENDING) || before_stars.iter().any(may_begin) {
        return None;
    }
    let mut all = Vec::new();
    if text.ends_with('*') {
        all.push(format!("{text}{ENDING}"));
    }
    for (at, _) in text.match_indices('*') {
        all.push(format!("{}*{ENDING}/{}", &text[..at], &text[at..]));
    }
    let is_pattern = |text: &String| text.matches('*').count() <= STARS_MAX;
    all.iter().all(is_pattern).then_some(all)
}

/// The directories for which a script of this name stands, as far as it is among paths: directories
/// that are among them as well need not be there.
pub fn directories(text: &str, index: &str, ignores_case: bool) -> Vec<String> {
    let is_index = |pattern: &str| {
        let pattern = PathPattern::parse(&format!("/{pattern}"), ignores_case);
        pattern.is_ok_and(|own| own.fits(&path_pattern::plain(&format!("/{index}"))))
    };
    let mut all: Vec<String> = Vec::new();
    for (at, letter) in text.char_indices() {
        // The name begins here, and what goes before is the directory; or the star has both.
        let (folder, name) = match letter {
            '/' => (text[..=at].to_owned(), &text[at + 1..]),
            '*' => (format!("{}/", &text[..=at]), &text[at..]),
            _ => continue,
        };
        if name != "*" && is_index(name) && !all.contains(&folder) {
            all.push(folder);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_among_paths_are_named() {
        for (text, expected) in [
            ("/a/*", Some("/a/*.php /a/*.php/*")),
            ("*.css", Some("*.php/*.css")),
            ("/robots.txt", Some("")),
            ("/", Some("")),
            ("*.php", None),
            ("/x.p*", None),
            (
                "/s/*/styles/*",
                Some("/s/*/styles/*.php /s/*.php/*/styles/* /s/*/styles/*.php/*"),
            ),
            ("*.p*", None),
            ("*a*b*c*d", None),
        ] {
            let guards = guards(text).map(|all| all.join(" "));
            assert_eq!(guards.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn scripts_are_known_by_their_end() {
        for text in ["*.php", "/a.PHP", "*.php/*", "/x.php*"] {
            assert!(is_of_scripts(text), "{text}");
        }
        for text in ["/*", "*.pl", "*.php/x", "/php"] {
            assert!(!is_of_scripts(text), "{text}");
        }
    }

    #[test]
    fn directories_go_with_the_script_that_stands_for_them() {
        for (text, expected) in [
            ("/index.php", "/"),
            ("/a/index.php", "/a/"),
            ("/a/other.php", ""),
            ("/xindex.php", ""),
            ("*/uploads/*.php", "*/uploads/ */uploads/*/"),
            ("*.php", "*/"),
            ("*/index.php", "*/"),
            ("/a/*/index.php", "/a/*/"),
            ("/a/*", ""),
            ("/*", ""),
            ("/a/in*", "/a/"),
            ("/a/in*.php", "/a/ /a/in*/"),
            ("/a/x*.php", "/a/x*/"),
            ("*nde*", "*/"),
            // Of a folder like that the index is among them.
            ("*wp-config*php*", "*wp-config*/"),
            ("*wp-config.php*", ""),
            ("*a*b*c*.php", "*a*b*c*/"),
            ("*.php/*", ""),
            ("*.css", ""),
            ("/a*.bak", ""),
        ] {
            let own = directories(text, "index.php", false).join(" ");
            assert_eq!(own, expected, "{text}");
        }
        assert_eq!(directories("*.PHP", "index.php", true), ["*/"]);
        assert!(directories("*.PHP", "index.php", false).is_empty());
    }

    #[test]
    fn scripts_with_a_folder_of_their_own_have_one() {
        let of = |texts: &[&str]| {
            own_folder(
                &texts
                    .iter()
                    .map(|own| (*own).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            of(&["/pma/*.php", "/pma/*.php/*"]).as_deref(),
            Some("/pma/")
        );
        assert_eq!(of(&["/a/b.php"]).as_deref(), Some("/a/"));
        for texts in [&["*.php"][..], &["/index.php"], &["/a/*.php", "/b/*.php"]] {
            assert_eq!(of(texts), None, "{texts:?}");
        }
    }
}
