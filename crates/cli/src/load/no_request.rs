//! Why an access log has no request that can be used.

use crate::advise::nothing_known;
use sooner_advise::Unsaid;

/// What is known of a log without a request that can be used.
pub struct NoRequest<'a> {
    /// What its lines do not say.
    pub unsaid: &'a Unsaid,
    /// Bytes of its files, as they are stored.
    pub stored_bytes: u64,
    /// Requests in it, which are of no use.
    pub requests: usize,
}

impl NoRequest<'_> {
    /// The reason; `useless` says what is wrong with the requests that there are.
    pub fn why(&self, useless: &str) -> String {
        let Unsaid {
            others,
            without_request,
            first_other,
            files,
            ..
        } = self.unsaid;
        let counted = [
            (self.requests as u64, useless),
            (*without_request, "lines do not say what was requested"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let mut said: Vec<String> = counted
            .map(|(count, words)| format!("{count} {words}"))
            .collect();
        if *others > 0 && !said.is_empty() {
            said.push(format!("{others} lines are in no known format"));
        }
        let first = first_other.as_ref().or(files.first()).map(String::as_str);
        if first.is_some() || said.is_empty() {
            said.push(nothing_known(first, self.stored_bytes));
        }
        said.join("; ")
    }
}
