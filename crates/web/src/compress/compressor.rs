//! From a response to the same, compressed.

use super::body::{CompressedBody, HELD_MAX, PAUSE, Plan};
use super::collected::{Beginning, Collected};
use super::encoder::{Step, memory_bytes};
use super::workshop::{Reserved, SLICE_BYTES, Work, Workshop};
use crate::body::Source;
use crate::files::{File, VariantCache, VariantCell, kept};
use crate::response::Response;
use crate::service::Reply;
use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderValue, IF_NONE_MATCH,
    IF_RANGE, RANGE,
};
use hyper::{HeaderMap, Method, Request, StatusCode};
use sooner_http::compression::{self, MediaTypes};
use sooner_http::negotiation::{AcceptEncoding, Coding};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

/// The longest file that is compressed whole before its first answer.
const KEPT_FILE_BYTES_MAX: u64 = 2 << 20;

/// What a configuration says of compression.
pub struct Settings {
    /// The codings, the best liked first.
    pub codings: Vec<Coding>,
    /// What is compressed.
    pub types: MediaTypes,
    /// Shorter bodies are not.
    pub minimum_bytes: u64,
    /// Memory of compressed files.
    pub cache_bytes: u64,
    /// How many of them there may be.
    pub cached_files_max: usize,
}

/// Compresses responses.
pub struct Compressor {
    settings: Settings,
    workshop: Arc<Workshop>,
    files: RefCell<VariantCache>,
}

/// What of a request decides how its response is compressed.
pub struct Wanted {
    accept: AcceptEncoding,
    is_head: bool,
    /// Its `If-None-Match`.
    conditions: HeaderMap,
}

/// A file could not be compressed.
struct Left;

impl Compressor {
    /// Compresses as `settings` say in `workshop`.
    pub fn new(settings: Settings, workshop: Arc<Workshop>) -> Self {
        let files = VariantCache::new(settings.cached_files_max, settings.cache_bytes);
        Self {
            settings,
            workshop,
            files: RefCell::new(files),
        }
    }

    /// What `request` says.
    pub fn wanted<B>(&self, request: &Request<B>) -> Wanted {
        let headers = request.headers();
        let values = headers.get_all(ACCEPT_ENCODING).iter();
        let mut conditions = HeaderMap::new();
        for value in headers.get_all(IF_NONE_MATCH) {
            conditions.append(IF_NONE_MATCH, value.clone());
        }
        Wanted {
            accept: AcceptEncoding::parse(values.map(HeaderValue::as_bytes)),
            is_head: request.method() == Method::HEAD,
            conditions,
        }
    }

    /// Whether a range may go on with a file in another form than the client has: parts are parts of
    /// the file as it is, and a client that makes sure by its date alone may have it compressed. Then
    /// a file that is compressed when it is sent whole is to be sent so.
    pub fn is_range_ambiguous<B>(&self, request: &Request<B>, wanted: &Wanted) -> bool {
        let headers = request.headers();
        let is_by_date = |value: &HeaderValue| !value.as_bytes().starts_with(b"\"");
        headers.contains_key(RANGE)
            && headers.get(IF_RANGE).is_some_and(is_by_date)
            && self.choose(wanted).is_some()
    }

    /// Whether `response` is sent compressed.
    pub fn compresses(&self, response: &Response, wanted: &Wanted) -> bool {
        let Response {
            status, headers, ..
        } = response;
        self.may_be(
            *status,
            headers,
            compression::content_length(headers),
            wanted,
        ) && self.choose(wanted).is_some()
    }

    /// `response`, compressed if that can be and is wanted. `file`: the file that it is about, as it
    /// is on the disk.
    pub fn reply(
        self: &Rc<Self>,
        wanted: &Wanted,
        mut response: Response,
        file: Option<Arc<File>>,
    ) -> Reply {
        let Some(coding) = self.judge(wanted, &mut response, file.as_deref()) else {
            return Reply::Now(response);
        };
        let is_head = wanted.is_head;
        if let Some(file) = file.filter(|file| file.len <= KEPT_FILE_BYTES_MAX) {
            let cell = self.files.borrow_mut().cell(&file, coding);
            if let Some(variant) = cell.get() {
                return Reply::Now(with_variant(response, coding, variant.as_ref(), is_head));
            }
            let this = self.clone();
            return Reply::Later(Box::pin(async move {
                match this.variant(&file, coding, &cell).await {
                    Ok(variant) => with_variant(response, coding, variant, is_head),
                    Err(Left) => response,
                }
            }));
        }
        if is_head {
            compression::encode(&mut response.headers, coding);
            return Reply::Now(response);
        }
        Reply::Later(Box::pin(self.clone().compressed(response, coding)))
    }

    /// The same, for who can wait.
    pub async fn response(self: Rc<Self>, wanted: &Wanted, response: Response) -> Response {
        match self.reply(wanted, response, None) {
            Reply::Now(response) => response,
            Reply::Later(response) => response.await,
        }
    }

    /// The coding to send `response` in, if not as it is. Says in its head that it depends on what
    /// clients accept, where it does.
    fn judge(
        &self,
        wanted: &Wanted,
        response: &mut Response,
        file: Option<&File>,
    ) -> Option<Coding> {
        let headers = &mut response.headers;
        match (response.status, file) {
            (StatusCode::PARTIAL_CONTENT, None) => {
                let whole_bytes = compression::whole_length(headers);
                let mut of_whole = headers.clone();
                of_whole.remove(CONTENT_RANGE);
                if self.may_be(StatusCode::OK, &of_whole, whole_bytes, wanted) {
                    compression::vary(headers);
                }
                return None;
            }
            (StatusCode::NOT_MODIFIED, None) => {
                // Of what type the whole is, it mostly does not say.
                let may_be =
                    |headers: &HeaderMap| self.may_be(StatusCode::OK, headers, None, wanted);
                if !headers.contains_key(CONTENT_TYPE) || may_be(headers) {
                    compression::vary(headers);
                }
                if compression::answers_weak_tag(&wanted.conditions, headers) {
                    compression::weaken_tag(headers);
                    compression::vary(headers);
                }
                return None;
            }
            (StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT, Some(file)) => {
                if self.may_be(StatusCode::OK, &file.headers, Some(file.len), wanted) {
                    compression::vary(headers);
                    let is_unmodified = response.status == StatusCode::NOT_MODIFIED;
                    if is_unmodified && self.choose(wanted).is_some() {
                        compression::weaken_tag(headers);
                    }
                }
                return None;
            }
            _ => {}
        }
        let is_head = wanted.is_head;
        let body_bytes = match compression::content_length(headers) {
            None if !is_head => response.source.len(),
            said => said,
        };
        if !self.may_be(response.status, headers, body_bytes, wanted) {
            return None;
        }
        compression::vary(headers);
        self.choose(wanted)
    }

    fn may_be(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body_bytes: Option<u64>,
        wanted: &Wanted,
    ) -> bool {
        let minimum_bytes = if wanted.accept.excludes_identity() {
            1
        } else {
            self.settings.minimum_bytes.max(1)
        };
        body_bytes.is_none_or(|bytes| bytes >= minimum_bytes)
            && compression::may_be(status, headers, &self.settings.types)
    }

    fn choose(&self, wanted: &Wanted) -> Option<Coding> {
        wanted.accept.choose(self.settings.codings.iter().copied())
    }

    /// The compressed form of a file, made now if it is not there; `None` where it is no shorter.
    async fn variant<'a>(
        &self,
        file: &Arc<File>,
        coding: Coding,
        cell: &'a VariantCell,
    ) -> Result<Option<&'a Bytes>, Left> {
        let variant = cell
            .get_or_try_init(|| self.compress_file(file, coding))
            .await?;
        self.files.borrow_mut().made(file, coding);
        Ok(variant.as_ref())
    }

    async fn compress_file(&self, file: &Arc<File>, coding: Coding) -> Result<Option<Bytes>, Left> {
        let Some(reserved) = self.reserve(memory_bytes(coding) + file.len) else {
            return Err(Left);
        };
        let mut body = CompressedBody::new(Plan {
            source: Source::part(file, 0, file.len, SLICE_BYTES),
            body_bytes: Some(file.len),
            coding,
            workshop: self.workshop.clone(),
            reserved,
        });
        let mut compressed = Vec::new();
        while let Some(frame) = poll_fn(|cx| body.poll_frame(cx)).await {
            let piece = frame.map_err(|_| Left)?.into_data().map_err(|_| Left)?;
            compressed.extend_from_slice(&piece);
        }
        let is_shorter = (compressed.len() as u64) < file.len;
        compressed.shrink_to_fit();
        Ok(is_shorter.then(|| kept(compressed)))
    }

    /// Memory, or a count of what is left as it is.
    fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let reserved = self.workshop.reserve(bytes);
        if reserved.is_none() {
            self.workshop.counts().was_left();
        }
        reserved
    }

    async fn compressed(self: Rc<Self>, mut response: Response, coding: Coding) -> Response {
        let Some(reserved) = self.reserve(2 * SLICE_BYTES as u64) else {
            return response;
        };
        let body_bytes = response.source.len();
        let source = std::mem::replace(&mut response.source, Source::Empty);
        let mut collected = Collected::new(source);
        let beginning = collected.collect(SLICE_BYTES, PAUSE, HELD_MAX).await;
        if beginning == Beginning::Whole && collected.bytes() <= SLICE_BYTES {
            self.compress_whole(&mut response, collected, coding, reserved)
                .await;
            return response;
        }
        drop(reserved);
        let Some(reserved) = self.reserve(memory_bytes(coding) + 2 * SLICE_BYTES as u64) else {
            response.source = collected.into_source();
            return response;
        };
        let pieces = collected.take();
        let mut body = CompressedBody::new(Plan {
            source: collected.into_source(),
            body_bytes,
            coding,
            workshop: self.workshop.clone(),
            reserved,
        });
        compression::encode(&mut response.headers, coding);
        response.source = match body.begin(pieces).await {
            Ok(()) => Source::Compressed(Box::new(body)),
            Err(error) => Source::failed(error.into()),
        };
        response
    }

    /// Compresses a body that is here; one that gets no shorter stays as it is.
    async fn compress_whole(
        &self,
        response: &mut Response,
        mut collected: Collected,
        coding: Coding,
        reserved: Reserved,
    ) {
        let body_bytes = collected.bytes() as u64;
        let input: Vec<Bytes> = collected.take().into();
        let work = Work {
            encoder: None,
            coding,
            body_bytes: Some(body_bytes),
            input: input.clone(),
            backlog_bytes: 0,
            step: Step::Finish,
        };
        let done = if work.is_little() {
            self.workshop.run_at_once(work)
        } else {
            self.workshop.clone().run(work).await
        };
        let output = done.ok().map(|done| done.output);
        match output.filter(|output| (output.len() as u64) < body_bytes) {
            Some(output) => {
                let counts = self.workshop.counts();
                counts.compressed(coding, body_bytes, output.len() as u64);
                compression::encode(&mut response.headers, coding);
                let length = HeaderValue::from(output.len());
                response.headers.insert(CONTENT_LENGTH, length);
                response.source = Source::Memory(reserved.hold(output));
            }
            None => {
                let sources = input.into_iter().map(Source::Memory);
                response.source = Source::Chain(sources.collect());
            }
        }
    }
}

/// The response with the compressed form of its file, if there is one.
fn with_variant(
    mut response: Response,
    coding: Coding,
    variant: Option<&Bytes>,
    is_head: bool,
) -> Response {
    let Some(variant) = variant else {
        return response;
    };
    compression::encode(&mut response.headers, coding);
    let length = HeaderValue::from(variant.len());
    response.headers.insert(CONTENT_LENGTH, length);
    if !is_head {
        response.source = Source::Memory(variant.clone());
    }
    response
}
