//! What people write into a class who have not seen one: the right form, where serde can only say
//! that something does not fit.

use crate::Misconfigured;

/// The mistake in better words, where its key says what was meant.
pub fn explain(mut mistake: Misconfigured) -> Misconfigured {
    if let Some(words) = words(&mistake) {
        mistake.message = words;
    }
    mistake
}

fn words(mistake: &Misconfigured) -> Option<String> {
    let key = mistake.key.as_str();
    if !mistake.message.contains("does not fit") {
        return None;
    }
    if key == "class.target" {
        return Some(
            "targets have names; write target = { mean = \"30ms\" }, or { mean = \"30ms\", p95 = \"120ms\" }"
                .into(),
        );
    }
    let last = key.rsplit('.').next().unwrap_or_default();
    let target = key.strip_prefix("class.target.");
    // What `p99.9 = "30ms"` becomes.
    if target.is_some() && mistake.message.starts_with("a table ") {
        return Some("a percentile with a dot stands in quotes; write \"p99.9\" = \"30ms\"".into());
    }
    let is_time = target.is_some() || ["class.wait_target", "class.longest"].contains(&key);
    is_time.then(|| {
        format!(
            "a time has a unit and stands in quotes; write {last} = \"30ms\" (us, ms, s or min)"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_is_answered_with_the_right_form() {
        let explained =
            |key: &str, message: &str| explain(Misconfigured::without_place(key, message)).message;
        for (key, message, expected) in [
            (
                "class.target",
                "the text \"30ms\" does not fit; write a table, as [name] with its keys below it",
                "targets have names; ",
            ),
            (
                "class.target.p95",
                "the value `30` does not fit; write a text",
                "a time has a unit and stands in quotes; write p95 = ",
            ),
            (
                "class.longest",
                "the value `2` does not fit; write a text",
                "a time has a unit and stands in quotes; write longest = ",
            ),
            (
                "class.target.p99",
                "a table does not fit; write a text in quotes",
                "a percentile with a dot stands in quotes; ",
            ),
            (
                "class.name",
                "the value `2` does not fit; write a text",
                "the value `2` does not fit",
            ),
            ("class.target.p95", "missing", "missing"),
        ] {
            let said = explained(key, message);
            assert!(said.starts_with(expected), "{key}: {said}");
        }
    }
}
