//! The settings that SET, RESET and `set_config` name.

use super::tokens::{Token, Tokens};
use super::{SessionChange, Tie, is, is_one_of};
use crate::parameters::is_temporary_path;
use std::borrow::Cow;

/// What SET SESSION CHARACTERISTICS changes.
const CHARACTERISTICS: [&[u8]; 3] = [
    b"default_transaction_isolation",
    b"default_transaction_read_only",
    b"default_transaction_deferrable",
];

/// Lists of names: of each name that SET says the server keeps the text that names it in SQL.
const LISTS: [&[u8]; 4] = [
    b"search_path",
    b"temp_tablespaces",
    b"local_preload_libraries",
    b"session_preload_libraries",
];

/// Decides where a new table is.
const SEARCH_PATH: &[u8] = b"search_path";

/// Of one argument: calls may stand in calls, and each is looked through.
const ARGUMENT_TOKENS: usize = 64;

/// A token, and how it is written.
type Written<'a> = (Token<'a>, &'a [u8]);

/// The rest of one command.
#[derive(Clone)]
struct Rest<'a>(Tokens<'a>);

impl<'a> Iterator for Rest<'a> {
    type Item = Written<'a>;

    fn next(&mut self) -> Option<Written<'a>> {
        let mut ahead = self.0.clone();
        let next = ahead.next_with_text()?;
        (next.0 != Token::Semicolon).then(|| {
            self.0 = ahead;
            next
        })
    }
}

impl<'a> Rest<'a> {
    fn peek(&self) -> Option<Written<'a>> {
        Rest(self.0.clone()).next()
    }

    /// Takes the next token away if it is this word.
    fn takes(&mut self, keyword: &str) -> bool {
        let is_it = self.peek().is_some_and(|next| is_word(next, keyword));
        if is_it {
            self.next();
        }
        is_it
    }

    /// A name of one or more parts, in lower case.
    fn name(&mut self) -> Option<Vec<u8>> {
        let mut name = part(self.next()?)?;
        while self.peek().is_some_and(|(_, text)| text == b".") {
            self.next();
            name.push(b'.');
            name.extend(part(self.next()?)?);
        }
        Some(name)
    }

    /// The tokens up to a comma or the end of the call, which is taken as well; without an end
    /// none.
    fn argument(&mut self) -> Option<(Vec<Written<'a>>, bool)> {
        let (mut tokens, mut depth) = (Vec::new(), 0_usize);
        while tokens.len() < ARGUMENT_TOKENS {
            let next = self.next()?;
            match next.1 {
                b"," if depth == 0 => return Some((tokens, false)),
                b")" if depth == 0 => return Some((tokens, true)),
                b")" | b"]" => depth = depth.checked_sub(1)?,
                b"(" | b"[" => depth += 1,
                _ => {}
            }
            tokens.push(next);
        }
        None
    }
}

fn is_word(written: Written<'_>, keyword: &str) -> bool {
    matches!(written.0, Token::Word(word) if is(word, keyword))
}

fn part((token, _): Written<'_>) -> Option<Vec<u8>> {
    match token {
        Token::Word(name) | Token::Quoted(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    }
}

/// What a SET leaves behind; `tokens` are those behind that word.
pub fn of_set<'a>(tokens: &Tokens<'a>) -> Vec<SessionChange<'a>> {
    let mut rest = Rest(tokens.clone());
    if rest.takes("local") {
        let mut values = rest.clone();
        let name = named(rest).and_then(name_of);
        let is_path = name.as_deref() == Some(SEARCH_PATH);
        let is_temporary = is_path && values.any(|(_, text)| is_temporary_path(text));
        let ties = is_temporary.then_some(SessionChange::Tie(Tie::Temporary));
        let local = [SessionChange::SetLocal(name)].into_iter();
        return local.chain(ties).collect();
    }
    let names_transaction = |(token, _)| matches!(token, Token::Word(word) if is_one_of(word, &["transaction", "constraints"]));
    if rest.peek().is_some_and(names_transaction) {
        return Vec::new();
    }
    if rest.takes("session") {
        if rest.takes("characteristics") {
            let setting = |name| SessionChange::setting(name, None);
            return CHARACTERISTICS.map(setting).to_vec();
        }
        if rest.takes("authorization") {
            return vec![valued(b"session_authorization".to_vec(), rest)];
        }
    }
    vec![named(rest).unwrap_or(SessionChange::ComputedName)]
}

/// What is set by a word of its own, or by a name and `=` or TO.
fn named(mut rest: Rest<'_>) -> Option<SessionChange<'_>> {
    let of_their_own: [(&str, &[u8]); 5] = [
        ("names", b"client_encoding"),
        ("role", b"role"),
        ("schema", b"search_path"),
        ("seed", b"seed"),
        ("xml", b"xmloption"),
    ];
    let first = rest.name()?;
    if first == b"time" && rest.takes("zone") {
        return Some(valued(b"timezone".to_vec(), rest));
    }
    let is_assigned = rest.takes("to");
    if is_assigned || rest.peek().is_some_and(|(_, text)| text == b"=") {
        if !is_assigned {
            rest.next();
        }
        rest.peek()?;
        return Some(valued(first, rest));
    }
    let known = of_their_own.iter().find(|(word, _)| is(&first, word));
    known.map(|(_, name)| valued(name.to_vec(), rest))
}

/// A setting with what stands behind its name.
fn valued<'a>(name: Vec<u8>, rest: Rest<'a>) -> SessionChange<'a> {
    let value: Vec<Written<'a>> = rest.take(2).collect();
    let is_zone = name == b"timezone";
    let is_default = match value[..] {
        [] => true,
        [one] => is_word(one, "default") || (is_zone && is_word(one, "local")),
        _ => false,
    };
    match (is_default, &value[..]) {
        (true, _) => SessionChange::Reset(name.into()),
        (false, [one]) => {
            let value = constant(&name, *one);
            SessionChange::setting(name, value)
        }
        (false, _) => SessionChange::setting(name, None),
    }
}

/// A word, a text or a number, as the server keeps it where SET gives it to this setting.
fn constant<'a>(name: &[u8], (token, text): Written<'a>) -> Option<Cow<'a, [u8]>> {
    let kept = match (token, text) {
        // How other letters are folded depends on the encoding.
        (Token::Word(word), _) => word
            .is_ascii()
            .then(|| Cow::from(word.to_ascii_lowercase())),
        // Of others, as 007, the server keeps the number.
        (Token::Other, [b'1'..=b'9', more @ ..]) => {
            let is_small = more.len() < 9 && more.iter().all(u8::is_ascii_digit);
            is_small.then_some(Cow::from(text))
        }
        (Token::Other, b"0") => Some(Cow::from(text)),
        _ => text_constant(text).map(Cow::from),
    };
    kept.filter(|kept| !LISTS.contains(&name) || is_plain_name(kept))
}

/// Whether it names something in SQL without quotes; keywords are not looked at.
fn is_plain_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_lowercase() || *byte == b'_';
    name.first().is_some_and(is_letter)
        && name
            .iter()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn text_constant(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"'")?.strip_suffix(b"'")?;
    (!inside.contains(&b'\'')).then_some(inside)
}

/// What a RESET leaves behind; `tokens` are those behind that word.
pub fn of_reset<'a>(tokens: &Tokens<'a>) -> Option<SessionChange<'a>> {
    let mut rest = Rest(tokens.clone());
    let first = rest.name()?;
    Some(match &first[..] {
        b"all" => SessionChange::ResetAll,
        b"time" => SessionChange::Reset(b"timezone"[..].into()),
        b"session" => SessionChange::Reset(b"session_authorization"[..].into()),
        b"transaction" => return None,
        _ => SessionChange::Reset(first.into()),
    })
}

/// What a call of `set_config` leaves behind; `tokens` are those behind its name.
pub fn of_call<'a>(tokens: &Tokens<'a>) -> Option<SessionChange<'a>> {
    let mut rest = Rest(tokens.clone());
    if rest.next()?.1 != b"(" {
        return None;
    }
    Some(call(&mut rest).unwrap_or(SessionChange::ComputedName))
}

fn call<'a>(rest: &mut Rest<'a>) -> Option<SessionChange<'a>> {
    let mut arguments = Vec::new();
    while arguments.len() < 3 {
        let (argument, is_last) = rest.argument()?;
        arguments.push(argument);
        if is_last {
            break;
        }
    }
    let [name, value, is_local] = &arguments[..] else {
        return None;
    };
    // A cast may stand behind it.
    let (first, is_cast) = without_cast(name)?;
    let name = text_constant(first.1).filter(|_| is_cast);
    let name = name.map(<[u8]>::to_ascii_lowercase);
    if is_one_of_constants(is_local, &["true", "t", "on", "yes", "1"]) {
        let is_path = name.as_deref() == Some(SEARCH_PATH);
        if is_path && value.iter().any(|(_, text)| is_temporary_path(text)) {
            // A session that is tied is apart from others, as one with a local setting is.
            return Some(SessionChange::Tie(Tie::Temporary));
        }
        return Some(SessionChange::SetLocal(name.map(Cow::from)));
    }
    let may_be_local = !is_one_of_constants(is_local, &["false", "f", "off", "no", "0"]);
    let is_null =
        without_cast(value).is_some_and(|(first, is_cast)| is_cast && is_word(first, "null"));
    let value = match value[..] {
        [one] => text_constant(one.1).map(Cow::from),
        _ => None,
    };
    match (name, first.1) {
        (Some(name), _) if is_null && !may_be_local => Some(SessionChange::Reset(name.into())),
        (Some(name), _) => Some(SessionChange::Parameter {
            name: name.into(),
            value,
            may_be_local,
        }),
        (None, [b'$', digits @ ..]) if is_cast => Some(SessionChange::BoundName {
            number: str::from_utf8(digits).ok()?.parse().ok()?,
            may_be_local,
        }),
        (None, _) => None,
    }
}

/// The first token, and whether there is nothing behind it but perhaps a cast.
fn without_cast<'a>(argument: &[Written<'a>]) -> Option<(Written<'a>, bool)> {
    let (first, behind) = argument.split_first()?;
    Some((*first, matches!(behind, [] | [(_, b":"), (_, b":"), _])))
}

fn name_of(change: SessionChange<'_>) -> Option<Cow<'_, [u8]>> {
    match change {
        SessionChange::Parameter { name, .. } | SessionChange::Reset(name) => Some(name),
        _ => None,
    }
}

/// Whether it is one of these constants, as a word (the first) or as a text.
fn is_one_of_constants(argument: &[Written<'_>], constants: &[&str]) -> bool {
    match argument {
        [(Token::Word(word), _)] => is(word, constants[0]),
        [(_, text)] => is_one_of(text_constant(text).unwrap_or_default(), constants),
        _ => false,
    }
}

impl<'a> SessionChange<'a> {
    fn setting(name: impl Into<Cow<'a, [u8]>>, value: Option<Cow<'a, [u8]>>) -> Self {
        let name = name.into();
        Self::Parameter {
            name,
            value,
            may_be_local: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session_changes;
    use super::*;

    /// `name`, `name=value` where that is a constant, `-name` by default, `$1` bound, `*` any,
    /// `l` local, `?` behind what may be local, `R` all by default.
    fn said(sql: &str) -> String {
        let word = |session_changes: &SessionChange<'_>| match session_changes {
            SessionChange::Parameter {
                name,
                value,
                may_be_local,
            } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let value = value.as_ref().map(|value| format!("={}", text(value)));
                let local = if *may_be_local { "?" } else { "" };
                format!("{}{}{local}", text(name), value.unwrap_or_default())
            }
            SessionChange::Reset(name) => format!("-{}", String::from_utf8_lossy(name)),
            SessionChange::BoundName {
                number,
                may_be_local,
            } => format!("${number}{}", if *may_be_local { "?" } else { "" }),
            SessionChange::ComputedName => "*".into(),
            SessionChange::SetLocal(_) => "l".into(),
            SessionChange::ResetAll => "R".into(),
            other => format!("{other:?}"),
        };
        let all: Vec<String> = session_changes(sql.as_bytes()).iter().map(word).collect();
        all.join(" ")
    }

    #[test]
    fn a_setting_of_the_transaction_is_named_where_it_can_be() {
        for (sql, expected) in [
            ("SET LOCAL TimeZone = 'UTC'", Some("timezone")),
            ("SET LOCAL TIME ZONE 3", Some("timezone")),
            ("SET LOCAL ROLE bob", Some("role")),
            ("SET LOCAL work_mem TO DEFAULT", Some("work_mem")),
            (
                "SELECT set_config('Work_mem', '1MB', true)",
                Some("work_mem"),
            ),
            ("SELECT set_config('a.b'::text, '1', 't')", Some("a.b")),
            ("SELECT set_config($1, '1MB', true)", None),
        ] {
            let changes = session_changes(sql.as_bytes());
            let [SessionChange::SetLocal(name)] = &changes[..] else {
                panic!("{sql}: {changes:?}");
            };
            let name = name.as_ref().map(|name| String::from_utf8_lossy(name));
            assert_eq!(name.as_deref(), expected, "{sql}");
        }
    }

    #[test]
    fn a_set_names_its_setting_and_its_value() {
        for (sql, expected) in [
            ("SET TimeZone TO 'UTC'", "timezone=UTC"),
            ("SET SESSION work_mem = 1", "work_mem=1"),
            ("SET work_mem='1MB'", "work_mem=1MB"),
            ("SET TIME ZONE 'UTC'", "timezone=UTC"),
            ("SET TIME ZONE LOCAL", "-timezone"),
            ("SET SESSION TIME ZONE -3", "timezone"),
            ("SET NAMES 'utf8'", "client_encoding=utf8"),
            ("SET NAMES", "-client_encoding"),
            ("SET SESSION AUTHORIZATION ann", "session_authorization=ann"),
            (
                "SET SESSION AUTHORIZATION DEFAULT",
                "-session_authorization",
            ),
            ("SET ROLE auditor", "role=auditor"),
            ("SET ROLE \"it's\"", "role"),
            ("SET SCHEMA 'shop'", "search_path=shop"),
            ("SET XML OPTION DOCUMENT", "xmloption"),
            ("SET App.User = '7'", "app.user=7"),
            ("SET \"app.User\" TO '7'", "app.user=7"),
            ("SET app.user = 'it''s'", "app.user"),
            ("SET search_path = a, b", "search_path"),
            ("SET search_path = shop", "search_path=shop"),
            ("SET search_path = 'shop 2'", "search_path"),
            ("SET search_path = ''", "search_path"),
            ("SET app.user = Ann", "app.user=ann"),
            ("SET app.user = caf\u{e9}", "app.user"),
            ("SET app.user = 007", "app.user"),
            ("SET app.user = 0x1F", "app.user"),
            ("SET app.user = 1.50", "app.user"),
            ("SET app.user = 70", "app.user=70"),
            ("SET x TO DEFAULT", "-x"),
            ("SET x = 'DEFAULT'", "x=DEFAULT"),
            ("SET names TO 'x'", "names=x"),
            ("SET x", "*"),
            ("SET", "*"),
            ("SET LOCAL x = 1", "l"),
            ("SET TRANSACTION READ ONLY", ""),
            ("RESET ALL", "R"),
            ("RESET app.user", "-app.user"),
            ("RESET TIME ZONE", "-timezone"),
            ("RESET SESSION AUTHORIZATION", "-session_authorization"),
            (
                "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
                "default_transaction_isolation default_transaction_read_only default_transaction_deferrable",
            ),
        ] {
            assert_eq!(said(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_call_names_its_setting_where_it_can_be_read() {
        for (sql, expected) in [
            ("SELECT set_config('App.user', '7', false)", "app.user=7"),
            ("SELECT pg_catalog.set_config('a', b(1, 2), false)", "a"),
            ("SELECT set_config('a'::text, $1, $2)", "a?"),
            ("SELECT set_config('a', '7', 1 = 1)", "a=7?"),
            ("SELECT set_config('a', '7', 'OFF')", "a=7"),
            ("SELECT set_config('a', NULL, false)", "-a"),
            ("SELECT set_config('a', null::text, false)", "-a"),
            ("SELECT set_config('a', NULL, $1)", "a?"),
            ("SELECT set_config($1, $2, $3)", "$1?"),
            ("SELECT set_config($2, $1, false)", "$2"),
            ("SELECT set_config($1::text, 'x', false)", "$1"),
            ("SELECT set_config($1, 'x', true)", "l"),
            ("SELECT set_config('a', 'x', 't')", "l"),
            ("SELECT set_config(name, 'x', true) FROM t", "l"),
            ("SELECT set_config(name, 'x', false) FROM t", "*"),
            ("SELECT set_config('a' || 'b', 'x', false)", "*"),
            ("SELECT set_config(E'a\\'', 'x', false)", "*"),
            ("SELECT set_config('a', 'x'", "*"),
            (
                "SELECT set_config('a', 'x', false), set_config('b', 'y', false)",
                "a=x b=y",
            ),
            ("SELECT set_config FROM t", ""),
        ] {
            assert_eq!(said(sql), expected, "{sql}");
        }
    }
}
