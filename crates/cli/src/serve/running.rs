//! A server that serves, and what signals do to it.

use super::args::ServeArgs;
use super::effective::Effective;
use super::link::Link;
use super::user;
use sooner_operate::Supervisor;
use sooner_operate::say;
use sooner_operate::{Action, Signals};
use sooner_web::Control;
use sooner_web::config::{Config, Misconfigured};
use std::rc::Rc;
use tokio::sync::Notify;

/// What is needed to obey signals.
pub struct Running {
    args: ServeArgs,
    /// As it was at the start: what a reload cannot change.
    started: Config,
    control: Control,
    supervisor: Supervisor,
    status: String,
    stop: Rc<Notify>,
    is_stopping: bool,
}

impl Running {
    /// A server that takes connections from now on; tells the supervisor so, with `status`.
    pub fn new(
        args: ServeArgs,
        started: Effective,
        control: Control,
        supervisor: Supervisor,
        status: String,
    ) -> Self {
        supervisor.ready(&status);
        Self {
            args,
            started: started.config,
            control,
            supervisor,
            status,
            stop: Rc::default(),
            is_stopping: false,
        }
    }

    /// Ready when the server is asked to stop.
    pub fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let stop = self.stop.clone();
        async move { stop.notified().await }
    }

    /// Does what signals ask for; returns at the second one that asks to stop, which ends what the
    /// first one lets finish.
    pub async fn obey(&mut self, signals: &mut Signals) {
        loop {
            match signals.next().await {
                Action::Stop if self.is_stopping => return,
                Action::Stop => self.stop(),
                Action::Reload if self.is_stopping => {}
                Action::Reload => self.reload().await,
                Action::ReopenLogs => self.control.reopen_logs(),
            }
        }
    }

    fn stop(&mut self) {
        self.is_stopping = true;
        self.supervisor.stopping("letting responses in flight end");
        self.stop.notify_one();
    }

    async fn reload(&self) {
        self.supervisor.reloading();
        if let Err(error) = self.try_reload().await {
            self.control.reload_failed();
            for line in format!("{error:#}").lines() {
                say(format_args!("{line}; the old configuration stays"));
            }
        }
        self.supervisor.ready(&self.status);
    }

    async fn try_reload(&self) -> anyhow::Result<()> {
        let new = Effective::load(&self.args)?;
        let located = |mistake| new.located(mistake);
        // What takes effect at the next start must not be what prevents it.
        Link::of(&new.config.uplink).map_err(located)?;
        if let Some(user) = &new.config.user {
            user::find(user).map_err(located)?;
        }
        let warnings = self
            .control
            .reload(&new.config, new.source.hash())
            .await
            .map_err(|mistake| new.located(mistake))?;
        let fixed = self.started.fixed_keys_changed(&new.config);
        let is_passed = self.control.has_passed_listeners();
        let fixed = fixed
            .into_iter()
            .map(|key| Misconfigured::without_place(key, why_fixed(key, is_passed)));
        let remarks = self.control.remarks(&new.config).into_iter();
        new.say(remarks.chain(warnings).chain(fixed));
        Ok(())
    }
}

/// What becomes of a change of a key that a reload does not take.
fn why_fixed(key: &str, is_passed: bool) -> &'static str {
    match key {
        "listen" | "listen_tls" if is_passed => {
            "changed; takes no effect while the service manager passes the sockets"
        }
        _ => "changed; takes effect at the next start",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_take_no_effect_beside_passed_sockets() {
        for (key, is_passed, effect) in [
            ("listen", false, "takes effect at the next start"),
            ("listen", true, "takes no effect"),
            ("listen_tls", true, "takes no effect"),
            ("user", true, "takes effect at the next start"),
        ] {
            assert!(
                why_fixed(key, is_passed).contains(effect),
                "{key} {is_passed}"
            );
        }
    }
}
