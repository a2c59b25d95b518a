//! The content type of a file, by the end of its name.

use hyper::header::HeaderValue;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The content type of an unknown file.
const UNKNOWN: &str = "application/octet-stream";

/// Where the common table lacks a type or has one that was registered differently since.
const BETTER: [(&str, &str); 32] = [
    ("cbor", "application/cbor"),
    ("cjs", "text/javascript"),
    ("deb", "application/vnd.debian.binary-package"),
    ("dll", "application/octet-stream"),
    ("ipynb", "application/x-ipynb+json"),
    ("jsonl", "application/jsonl"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4a", "audio/mp4"),
    ("m4v", "video/mp4"),
    ("map", "application/json"),
    ("mid", "audio/midi"),
    ("midi", "audio/midi"),
    ("mjs", "text/javascript"),
    ("mka", "audio/matroska"),
    ("mkv", "video/matroska"),
    ("ndjson", "application/x-ndjson"),
    ("otf", "font/otf"),
    ("pdb", "application/x-pilot"),
    ("prc", "application/x-pilot"),
    ("ra", "audio/x-realaudio"),
    ("rpm", "application/x-redhat-package-manager"),
    ("sea", "application/x-sea"),
    ("toml", "application/toml"),
    ("ts", "video/mp2t"),
    ("usdz", "model/vnd.usdz+zip"),
    ("wgsl", "text/wgsl"),
    ("woff", "font/woff"),
    ("xml", "application/xml"),
    ("xsl", "application/xslt+xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zst", "application/zstd"),
];

/// Ends of names of files that pages load and link to, and of hardly anything else. Many media
/// types are left out: `com`, `org`, `me`, `ai`, `md` and `movie` end domains and addresses of
/// e-mail too, and so do of these only `mov` and `zip`, seldom.
const OF_FILES: &str = "\
    7z aac apk apng atom avif avifs bmp bz2 cjs css csv cur deb dmg docx eot epub exe flac gif gz \
    htm html ico ics iso jpe jpeg jpg js json jsonl jsonld jxl m3u8 m4a m4v map mjs mkv mov mp3 \
    mp4 mpd mpeg mpg msi ndjson odp ods odt oga ogg ogv opus otf pdf png pptx rar rpm rss rtf svg \
    svgz tar tgz tif tiff toml ts ttc ttf txt usdz vcf vtt wasm wav weba webm webmanifest webp \
    wgsl woff woff2 xhtml xls xlsx xml xsl xz yaml yml zip zst";

/// The value of `Content-Type` for a file of this name; text is taken to be UTF-8.
///
/// JSON and XML get no charset: the one has no such parameter (RFC 8259), the other says it itself.
pub fn of(path: &[u8]) -> HeaderValue {
    let kind = known(path).unwrap_or(UNKNOWN);
    if !kind.starts_with("text/") {
        return HeaderValue::from_static(kind);
    }
    HeaderValue::try_from(format!("{kind}; charset=utf-8"))
        .unwrap_or(HeaderValue::from_static(kind))
}

/// Whether the name ends as only those of files do: `app.js` does, `john.doe` and
/// `anna@example.com` do not.
pub fn is_of_file(path: &[u8]) -> bool {
    let is_one = |extension: &str| {
        let mut all = OF_FILES.split_ascii_whitespace();
        all.any(|own| own.eq_ignore_ascii_case(extension))
    };
    extension(path).is_some_and(is_one)
}

fn extension(path: &[u8]) -> Option<&str> {
    Path::new(OsStr::from_bytes(path)).extension()?.to_str()
}

fn known(path: &[u8]) -> Option<&'static str> {
    let extension = extension(path)?;
    BETTER
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(extension))
        .map(|&(_, kind)| kind)
        .or_else(|| mime_guess::from_ext(extension).first_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_today_are_what_they_are() {
        for (name, kind) in [
            ("a/page.html", "text/html; charset=utf-8"),
            ("style.CSS", "text/css; charset=utf-8"),
            ("a.js", "text/javascript; charset=utf-8"),
            ("a.mjs", "text/javascript; charset=utf-8"),
            ("a.txt", "text/plain; charset=utf-8"),
            ("a.md", "text/markdown; charset=utf-8"),
            ("a.json", "application/json"),
            ("a.js.map", "application/json"),
            ("a.webmanifest", "application/manifest+json"),
            ("a.svg", "image/svg+xml"),
            ("feed.xml", "application/xml"),
            ("a.wasm", "application/wasm"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.jxl", "image/jxl"),
            ("a.png", "image/png"),
            ("a.JPG", "image/jpeg"),
            ("a.woff", "font/woff"),
            ("a.woff2", "font/woff2"),
            ("a.opus", "audio/ogg"),
            ("a.mp4", "video/mp4"),
            ("a.ts", "video/mp2t"),
            ("a.m3u8", "application/vnd.apple.mpegurl"),
            ("a.tar.gz", "application/gzip"),
            ("noextension", "application/octet-stream"),
            (".profile", "application/octet-stream"),
            ("a.qwertz", "application/octet-stream"),
        ] {
            assert_eq!(of(name.as_bytes()), kind, "{name}");
        }
        assert_eq!(of(b"a.\xff"), UNKNOWN);
    }

    /// Those that were registered differently since.
    const UNLIKE_NGINX: [&str; 6] = ["bmp", "deb", "js", "m4a", "m4v", "xml"];

    #[test]
    fn extensions_that_nginx_knows_are_of_its_types() {
        let test = "extensions_that_nginx_knows_are_of_its_types";
        let Ok(text) = std::fs::read_to_string("/etc/nginx/mime.types") else {
            return sooner_testbed::skip(test, "needs the package nginx");
        };
        let types = text.split_once('{').unwrap().1;
        let mut known = 0;
        for line in types.split(';') {
            let mut words = line.split_whitespace();
            let kind = words.next().unwrap_or_default();
            for extension in words.filter(|own| !UNLIKE_NGINX.contains(own)) {
                let own = of(format!("a.{extension}").as_bytes());
                let own = own.to_str().unwrap().trim_end_matches("; charset=utf-8");
                assert_eq!(own, kind, "{extension}");
                known += 1;
            }
        }
        assert!(known > 90, "{known}");
    }

    #[test]
    fn tells_assets_from_words() {
        for name in [
            "assets/app.123.js",
            "page.html",
            "a.CSS",
            "a.js.map",
            "photo.png",
            "a.woff2",
            "a.mp4",
            "a.wasm",
            "site.webmanifest",
            "robots.txt",
            "feed.xml",
            "a.pdf",
            "a.tar.gz",
        ] {
            assert!(is_of_file(name.as_bytes()), "{name}");
        }
        for name in [
            "user/john.doe",
            "v1.2",
            "about",
            "users/anna@example.com",
            "anna@example.org",
            "anna@example.com.au",
            "anna@example.me",
            "site/example.ai",
            "example.movie",
            "a.md",
            "example.in",
            "a.sh",
            "a.rs",
            "a.es",
        ] {
            assert!(!is_of_file(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn what_ends_as_a_file_has_a_type() {
        for extension in OF_FILES.split_ascii_whitespace() {
            let name = format!("a.{extension}");
            assert!(known(name.as_bytes()).is_some(), "{name}");
        }
    }
}
