//! Chromium: a page with text, style, a script and pictures is there in whole.

use super::client::{command, is_missing, run};
use super::site::{Site, noise};
use super::way::Way;
use serde_json::{Value, json};
use std::fs;

const VISIT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/clients/scripts/visit.mjs"
);
const PICTURES: usize = 4;
/// Width and height; 120 KB each.
const PICTURE_PIXELS: u32 = 200;
const PARAGRAPHS: usize = 3_000;

#[test]
fn chromium_loads_a_page_in_whole() {
    let test = "chromium_loads_a_page_in_whole";
    if is_missing(test, &["chromium", "--version"], "chromium")
        || is_missing(test, &["node", "--version"], "nodejs")
    {
        return;
    }
    for (way, protocol) in [(Way::Clear1, "http/1.1"), (Way::Tls2, "h2")] {
        let site = Site::start();
        write_page(&site);
        let profile = tempfile::tempdir().unwrap();
        let mut visit = command("node");
        visit
            .arg(VISIT)
            .arg(site.url(way, "/page.html"))
            .arg(profile.path());
        let output = run(&mut visit);
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(seen["failed"], json!([]), "{way:?}");
        // The page, its style, its script and its pictures.
        let responses = seen["responses"].as_array().unwrap();
        assert_eq!(responses.len(), 3 + PICTURES, "{way:?}: {seen}");
        for response in responses {
            let (status, spoken) = (&response["status"], &response["protocol"]);
            assert_eq!((status, spoken), (&json!(200), &json!(protocol)), "{way:?}");
        }
        let page = &seen["page"];
        assert_eq!(page["paragraphs"], PARAGRAPHS, "{way:?}");
        assert_eq!(page["colour"], "rgb(1, 2, 3)", "{way:?}");
        assert_eq!(page["title"], "scripted", "{way:?}");
        assert_eq!(
            page["picture_widths"],
            json!(vec![PICTURE_PIXELS; PICTURES]),
            "{way:?}"
        );
        let visits = site.stop();
        visits.check(way);
        assert_eq!(visits.count(), 3 + PICTURES, "{way:?}");
    }
}

fn write_page(site: &Site) {
    let picture = |nth: usize| format!("<img src=\"{nth}.bmp\" alt=\"\">\n");
    let pictures: String = (0..PICTURES).map(picture).collect();
    let paragraph =
        |nth: usize| format!("<p>Paragraph {nth} of a page that is longer than a packet.</p>\n");
    let text: String = (0..PARAGRAPHS).map(paragraph).collect();
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page</title>\
         <link rel=\"stylesheet\" href=\"page.css\"><link rel=\"icon\" href=\"data:,\">\
         <script src=\"page.js\"></script></head>\n<body>{pictures}{text}</body></html>\n"
    );
    fs::write(site.file("page.html"), page).unwrap();
    fs::write(site.file("page.css"), "body { color: rgb(1, 2, 3); }\n").unwrap();
    fs::write(site.file("page.js"), "document.title = 'scripted';\n").unwrap();
    for nth in 0..PICTURES {
        fs::write(site.file(&format!("{nth}.bmp")), bitmap()).unwrap();
    }
}

/// A bitmap of noise, 24 bits a pixel.
fn bitmap() -> Vec<u8> {
    let side = PICTURE_PIXELS;
    let pixel_bytes = side * side * 3;
    let mut file = b"BM".to_vec();
    for word in [54 + pixel_bytes, 0, 54, 40, side, side] {
        file.extend(word.to_le_bytes());
    }
    // One plane, 24 bits; not compressed, of any resolution, without a palette.
    file.extend([1, 0, 24, 0]);
    for word in [0, pixel_bytes, 2_835, 2_835, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(noise(pixel_bytes as usize));
    file
}
