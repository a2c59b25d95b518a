//! `[[class]]`: which requests go first into an upstream, and how long they may take there. Which
//! class a request is in follows from what its head says, who sends it, and, where a class names
//! fields of a body, from what that says.

mod never;

pub use never::cookie_name;

use super::facts::RequestFacts;
use super::look::BodyFields;
use super::values::{fits_value, only_cookie, only_value};
use crate::config::Misconfigured;
use hyper::header::HeaderName;
use serde::Deserialize;
use sooner_admission::{Goal, Order};
use sooner_config::classes::{
    self, ClassAims, ClassBounds, Conditions, LateName, Longest, LongestAction, OrderName,
    TargetTable, Variability, comes_from, fits_beginning, fits_pattern, middle_priority, networks,
    patterns, placed_patterns, target_table,
};
use sooner_config::{Network, Spanned};
use sooner_http::host;
use sooner_http::json_fields::FieldPath;
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroUsize};

/// One class. All of what it names must fit; what it does not name fits every request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    /// What the admin page and metrics call it.
    pub name: Spanned<String>,
    /// 1 goes before 2; 1 to 200. 100: between those that matter more and those that matter less.
    #[serde(default = "middle_priority")]
    pub priority: Spanned<u8>,
    /// How long its requests may take; without any as long as the others need.
    #[serde(default, deserialize_with = "target_table")]
    pub target: TargetTable,
    /// Whether all kinds of its requests are to take the same time.
    #[serde(default)]
    pub variability: Option<Variability>,
    /// Its part of a server, where classes share it by weight.
    #[serde(default)]
    pub weight: Option<Spanned<NonZeroU32>>,
    /// The most of its requests in an upstream at a time; without any as many as the limit lets in.
    #[serde(default, alias = "transactions")]
    pub requests: Option<Spanned<NonZeroUsize>>,
    /// For how long one keeps its place; without any for as long as it takes.
    #[serde(default)]
    pub longest: Option<Spanned<String>>,
    /// What becomes of one that runs for longer; `yield` where nothing is said: it goes on, and
    /// another one may go in.
    #[serde(default)]
    pub longest_action: Option<Spanned<LongestAction>>,
    /// Upstreams.
    #[serde(default)]
    pub upstream: Option<Vec<Spanned<String>>>,
    /// Names of hosts, as the client says them, without a port; here and below `*` at the end
    /// stands for anything.
    #[serde(default)]
    pub host: Option<Vec<Spanned<String>>>,
    /// Paths, as the client wrote them.
    #[serde(default)]
    pub path: Option<Vec<Spanned<String>>>,
    /// Methods.
    #[serde(default)]
    pub method: Option<Vec<Spanned<String>>>,
    /// Fields of the head, and what they may be.
    #[serde(default)]
    pub header: Option<BTreeMap<Spanned<String>, Vec<Spanned<String>>>>,
    /// Cookies, and what they may be.
    #[serde(default)]
    pub cookie: Option<BTreeMap<Spanned<String>, Vec<Spanned<String>>>>,
    /// Fields of a body that is a JSON object, and what they may be.
    #[serde(default)]
    pub body: Option<BTreeMap<Spanned<String>, BodyValues>>,
    /// Networks that clients come from.
    #[serde(default)]
    pub address: Option<Vec<Network>>,
    /// Names that clients ask for in TLS.
    #[serde(default)]
    pub tls_name: Option<Vec<Spanned<String>>>,
}

/// What a field may be: one value or several, as JSON or in text.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "OneOrMany")]
pub struct BodyValues(Vec<String>);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a value or a list of values: \"gpt-*\", true, 512"
)]
enum OneOrMany {
    One(BodyValue),
    Many(Vec<BodyValue>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BodyValue {
    Text(String),
    Truth(bool),
    Whole(i64),
    Real(f64),
}

impl From<OneOrMany> for BodyValues {
    fn from(values: OneOrMany) -> Self {
        let text = |value| match value {
            BodyValue::Text(text) => text,
            BodyValue::Truth(truth) => truth.to_string(),
            BodyValue::Whole(number) => number.to_string(),
            BodyValue::Real(number) => number.to_string(),
        };
        Self(match values {
            OneOrMany::One(value) => vec![text(value)],
            OneOrMany::Many(values) => values.into_iter().map(text).collect(),
        })
    }
}

/// All classes, and who is late where their targets cannot all be kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    tables: Vec<ClassTable>,
    late: LateName,
}

impl ClassTable {
    fn check(&self, upstreams: &[&str]) -> Result<(), Misconfigured> {
        self.aims().check()?;
        for upstream in self.upstream.iter().flatten() {
            let name = upstream.get_ref();
            if !upstreams.iter().any(|known| known == name) {
                let words = match upstreams {
                    [] => "there is no [[upstream]]".to_owned(),
                    known => format!("there are: {}", known.join(", ")),
                };
                let words = format!("no upstream is called `{name}`; {words}");
                return Err(Misconfigured::at(upstream, "class.upstream", words));
            }
        }
        never::check(self)?;
        for name in self.header.iter().flatten().map(|(name, _)| name) {
            if HeaderName::try_from(name.get_ref().as_str()).is_err() {
                let words = format!("`{}` is not a name of a header", name.get_ref());
                return Err(Misconfigured::at(name, "class.header", words));
            }
        }
        for name in self.body.iter().flatten().map(|(name, _)| name) {
            if let Err(error) = name.get_ref().parse::<FieldPath>() {
                let words = format!("`{}` {error}", name.get_ref());
                return Err(Misconfigured::at(name, "class.body", words));
            }
        }
        Ok(())
    }

    /// What it says of who goes first.
    pub fn aims(&self) -> ClassAims<'_> {
        ClassAims {
            name: &self.name,
            priority: &self.priority,
            target: &self.target,
            variability: self.variability,
            weight: self.weight.as_ref(),
            bounds: self.bounds(),
        }
    }

    fn bounds(&self) -> ClassBounds<'_> {
        ClassBounds {
            inside_max: self.requests.as_ref(),
            longest: self.longest.as_ref(),
            longest_action: self.longest_action.as_ref(),
        }
    }

    fn conditions(&self) -> Conditions<'_> {
        let is_empty = [
            (
                "header",
                self.header.as_ref().is_some_and(BTreeMap::is_empty),
            ),
            (
                "cookie",
                self.cookie.as_ref().is_some_and(BTreeMap::is_empty),
            ),
            ("body", self.body.as_ref().is_some_and(BTreeMap::is_empty)),
        ];
        let empty = is_empty.into_iter().filter(|(_, is_empty)| *is_empty);
        let empty = empty.map(|(key, _)| (key.to_owned(), Vec::new()));
        let lists = [
            ("upstream", self.upstream.as_deref().map(placed_patterns)),
            ("host", self.host.as_deref().map(placed_patterns)),
            ("path", self.path.as_deref().map(placed_patterns)),
            ("method", self.method.as_deref().map(placed_patterns)),
            ("address", self.address.as_deref().map(networks)),
            ("tls_name", self.tls_name.as_deref().map(placed_patterns)),
        ];
        let named = lists
            .into_iter()
            .filter_map(|(key, values)| Some((key.to_owned(), values?)));
        let headers = self.header.iter().flatten().map(|(name, values)| {
            let name = name.get_ref().to_ascii_lowercase();
            (format!("header.{name}"), placed_patterns(values))
        });
        let cookies = self.cookie.iter().flatten();
        let cookies = cookies.map(|(name, values)| {
            let name = name.get_ref();
            (format!("cookie.{name}"), placed_patterns(values))
        });
        let fields = self.body.iter().flatten().map(|(name, values)| {
            let name = name.get_ref();
            (format!("body.{name}"), patterns(&values.0))
        });
        let of_tables = headers.chain(cookies).chain(fields);
        empty.chain(named).chain(of_tables).collect()
    }

    /// Whether requests for this upstream may be in it.
    pub fn may_be_at(&self, upstream: &str) -> bool {
        let is_upstream = |name: &Spanned<String>| name.get_ref() == upstream;
        let names = self.upstream.as_ref();
        names.is_none_or(|names| names.iter().any(is_upstream))
    }

    /// The fields of bodies that it names.
    fn fields(&self) -> impl Iterator<Item = FieldPath> {
        let names = self.body.iter().flatten().map(|(name, _)| name.get_ref());
        names.filter_map(|name| name.parse().ok())
    }

    /// Whether what the body says fits.
    fn fits_body(&self, body: &BodyFields) -> bool {
        let mut fields = self.body.iter().flatten();
        fields.all(|(name, values)| {
            let value = body.get(name.get_ref());
            value.is_some_and(|value| fits_beginning(&values.0, value))
        })
    }

    /// Whether what the head says, and who sends it, fits.
    fn fits_head(&self, of: RequestFacts<'_>) -> bool {
        let mut headers = self.header.iter().flatten();
        let mut cookies = self.cookie.iter().flatten();
        self.may_be_at(of.upstream)
            && fits_host(&self.host, of.host)
            && fits_pattern(&self.path, of.uri.path())
            && fits_pattern(&self.method, of.method)
            && comes_from(&self.address, Some(of.address))
            && fits_host(&self.tls_name, of.tls_name)
            && headers.all(|(name, values)| {
                let name = name.get_ref();
                let value = only_value(of.headers, name);
                value.is_some_and(|value| fits_value(name, values, value))
            })
            && cookies.all(|(name, values)| {
                let value = only_cookie(of.headers, name.get_ref());
                value.is_some_and(|value| fits_beginning(values, value))
            })
    }
}

/// Whether a name is one of these, however they are spelled; `*.` at the beginning stands for
/// anything before that dot, as in routes.
fn fits_host(names: &Option<Vec<Spanned<String>>>, name: &str) -> bool {
    let Some(names) = names else { return true };
    let name = host::normal(name);
    let fits = |own: &Spanned<String>| {
        let own = host::normal(own.get_ref());
        match own.strip_prefix('*') {
            Some(end) if end.starts_with('.') => name.len() > end.len() && name.ends_with(end),
            _ => fits_beginning(&[&*own], &name),
        }
    };
    names.iter().any(fits)
}

impl Classes {
    /// The classes of a configuration with these upstreams; the first mistake is the error.
    pub fn build(
        tables: &[ClassTable],
        late: Option<&Spanned<LateName>>,
        upstreams: &[&str],
    ) -> Result<Self, Misconfigured> {
        classes::check_names(tables.iter().map(|table| &table.name))?;
        for table in tables {
            table.check(upstreams)?;
        }
        let all = tables.iter();
        let conditions: Vec<_> = all.map(|table| (&table.name, table.conditions())).collect();
        classes::check_reach(&conditions, "request")?;
        let classes = Self {
            tables: tables.to_vec(),
            late: late.map_or(LateName::default(), |late| *late.get_ref()),
        };
        classes::check_order(&classes.aims(), None, "")?;
        classes::check_late(&classes.aims(), late)?;
        Ok(classes)
    }

    /// Whether this upstream may name its order beside them.
    pub fn check_order(
        &self,
        upstream: &str,
        order: Option<&Spanned<OrderName>>,
    ) -> Result<(), Misconfigured> {
        classes::check_order(&self.aims_at(upstream), order, "upstream.order")
    }

    /// Whether this upstream may say beside them who is charged.
    pub fn check_share_by(
        &self,
        upstream: &str,
        share_by: Option<&Spanned<String>>,
    ) -> Result<(), Misconfigured> {
        classes::check_share_by(&self.aims_at(upstream), share_by, "upstream.share_by")
    }

    /// That what bounds a class says something at one of the upstreams, of which each lets so many
    /// in at a time.
    pub fn check_bounds(&self, upstreams: &[(&str, usize)]) -> Result<(), Misconfigured> {
        for table in &self.tables {
            let may_be = upstreams.iter().filter(|(name, _)| table.may_be_at(name));
            let has_limit = may_be.clone().any(|&(_, limit)| limit < usize::MAX);
            if let Some(&(name, limit)) = may_be.max_by_key(|(_, limit)| *limit) {
                let limit_key = format!("the limit of upstream `{name}`");
                let bounds = table.bounds();
                bounds.check_cap("class.requests", limit, &limit_key)?;
                bounds.check_longest(has_limit)?;
            }
        }
        Ok(())
    }

    fn aims(&self) -> Vec<ClassAims<'_>> {
        self.tables.iter().map(ClassTable::aims).collect()
    }

    /// What the class of this number is called; `None` behind the last.
    pub fn name(&self, number: u8) -> Option<&str> {
        let table = self.tables.get(usize::from(number))?;
        Some(table.name.get_ref())
    }

    /// The number here of a class that had this `number` in classes of `before`: that of the same
    /// name, behind the last where there is none; without names that of its route.
    pub fn renumbered(&self, before: &Self, number: u8, of_route: Option<u8>) -> u8 {
        if self.is_empty() {
            return of_route.unwrap_or(number);
        }
        let name = before.name(number);
        let same = |table: &ClassTable| Some(table.name.get_ref().as_str()) == name;
        let position = self.tables.iter().position(same);
        u8::try_from(position.unwrap_or(self.tables.len())).unwrap_or(u8::MAX)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// In which order those who wait for this upstream go in, `otherwise` where its classes do not
    /// say it.
    pub fn order(&self, upstream: &str, otherwise: OrderName, is_shared: bool) -> Order {
        classes::order(&self.aims_at(upstream), otherwise, self.late, is_shared)
    }

    /// Whether requests for this upstream may have to wait where it has no limit.
    pub fn have_cap_at(&self, upstream: &str) -> bool {
        let aims = self.aims_at(upstream);
        aims.iter().any(|class| class.bounds.inside_max.is_some())
    }

    /// Whether some of them may run for only so long.
    pub fn have_longest_at(&self, upstream: &str) -> bool {
        let aims = self.aims_at(upstream);
        aims.iter().any(|class| class.bounds.longest.is_some())
    }

    /// What classes say that may be there.
    fn aims_at(&self, upstream: &str) -> Vec<ClassAims<'_>> {
        let tables = self.tables.iter().filter(|table| table.may_be_at(upstream));
        tables.map(ClassTable::aims).collect()
    }

    /// Whether requests for this upstream may be in the class of this number; some are in none.
    pub fn may_be_at(&self, number: u8, upstream: &str) -> bool {
        let table = self.tables.get(usize::from(number));
        table.is_none_or(|table| table.may_be_at(upstream))
    }

    /// What each is to get, by number; none where there are no classes.
    pub fn goals(&self) -> Vec<Goal> {
        match self.is_empty() {
            true => Vec::new(),
            false => classes::goals(&self.aims()),
        }
    }

    /// What metrics call a class: those of routes have numbers, and what is in none has nothing.
    pub fn label(&self, number: u8) -> String {
        match self.name(number) {
            Some(name) => name.to_owned(),
            None if self.is_empty() => number.to_string(),
            None => String::new(),
        }
    }

    /// For how long a request of this class keeps its place.
    pub fn longest(&self, number: u8) -> Option<Longest> {
        self.tables.get(usize::from(number))?.bounds().longest()
    }

    /// The fields of bodies by which classes at this upstream differ.
    pub fn fields_at(&self, upstream: &str) -> Vec<FieldPath> {
        let tables = self.tables.iter().filter(|table| table.may_be_at(upstream));
        let paths: BTreeSet<FieldPath> = tables.flat_map(ClassTable::fields).collect();
        paths.into_iter().collect()
    }

    /// The number of a request's class: the first that fits, behind the last where none does;
    /// `None` where that depends on what its body says, and it was not looked at.
    pub fn number_of(&self, of: RequestFacts<'_>) -> Option<u8> {
        for (number, table) in (0..=u8::MAX).zip(&self.tables) {
            let fits_head = table.fits_head(of);
            match (&table.body, of.body) {
                (Some(_), None) if fits_head => return None,
                (Some(_), Some(body)) if fits_head && table.fits_body(body) => return Some(number),
                (None, _) if fits_head => return Some(number),
                _ => {}
            }
        }
        // There are fewer than that.
        Some(u8::try_from(self.tables.len()).unwrap_or(u8::MAX))
    }
}

#[cfg(test)]
mod tests;
