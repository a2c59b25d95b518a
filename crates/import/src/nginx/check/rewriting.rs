//! What is wrong with directives of requests: conditions, redirects, headers, pages, expressions.

use super::super::tree::Directive;
use super::addresses::authority_bytes;
use super::values;

const METHODS: [&str; 14] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "MKCOL",
    "COPY",
    "MOVE",
    "OPTIONS",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
];

const LOG_LEVELS: [&str; 9] = [
    "stderr", "emerg", "alert", "crit", "error", "warn", "notice", "info", "debug",
];

/// What is wrong with the arguments of a directive.
pub fn check(own: &Directive) -> Result<(), String> {
    let first = own.first();
    let last = own.args.last().map_or("", String::as_str);
    match own.name.as_str() {
        "return" => returned(own),
        "rewrite" => {
            expression(first)?;
            let flag = own.args.get(2);
            flag.map_or(Ok(()), |flag| {
                values::words(flag, &["last", "break", "redirect", "permanent"])
            })
        }
        "set" if first.len() < 2 || !first.starts_with('$') => {
            Err(format!("{first:?} is not a variable; write $NAME"))
        }
        "error_page" => error_page(&own.args),
        "try_files" => match last.strip_prefix('=') {
            Some(code) => status(code),
            None => Ok(()),
        },
        "expires" => expires(&own.args),
        "add_header" | "add_trailer" => match own.args.get(2) {
            Some(third) => values::words(third, &["always"]),
            None => Ok(()),
        },
        "access_log" => access_log(&own.args),
        "error_log" => {
            let mut levels = own.args.iter().skip(1);
            levels.try_for_each(|own| match own.starts_with("debug_") {
                true => Ok(()),
                false => values::words(own, &LOG_LEVELS),
            })
        }
        "if" => condition(&own.args),
        "location" => location(&own.args),
        "limit_except" => {
            let mut methods = own.args.iter();
            methods.try_for_each(|own| values::words(own, &METHODS))
        }
        "fastcgi_split_path_info" => {
            expression(first)?;
            match first.matches('(').count() - first.matches("(?:").count() {
                0 | 1 => Err(format!(
                    "{first:?} has not two groups; write ^(.+\\.php)(/.*)$"
                )),
                _ => Ok(()),
            }
        }
        "gzip_comp_level" => match first {
            "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" => Ok(()),
            _ => Err(format!("{first:?} is not a level; write 1 to 9")),
        },
        "worker_processes" if first != "auto" => values::number(first),
        "limit_rate" | "limit_rate_after" if !first.contains('$') => values::size(first),
        "directio" if first != "off" => values::offset(first),
        "server_tokens" if !first.contains('$') => values::words(first, &["on", "off", "build"]),
        "keepalive" => match first {
            "0" => Err("\"0\" keeps none; write 1 or more".into()),
            _ => values::number(first),
        },
        "proxy_redirect" if own.args.len() == 1 => values::words(first, &["off", "default"]),
        _ => Ok(()),
    }
}

/// What is wrong with a directive at this place, by the letter of its level, and in this location.
pub fn check_place(own: &Directive, level: char, outer: Option<&Directive>) -> Result<(), String> {
    match own.name.as_str() {
        "proxy_pass" => proxied(own.first(), level, outer),
        "location" => match outer {
            Some(outer) => nested(own, outer),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn proxied(url: &str, level: char, outer: Option<&Directive>) -> Result<(), String> {
    let Some((_, rest)) = url.split_once("://").filter(|_| !url.contains('$')) else {
        return Ok(());
    };
    let is_fixed = matches!(outer.map(place), Some(Place::Expression | Place::Named));
    if authority_bytes(rest) == rest.len() || (level == 'L' && !is_fixed) {
        return Ok(());
    }
    Err(format!(
        "{url:?} has a path, which nginx takes neither in a location of an expression or a name nor \
         in if and limit_except; leave it out"
    ))
}

/// What a location is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Exact,
    Prefix,
    Expression,
    Named,
}

fn place(own: &Directive) -> Place {
    match own.first() {
        first if first.starts_with('=') => Place::Exact,
        first if first.starts_with('~') => Place::Expression,
        first if first.starts_with('@') => Place::Named,
        _ => Place::Prefix,
    }
}

/// The path of a location, or its expression.
fn path(args: &[String]) -> &str {
    match args {
        [one] => {
            let signs = ["=", "^~", "~*", "~"];
            let bare = signs.iter().find_map(|sign| one.strip_prefix(sign));
            bare.unwrap_or(one)
        }
        [_, path, ..] => path,
        [] => "",
    }
}

fn location(args: &[String]) -> Result<(), String> {
    let first = args.first().map_or("", String::as_str);
    if args.len() == 2 && !matches!(first, "=" | "^~" | "~" | "~*") {
        return Err(format!("{first:?} is not a modifier; write =, ^~, ~ or ~*"));
    }
    match first.starts_with('~') {
        true => expression(path(args)),
        false => Ok(()),
    }
}

fn nested(own: &Directive, outer: &Directive) -> Result<(), String> {
    let (path, around) = (path(&own.args), path(&outer.args));
    match (place(outer), place(own)) {
        (Place::Exact | Place::Named, _) => Err(format!(
            "{path} cannot be in location {around}; write it beside that"
        )),
        (_, Place::Named) => Err(format!("{path} has a name; write it in the server itself")),
        (_, Place::Expression) => Ok(()),
        _ if path.starts_with(around) => Ok(()),
        _ => Err(format!(
            "{path} is outside of location {around} around it; write it beside that"
        )),
    }
}

fn status(text: &str) -> Result<(), String> {
    let is_right = values::number(text).is_ok() && text.parse().is_ok_and(|code: u32| code < 1000);
    match is_right {
        true => Ok(()),
        false => Err(format!("{text:?} is not a status; write one, as in 404")),
    }
}

fn returned(own: &Directive) -> Result<(), String> {
    let first = own.first();
    let is_url = ["http://", "https://", "$scheme"]
        .iter()
        .any(|begin| first.starts_with(begin));
    if own.args.len() == 1 && is_url {
        return Ok(());
    }
    match status(first) {
        Ok(()) => Ok(()),
        Err(_) => Err(format!(
            "{first:?} is not a status; write return STATUS TEXT_OR_URL"
        )),
    }
}

fn error_page(args: &[String]) -> Result<(), String> {
    let codes = &args[..args.len().saturating_sub(1)];
    let (codes, changed) = match codes {
        [codes @ .., last] if last.starts_with('=') => (codes, &last[1..]),
        codes => (codes, ""),
    };
    if codes.is_empty() {
        return Err("names no status before the =; write error_page 404 = PAGE".into());
    }
    if !changed.is_empty() {
        values::number(changed)?;
    }
    for code in codes {
        let is_right = values::number(code).is_ok()
            && code != "499"
            && code
                .parse()
                .is_ok_and(|code: u32| (300..=599).contains(&code));
        if !is_right {
            return Err(format!(
                "{code:?} is not a status of an error; write 300 to 599"
            ));
        }
    }
    Ok(())
}

fn expires(args: &[String]) -> Result<(), String> {
    let (is_modified, text) = match args {
        [text] => (false, text.as_str()),
        [first, text] if first == "modified" => (true, text.as_str()),
        [_, text] => {
            return Err(format!(
                "{text:?} is one value too many; write one time, as in 30d"
            ));
        }
        _ => return Ok(()),
    };
    let wrong = || {
        Err(format!(
            "{text:?} is not a time; write one, as in 30d, or off, epoch or max"
        ))
    };
    if text.contains('$') || matches!(text, "off" | "epoch" | "max") {
        return Ok(());
    }
    if let Some(daily) = text.strip_prefix('@') {
        let is_day = super::super::values::seconds(daily).is_some_and(|own| own <= 86_400.0);
        return match !is_modified && values::is_time(daily, true) && is_day {
            true => Ok(()),
            false => wrong(),
        };
    }
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    match values::is_time(bare, true) {
        true => Ok(()),
        false => wrong(),
    }
}

fn access_log(args: &[String]) -> Result<(), String> {
    if let [first, second, ..] = args
        && first == "off"
    {
        return Err(format!("{second:?} says nothing behind off; leave it out"));
    }
    args.iter().skip(2).try_for_each(|text| {
        let is_right = match text.split_once('=') {
            None => text == "gzip",
            Some(("buffer", value)) => values::size(value).is_ok(),
            Some(("flush", value)) => values::is_time(value, false),
            Some(("gzip", value)) => value.parse().is_ok_and(|own: u8| (1..=9).contains(&own)),
            Some((name, _)) => name == "if",
        };
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "{text:?} is not a parameter of it; write buffer=SIZE, flush=TIME, gzip=1 to 9 or if="
            )),
        }
    })
}

/// What stands in the parentheses of `if`.
fn condition(args: &[String]) -> Result<(), String> {
    let wrong = || {
        let text = args.join(" ");
        Err(format!(
            "{text:?} is not a condition; write ($NAME), ($NAME = TEXT) or (-f PATH)"
        ))
    };
    let mut words: Vec<&str> = args.iter().map(String::as_str).collect();
    if !strip(&mut words, 0, |own| own.strip_prefix('(')) {
        return wrong();
    }
    let end = words.len().saturating_sub(1);
    if words.is_empty() || !strip(&mut words, end, |own| own.strip_suffix(')')) {
        return wrong();
    }
    match words.as_slice() {
        [one] if one.len() > 1 && one.starts_with('$') => Ok(()),
        [one, "=" | "!=", _] if one.len() > 1 && one.starts_with('$') => Ok(()),
        [one, "~" | "~*" | "!~" | "!~*", text] if one.len() > 1 && one.starts_with('$') => {
            expression(text)
        }
        ["-f" | "-d" | "-e" | "-x" | "!-f" | "!-d" | "!-e" | "!-x", _] => Ok(()),
        [one, sign, _] if one.len() > 1 && one.starts_with('$') => {
            values::words(sign, &["=", "!=", "~", "~*", "!~", "!~*"])
        }
        _ => wrong(),
    }
}

/// Takes a parenthesis from a word, and the word with it where it is nothing more.
fn strip<'a>(
    words: &mut Vec<&'a str>,
    at: usize,
    bare: impl Fn(&'a str) -> Option<&'a str>,
) -> bool {
    match words.get(at).and_then(|own| bare(own)) {
        Some("") => {
            words.remove(at);
            true
        }
        Some(rest) => {
            words[at] = rest;
            true
        }
        None => false,
    }
}

/// That the parentheses and brackets of an expression close, and that it repeats something.
pub fn expression(text: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{text:?} is not an expression: {what}"));
    if text.is_empty() {
        return wrong("it is empty; write one");
    }
    let mut letters = text.chars().peekable();
    let mut depth = 0_usize;
    // Whether there is nothing to repeat yet.
    let mut is_begin = true;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return wrong("a \\ is at its end; write \\\\"),
            '[' => {
                if letters.peek() == Some(&'^') {
                    letters.next();
                }
                let mut has_one = false;
                loop {
                    match letters.next() {
                        None => return wrong("a [ has no end; write ] behind it"),
                        Some(']') if has_one => break,
                        Some('\\') => {
                            letters.next();
                        }
                        Some('[') if letters.peek() == Some(&':') => {
                            letters.by_ref().find(|own| *own == ']');
                        }
                        Some(_) => {}
                    }
                    has_one = true;
                }
            }
            '(' => {
                depth += 1;
                let is_special = letters.next_if(|own| matches!(own, '?' | '*')).is_some();
                if is_special {
                    // `(?:`, `(?i)`, `(?<name>`: what follows is not repeated.
                    letters.next();
                }
                is_begin = true;
                continue;
            }
            ')' => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return wrong("a ) has no beginning; write ( before it"),
            },
            '*' | '+' | '?' if is_begin => {
                return wrong("it begins with what repeats; write \\ before that");
            }
            '|' => {
                is_begin = true;
                continue;
            }
            _ => {}
        }
        is_begin = false;
    }
    match depth {
        0 => Ok(()),
        _ => wrong("a ( has no end; write ) behind it"),
    }
}
