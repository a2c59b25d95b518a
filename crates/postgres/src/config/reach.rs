//! Classes that nothing can be in: an empty list, or an earlier class that takes all of it. Said at the start, because otherwise nobody would notice.

use std::collections::BTreeMap;

use sooner_config::Misconfigured;

use super::{ClassTable, Config};

impl Config {
    pub(super) fn check_reach(&self) -> Result<(), Misconfigured> {
        for (at, class) in self.class.iter().enumerate() {
            let conditions = conditions(class);
            if let Some((key, _)) = conditions.iter().find(|(_, values)| values.is_empty()) {
                let words =
                    format!("an empty list fits nobody; name what fits, or leave {key} out");
                return Err(Misconfigured::at(
                    &class.name,
                    &format!("class.{key}"),
                    words,
                ));
            }
            let takes_all = |earlier: &&ClassTable| covers(&self::conditions(earlier), &conditions);
            if let Some(earlier) = self.class[..at].iter().find(takes_all) {
                let words = format!(
                    "nothing is ever in it: {:?} comes before it and takes all that fits; put it before that, or leave one of them out",
                    earlier.name.get_ref()
                );
                return Err(Misconfigured::at(&class.name, "class.name", words));
            }
        }
        Ok(())
    }
}

/// What must fit, by key: any of these values.
fn conditions(class: &ClassTable) -> BTreeMap<String, Vec<String>> {
    let ClassTable {
        user,
        database,
        application_name,
        session,
        statement,
        ..
    } = class;
    let texts = [
        ("user", user),
        ("database", database),
        ("application_name", application_name),
        ("session", session),
        ("statement", statement),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(key, list)| Some((key.to_owned(), list.clone()?)));
    let networks = class.address.iter().map(|networks| {
        let written = networks.iter().map(|one| format!("{one:?}")).collect();
        ("address".to_owned(), written)
    });
    let fingerprints = class.fingerprint.iter().map(|all| {
        let written = all.iter().map(|one| one.get_ref().clone()).collect();
        ("fingerprint".to_owned(), written)
    });
    let comments = class.comment.iter().flatten();
    let comments = comments.map(|(key, values)| (format!("comment.{key}"), values.clone()));
    texts
        .chain(networks)
        .chain(fingerprints)
        .chain(comments)
        .collect()
}

/// Whether whatever fits the one fits the other, as far as lists say it.
fn covers(all: &BTreeMap<String, Vec<String>>, one: &BTreeMap<String, Vec<String>>) -> bool {
    all.iter().all(|(key, values)| {
        let own = one.get(key);
        own.is_some_and(|own| own.iter().all(|value| values.contains(value)))
    })
}
