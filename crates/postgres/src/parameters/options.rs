//! The parameter `options` of a startup packet: a command line of the server (PostgreSQL's
//! `pg_split_opts` and `ParseLongOption`).

/// Names and values.
type Settings = Vec<(Vec<u8>, Vec<u8>)>;

/// The settings of a command line: `-c name=value` and `--name=value`.
pub fn settings(line: &[u8]) -> Result<Settings, String> {
    let mut words = words(line).into_iter();
    let mut settings = Vec::new();
    while let Some(word) = words.next() {
        let setting = match &word[..] {
            // The end of all options, behind which nothing may stand.
            b"--" if words.len() == 0 => break,
            b"-c" => words.next().unwrap_or_default(),
            other => match other.strip_prefix(b"--").or(other.strip_prefix(b"-c")) {
                Some(setting) => setting.to_vec(),
                None => Vec::new(),
            },
        };
        let at = setting.iter().position(|byte| *byte == b'=');
        let at = at.ok_or_else(|| {
            let line = String::from_utf8_lossy(line);
            format!("options {line:?}: only -c NAME=VALUE and --NAME=VALUE are known here")
        })?;
        let mut name = setting[..at].to_vec();
        name.iter_mut()
            .filter(|byte| **byte == b'-')
            .for_each(|byte| *byte = b'_');
        settings.push((name, setting[at + 1..].to_vec()));
    }
    Ok(settings)
}

/// What stands between spaces; a backslash takes the next byte.
fn words(line: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = line.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b' ' | b'\t'..=b'\r' => words.extend(word.take()),
            other => word.get_or_insert_default().push(*other),
        }
    }
    words.extend(word);
    words
}
