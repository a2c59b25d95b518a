//! Which `sooner attach postgres` is told of which server: one numbers the processes of its own
//! server only, so that what is told of another one would be taken for processes of this.

use super::{Config, Endpoint};
use sooner_config::Misconfigured;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

impl Config {
    /// The socket file for each server that has one.
    pub fn priority_sockets(&self) -> BTreeMap<Endpoint, PathBuf> {
        let endpoint = |table: &super::DatabaseTable| table.server.get_ref().endpoint.clone();
        let of_all = self.priorities.iter().flat_map(|path| {
            let tables = self.database.iter();
            tables.map(move |table| (endpoint(table), path.get_ref().clone()))
        });
        let own = self.database.iter().filter_map(|table| {
            let path = table.priorities.as_ref()?;
            Some((endpoint(table), path.get_ref().clone()))
        });
        of_all.chain(own).collect()
    }

    pub(super) fn check_priorities(&self) -> Result<(), Misconfigured> {
        let tables = self.database.iter();
        let servers: BTreeSet<&Endpoint> = tables
            .map(|table| &table.server.get_ref().endpoint)
            .collect();
        if let (Some(path), 2..) = (&self.priorities, servers.len()) {
            let words = "there are several servers, and it is beside one of them; write it into the [[database]] tables of that server";
            return Err(Misconfigured::at(path, "priorities", words));
        }
        let mut known: BTreeMap<&Endpoint, &PathBuf> = BTreeMap::new();
        for table in &self.database {
            let Some(path) = &table.priorities else {
                continue;
            };
            let before = known.insert(&table.server.get_ref().endpoint, path.get_ref());
            let of_all = self.priorities.as_ref().map(|path| path.get_ref());
            if before.or(of_all).is_some_and(|own| own != path.get_ref()) {
                let words = "its server has another one already; give each server one";
                return Err(Misconfigured::at(path, "database.priorities", words));
            }
        }
        Ok(())
    }
}
