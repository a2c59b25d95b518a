//! What bodies say in a few fields.

use super::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn paths(texts: &[&str]) -> Vec<FieldPath> {
    let parsed = texts.iter().map(|text| text.parse());
    parsed.collect::<Result<_, _>>().unwrap()
}

fn one(body: &str, path: &str) -> Option<String> {
    find(body.as_bytes(), true, &paths(&[path])).remove(0)
}

#[test]
fn a_field_says_a_text_a_number_or_a_truth() {
    for (body, path, wanted) in [
        (r#"{"model":"gpt-4","n":1}"#, "model", Some("gpt-4")),
        (r#"{"stream":true}"#, "stream", Some("true")),
        (r#"{"max_tokens":512}"#, "max_tokens", Some("512")),
        (r#"{"t":-3}"#, "t", Some("-3")),
        (r#"{"t":0.5}"#, "t", Some("0.5")),
        (r#"{"t":1.0}"#, "t", Some("1")),
        (r#"{"a":{"b":{"c":"x"}},"c":"y"}"#, "a.b.c", Some("x")),
        (r#"{"mod\u0065l":"\u0061\n"}"#, "model", Some("a\n")),
        ("\u{feff} {\"m\":\"x\"}\n", "m", Some("x")),
        (r#"{"messages":[{"model":"x"}]}"#, "model", None),
        (r#"{"model":null}"#, "model", None),
        (r#"{"model":["x"]}"#, "model", None),
        (r#"{"a":{"b":1}}"#, "a", None),
        (r#"{"a":1}"#, "a.b", None),
        (r#"[{"model":"x"}]"#, "model", None),
        ("model=x", "model", None),
        ("", "model", None),
    ] {
        assert_eq!(one(body, path).as_deref(), wanted, "{body} {path}");
    }
}

#[test]
fn what_is_said_twice_or_is_no_json_says_nothing() {
    for body in [
        r#"{"m":"x","m":"y"}"#,
        r#"{"m":"x","m":"x"}"#,
        r#"{"m":"x","m":null}"#,
        r#"{"m":"x","m":{}}"#,
        r#"{"m":"x","m":1,"m":2}"#,
        r#"{"m":"x"} {}"#,
        r#"{"m":"x",}"#,
        r#"{"m":"x""#,
        r#"{"m":"x"}x"#,
        "{\"m\":\"\u{1}\"}",
    ] {
        assert_eq!(one(body, "m"), None, "{body}");
    }
    let no_text = b"{\"m\":\"x\",\"\xd0\":5}";
    assert_eq!(find(no_text, true, &paths(&["m"])), [None]);
    assert_eq!(
        find(&no_text[..10], false, &paths(&["m"])),
        [Some("x".into())]
    );
    assert_eq!(find(&no_text[..12], false, &paths(&["m"])), [None]);
    assert_eq!(one(r#"{"a":{"b":1},"a":{"b":2}}"#, "a.b"), None);
    assert_eq!(one(r#"{"a":{"b":1},"a":3}"#, "a.b"), None);
}

#[test]
fn a_long_value_counts_as_not_there() {
    let body = |bytes: usize| format!(r#"{{"m":"{}","n":1}}"#, "x".repeat(bytes));
    assert!(one(&body(VALUE_BYTES_MAX), "m").is_some());
    assert_eq!(one(&body(VALUE_BYTES_MAX + 1), "m"), None);
    assert_eq!(one(&body(1_000_000), "n").as_deref(), Some("1"));
    let deep = format!(
        r#"{{"x":{}{},"n":1}}"#,
        "[".repeat(90_000),
        "]".repeat(90_000)
    );
    assert_eq!(one(&deep, "n").as_deref(), Some("1"));
}

#[test]
fn of_a_part_counts_what_is_complete() {
    let body = br#"{"model":"gpt","max_tokens":512,"stream":true,"x":"y"}"#;
    let wanted = paths(&["model", "max_tokens", "stream", "x"]);
    let at = |end: usize| {
        let found = find(&body[..end], false, &wanted);
        let said = found.into_iter().map(|value| value.unwrap_or("-".into()));
        said.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(at(13), "- - - -");
    assert_eq!(at(15), "gpt - - -");
    // 5, 51 and 512 would all be numbers.
    assert_eq!(at(29), "gpt - - -");
    assert_eq!(at(32), "gpt 512 - -");
    assert_eq!(at(body.len()), "gpt 512 true y");
}

#[test]
fn a_path_has_names() {
    for text in ["", ".", "a.", ".a", "a..b", "a.b.c.d.e.f.g.h.i"] {
        assert!(text.parse::<FieldPath>().is_err(), "{text}");
    }
    assert_eq!(paths(&["a.b"])[0].to_string(), "a.b");
}

fn object() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<bool>().prop_map(Json::from),
        "[a-z\"\\\\é]{0,5}".prop_map(Json::from),
        Just(Json::Null),
    ];
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::hash_map("[ab]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    });
    prop::collection::hash_map("[ab]", tree, 0..3).prop_map(|map| json!(map))
}

fn text_at(root: &Json, path: &str) -> Option<String> {
    match root.pointer(&format!("/{}", path.replace('.', "/")))? {
        Json::String(text) => Some(text.clone()),
        value @ (Json::Bool(_) | Json::Number(_)) => Some(value.to_string()),
        _ => None,
    }
}

proptest! {
    #[test]
    fn it_says_what_the_whole_says(root in object(), part in 0.0..1.0_f64) {
        let body = root.to_string();
        let texts = ["a", "b", "a.a", "a.b", "b.a", "a.b.a"];
        let in_objects = |path: &str| text_at(&root, path).filter(|_| !body.contains('['));
        let whole = find(body.as_bytes(), true, &paths(&texts));
        let cut = find(&body.as_bytes()[..(part * body.len() as f64) as usize], false, &paths(&texts));
        for ((path, whole), cut) in texts.iter().zip(whole).zip(cut) {
            if !body.contains('[') {
                prop_assert_eq!(&whole, &in_objects(path), "{}", path);
            }
            prop_assert!(cut.is_none() || cut == whole, "{} of {}: {:?}", path, body, cut);
        }
    }

    #[test]
    fn nothing_panics(body in prop::collection::vec(any::<u8>(), 0..64), is_whole: bool) {
        find(&body, is_whole, &paths(&["a", "a.b"]));
    }
}
