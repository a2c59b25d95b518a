//! What holds for all sites: addresses, certificates, bounds, the log.

use super::bounds;
use super::known::{self, Class};
use super::proxies;
use super::scope::Scope;
use super::servers::{Server, place};
use super::tree::Directive;
use crate::document::{Document, Group};
use std::collections::BTreeSet;
use std::path::Path;

const BELOW_PREFIX: &str =
    "it is below the --prefix that nginx was built with; write the whole path";
const VERSIONS: &str = "the versions of TLS are those of all names alike, more than these";

/// The parts of a file that are about everything.
pub struct Globals<'s, 'a> {
    /// Where it is written.
    pub document: &'s mut Document,
    /// Outside `http`.
    pub main: &'a [Directive],
    /// Within `http`.
    pub http: Scope<'a>,
    /// The servers that become sites.
    pub servers: &'s [Server<'a>],
    /// The folder of relative names.
    pub prefix: &'s Path,
}

impl Globals<'_, '_> {
    fn leave_out(&mut self, group: Group, directive: &Directive, why: &str) {
        let why = format!("{why} ({})", place(directive));
        self.document.leave_out(group, &directive.text(), &why);
    }

    /// Writes them.
    pub fn write(&mut self, moot: &mut BTreeSet<String>) {
        let has_tls = self.tls();
        self.listen(has_tls);
        self.user();
        self.compress();
        bounds::write(self.document, self.servers);
        self.log();
        proxies::write(self.document, self.servers, &self.http);
        self.compression();
        self.remarks(moot);
    }

    fn listen(&mut self, has_tls: bool) {
        for (is_tls, key) in [(false, "listen"), (true, "listen_tls")] {
            let mut addresses: Vec<String> = Vec::new();
            for server in self.servers {
                for own in server.listens.iter().filter(|own| own.is_tls == is_tls) {
                    let address = own.address.to_string();
                    if !addresses.contains(&address) {
                        addresses.push(address);
                    }
                }
            }
            if addresses.is_empty() {
                continue;
            }
            if is_tls && !has_tls {
                let text = format!("listen {} ssl", addresses.join(", "));
                self.document.leave_out(
                    Group::Head,
                    &text,
                    "there is no certificate that can be named",
                );
                continue;
            }
            self.document.list(Group::Head, key, &addresses);
        }
    }

    fn user(&mut self) {
        let Some(own) = self.main.iter().find(|own| own.name == "user") else {
            return;
        };
        let words: Vec<&str> = own.args.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["root", ..] => {
                let why = "Sooner gives up the rights of root as soon as it listens; \
                    name another user, who may read the files";
                self.leave_out(Group::Head, own, why);
            }
            [user] => self.document.text(Group::Head, "user", user),
            [user, group] => self
                .document
                .text(Group::Head, "user", &format!("{user}:{group}")),
            _ => self.leave_out(Group::Head, own, "a user has a name"),
        }
    }

    fn log(&mut self) {
        let scopes = self.servers.iter().map(|own| &own.scope);
        let mut all: Vec<&Directive> = Vec::new();
        for scope in [&self.http].into_iter().chain(scopes) {
            for own in scope.own().iter().filter(|own| own.name == "access_log") {
                all.push(own);
            }
        }
        let is_absolute = |own: &Directive| own.first().starts_with('/');
        let is_file = |own: &&&Directive| is_absolute(own) && !own.first().contains('$');
        let chosen = all.iter().find(is_file).copied();
        if let Some(own) = chosen {
            self.document.table(Group::Log, "[log]");
            self.document.text(Group::Log, "access", own.first());
            self.document.text(Group::Log, "format", "combined");
            if own
                .args
                .get(1)
                .is_some_and(|format| format != "combined" && !format.contains('='))
            {
                self.leave_out(
                    Group::Log,
                    own,
                    "a line is combined, or JSON, which says more",
                );
            }
        }
        for own in all {
            let is_chosen = chosen.is_some_and(|chosen| chosen.first() == own.first());
            let is_elsewhere = own.first().contains('$') || own.first().starts_with("syslog:");
            if own.first() != "off" && !is_absolute(own) && !is_elsewhere {
                self.leave_out(Group::Log, own, BELOW_PREFIX);
            } else if !is_chosen && own.first() != "off" {
                self.leave_out(Group::Log, own, "Sooner writes one log for all sites");
            }
        }
    }

    /// Certificates; whether there is one.
    fn tls(&mut self) -> bool {
        let mut written: Vec<(String, String)> = Vec::new();
        let mut pairs: Vec<(&Directive, &Directive)> = Vec::new();
        let defaults_first = {
            let mut order: Vec<&Server<'_>> = self.servers.iter().collect();
            order.sort_by_key(|own| !own.is_default[1]);
            order
        };
        let mut left_out = Vec::new();
        for server in defaults_first {
            if !server.listens.iter().any(|own| own.is_tls) {
                continue;
            }
            let certificates = server.scope.all(&["ssl_certificate"]);
            let keys = server.scope.all(&["ssl_certificate_key"]);
            for (at, (certificate, key)) in certificates.iter().zip(&keys).enumerate() {
                let is_file = |own: &Directive| {
                    let name = own.first();
                    !name.contains('$')
                        && !name.starts_with("data:")
                        && !name.starts_with("engine:")
                };
                if at > 0 {
                    left_out.push((*certificate, "a name has one certificate"));
                } else if is_file(certificate) && is_file(key) {
                    pairs.push((*certificate, *key));
                } else {
                    left_out.push((*certificate, "a certificate is a file"));
                }
            }
        }
        let versions = self.versions();
        let client = self.client_ca();
        for (certificate, key) in pairs {
            let path = |own: &Directive| self.prefix.join(own.first()).display().to_string();
            let pair = (path(certificate), path(key));
            if written.contains(&pair) {
                continue;
            }
            self.document.gap(Group::Tls);
            self.document.table(Group::Tls, "[[tls]]");
            self.document.text(Group::Tls, "certificate", &pair.0);
            self.document.text(Group::Tls, "key", &pair.1);
            if written.is_empty() {
                if let Some(version) = versions {
                    self.document
                        .list(Group::Tls, "versions", &[version.to_owned()]);
                }
                if let Some((ca, is_required)) = &client {
                    self.document.text(Group::Tls, "client_ca", ca);
                    self.document
                        .value(Group::Tls, "client_required", is_required);
                }
            }
            written.push(pair);
        }
        for (directive, why) in left_out {
            self.leave_out(Group::Tls, directive, why);
        }
        !written.is_empty()
    }

    /// The only version that is spoken, if it is one. Without a word nginx speaks both.
    fn versions(&mut self) -> Option<&'static str> {
        let mut all: BTreeSet<&'static str> = BTreeSet::new();
        let mut said: Vec<(&Directive, BTreeSet<&'static str>)> = Vec::new();
        let mut old = None;
        let with_tls = self.servers.iter();
        let with_tls = with_tls.filter(|own| own.listens.iter().any(|own| own.is_tls));
        for server in with_tls {
            let Some(own) = server.scope.one("ssl_protocols") else {
                all.extend(["1.2", "1.3"]);
                continue;
            };
            let versions: Vec<Option<&str>> = own.args.iter().map(|own| version(own)).collect();
            old = old.or(Some(own).filter(|_| versions.contains(&None)));
            let versions: BTreeSet<&str> = versions.into_iter().flatten().collect();
            all.extend(&versions);
            if !said.iter().any(|(other, _)| std::ptr::eq(*other, own)) {
                said.push((own, versions));
            }
        }
        if let Some(own) = old {
            self.leave_out(
                Group::Tls,
                own,
                "TLS 1.0 and 1.1 are broken, and not to be had",
            );
        }
        for (own, versions) in said {
            if versions != all {
                self.leave_out(Group::Tls, own, VERSIONS);
            }
        }
        match all.into_iter().collect::<Vec<_>>().as_slice() {
            ["1.2"] => Some("1.2"),
            ["1.3"] => Some("1.3"),
            _ => None,
        }
    }

    /// Who signs clients' certificates, and whether they need one; that is for all names alike.
    fn client_ca(&mut self) -> Option<(String, bool)> {
        let with_tls: Vec<&Server<'_>> = self
            .servers
            .iter()
            .filter(|own| own.listens.iter().any(|own| own.is_tls))
            .collect();
        let asking = with_tls.iter().find_map(|server| {
            let verify = server.scope.one("ssl_verify_client")?;
            let ca = server.scope.one("ssl_client_certificate")?;
            let is_asked = matches!(verify.first(), "on" | "optional");
            is_asked.then_some((verify, ca))
        });
        let (verify, ca) = asking?;
        let says = |text: &'static str| {
            move |server: &&Server<'_>| {
                let own = server.scope.one("ssl_verify_client");
                own.is_some_and(|own| own.first() == text)
            }
        };
        let is_same = ["on", "optional"]
            .into_iter()
            .any(|text| with_tls.iter().all(says(text)));
        let is_required = with_tls.iter().any(says("on"));
        let path = self.prefix.join(ca.first()).display().to_string();
        if !is_same {
            let why = "certificates of clients are asked of all names alike, not of some";
            self.leave_out(Group::Tls, verify, why);
        }
        // Of two the stricter.
        Some((path, is_required))
    }

    fn remarks(&mut self, moot: &mut BTreeSet<String>) {
        let http = self.http.own();
        for own in self.main.iter().chain(http) {
            match known::class_of(own) {
                Class::Moot => {
                    moot.insert(own.name.clone());
                }
                Class::LeftOut(why) => self.leave_out(Group::Head, own, why),
                Class::Carried if matches!(own.name.as_str(), "stream" | "mail") => {
                    self.leave_out(Group::Head, own, "Sooner serves HTTP");
                }
                Class::Carried if matches!(own.name.as_str(), "default_type" | "types") => {
                    moot.insert(own.name.clone());
                }
                Class::Carried => {}
            }
        }
    }
}

/// A version of TLS as Sooner has it, if it has it.
fn version(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "tlsv1.2" => Some("1.2"),
        "tlsv1.3" => Some("1.3"),
        _ => None,
    }
}

/// Calls `seen` with all directives of this name in a block and its blocks.
pub fn deep<'a>(level: &'a [Directive], name: &str, seen: &mut dyn FnMut(&'a Directive)) {
    for own in level {
        if own.name == name {
            seen(own);
        }
        deep(own.inside(), name, seen);
    }
}
