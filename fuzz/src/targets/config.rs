//! A configuration file is values or one line that says what is wrong and where, whatever it holds.

use sooner_web::config::{Config, SourceText};
use std::path::Path;

/// Tries one input.
pub fn run(text: &str) {
    let source = SourceText {
        name: "f".into(),
        text: text.into(),
        flags: &[],
    };
    match Config::parse(text) {
        Ok(mut config) => {
            config.relative_to(Path::new("/etc"));
            let _ = config.check();
            assert!(config.fixed_keys_changed(&config.clone()).is_empty());
        }
        Err(mistake) => {
            let line = source.render(&mistake);
            assert!(line.starts_with("f:"), "{line}");
            assert!(!line.contains(char::is_control), "{line}");
        }
    }
}
