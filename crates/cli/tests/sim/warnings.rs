//! Why runs may not be believed, beside values for programs.

use super::sim;

#[test]
fn values_for_programs_have_their_warnings_on_standard_error() {
    let words = "--sizes exp:mean=1 --load 0.5,1.5 --policy fcfs --jobs 2e4";
    let words: Vec<&str> = words.split(' ').collect();
    let table = String::from_utf8(sim(&words).stdout).unwrap();
    let warnings = table.lines().filter(|line| line.starts_with("INVALID, "));
    let warnings: Vec<String> = warnings.map(|line| format!("sooner: {line}")).collect();
    assert!(!warnings.is_empty(), "{table}");
    let output = sim(&[&words[..], &["--csv"]].concat());
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), warnings);
    let values = String::from_utf8(output.stdout).unwrap();
    assert_eq!(values.lines().count(), 3, "{values}");
}
