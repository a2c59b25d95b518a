//! A reload while requests wait: the queue stays, and goes on by what is said from then on.

use super::settings::Settings;
use super::shared::{Current, SharedUpstream, State};
use crate::proxy::classes::Classes;
use crate::proxy::server::Server;
use sooner_http::json_fields::FieldPath;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

impl SharedUpstream {
    /// From now on this is said of it, and there are these classes, for all workers: who waits goes
    /// in by them, and to its servers. Those that are named no more finish what they have, and
    /// those that come back meanwhile have it still.
    pub fn take_over(&self, settings: Option<Arc<Settings>>, classes: &Classes) {
        let mut state = self.lock();
        let Some(settings) = settings else {
            return self.set_classes(&mut state, classes);
        };
        let before = std::mem::replace(&mut state.settings, settings.clone());
        self.note_said(&mut state);
        if before.is_like(&settings) {
            return self.set_classes(&mut state, classes);
        }
        let is_of = |servers: &[Arc<Server>], server: &Arc<Server>| {
            servers.iter().any(|own| Arc::ptr_eq(own, server))
        };
        state.leaving.extend(before.servers.iter().cloned());
        state
            .leaving
            .retain(|server| !is_of(&settings.servers, server));
        let mut coming = settings.servers.iter();
        while let Some(server) = coming.find(|server| !is_of(&before.servers, server)) {
            server.comes_back();
        }
        state.settings_number += 1;
        self.begin(&mut state, classes);
    }

    /// Lets requests of these classes in by what is said.
    pub(super) fn begin(&self, state: &mut State, classes: &Classes) {
        let settings = state.settings.clone();
        let is_observed = settings.is_observed();
        for server in &settings.servers {
            server.configure(settings.limit, settings.health, is_observed);
        }
        self.limiter.set_waiting_max(settings.waiting_max());
        self.limiter.rehearse(is_observed);
        self.replace_classes(state, classes);
        self.update_capacity_in(state);
    }

    fn set_classes(&self, state: &mut State, classes: &Classes) {
        if state.current.classes != *classes {
            self.replace_classes(state, classes);
        }
    }

    fn replace_classes(&self, state: &mut State, classes: &Classes) {
        let settings = &state.settings;
        let named = classes.fields_at(&self.name).into_iter();
        let fields: BTreeSet<FieldPath> = named.chain(settings.fields().cloned()).collect();
        let order = settings.order(classes);
        state.current = Arc::new(Current {
            classes: classes.clone(),
            fields: fields.into_iter().collect(),
        });
        self.note_said(state);
        // A request's head is looked at when it comes: who waits stays in the class of its name, or
        // of its route.
        let known = HashMap::new();
        self.limiter.set_goals(order, classes.goals(), &known);
    }
}
