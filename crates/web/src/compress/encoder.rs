//! The three compressors behind one face: bytes in, bytes out, now or at the next flush.

use super::config::Levels;
use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sooner_http::negotiation::Coding;
use std::io::{self, Write};
use zstd::stream::write::Encoder as ZstdEncoder;
use zstd::zstd_safe::CParameter;

/// The window of zstd and brotli as a power of two: 512 KiB. Larger ones gain little on pages and
/// cost each stream their memory.
const WINDOW_LOG_MAX: u32 = 19;
/// brotli's least window that is worth having.
const WINDOW_LOG_MIN: u32 = 16;
/// What brotli writes at once.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// A compressor in the middle of a body.
pub enum Encoder {
    /// Deflate, in the frame of RFC 1952.
    Gzip(GzEncoder<Vec<u8>>),
    /// Brotli; `None` at its end.
    Br(Option<Box<CompressorWriter<Vec<u8>>>>),
    /// Zstandard.
    Zstd(ZstdEncoder<'static, Vec<u8>>),
}

/// What follows the bytes that are put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// More bytes: what comes out now is for the compressor to choose.
    More,
    /// Nothing for a while: everything that was put in comes out.
    Flush,
    /// The end.
    Finish,
}

impl Encoder {
    /// A compressor for a body of `body_bytes`, if that is known.
    pub fn new(coding: Coding, levels: Levels, body_bytes: Option<u64>) -> io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => {
                let level = Compression::new(levels.gzip);
                Self::Gzip(GzEncoder::new(Vec::new(), level))
            }
            Coding::Br => {
                let params = BrotliEncoderParams {
                    quality: levels.br as i32,
                    lgwin: window_log(body_bytes) as i32,
                    size_hint: body_bytes.map_or(0, |bytes| bytes as usize),
                    ..BrotliEncoderParams::default()
                };
                let writer =
                    CompressorWriter::with_params(Vec::new(), BROTLI_BUFFER_BYTES, &params);
                Self::Br(Some(Box::new(writer)))
            }
            Coding::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), levels.zstd as i32)?;
                encoder.set_parameter(CParameter::WindowLog(window_log(body_bytes)))?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Puts `input` in; what comes out. After [`Step::Finish`] nothing more may be put in.
    pub fn put(&mut self, input: &[Bytes], step: Step) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => {
                write_all(encoder, input)?;
                match step {
                    Step::More => {}
                    Step::Flush => encoder.flush()?,
                    Step::Finish => encoder.try_finish()?,
                }
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Br(writer) => {
                let Some(encoder) = writer else {
                    return Ok(Vec::new());
                };
                write_all(encoder, input)?;
                match step {
                    Step::More => {}
                    Step::Flush => encoder.flush()?,
                    Step::Finish => {
                        let last = writer.take().map(|encoder| encoder.into_inner());
                        return Ok(last.unwrap_or_default());
                    }
                }
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Zstd(encoder) => {
                write_all(encoder, input)?;
                match step {
                    Step::More => {}
                    Step::Flush => encoder.flush()?,
                    Step::Finish => encoder.do_finish()?,
                }
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }
}

/// What a compressor holds from one slice to the next, bytes: its
/// window, tables and blocks, rounded up.
pub fn memory_bytes(coding: Coding) -> u64 {
    match coding {
        Coding::Gzip => 512 << 10,
        Coding::Br => 3 << 20,
        Coding::Zstd => 2 << 20,
    }
}

fn write_all(to: &mut impl Write, input: &[Bytes]) -> io::Result<()> {
    input.iter().try_for_each(|piece| to.write_all(piece))
}

/// No larger than the body.
fn window_log(body_bytes: Option<u64>) -> u32 {
    let needed = body_bytes.map_or(WINDOW_LOG_MAX, |bytes| {
        bytes.max(1).next_power_of_two().ilog2()
    });
    needed.clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX)
}
