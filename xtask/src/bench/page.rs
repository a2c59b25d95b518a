//! A page with text and pictures in Chromium, over a link of 2 Mbit/s: when can it be read, when is it whole?

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};

use super::Effort;
use super::check::{Checks, median, spread};
use super::link::{Link, Running};
use super::parse::figure;
use super::record::Record;
use super::server::{CLEAR_PORT, Root, Server, TLS_PORT};
use crate::certificate::Certificate;
use crate::process;

const RATE_MBIT: u64 = 2;
const PICTURES: usize = 6;
/// Width and height of a picture: 300 KB of it, uncompressed.
const PICTURE_PIXELS: (u32, u32) = (400, 250);
const TEXT_BYTES: usize = 60_000;
const STYLE_BYTES: usize = 20_000;
/// First paint and text in units of nginx's.
const TEXT_MAX: f64 = 1.0;
/// The whole page in units of nginx's: order costs next to nothing.
const LOAD_MAX: f64 = 1.05;
/// After so long a new link has its last address (IPv6's): Chromium gives up what it loads when one appears.
const SETTLED: Duration = Duration::from_secs(4);
const NODE_SCRIPT: &str = include_str!("scripts/page.mjs");

/// What is measured, in the script's words and ours.
const FIGURES: [(&str, &str); 5] = [
    ("/first_contentful_paint_ms", "first paint"),
    ("/text_ms", "text with its style complete"),
    ("/load_ms", "page complete"),
    ("/html_ms", "HTML complete"),
    ("/first_paint_ms", "first pixel"),
];

const SERVERS: [Server; 3] = [Server::Nginx, Server::UserSpace, Server::Bands];

/// Both protocols; the servers in one order and, every other time, in the other.
pub fn run(effort: Effort, checks: &mut Checks) -> anyhow::Result<()> {
    if !["node", "chromium"].into_iter().all(process::is_installed) {
        let text = "page: node and chromium are needed (Debian: nodejs, chromium)";
        checks.claim(false, text.into());
        return Ok(());
    }
    let mut record = Record::open("page", "page")?;
    let mut part = Checks::default();
    let mut table = String::from(
        "| protocol | server | first paint, ms | text with its style, ms | page complete, ms | HTML alone, ms |\n|---|---|---|---|---|---|\n",
    );
    let root = site()?;
    let script = root.scratch().join("page.mjs");
    fs::write(&script, NODE_SCRIPT)?;
    for secured in [false, true] {
        let mut figures = SERVERS.map(|_| FIGURES.map(|_| Vec::new()));
        for repetition in 0..2 * effort.repetitions {
            let mut order: Vec<usize> = (0..SERVERS.len()).collect();
            if repetition % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let measured = visit(SERVERS[index], secured, &root, &script)?;
                record.add(&json!({"secured": secured, "server": SERVERS[index].name(), "repetition": repetition, "page": measured}))?;
                for (all, (pointer, _)) in figures[index].iter_mut().zip(FIGURES) {
                    all.push(figure(&measured, pointer));
                }
            }
        }
        let protocol = if secured {
            "HTTP/2 over TLS"
        } else {
            "HTTP/1.1"
        };
        for (server, figures) in SERVERS.iter().zip(&figures) {
            let shown: Vec<String> = figures[..4].iter().map(|all| spread(all, 0)).collect();
            table += &format!(
                "| {protocol} | {} | {} |\n",
                server.name(),
                shown.join(" | ")
            );
        }
        for (server, ours) in SERVERS.iter().zip(&figures).skip(1) {
            for (index, limit) in [(0, TEXT_MAX), (1, TEXT_MAX), (2, LOAD_MAX), (3, TEXT_MAX)] {
                part.at_most(
                    &format!(
                        "{protocol}, {}: {} / nginx's",
                        server.name(),
                        FIGURES[index].1
                    ),
                    median(&ours[index]) / median(&figures[0][index]),
                    limit,
                );
            }
        }
    }
    record.table("page", &format!("{table}\n{}", part.table()))?;
    checks.extend(part);
    Ok(())
}

/// One first visit.
fn visit(server: Server, secured: bool, root: &Root, script: &Path) -> anyhow::Result<Value> {
    let link = Link::up("p", RATE_MBIT, server.shaper())?;
    let running = start(server, secured, &link, root)?;
    std::thread::sleep(SETTLED);
    let url = if secured {
        format!("https://10.77.0.1:{TLS_PORT}/index.html")
    } else {
        format!("http://10.77.0.1:{CLEAR_PORT}/index.html")
    };
    let profile = tempfile::tempdir()?;
    let mut node = link.on_client("node");
    node.arg(script).arg(url).arg(profile.path());
    let printed = process::output(&mut node)?;
    drop(running);
    let measured: Value = serde_json::from_str(&printed)?;
    measured
        .get("load_ms")
        .and_then(Value::as_f64)
        .context("Chromium loaded no page")?;
    Ok(measured)
}

fn start(server: Server, secured: bool, link: &Link, root: &Root) -> anyhow::Result<Running> {
    if secured {
        let certificate = Certificate::of(root.scratch())?;
        server.start_secured(link, root.path(), RATE_MBIT, &certificate, "")
    } else {
        server.start(link, root.path(), RATE_MBIT)
    }
}

/// A page whose pictures stand before most of its text.
fn site() -> anyhow::Result<Root> {
    let root = Root::empty()?;
    let pictures: String = (0..PICTURES)
        .map(|nth| format!("<img src=\"{nth}.bmp\" width=\"400\" height=\"250\" alt=\"\">\n"))
        .collect();
    let text = paragraphs(TEXT_BYTES, |text| format!("<p>{text}</p>\n"));
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page</title>\
         <link rel=\"stylesheet\" href=\"style.css\"><link rel=\"icon\" href=\"data:,\"></head>\n<body><h1>Page</h1>\n{pictures}{text}</body></html>\n"
    );
    fs::write(root.path().join("index.html"), page)?;
    let style = paragraphs(STYLE_BYTES, |text| format!("/* {text} */\n"));
    fs::write(
        root.path().join("style.css"),
        format!("body {{ font-family: serif; }}\n{style}"),
    )?;
    for nth in 0..PICTURES {
        fs::write(root.path().join(format!("{nth}.bmp")), bitmap(nth as u32))?;
    }
    Ok(root)
}

/// At least so many bytes of words that differ, wrapped.
fn paragraphs(bytes: usize, wrap: impl Fn(&str) -> String) -> String {
    let mut all = String::new();
    let mut noise = Noise(1);
    while all.len() < bytes {
        let words: Vec<String> = (0..80).map(|_| format!("{:x}", noise.next())).collect();
        all += &wrap(&words.join(" "));
    }
    all
}

/// A bitmap of noise, 24 bits a pixel.
fn bitmap(seed: u32) -> Vec<u8> {
    let (width, height) = PICTURE_PIXELS;
    let pixel_bytes = width * height * 3;
    let mut file = b"BM".to_vec();
    for word in [54 + pixel_bytes, 0, 54, 40, width, height] {
        file.extend(word.to_le_bytes());
    }
    // One plane, 24 bits; not compressed, of any resolution, without a palette.
    file.extend([1, 0, 24, 0]);
    for word in [0, pixel_bytes, 2_835, 2_835, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    let mut noise = Noise(seed + 1);
    file.extend((0..pixel_bytes).map(|_| (noise.next() >> 24) as u8));
    file
}

/// Marsaglia's xorshift: any noise will do, the same every time.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}
