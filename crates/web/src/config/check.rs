//! What can only be wrong together, across tables; pure.

use super::{Config, Misconfigured};
use crate::compress::CompressionTable;
use crate::proxy::{Proxy, ProxyTables};
use crate::proxy_protocol::Senders;
use crate::static_site::Sites;
use sooner_config::check_listening;

impl Config {
    /// The first of [`Config::mistakes_together`].
    pub fn check(&self) -> Result<(), Misconfigured> {
        self.mistakes_together()
            .into_iter()
            .next()
            .map_or(Ok(()), Err)
    }

    /// All mistakes that need no look outside, but may need more than one table to be seen.
    pub fn mistakes_together(&self) -> Vec<Misconfigured> {
        let mut mistakes = self.limits.mistakes();
        mistakes.extend(Senders::new(&self.proxy_protocol).err());
        mistakes.extend(self.uplink.check().err());
        mistakes.extend(self.check_workers().err());
        let compression = self.compression.iter();
        mistakes.extend(compression.flat_map(CompressionTable::mistakes));
        mistakes.extend(self.check_addresses().err());
        mistakes.extend(self.check_what_is_served().err());
        mistakes.extend(self.misplaced_scripts());
        mistakes.extend(self.tls_names_without_tls());
        mistakes
    }

    /// What a server would refuse of sites, upstreams and routes, without a look at any file: for a
    /// configuration that was written by a program, perhaps on another machine.
    pub fn check_without_files(&self) -> Result<(), Misconfigured> {
        Sites::check(&self.sites())?;
        if let Some(mistake) = self.misplaced_scripts().into_iter().next() {
            return Err(mistake);
        }
        let mut upstreams = self.upstream.clone();
        for upstream in &mut upstreams {
            // Whose certificates count is read from files.
            upstream.ca = None;
            // Where scripts are is looked at, and there is always this directory.
            if let Some(fastcgi) = &mut upstream.fastcgi {
                *fastcgi.root.get_mut() = "/".into();
            }
            for server in &mut upstream.servers {
                let in_clear_text = server.get_ref().replacen("https://", "http://", 1);
                *server.get_mut() = in_clear_text;
            }
        }
        let tables = ProxyTables {
            proxy: &self.proxy,
            classes: &self.class,
            late: self.late.as_ref(),
            upstreams: &upstreams,
            routes: &self.route,
        };
        Proxy::build(tables, None).map(|_| ())
    }

    /// What works and is hardly meant, as far as can be said before a start: a service manager may
    /// pass a socket for TLS.
    pub fn remarks(&self) -> Vec<Misconfigured> {
        let passed = " (a socket that the service manager passes counts too)";
        self.remark_on_tls(passed)
            .into_iter()
            .chain(self.remark_on_compression())
            .chain(self.remark_on_workers())
            .collect()
    }

    /// The same of a server that runs, with sockets for TLS from a service manager or without.
    pub fn remarks_of_server(&self, has_passed_tls: bool) -> Vec<Misconfigured> {
        let on_tls = (!has_passed_tls).then(|| self.remark_on_tls("")).flatten();
        on_tls
            .into_iter()
            .chain(self.remark_on_compression())
            .chain(self.remark_on_workers())
            .collect()
    }

    fn remark_on_tls(&self, but: &str) -> Option<Misconfigured> {
        (!self.tls.is_empty() && self.listen_tls.is_empty()).then(|| {
            Misconfigured::without_place(
                "tls",
                format!(
                    "no address speaks TLS{but}; add listen_tls = [\"0.0.0.0:443\"], or remove [[tls]]"
                ),
            )
        })
    }

    fn remark_on_compression(&self) -> Option<Misconfigured> {
        let sites = self.site.iter().map(|site| site.compress);
        let routes = self.route.iter().map(|route| route.compress);
        let is_compressed = self.compress || sites.chain(routes).any(|it| it == Some(true));
        (self.compression.is_some() && !is_compressed).then(|| {
            Misconfigured::without_place(
                "compression",
                "nothing is compressed; add compress = true at the top, in a [[site]] or in a [[route]]",
            )
        })
    }

    /// Classes by the name that a client requests in TLS, where no client can: without a
    /// certificate even a socket that a service manager passes speaks no TLS.
    fn tls_names_without_tls(&self) -> Vec<Misconfigured> {
        if !self.listen_tls.is_empty() || !self.tls.is_empty() {
            return Vec::new();
        }
        let names = self
            .class
            .iter()
            .flat_map(|class| class.tls_name.iter().flatten());
        let names = names.filter(|name| !matches!(name.get_ref().as_str(), "" | "*"));
        let message = "no client names it, as no address speaks TLS; add listen_tls and [[tls]]";
        names
            .map(|name| Misconfigured::at(name, "class.tls_name", message))
            .collect()
    }

    fn check_what_is_served(&self) -> Result<(), Misconfigured> {
        match &self.root {
            Some(root) if !self.site.is_empty() => Err(Misconfigured::at(
                root,
                "root",
                "belongs to the only site, and there is [[site]] too; move it into a [[site]] of its own",
            )),
            None if self.site.is_empty() && self.route.is_empty() => {
                Err(Misconfigured::without_place(
                    "root",
                    "nothing to serve; name a directory: root = \"/srv/www\", or add [[site]] or [[route]]",
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_addresses(&self) -> Result<(), Misconfigured> {
        if let (Some(address), true) = (self.listen_tls.first(), self.tls.is_empty()) {
            return Err(Misconfigured::at(
                address,
                "listen_tls",
                "needs a certificate; add [[tls]] with certificate = \"chain.pem\" and key = \"key.pem\", or give --certificate and --key",
            ));
        }
        let clear = self.listen.iter().map(|address| ("listen", address));
        let tls = self.listen_tls.iter();
        let tls = tls.map(|address| ("listen_tls", address));
        let admin = self.admin.listen.iter();
        let admin = admin.map(|address| ("admin.listen", address));
        let all = clear.chain(tls).chain(admin);
        let all = all.map(|(key, address)| (key, address.span(), address.get_ref().0));
        check_listening(&all.collect::<Vec<_>>())
    }
}
