//! The two tables of a trace, line by line. Pure: any bytes give rows or an error, never a panic.

use super::{Object, TraceError};
use std::io::{BufRead, Read};

/// First line of the requests table.
pub const REQUESTS_HEADER: &str = "t,bytes,client,object,status";

/// First line of the objects table.
pub const OBJECTS_HEADER: &str = "object,requests,max_bytes,ext";

/// Longest line in bytes; a longer one is not a trace's.
const MAX_LINE_BYTES: u64 = 1024;

/// Largest object in bytes (1 TiB).
const MAX_OBJECT_BYTES: u64 = 1 << 40;

/// Latest time in seconds since the first request (about 30 years).
const MAX_TIME_S: f64 = 1e9;

/// One line of the requests table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRow {
    /// Seconds since the first request, as logged.
    pub time_s: f64,
    /// Response bytes as logged.
    pub bytes: u64,
    /// Number of the client.
    pub client: u32,
    /// Number of the object.
    pub object: u32,
}

/// What is wrong with a line, and what would be right.
type Broken = (String, &'static str);

/// Reads a requests table; `file_name` is only used in errors.
pub fn parse_requests(
    reader: impl BufRead,
    file_name: &str,
) -> Result<Vec<RequestRow>, TraceError> {
    let mut last_time_s = 0.0;
    parse_table(reader, file_name, REQUESTS_HEADER, |_, line| {
        let row = request_row(line)?;
        if row.time_s < last_time_s {
            let problem = format!("t goes back from {last_time_s} to {}", row.time_s);
            return Err((problem, "the lines must be sorted by t"));
        }
        last_time_s = row.time_s;
        Ok(row)
    })
}

/// Reads an objects table; `file_name` is only used in errors.
pub fn parse_objects(reader: impl BufRead, file_name: &str) -> Result<Vec<Object>, TraceError> {
    parse_table(reader, file_name, OBJECTS_HEADER, |index, line| {
        let object = object_row(line)?;
        if object.id as usize != index {
            let problem = format!("object {} where {index} is expected", object.id);
            return Err((
                problem,
                "objects are numbered 0, 1, 2 and so on, one a line",
            ));
        }
        Ok(object)
    })
}

/// Checks a request against the objects table.
pub(super) fn check_object(row: &RequestRow, objects: &[Object]) -> Result<(), String> {
    match objects.get(row.object as usize) {
        None => Err(format!(
            "object {} is not in the objects table, which has {}",
            row.object,
            objects.len()
        )),
        Some(object) if object.size_bytes < row.bytes => Err(format!(
            "{} bytes, but object {} has max_bytes {} in the objects table",
            row.bytes, row.object, object.size_bytes
        )),
        Some(_) => Ok(()),
    }
}

fn request_row(line: &str) -> Result<RequestRow, Broken> {
    let [time, bytes, client, object, status] = fields(line, REQUESTS_HEADER)?;
    let row = RequestRow {
        time_s: time_s(time)?,
        bytes: number(bytes, "bytes", MAX_OBJECT_BYTES)?,
        client: number(client, "client", u64::from(u32::MAX))? as u32,
        object: number(object, "object", u64::from(u32::MAX))? as u32,
    };
    number(status, "status", 999)?;
    Ok(row)
}

fn object_row(line: &str) -> Result<Object, Broken> {
    let [id, requests, max_bytes, ext] = fields(line, OBJECTS_HEADER)?;
    number(requests, "requests", u64::MAX)?;
    let is_plain = |ext: &str| {
        ext.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !(1..=16).contains(&ext.len()) || !is_plain(ext) {
        let problem = format!("ext is `{}`", shown(ext));
        return Err((
            problem,
            "ext is 1 to 16 lower-case letters or digits, like html",
        ));
    }
    Ok(Object {
        id: number(id, "object", u64::from(u32::MAX))? as u32,
        size_bytes: number(max_bytes, "max_bytes", MAX_OBJECT_BYTES)?,
        ext: ext.into(),
    })
}

fn fields<'a, const N: usize>(line: &'a str, header: &'static str) -> Result<[&'a str; N], Broken> {
    let fields: Vec<&str> = line.split(',').collect();
    let count = fields.len();
    fields.try_into().map_err(|_| {
        (
            format!("{count} fields where {N} are expected"),
            header_hint(header),
        )
    })
}

/// What a line of this table looks like.
fn header_hint(header: &'static str) -> &'static str {
    if header == REQUESTS_HEADER {
        "a line is t,bytes,client,object,status like 12,1497,0,0,200"
    } else {
        "a line is object,requests,max_bytes,ext like 0,169,1497,html"
    }
}

fn time_s(field: &str) -> Result<f64, Broken> {
    let is_decimal = field
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = field
        .parse::<f64>()
        .ok()
        .filter(|value| is_decimal && *value <= MAX_TIME_S);
    value.ok_or_else(|| {
        (
            format!("t is `{}`", shown(field)),
            "t is seconds since the first request, like 12 or 12.5",
        )
    })
}

fn number(field: &str, name: &str, max: u64) -> Result<u64, Broken> {
    let is_whole = field.bytes().all(|byte| byte.is_ascii_digit());
    let value = field
        .parse::<u64>()
        .ok()
        .filter(|value| is_whole && *value <= max);
    value.ok_or_else(|| {
        (
            format!("{name} is `{}`", shown(field)),
            "it must be a whole number in range, like 200",
        )
    })
}

/// The beginning of a field, fit for an error on one line.
fn shown(field: &str) -> String {
    field
        .chars()
        .take(40)
        .flat_map(char::escape_debug)
        .collect()
}

/// Reads a header and then a row a line; `row` gets the row's index and the line without its end.
fn parse_table<T>(
    mut reader: impl BufRead,
    file: &str,
    header: &'static str,
    mut row: impl FnMut(usize, &str) -> Result<T, Broken>,
) -> Result<Vec<T>, TraceError> {
    let broken = |line, (problem, remedy)| TraceError::Line {
        file: file.into(),
        line,
        problem,
        remedy,
    };
    let mut rows = Vec::new();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader)
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line);
        let count = read.map_err(|source| TraceError::Read {
            file: file.into(),
            line: number - 1,
            source,
        })?;
        if count == 0 && number > 1 {
            break;
        }
        let text = line_text(&line).map_err(|what| broken(number, what))?;
        if number == 1 {
            check_header(text, header).map_err(|what| broken(number, what))?;
        } else {
            rows.push(row(number - 2, text).map_err(|what| broken(number, what))?);
        }
    }
    Ok(rows)
}

fn check_header(line: &str, header: &'static str) -> Result<(), Broken> {
    if line == header {
        return Ok(());
    }
    let remedy = if header == REQUESTS_HEADER {
        "the first line must be t,bytes,client,object,status"
    } else {
        "the first line must be object,requests,max_bytes,ext"
    };
    Err((format!("the header is `{}`", shown(line)), remedy))
}

fn line_text(line: &[u8]) -> Result<&str, Broken> {
    if line.len() as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        return Err((
            format!("more than {MAX_LINE_BYTES} bytes"),
            "each line holds a few numbers",
        ));
    }
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    str::from_utf8(line).map_err(|_| ("not text".into(), "a trace is plain ASCII"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests(lines: &str) -> Result<Vec<RequestRow>, String> {
        let text = format!("{REQUESTS_HEADER}\n{lines}");
        parse_requests(text.as_bytes(), "web.csv").map_err(|error| error.to_string())
    }

    fn objects(lines: &str) -> Result<Vec<Object>, String> {
        let text = format!("{OBJECTS_HEADER}\n{lines}");
        parse_objects(text.as_bytes(), "web.objects.csv").map_err(|error| error.to_string())
    }

    #[test]
    fn reads_requests() {
        let row = |time_s, bytes| RequestRow {
            time_s,
            bytes,
            client: 3,
            object: 4,
        };
        let expected = Ok(vec![row(0.0, 10), row(1.25, 0)]);
        assert_eq!(requests("0,10,3,4,200\n1.25,0,3,4,304\n"), expected);
        assert_eq!(requests("0,10,3,4,200\r\n1.25,0,3,4,304"), expected);
        assert_eq!(requests(""), Ok(vec![]));
    }

    #[test]
    fn reads_objects() {
        let object = |id, size_bytes, ext: &str| Object {
            id,
            size_bytes,
            ext: ext.into(),
        };
        assert_eq!(
            objects("0,2,85465,html\n1,1,0,none\n"),
            Ok(vec![object(0, 85465, "html"), object(1, 0, "none")])
        );
    }

    #[test]
    fn a_broken_request_is_named_with_its_line_and_what_would_be_right() {
        for (line, problem) in [
            (
                "",
                "1 fields where 5 are expected; a line is t,bytes,client,object,status like 12,1497,0,0,200",
            ),
            ("1,2,3,4,5,6", "6 fields where 5 are expected"),
            (
                "x,1,0,0,200",
                "t is `x`; t is seconds since the first request",
            ),
            ("nan,1,0,0,200", "t is `nan`"),
            ("-1,1,0,0,200", "t is `-1`"),
            ("1e300,1,0,0,200", "t is `1e300`"),
            ("9999999999,1,0,0,200", "t is `9999999999`"),
            ("7,-,0,0,200", "bytes is `-`; it must be a whole number"),
            ("7,+1,0,0,200", "bytes is `+1`"),
            ("7,99999999999999,0,0,200", "bytes is `99999999999999`"),
            ("7,1,4294967296,0,200", "client is `4294967296`"),
            ("7,1,0,,200", "object is ``"),
            ("7,1,0,0,2000", "status is `2000`"),
            (
                "4,1,0,0,200",
                "t goes back from 5 to 4; the lines must be sorted by t",
            ),
            ("7,1,0,0,\u{1b}[31m", "status is `\\u{1b}[31m`"),
        ] {
            let message = requests(&format!("5,1,0,0,200\n{line}\n6,1,0,0,200\n")).expect_err(line);
            assert!(
                message.starts_with(&format!("web.csv, line 3: {problem}")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_broken_object_is_named_with_its_line() {
        for (line, problem) in [
            (
                "2,1,10,html",
                "object 2 where 1 is expected; objects are numbered 0, 1, 2",
            ),
            (
                "1,1,10,../../etc",
                "ext is `../../etc`; ext is 1 to 16 lower-case letters or digits",
            ),
            ("1,1,10,", "ext is ``"),
            ("1,1,10", "3 fields where 4 are expected"),
            ("1,1,10.5,html", "max_bytes is `10.5`"),
        ] {
            let message = objects(&format!("0,1,10,html\n{line}\n")).expect_err(line);
            assert!(
                message.starts_with(&format!("web.objects.csv, line 3: {problem}")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused_at_its_first_line() {
        let refused = |bytes: &[u8]| {
            parse_requests(bytes, "a")
                .expect_err("no trace")
                .to_string()
        };
        assert_eq!(
            refused(b""),
            "a, line 1: the header is ``; the first line must be t,bytes,client,object,status"
        );
        assert!(refused(b"<html>").starts_with("a, line 1: the header is `<html>`"));
        assert!(refused(b"\xff\xfe").starts_with("a, line 1: not text"));
        assert!(refused(&[b'a'; 5000]).starts_with("a, line 1: more than 1024 bytes"));
    }

    proptest! {
        #[test]
        fn any_bytes_give_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
            let text = [if header { REQUESTS_HEADER.as_bytes() } else { b"" }, b"\n", &bytes].concat();
            let _ = parse_requests(&text[..], "a");
            let text = [if header { OBJECTS_HEADER.as_bytes() } else { b"" }, b"\n", &bytes].concat();
            let _ = parse_objects(&text[..], "a");
        }

        #[test]
        fn lines_of_plausible_fields_give_rows_or_an_error(lines in "([0-9.,+\\-a-z]{0,12}\n){0,6}") {
            let _ = requests(&lines);
            let _ = objects(&lines);
        }
    }
}
