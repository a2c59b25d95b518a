//! What a class may name and no request ever has: a star where it stands for nothing, a host with a
//! port, a path without its slash. Traffic that was meant would be in no class, unnoticed.

use super::ClassTable;
use crate::config::Misconfigured;
use sooner_config::Spanned;
use sooner_config::classes::check_star;
use sooner_http::host;
use sooner_http::request_text::escaped_target;
use std::net::IpAddr;

/// The first value that fits no request.
pub fn check(class: &ClassTable) -> Result<(), Misconfigured> {
    each(&class.host, "class.host", host_name)?;
    each(&class.path, "class.path", path)?;
    each(&class.method, "class.method", method)?;
    each(&class.tls_name, "class.tls_name", tls_name)?;
    for (name, values) in class.header.iter().flatten() {
        let key = format!("class.header.{}", name.get_ref());
        // `*/*` is a value of theirs.
        let has_stars = name.get_ref().to_ascii_lowercase().starts_with("accept");
        for own in values {
            let text = own.get_ref();
            let right = if has_stars { Ok(()) } else { check_star(text) };
            let right = right.and_then(|()| value(text));
            right.map_err(|words| Misconfigured::at(own, &key, words))?;
        }
    }
    for (name, values) in class.cookie.iter().flatten() {
        let text = name.get_ref();
        cookie_name(text).map_err(|words| Misconfigured::at(name, "class.cookie", words))?;
        let key = format!("class.cookie.{text}");
        for own in values {
            cookie(own.get_ref()).map_err(|words| Misconfigured::at(own, &key, words))?;
        }
    }
    for (name, values) in class.body.iter().flatten() {
        let key = format!("class.body.{}", name.get_ref());
        for text in &values.0 {
            check_star(text).map_err(|words| Misconfigured::at(name, &key, words))?;
        }
    }
    Ok(())
}

/// That cookies may have this name.
pub fn cookie_name(text: &str) -> Result<(), String> {
    let is_name = !text.is_empty()
        && !text.contains([';', '='])
        && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a name of a cookie; write it without blanks, = and ;"
        )),
    }
}

fn each(
    values: &Option<Vec<Spanned<String>>>,
    key: &str,
    check: impl Fn(&str) -> Result<(), String>,
) -> Result<(), Misconfigured> {
    let mut values = values.iter().flatten();
    values.try_for_each(|own| {
        check(own.get_ref()).map_err(|words| Misconfigured::at(own, key, words))
    })
}

fn path(text: &str) -> Result<(), String> {
    if text == "*" {
        return Ok(());
    }
    if text.starts_with('*') {
        return Err(format!(
            "{text:?} matches nothing: a path begins with /, and a * stands for anything only at the \
             end, as in \"/app/*\"; for scripts of all directories name their upstream in class.upstream"
        ));
    }
    if !text.starts_with('/') {
        return Err(format!(
            "{text:?} matches nothing: a path begins with /; write \"/{text}\""
        ));
    }
    check_star(text)?;
    if let Some((before, _)) = text.split_once(['?', '#']) {
        return Err(format!(
            "{text:?} matches nothing: a path has no ? and no #; write {before:?}"
        ));
    }
    if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(format!(
            "{text:?} matches nothing: a path has no blanks; write %20 for a space"
        ));
    }
    // So are those of requests before they are compared.
    match escaped_target(text.as_bytes()) {
        Some(escaped) => Err(format!(
            "{text:?} matches nothing: a path is percent-encoded; write \"{}\"",
            String::from_utf8_lossy(&escaped)
        )),
        None => Ok(()),
    }
}

fn method(text: &str) -> Result<(), String> {
    if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let right = text.to_ascii_uppercase();
        return Err(format!(
            "{text:?} is not a method; they are in capitals: write {right:?}"
        ));
    }
    check_star(text)?;
    let bare = text.strip_suffix('*').unwrap_or(text);
    match text == "*" || hyper::Method::from_bytes(bare.as_bytes()).is_ok() {
        true => Ok(()),
        false => Err(format!(
            "{text:?} is not a method; write one, as in \"GET\""
        )),
    }
}

/// A host of a request, without its port; an empty one is that of a request that names none.
fn host_name(text: &str) -> Result<(), String> {
    let stars = text.strip_prefix('*').unwrap_or(text).matches('*').count();
    if text.starts_with('*') && stars > 0 {
        return Err(format!(
            "{text:?} has two stars; write one, at the beginning or the end"
        ));
    }
    if text.len() > 1 && text.starts_with('*') && !text.starts_with("*.") {
        let rest = &text[1..];
        return Err(format!(
            "{text:?} matches nothing: a * at the beginning stands for whole labels; write \"*.{rest}\""
        ));
    }
    let bare = text.strip_prefix("*.").unwrap_or(text);
    check_star(bare)?;
    let bare = bare.strip_suffix('*').unwrap_or(bare);
    if bare.is_empty() {
        return match text {
            "" | "*" => Ok(()),
            _ => Err(format!(
                "{text:?} matches nothing; write \"*.\" and a name behind it"
            )),
        };
    }
    if let Some((_, rest)) = bare.split_once("://") {
        let rest = rest.split(['/', ':']).next().unwrap_or_default();
        return Err(format!(
            "{text:?} matches nothing: a host is not a URL; write {rest:?}"
        ));
    }
    if !bare.is_ascii() {
        return Err(format!(
            "{text:?} matches nothing: a name beyond ASCII is written as it is in DNS: xn--..."
        ));
    }
    let is_beginning = text.ends_with('*');
    if bare.starts_with('[') && is_beginning {
        return beginning_of_address(text);
    }
    match host::parse(bare.as_bytes()) {
        Some(parsed) if parsed == bare => Ok(()),
        // What follows the dot is in the star.
        Some(parsed) if is_beginning && bare.strip_suffix('.') == Some(parsed) => Ok(()),
        Some(parsed) if bare.len() == parsed.len() + 1 && bare.ends_with('.') => Err(format!(
            "{text:?} matches nothing: a host has no dot at its end; write {parsed:?}"
        )),
        Some(parsed) => Err(format!(
            "{text:?}: a host has no port here; write {parsed:?}"
        )),
        None => Err(format!(
            "{text:?} is not a host; write a name or an address: example.org, *.example.org, \
             192.0.2.1, [2001:db8::1]"
        )),
    }
}

/// The beginning of an address of IPv6: those of requests are compared in their shortest form.
fn beginning_of_address(text: &str) -> Result<(), String> {
    let Some((whole, rest)) = text[1..].rsplit_once(':') else {
        return Ok(());
    };
    let groups: Vec<&str> = whole.split(':').map(without_zeros).collect();
    let right = format!("[{}:{rest}", groups.join(":"));
    match right == text {
        true => Ok(()),
        false => Err(format!(
            "{text:?} matches nothing: an address is compared in its shortest form; write {right:?}"
        )),
    }
}

/// A group of an address without the zeros that it begins with.
fn without_zeros(group: &str) -> &str {
    match group.trim_start_matches('0') {
        "" if !group.is_empty() => "0",
        shorter => shorter,
    }
}

/// A name that a client asks for in TLS; an empty one is that of a client without.
fn tls_name(text: &str) -> Result<(), String> {
    host_name(text)?;
    match text.starts_with('[') || text.parse::<IpAddr>().is_ok() {
        true => Err(format!(
            "{text:?} matches nothing: clients ask for names in TLS and not for addresses; write a name"
        )),
        false => Ok(()),
    }
}

/// A value of a field, of which only visible ASCII is compared.
fn value(text: &str) -> Result<(), String> {
    let is_comparable = |byte: u8| byte == b'\t' || (b' '..0x7f).contains(&byte);
    if !text.bytes().all(is_comparable) {
        return Err(format!(
            "{text:?} matches nothing: values beyond ASCII are not compared; write ASCII"
        ));
    }
    no_blanks(text)
}

/// A value of a cookie.
fn cookie(text: &str) -> Result<(), String> {
    check_star(text)?;
    if let Some((before, _)) = text.split_once(';') {
        return Err(format!(
            "{text:?} matches nothing: a ; ends a cookie; write {before:?}"
        ));
    }
    no_blanks(text)
}

fn no_blanks(text: &str) -> Result<(), String> {
    let right = text.trim_ascii();
    match right == text {
        true => Ok(()),
        false => Err(format!(
            "{text:?} matches nothing: blanks around a value do not count; write {right:?}"
        )),
    }
}
