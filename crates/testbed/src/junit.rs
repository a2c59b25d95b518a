//! The report of h2spec: JUnit's XML as Go's encoder writes it, one element a line.

/// One case of a specification.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// As h2spec takes it on its command line: `http2/5.1/8`.
    pub case: String,
    /// What it does.
    pub title: String,
    /// What was expected and what came; `None` if it passed.
    pub failure: Option<String>,
}

/// Reads the outcomes in order; a case that was skipped failed.
pub fn read(xml: &str) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut number = 0;
    for element in xml.split("<testcase ").skip(1) {
        let (start, rest) = element.split_once('>').unwrap_or((element, ""));
        let group = attribute(start, "package");
        let previous = outcomes.last().map(|outcome| &outcome.case);
        let is_of_same = previous.is_some_and(|case| case.rsplit_once('/').unwrap().0 == group);
        number = if is_of_same { number + 1 } else { 1 };
        let content = rest.split("</testcase>").next().unwrap_or_default();
        let content = plain(content);
        outcomes.push(Outcome {
            case: format!("{group}/{number}"),
            title: attribute(start, "classname"),
            failure: (!content.is_empty()).then_some(content),
        });
    }
    outcomes
}

fn attribute(start: &str, name: &str) -> String {
    let value = start.split_once(&format!("{name}=\""));
    let value = value.and_then(|(_, rest)| rest.split('"').next());
    plain(value.unwrap_or_default())
}

/// Text without the tags around it and the escapes in it.
fn plain(xml: &str) -> String {
    let mut text = xml.trim().to_owned();
    for (escape, character) in [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#xA;", "\n"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        text = text.replace(escape, character);
    }
    text
}

#[test]
fn cases_are_numbered_in_their_groups() {
    let report = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="5.1. Stream States" package="http2/5.1" id="5.1" tests="2" skipped="0" failures="0" errors="1">
    <testcase package="http2/5.1" classname="idle: Sends a &#34;frame&#34;" time="0.0010"></testcase>
    <testcase package="http2/5.1" classname="closed" time="2.0010">
      <error>Connection closed</error>
    </testcase>
  </testsuite>
  <testsuite name="5.1.1. Stream Identifiers" package="http2/5.1.1" id="5.1.1" tests="1" skipped="0" failures="0" errors="0">
    <testcase package="http2/5.1.1" classname="even" time="0.0010"></testcase>
  </testsuite>
</testsuites>"#;
    let outcome = |case: &str, title: &str, failure: Option<&str>| Outcome {
        case: case.to_owned(),
        title: title.to_owned(),
        failure: failure.map(str::to_owned),
    };
    assert_eq!(
        read(report),
        [
            outcome("http2/5.1/1", "idle: Sends a \"frame\"", None),
            outcome(
                "http2/5.1/2",
                "closed",
                Some("<error>Connection closed</error>")
            ),
            outcome("http2/5.1.1/1", "even", None),
        ]
    );
}
