//! One site of files: what it answers to a request, and nothing about how that is sent.
//!
//! A file in memory that was looked at in the last second costs no system call and no allocation
//! but its headers. Everything that is not a file (refusals, redirects) is made the site's own at
//! the end: its error pages, its headers.

mod asked;
mod build;
mod config;
mod listing;
mod location;
mod refusal;
mod representation;
mod scripts;
mod sites;
#[cfg(test)]
mod tests;

pub use asked::{Asked, Led};
pub use build::SharedFiles;
pub use config::{RedirectConfig, Scheme, StaticConfig};
pub use listing::{Listing, PendingListing};
pub use location::LocationConfig;
pub use sites::{Chosen, Sites};

use crate::auth::{Guard, Guards};
use crate::body::Source;
use crate::clock::Moment;
use crate::files::{
    Expires, ExtraHeaders, File, FileCache, FileError, FolderId, Lookup, Proxied, Resource,
    media_type,
};
use crate::response::{Response, plain};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};
use listing::{Listed, Lister, Shown};
use location::FixedAnswer;
use representation::{Delivery, FileResponse};
use scripts::HiddenScripts;
use sooner_http::host;
use sooner_http::redirect::Redirect;
use sooner_http::target::{self, DotFiles};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// One site.
#[derive(Debug)]
pub struct StaticSite {
    redirects: Vec<Redirect>,
    extra: ExtraHeaders,
    expires: Expires,
    guards: Guards,
    error_pages: Vec<ErrorPage>,
    disk: Option<Disk>,
    /// What paths begin with that is not there on the disk: a path as [`target::parse`] gives it.
    mount: Box<[u8]>,
    /// What every request gets, where nothing is looked for.
    answer: Option<FixedAnswer>,
    takes_routes: bool,
    delivery: Delivery,
    /// Where scripts are run elsewhere, and not shown here.
    hidden: Option<HiddenScripts>,
    /// Whether the path of a file that a request led to is said something of: by a location, or
    /// about passwords.
    looks_up_again: bool,
}

/// The file that is sent with an error.
#[derive(Debug)]
struct ErrorPage {
    status: StatusCode,
    path: Box<[u8]>,
}

/// What a site has on the disk.
#[derive(Debug)]
struct Disk {
    cache: Rc<RefCell<FileCache>>,
    folder: FolderId,
    dot_files: DotFiles,
    lister: Lister,
    fallback: Option<Box<[u8]>>,
}

/// The answer of a site.
#[derive(Debug)]
pub enum StaticReply {
    /// Here it is.
    Now(Response),
    /// Here it is, about a file as it is on the disk.
    File(Response, Arc<File>),
    /// A directory has to be read for it, by a thread that may wait.
    Listing(PendingListing),
}

/// An answer on its way.
enum Draft {
    /// As it will be sent; and the file that it is about, if that is as it is on the disk.
    Complete(Response, Option<Arc<File>>),
    /// Without the site's headers and error pages.
    Bare(Response),
    Listing(PendingListing),
    Led(Led),
}

impl StaticSite {
    /// Answers a request, reading directories at once if need be: for tests, and for threads that
    /// may wait.
    pub fn response<B>(&self, request: &Request<B>, now: Moment) -> Response {
        match self.respond(request, now) {
            StaticReply::Now(response) | StaticReply::File(response, _) => response,
            StaticReply::Listing(pending) => pending.read(),
        }
    }

    /// Answers a request as [`Self::answer`] does, for what it leads to as well.
    pub fn respond<B>(&self, request: &Request<B>, now: Moment) -> StaticReply {
        let answer = self.answer(request, Asked::default(), now);
        answer.unwrap_or_else(|led| self.respond_to(request, &led, now))
    }

    /// Answers a request that led to `led`.
    pub fn respond_to<B>(&self, request: &Request<B>, led: &Led, now: Moment) -> StaticReply {
        let asked = Asked {
            led: Some(&led.path),
            ..Asked::default()
        };
        // What was led to leads no further.
        let answer = self.answer(request, asked, now);
        answer.unwrap_or_else(|_| StaticReply::Now(self.finish(refusal::not_found(), now)))
    }

    /// Answers a request, or says what it leads to where that has to be looked up for itself. Waits
    /// for the disk only to open files and to read those that are kept in memory.
    pub fn answer<B>(
        &self,
        request: &Request<B>,
        asked: Asked<'_>,
        now: Moment,
    ) -> Result<StaticReply, Led> {
        let (mut response, file) = match self.draft(request, asked, now) {
            Draft::Complete(response, file) => (response, file),
            Draft::Bare(response) => (self.finish(response, now), None),
            Draft::Listing(pending) => return Ok(StaticReply::Listing(pending)),
            Draft::Led(led) => return Err(led),
        };
        if request.method() == Method::HEAD {
            response.source = Source::Empty;
        }
        Ok(match file {
            Some(file) => StaticReply::File(response, file),
            None => StaticReply::Now(response),
        })
    }

    /// An answer with an error: the site's page for it, or else a line of text that says `what` is
    /// wrong.
    pub fn error_page(&self, status: StatusCode, what: &str, now: Moment) -> Response {
        self.finish(plain(status, what), now)
    }

    /// What protects a path, as it stands in a request.
    pub fn guard(&self, path: &str) -> Option<&Rc<Guard>> {
        self.guards.find(path)
    }

    /// What decides how long clients may keep the response of an upstream to `request`; `None`
    /// where that is the upstream's alone.
    pub fn expires_of<B>(&self, request: &Request<B>) -> Option<Proxied> {
        self.expires.of_request(request)
    }

    /// Whether its requests may go to upstreams.
    pub fn takes_routes(&self) -> bool {
        self.takes_routes
    }

    /// Whether it has a file for this request, an index included.
    pub fn has_file<B>(&self, request: &Request<B>, now: Moment) -> bool {
        let (&Method::GET | &Method::HEAD, Some(disk)) = (request.method(), &self.disk) else {
            return false;
        };
        let Ok(target) = target::parse(request.uri().path(), disk.dot_files) else {
            return false;
        };
        if self.hides(&target.path) {
            return false;
        }
        let path = self.below_mount(&target.path);
        path.is_some_and(|path| {
            let found = disk.find(path, target.is_directory, now);
            matches!(found, Ok(Lookup::Resource(_)))
        })
    }

    /// Adds the site's headers to the response of an upstream.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        self.extra.add_to(headers);
    }

    /// The response of the first redirect that fits; redirects come before routes and files.
    pub fn redirect<B>(&self, request: &Request<B>, now: Moment) -> Option<Response> {
        let response = self.redirected(request)?;
        let mut response = self.finish(response, now);
        if request.method() == Method::HEAD {
            response.source = Source::Empty;
        }
        Some(response)
    }

    fn draft<B>(&self, request: &Request<B>, asked: Asked<'_>, now: Moment) -> Draft {
        // Redirects are about what clients ask for: one from an index to its directory is none
        // from the directory to itself.
        if asked.led.is_none()
            && let Some(response) = self.redirected(request)
        {
            return Draft::Bare(response);
        }
        if let Some(answer) = &self.answer {
            return Draft::Bare(refusal::fixed(answer));
        }
        match (request.method(), &self.disk) {
            (&Method::GET | &Method::HEAD, Some(disk)) => self.file(request, asked, disk, now),
            (_, Some(disk)) if let Some(led) = self.script_of(request, asked, disk, now) => {
                Draft::Led(led)
            }
            (&Method::OPTIONS, _) => Draft::Bare(refusal::methods()),
            (_, None) => Draft::Bare(refusal::not_found()),
            (_, Some(_)) => Draft::Bare(refusal::of_method()),
        }
    }

    fn redirected<B>(&self, request: &Request<B>) -> Option<Response> {
        let uri = request.uri();
        self.redirects.iter().find_map(|redirect| {
            let host = host::of(request).unwrap_or_default();
            let location = redirect.location(host, uri.path(), uri.query())?;
            if host.is_empty() && redirect.scheme_at_own_host().is_some() {
                return Some(refusal::without_host());
            }
            Some(refusal::redirect_to(
                redirect.status(),
                "it is elsewhere",
                location,
            ))
        })
    }

    fn file<B>(&self, request: &Request<B>, asked: Asked<'_>, disk: &Disk, now: Moment) -> Draft {
        let dot_files = match asked.led {
            // The owner has named it.
            Some(_) => DotFiles::Served,
            None => disk.dot_files,
        };
        let target = match target::parse(asked.path(request), dot_files) {
            Ok(target) => target,
            Err(error) => return Draft::Bare(refusal::of_target(error)),
        };
        if self.hides(&target.path) {
            return Draft::Bare(refusal::not_found());
        }
        let Some(path) = self.below_mount(&target.path) else {
            return Draft::Bare(refusal::not_found());
        };
        if target.is_directory
            && let Some(led) = self.script_for(path, disk, asked, now)
        {
            return Draft::Led(led);
        }
        match disk.find(path, target.is_directory, now) {
            Ok(Lookup::Resource(resource)) if self.leads_on(asked) && *resource.path != *path => {
                Draft::Led(self.led_to(&resource.path, false))
            }
            Ok(Lookup::Resource(resource)) => self.resource(request, asked, &resource, now),
            Ok(Lookup::Directory(_)) if !target.is_directory => {
                let query = request.uri().query();
                Draft::Bare(refusal::directory_without_slash(&target.path, query))
            }
            Ok(Lookup::Directory(directory)) => {
                let shown = Shown {
                    directory,
                    path: &target.path,
                    path_below_root: path,
                    hides_scripts: self.lists_no_scripts(asked.path(request), asked.scripts),
                };
                match disk.lister.list(request, shown, now.instant) {
                    Listed::Pending(pending) => Draft::Listing(pending),
                    Listed::Refusal(response) => Draft::Bare(response),
                    Listed::Off => self.missing(request, asked, disk, &target.path, now),
                }
            }
            Err(FileError::NotFound) => self.missing(request, asked, disk, &target.path, now),
            Err(error) => Draft::Bare(refusal::of_file(&error)),
        }
    }

    /// Whether what a request leads to has to be looked up for itself.
    fn leads_on(&self, asked: Asked<'_>) -> bool {
        self.looks_up_again && asked.led.is_none()
    }

    /// The path below the root, if there is one.
    fn below_mount<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        let rest = path.strip_prefix(&*self.mount)?;
        match rest {
            [b'/', below @ ..] => Some(below),
            _ if rest.is_empty() || self.mount.is_empty() => Some(rest),
            _ => None,
        }
    }

    fn resource<B>(
        &self,
        request: &Request<B>,
        asked: Asked<'_>,
        resource: &Resource,
        now: Moment,
    ) -> Draft {
        let delivery = &self.delivery;
        match representation::response(request, resource, delivery, asked.is_whole, now.date) {
            FileResponse::Complete(mut response, file) => {
                if let Some(rule) = &resource.expires {
                    rule.add_to(&mut response.headers, now.date);
                }
                let is_plain = Arc::ptr_eq(&file, &resource.plain);
                Draft::Complete(response, is_plain.then_some(file))
            }
            FileResponse::Refusal(response) => Draft::Bare(response),
        }
    }

    /// The page of the application, unless the path ends like that of a file: a script that is
    /// missing must not be a page, which caches would keep and browsers could not read.
    fn missing<B>(
        &self,
        request: &Request<B>,
        asked: Asked<'_>,
        disk: &Disk,
        path: &[u8],
        now: Moment,
    ) -> Draft {
        if asked.led.is_some() || media_type::is_of_file(path) {
            return Draft::Bare(refusal::not_found());
        }
        if let Some(led) = self.last_script(asked) {
            return Draft::Led(led);
        }
        if let Some(fallback) = &disk.fallback
            && let Ok(Lookup::Resource(resource)) = disk.find(fallback, false, now)
        {
            if self.leads_on(asked) {
                return Draft::Led(self.led_to(fallback, true));
            }
            return self.resource(request, asked, &resource, now);
        }
        Draft::Bare(refusal::not_found())
    }

    /// With the site's page for its status, if there is one, and the site's headers.
    pub fn finish(&self, mut response: Response, now: Moment) -> Response {
        if let Some(page) = self.page_for(response.status, now) {
            let headers = &mut response.headers;
            headers.insert(CONTENT_LENGTH, HeaderValue::from(page.plain.len));
            if let Some(kind) = page.plain.headers.get(CONTENT_TYPE) {
                headers.insert(CONTENT_TYPE, kind.clone());
            }
            let chunk_bytes = self.delivery.chunk_bytes;
            response.source = Source::part(&page.plain, 0, page.plain.len, chunk_bytes);
        }
        self.extra.add_to(&mut response.headers);
        response
    }

    fn page_for(&self, status: StatusCode, now: Moment) -> Option<Rc<Resource>> {
        let mut pages = self.error_pages.iter();
        let page = pages.find(|page| page.status == status)?;
        match self.disk.as_ref()?.find(&page.path, false, now) {
            Ok(Lookup::Resource(resource)) => Some(resource),
            _ => None,
        }
    }
}

impl Disk {
    fn find(&self, path: &[u8], as_directory: bool, now: Moment) -> Result<Lookup, FileError> {
        self.cache
            .borrow_mut()
            .find(self.folder, path, as_directory, now)
    }
}
