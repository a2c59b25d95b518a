//! A page with text and pictures, the same every time.

use std::fs;
use std::io;
use std::path::Path;

const PICTURES: usize = 6;
/// Width and height of a picture: 300 KB of it, uncompressed.
const PICTURE_PIXELS: (u32, u32) = (400, 250);
const TEXT_BYTES: usize = 60_000;
const STYLE_BYTES: usize = 20_000;

/// Writes a page with its pictures before most of its text.
pub fn write(root: &Path) -> io::Result<()> {
    let pictures: String = (0..PICTURES)
        .map(|nth| format!("<img src=\"{nth}.bmp\" width=\"400\" height=\"250\" alt=\"\">\n"))
        .collect();
    let text = paragraphs(TEXT_BYTES, |text| format!("<p>{text}</p>\n"));
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Page</title>\
         <link rel=\"stylesheet\" href=\"style.css\"><link rel=\"icon\" href=\"data:,\"></head>\n<body><h1>Page</h1>\n{pictures}{text}</body></html>\n"
    );
    fs::write(root.join("index.html"), page)?;
    let style = paragraphs(STYLE_BYTES, |text| format!("/* {text} */\n"));
    fs::write(
        root.join("style.css"),
        format!("body {{ font-family: serif; }}\n{style}"),
    )?;
    for nth in 0..PICTURES {
        fs::write(root.join(format!("{nth}.bmp")), bitmap(nth as u32))?;
    }
    Ok(())
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
