//! The settings that the server reports and that decide what a constant in a text means: PostgreSQL
//! reads it when the text is prepared.

use super::{PARSE_CONTEXT, Parameters, literal};

/// Values of these settings, in the order of their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseContext([Vec<u8>; PARSE_CONTEXT.len()]);

/// Commands that give a session another context and take it back, for the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextSwitch {
    /// Gives it.
    pub there: String,
    /// Takes it back.
    pub back: String,
    /// The settings that they set, in lower case.
    pub names: Vec<Vec<u8>>,
}

fn value<'a>(reported: &'a Parameters, name: &str) -> &'a [u8] {
    reported.get(name.as_bytes()).map_or(b"", Vec::as_slice)
}

impl ParseContext {
    /// That of a server which has reported these settings.
    pub fn of(reported: &Parameters) -> Self {
        Self(PARSE_CONTEXT.map(|name| value(reported, name).to_vec()))
    }

    /// Whether a server which has reported these settings has it.
    pub fn is_of(&self, reported: &Parameters) -> bool {
        let mut all = PARSE_CONTEXT.iter().zip(&self.0);
        all.all(|(name, own)| value(reported, name) == own)
    }

    /// What gives it to a server which has reported these settings; `None` where that has it.
    pub fn switch_from(&self, reported: &Parameters) -> Option<ContextSwitch> {
        let all = PARSE_CONTEXT.iter().zip(&self.0);
        let (mut there, mut back, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for (name, own) in all {
            let now = value(reported, name);
            // What a server does not report it does not have.
            if own == now || own.is_empty() || now.is_empty() {
                continue;
            }
            there.push(call(name, own));
            back.push(call(name, now));
            names.push(name.to_ascii_lowercase().into_bytes());
        }
        (!names.is_empty()).then(|| ContextSwitch {
            there: format!("SELECT {}", there.join(",")),
            back: format!("SELECT {}", back.join(",")),
            names,
        })
    }
}

/// For the transaction.
fn call(name: &str, value: &[u8]) -> String {
    let value = literal(value);
    format!("pg_catalog.set_config('{name}',{value},true)")
}

/// Whether what a text means may depend on such settings: it has a constant in quotes, or what is
/// not ASCII.
pub fn depends_on_context(sql: &[u8]) -> bool {
    let begins_quote = |pair: &[u8]| {
        let [one, other] = pair else { return false };
        *one == b'$' && !other.is_ascii_digit()
    };
    let is_one = |byte: &u8| *byte == b'\'' || !byte.is_ascii();
    sql.iter().any(is_one) || sql.windows(2).any(begins_quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(zone: &str) -> Parameters {
        let all = [("TimeZone", zone), ("DateStyle", "ISO, MDY"), ("x", zone)];
        let all = all.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        all.into_iter().collect()
    }

    #[test]
    fn what_differs_is_switched_there_and_back() {
        let own = ParseContext::of(&reported("UTC"));
        assert!(own.is_of(&reported("UTC")) && !own.is_of(&reported("Asia/Tokyo")));
        assert_eq!(own.switch_from(&reported("UTC")), None);
        let switch = own.switch_from(&reported("Asia/Tokyo")).unwrap();
        let set = |zone: &str| format!("SELECT pg_catalog.set_config('TimeZone',E'{zone}',true)");
        assert_eq!(switch.there, set("UTC"));
        assert_eq!(switch.back, set("Asia/Tokyo"));
        assert_eq!(switch.names, [b"timezone".to_vec()]);
    }

    #[test]
    fn a_text_without_constants_in_quotes_depends_on_nothing() {
        for sql in ["SELECT $1, 5 FROM \"T\"", "", "SELECT 1 AS a$"] {
            assert!(!depends_on_context(sql.as_bytes()), "{sql}");
        }
        for sql in ["SELECT 'a'", "SELECT $$a$$", "SELECT $a$b$a$", "SELECT é"] {
            assert!(depends_on_context(sql.as_bytes()), "{sql}");
        }
    }
}
