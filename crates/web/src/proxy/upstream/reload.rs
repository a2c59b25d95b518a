//! A reload while requests wait: the queue stays, and goes on by what is said from then on.

use super::{Current, Settings, Upstream};
use crate::proxy::classes::Classes;
use crate::proxy::server::Server;
use sooner_http::json_fields::FieldPath;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

impl Upstream {
    /// From now on this is said of it, and there are these classes: who waits goes in by them, and
    /// to its servers. Those that are named no more finish what they have, and those that come back
    /// meanwhile have it still.
    pub fn take_over(&self, settings: Option<Rc<Settings>>, classes: &Classes) {
        let Some(settings) = settings else {
            return self.set_classes(classes);
        };
        let before = self.settings.replace(settings.clone());
        if before.is_like(&settings) {
            return self.set_classes(classes);
        }
        {
            let mut leaving = settings.leaving.borrow_mut();
            leaving.extend(before.servers.iter().cloned());
            leaving.retain(|server| !settings.servers.iter().any(|own| Rc::ptr_eq(own, server)));
        }
        let had = |server: &&Rc<Server>| before.servers.iter().any(|own| Rc::ptr_eq(own, server));
        let coming = settings.servers.iter().filter(|server| !had(server));
        coming.for_each(|server| server.comes_back());
        self.is_started.set(false);
        self.configure(&settings);
        self.replace_classes(classes);
        self.update_capacity();
    }

    /// Tells servers and queue what is said of them.
    pub(super) fn configure(&self, settings: &Settings) {
        let is_observed = settings.is_observed();
        for server in &settings.servers {
            server.configure(settings.limit, settings.health, is_observed);
        }
        self.limiter.set_waiting_max(settings.waiting_max());
        self.limiter.rehearse(is_observed);
    }

    fn set_classes(&self, classes: &Classes) {
        if self.current().classes != *classes {
            self.replace_classes(classes);
        }
    }

    pub(super) fn replace_classes(&self, classes: &Classes) {
        let settings = self.settings();
        let named = classes.fields_at(&self.name).into_iter();
        let fields: BTreeSet<FieldPath> = named.chain(settings.fields().cloned()).collect();
        self.current.replace(Rc::new(Current {
            classes: classes.clone(),
            fields: fields.into_iter().collect(),
        }));
        let order = settings.order(classes);
        // A request's head is looked at when it comes: who waits stays in the class of its name, or
        // of its route.
        let known = HashMap::new();
        self.limiter.set_goals(order, classes.goals(), &known);
    }
}
