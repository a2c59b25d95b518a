//! Responses that the HTTP/2 library has whole, until it has written them or dropped them.
//!
//! A reset by the client does not settle which of the two it is: the library drops what it has not
//! begun to write, but ends the frame it is at, which may be the last one. So a stream that was
//! reset is looked at once more when the library has written all it had begun.

use sooner_http::frames::StreamEnd;
use sooner_uplink::FinishedStream;
use std::collections::BTreeMap;

/// The responses of one connection; no more than it has streams. What is in here when the
/// connection ends was not sent.
#[derive(Default)]
pub struct Unwritten {
    responses: BTreeMap<u32, FinishedStream>,
    /// Those among them that the client has reset.
    reset: Vec<u32>,
}

impl Unwritten {
    /// All of the response on `stream` was given to the library.
    pub fn add(&mut self, stream: u32, response: FinishedStream) {
        self.responses.insert(stream, response);
    }

    /// Whether all are written or dropped.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// The end of a stream was written to the connection.
    pub fn written(&mut self, end: StreamEnd) {
        match end {
            StreamEnd::Whole(stream) => {
                if let Some(response) = self.responses.remove(&stream) {
                    response.written();
                }
            }
            StreamEnd::Reset(stream) => drop(self.responses.remove(&stream)),
        }
    }

    /// The client ended a stream.
    pub fn received(&mut self, end: StreamEnd) {
        if let StreamEnd::Reset(stream) = end
            && self.responses.contains_key(&stream)
        {
            self.reset.push(stream);
        }
    }

    /// The library has written every frame it had begun; what it wrote ends with `on_their_way`,
    /// which is still below it.
    pub fn flushed(&mut self, on_their_way: &[StreamEnd]) {
        for stream in self.reset.drain(..) {
            if !on_their_way.contains(&StreamEnd::Whole(stream)) {
                self.responses.remove(&stream);
            }
        }
    }
}
