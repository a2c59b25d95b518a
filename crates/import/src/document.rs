//! The file as it grows: lines in groups, in the order in which a reader looks for them and
//! TOML allows them.

use std::fmt::Display;

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Above all tables.
    Head,
    /// `[limits]`
    Limits,
    /// `[[tls]]`
    Tls,
    /// `[auth_query]`
    AuthQuery,
    /// `[[database]]`
    Database,
    /// `[[user]]`
    User,
    /// `[[rule]]`
    Rule,
    /// `[log]`, `[proxy]` and `[proxy_protocol]`
    Log,
    /// `[compression]`
    Compression,
    /// `[[site]]`
    Site,
    /// `[[upstream]]`
    Upstream,
    /// `[[route]]`
    Route,
}

impl Group {
    const ALL: [Self; 12] = [
        Self::Head,
        Self::Limits,
        Self::Tls,
        Self::AuthQuery,
        Self::Database,
        Self::User,
        Self::Rule,
        Self::Log,
        Self::Compression,
        Self::Site,
        Self::Upstream,
        Self::Route,
    ];
}

/// The lines of all groups.
#[derive(Default)]
pub struct Document {
    groups: [Vec<String>; Group::ALL.len()],
    left_out: usize,
}

impl Document {
    fn line(&mut self, group: Group, line: String) {
        self.groups[group as usize].push(line);
    }

    /// A remark.
    pub fn comment(&mut self, group: Group, words: &str) {
        // Nothing that ends the comment, and nothing that TOML forbids in one.
        let words = words.replace(char::is_control, " ");
        self.line(group, format!("# {words}"));
    }

    /// A setting that is not carried over.
    pub fn leave_out(&mut self, group: Group, setting: &str, why: &str) {
        self.left_out += 1;
        self.comment(group, &format!("not carried over: {setting}: {why}"));
    }

    /// The head of a table.
    pub fn table(&mut self, group: Group, head: &str) {
        self.line(group, head.to_owned());
    }

    /// An empty line, where something stands above.
    pub fn gap(&mut self, group: Group) {
        if self.groups[group as usize]
            .last()
            .is_some_and(|line| !line.is_empty())
        {
            self.line(group, String::new());
        }
    }

    /// A text.
    pub fn text(&mut self, group: Group, key: &str, value: &str) {
        self.line(group, format!("{key} = {}", quoted(value)));
    }

    /// A number or a truth value.
    pub fn value(&mut self, group: Group, key: &str, value: impl Display) {
        self.line(group, format!("{key} = {value}"));
    }

    /// A list of texts.
    pub fn list(&mut self, group: Group, key: &str, values: &[String]) {
        self.line(group, format!("{key} = {}", listed(values)));
    }

    /// All of it, and how many settings are not carried over.
    pub fn finish(self) -> (String, usize) {
        let groups = self.groups.iter().filter(|lines| !lines.is_empty());
        let groups: Vec<String> = groups.map(|lines| lines.join("\n")).collect();
        (groups.join("\n\n") + "\n", self.left_out)
    }
}

/// A list of texts as TOML has it.
pub fn listed(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// A text as TOML has it.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
