//! What a client sends, in bytes.

fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = (body.len() as i32 + 4).to_be_bytes();
    [&[tag], &length[..], &body].concat()
}

/// Query.
pub fn query(sql: &str) -> Vec<u8> {
    tagged(b'Q', &[sql.as_bytes(), b"\0"])
}

/// Parse, without types.
pub fn parse(name: &str, sql: &str) -> Vec<u8> {
    let parts = [name.as_bytes(), b"\0", sql.as_bytes(), b"\0", &[0, 0]];
    tagged(b'P', &parts)
}

/// Bind and Execute, everything as text.
pub fn execute(name: &str, parameters: &[String]) -> Vec<u8> {
    let count = (parameters.len() as i16).to_be_bytes();
    let mut values = Vec::new();
    for parameter in parameters {
        values.extend((parameter.len() as i32).to_be_bytes());
        values.extend(parameter.as_bytes());
    }
    let bind = [
        b"\0",
        name.as_bytes(),
        b"\0",
        &[0, 0],
        &count,
        &values,
        &[0, 0],
    ];
    [tagged(b'B', &bind), tagged(b'E', &[&[0; 5]])].concat()
}

/// Close of a statement.
pub fn close(name: &str) -> Vec<u8> {
    tagged(b'C', &[b"S", name.as_bytes(), b"\0"])
}

/// Sync.
pub fn sync() -> Vec<u8> {
    tagged(b'S', &[])
}

/// CopyData and CopyDone.
pub fn copied(rows: &str) -> Vec<u8> {
    [tagged(b'd', &[rows.as_bytes()]), tagged(b'c', &[])].concat()
}

/// Terminate.
pub fn terminate() -> Vec<u8> {
    tagged(b'X', &[])
}
