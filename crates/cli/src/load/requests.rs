//! What is asked: the URLs, methods, fields and bodies of `rate` and `closed`.

use anyhow::{Context, Result, bail};
use clap::Args;
use sooner_load::message::{self, Question};
use sooner_load::questions::{self, Listed, Questions};
use sooner_load::tls::TlsOptions;
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// What is asked.
#[derive(Args)]
pub struct RequestArgs {
    /// URL to request, such as http://127.0.0.1:8080/; repeatable, and a URL given twice gets twice
    /// as many requests
    #[arg(value_name = "URL", required_unless_present_any = ["url", "urls"])]
    positional: Vec<String>,
    /// The same as the argument URL
    #[arg(long, num_args = 1..)]
    url: Vec<String>,
    /// File of URLs, a line each: `[WEIGHT] [METHOD] URL [@BODYFILE]`; `-` is standard input
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// Method [default: GET, with a body POST].
    #[arg(short = 'X', short_alias = 'm', long, value_name = "METHOD", value_parser = method)]
    method: Option<http::Method>,
    /// Header of every request, such as 'accept: text/html'; repeatable
    #[arg(short = 'H', long, value_name = "NAME: VALUE", value_parser = field)]
    header: Vec<(http::HeaderName, http::HeaderValue)>,
}

impl RequestArgs {
    /// Everything that may be asked, with `data` as the body of what has none of its own.
    pub fn questions(
        &self,
        data: Option<&str>,
        tls: TlsOptions,
        requests_per_connection: NonZeroU32,
    ) -> Result<Questions> {
        let data = data.map(body).transpose()?;
        let mut all = Questions::new(tls, requests_per_connection);
        for url in self.positional.iter().chain(&self.url) {
            all.add(url, &self.question(None, data.clone()), 1.0)?;
        }
        let Some(path) = &self.urls else {
            return Ok(all);
        };
        let name = path.display();
        let text = match path.as_os_str() == STANDARD_INPUT {
            true => io::read_to_string(io::stdin()),
            false => fs::read_to_string(path),
        };
        let text = text.with_context(|| format!("--urls {name}"))?;
        let lines = questions::list(&text)
            .map_err(|(line, problem)| anyhow::anyhow!("{name}:{line}: {problem}"))?;
        for Listed {
            line,
            weight,
            method,
            url,
            body: file,
        } in lines
        {
            let place = || format!("{name}:{line}");
            let own = file.map(|file| body(&format!("@{file}"))).transpose();
            let own = own.with_context(place)?;
            let question = self.question(method, own.or_else(|| data.clone()));
            all.add(&url, &question, weight).with_context(place)?;
        }
        if all.requests().is_empty() {
            bail!("{name}: no URL is in it; write a line each: [WEIGHT] [METHOD] URL [@BODYFILE]");
        }
        Ok(all)
    }

    fn question(&self, method: Option<http::Method>, body: Option<bytes::Bytes>) -> Question {
        let otherwise = if body.is_some() {
            http::Method::POST
        } else {
            http::Method::GET
        };
        let mut fields = http::HeaderMap::new();
        for (name, value) in &self.header {
            fields.append(name, value.clone());
        }
        Question {
            method: method.or_else(|| self.method.clone()).unwrap_or(otherwise),
            path: "/".into(),
            fields,
            body,
        }
    }
}

/// `@FILE`, or the text itself.
fn body(data: &str) -> Result<bytes::Bytes> {
    match data.strip_prefix('@') {
        Some(path) => Ok(fs::read(path)
            .with_context(|| format!("@{path}: cannot read the body"))?
            .into()),
        None => Ok(data.as_bytes().to_vec().into()),
    }
}

fn method(text: &str) -> Result<http::Method, String> {
    message::method(text).map_err(|error| error.to_string())
}

/// A field of every request.
pub fn field(text: &str) -> Result<(http::HeaderName, http::HeaderValue), String> {
    message::field(text).map_err(|error| error.to_string())
}
