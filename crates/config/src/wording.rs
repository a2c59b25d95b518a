//! What serde says of a value, in words for an operator who writes a configuration and no Rust.

use super::nearest::nearest;

/// serde's message as a key to add to the path, if it names one, and as what is wrong and what
/// would be right; `all_keys` gives the keys of all tables, by their paths.
pub(super) fn reword(message: &str, all_keys: fn() -> Vec<String>) -> (Option<String>, String) {
    if let Some((name, valid)) = name_and_choice(message, "unknown field `") {
        return (None, unknown_key(name, &valid, all_keys));
    }
    if let Some((name, valid)) = name_and_choice(message, "unknown variant `") {
        return (None, unknown_value(name, &valid));
    }
    if let Some((name, _)) = name_and_choice(message, "missing field `") {
        return (Some(name.into()), "missing; it has no default".into());
    }
    if message == "wanted string or table" {
        return (None, "does not fit; write a text in quotes".into());
    }
    let misfit = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|prefix| message.strip_prefix(prefix)?.rsplit_once(", expected "));
    let text = match misfit {
        Some(("map", "a sequence")) => {
            "may come several times; write its name in double brackets, as [[name]], above its own tables".into()
        }
        Some((found, expected)) => {
            format!("{} does not fit; write {}", noun(found), wanted(expected))
        }
        None => message.trim_end().into(),
    };
    (None, text)
}

/// The name in backticks after `prefix`, and those after it.
fn name_and_choice<'a>(message: &'a str, prefix: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let rest = message.strip_prefix(prefix)?;
    // A name may hold backticks itself; serde's own text after it is known.
    let (name, choice) = [", expected ", ", there are no "]
        .iter()
        .find_map(|middle| rest.rsplit_once(&format!("`{middle}")))
        .or_else(|| Some((rest.strip_suffix('`')?, "")))?;
    Some((name, choice.split('`').skip(1).step_by(2).collect()))
}

fn unknown_key(name: &str, valid: &[&str], all_keys: fn() -> Vec<String>) -> String {
    let all = list(valid);
    let meant = nearest(name, valid.iter().copied());
    // One or many is a slip here, whatever there is elsewhere.
    let is_number = |meant: &str| {
        name.strip_suffix('s') == Some(meant) || meant.strip_suffix('s') == Some(name)
    };
    if let Some(meant) = meant.filter(|meant| is_number(meant)) {
        return format!("unknown key; did you mean `{meant}`? The keys here are {all}");
    }
    match (elsewhere(name, all_keys()), meant) {
        (Some(key), _) => format!("unknown key here; there is `{key}`. The keys here are {all}"),
        (None, Some(meant)) => {
            format!("unknown key; did you mean `{meant}`? The keys here are {all}")
        }
        (None, None) => format!("unknown key; the keys here are {all}"),
    }
}

/// The only key of this name that there is in another table; a name that several have, or one deep
/// inside, was hardly meant.
fn elsewhere(name: &str, all_keys: Vec<String>) -> Option<String> {
    let suffix = format!(".{name}");
    let is_named = |key: &String| *key == name || key.ends_with(&suffix);
    let mut named = all_keys.into_iter().filter(is_named);
    let only = named.next().filter(|_| named.next().is_none())?;
    (only.matches('.').count() <= 1).then_some(only)
}

fn unknown_value(name: &str, valid: &[&str]) -> String {
    match nearest(name, valid.iter().copied()) {
        Some(meant) => format!(
            "unknown value `{name}`; did you mean \"{meant}\"? Choose one of {}",
            list(valid)
        ),
        None => format!("unknown value `{name}`; choose one of {}", list(valid)),
    }
}

fn list(names: &[&str]) -> String {
    names.join(", ")
}

/// What was found, with an article.
fn noun(found: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => format!("the text {text}"),
        Some(("integer" | "boolean", value)) => {
            // Of those that have more than 64 bits.
            let value = value
                .trim_end_matches(" as i128")
                .trim_end_matches(" as u128");
            format!("the value {value}")
        }
        Some(("floating", value)) => {
            format!("the value {}", value.trim_start_matches("point "))
        }
        _ if found == "sequence" => "a list".into(),
        _ if found == "map" => "a table".into(),
        _ => found.into(),
    }
}

/// What is expected, as an example of how to write it.
fn wanted(expected: &str) -> String {
    let (bare, from) = match expected.strip_prefix("a nonzero ") {
        Some(bare) => (bare, 1),
        None => (expected, 0),
    };
    match bare {
        "u8" => format!("a whole number from {from} to {}", u8::MAX),
        "u16" => format!("a whole number from {from} to {}", u16::MAX),
        "u32" => format!("a whole number from {from} to {}", u32::MAX),
        "u64" | "usize" => format!("a whole number, {from} or more"),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "f32" | "f64" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" | "a borrowed string" => "a text in quotes".into(),
        "path string" | "a borrowed path" => "a path in quotes".into(),
        "a sequence" => "a list in brackets, such as [\"...\"]".into(),
        "a map" => "a table, as [name] with its keys below it".into(),
        "any value" => "a smaller number".into(),
        _ if bare.starts_with("struct ") => "a table, as [name] with its keys below it".into(),
        _ => expected.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = [
        "uplink.rate",
        "user",
        "site.auth.file",
        "site.name",
        "class.name",
    ];

    fn text(message: &str) -> String {
        reword(message, || KEYS.map(String::from).into()).1
    }

    #[test]
    fn unknown_keys_name_what_was_meant() {
        assert_eq!(
            text("unknown field `lisen`, expected one of `listen`, `root`, `user`"),
            "unknown key; did you mean `listen`? The keys here are listen, root, user"
        );
        assert_eq!(
            text("unknown field `rate`, expected `listen` or `root`"),
            "unknown key here; there is `uplink.rate`. The keys here are listen, root"
        );
        assert_eq!(
            text("unknown field `user`, expected `users` or `root`"),
            "unknown key; did you mean `users`? The keys here are users, root"
        );
        for name in ["file", "name"] {
            assert_eq!(
                text(&format!(
                    "unknown field `{name}`, expected `access` or `format`"
                )),
                "unknown key; the keys here are access, format"
            );
        }
        assert_eq!(
            text("unknown field `wat`, expected `listen`"),
            "unknown key; the keys here are listen"
        );
        assert_eq!(
            text("unknown field `a`, expected b`, expected `c` or `d`"),
            "unknown key; the keys here are c, d"
        );
    }

    #[test]
    fn unknown_values_name_the_choice() {
        assert_eq!(
            text("unknown variant `both-of-them`, expected one of `auto`, `both`, `none`"),
            "unknown value `both-of-them`; choose one of auto, both, none"
        );
        assert_eq!(
            text("unknown variant `atuo`, expected `auto` or `none`"),
            "unknown value `atuo`; did you mean \"auto\"? Choose one of auto, none"
        );
    }

    #[test]
    fn what_is_missing_is_part_of_the_key() {
        assert_eq!(
            reword("missing field `name`", Vec::new),
            (Some("name".into()), "missing; it has no default".into())
        );
    }

    #[test]
    fn what_does_not_fit_is_told_what_would() {
        assert_eq!(
            text("invalid type: string \"16k\", expected u64"),
            "the text \"16k\" does not fit; write a whole number, 0 or more"
        );
        assert_eq!(
            text("invalid value: integer `-1`, expected u16"),
            "the value `-1` does not fit; write a whole number from 0 to 65535"
        );
        assert_eq!(
            text("invalid type: string \", expected u8\", expected a sequence"),
            "the text \", expected u8\" does not fit; write a list in brackets, such as [\"...\"]"
        );
        assert_eq!(
            text("invalid type: floating point `1.5`, expected a nonzero u32"),
            "the value `1.5` does not fit; write a whole number from 1 to 4294967295"
        );
        assert_eq!(
            text("invalid type: map, expected a boolean"),
            "a table does not fit; write true or false"
        );
        assert_eq!(
            text("invalid type: integer `1`, expected struct Limits"),
            "the value `1` does not fit; write a table, as [name] with its keys below it"
        );
        assert_eq!(
            text("invalid type: integer `99999999999999999999` as i128, expected any value"),
            "the value `99999999999999999999` does not fit; write a smaller number"
        );
    }

    #[test]
    fn tables_that_may_come_several_times_have_double_brackets() {
        let said = text("invalid type: map, expected a sequence");
        assert!(said.contains("double brackets"));
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        assert_eq!(text("`x` is not a policy"), "`x` is not a policy");
    }
}
