//! An nginx configuration made into one of `sooner serve`.
//!
//! A crate that reads nginx's files would not do: what counts are nginx's own rules (quotes,
//! escapes, braces in words, relative names) and the line of every mistake. `words` and `tree` read
//! files, `files` finds those that are included, `scope` says what holds where; `servers`,
//! `locations`, `action` and `access` find out what each place does, `translate` makes sites of it,
//! `finish` keeps their routes apart, and `globals` has what holds for all. What narrows who may
//! come is never widened: a place of which the rule cannot be said is refused.

mod access;
mod action;
mod bodies;
mod bounds;
mod check;
mod compression;
mod conditions;
mod default_sites;
mod destination;
mod expiry;
mod facts;
mod fastcgi;
mod files;
mod finish;
mod folders;
mod foreign;
mod globals;
mod identity;
mod known;
mod last_pages;
mod listen;
mod locations;
mod passes;
mod passwords;
mod path_conditions;
mod proxies;
mod redirect_remarks;
mod regex;
mod remarks;
mod returns;
mod rewrites;
mod scope;
mod script_folders;
mod script_paths;
mod scripts;
mod servers;
mod site;
mod tidy;
mod translate;
mod tree;
mod tries;
mod upstream_headers;
mod upstreams;
mod values;
mod words;

pub use files::NginxFiles;

use crate::document::{Document, Group};
use crate::ini::ImportError;
use crate::{At, Imported};
use files::Sources;
use globals::Globals;
use scope::Scope;
use servers::Server;
use site::Site;
use sooner_config::SourceText;
use sooner_web::config::Config;
use std::collections::BTreeSet;
use std::sync::Arc;
use translate::Common;
use tree::Directive;

/// Characters of a line of prose.
const LINE: usize = 100;

/// Reads `file` and all that it includes, and translates it. The first mistake is the error.
pub fn import_nginx(file: &str, files: NginxFiles<'_>) -> Result<Imported, ImportError> {
    let sources = Sources::of(file, files)?;
    let all = tree::read(&sources)?;
    check::check(&all)?;
    let name = &sources.main.1;
    let block = all.iter().find(|own| own.name == "http");
    let (main, http): (&[Directive], &[Directive]) = match block {
        Some(http) => (&all, http.inside()),
        // A file of conf.d or sites-available is what stands within `http`.
        None => (&[], &all),
    };
    let scope = Scope::default().within(http);
    let mut servers = Vec::new();
    for own in http.iter().filter(|own| own.name == "server") {
        servers.push(Server::of(own, &scope)?);
    }
    let at = At {
        file: Arc::from(name.as_str()),
        line: 1,
    };
    if servers.is_empty() {
        return Err(
            at.wrong("no server { ... } in it or in what it includes; name the file that has one")
        );
    }
    let mut document = Document::default();
    document.comment(
        Group::Head,
        &format!("Made of {name} by sooner serve import."),
    );
    let (mut kept, elsewhere) = servers::together(servers);
    for server in elsewhere {
        let why = format!(
            "it listens elsewhere than the others, and Sooner's sites are at all its addresses; import it by itself ({})",
            servers::place(server.directive)
        );
        let names = server.hosts.join(" ");
        document.leave_out(Group::Site, &format!("server {names}"), &why);
    }
    proxies::leave_out_unnamed(&mut kept, &scope, &mut document)?;
    servers::choose_defaults(&mut kept);
    let blocks = http.iter().filter(|own| own.name == "upstream");
    let mut common = Common {
        blocks: blocks.map(|own| (own.first(), own)).collect(),
        moot: BTreeSet::new(),
        prefix: sources.prefix.clone(),
        compress: compression::is_on(&scope),
    };
    let sites = sites(&kept, &mut common, &mut document)?;
    if sites.is_empty() {
        let first = http.iter().find(|own| own.name == "server");
        let at = first.map_or(at, |own| own.at.clone());
        return Err(at.wrong(
            "no server here can be a site: Sooner listens at single ports; write one, as in listen 80;",
        ));
    }
    let mut globals = Globals {
        document: &mut document,
        main,
        http: scope,
        servers: &kept,
        prefix: &sources.prefix,
    };
    globals.write(&mut common.moot);
    moot(&common.moot, &mut document);
    for site in &sites {
        site.write(&mut document);
    }
    finish::write(&sites, &mut document);
    let (text, left_out) = document.finish();
    check(&text)?;
    Ok(Imported::without_passwords(text, left_out))
}

/// All sites, the defaults first.
fn sites<'a>(
    servers: &[Server<'a>],
    common: &mut Common<'a>,
    document: &mut Document,
) -> Result<Vec<Site>, ImportError> {
    let mut sites: Vec<Site> = Vec::new();
    let mut taken: Vec<(Option<&'static str>, String)> = Vec::new();
    for server in servers {
        if server.is_unreachable() {
            let why = if server.has_other_names() {
                "only names that cannot be said lead to it"
            } else {
                "no name leads to it, and another server is the default"
            };
            let why = format!("{why} ({})", servers::place(server.directive));
            document.leave_out(Group::Site, "server", &why);
            continue;
        }
        for mut plan in server.plans() {
            let before = plan.hosts.len();
            let scheme = plan.scheme;
            plan.hosts.retain(|host| {
                let is_same =
                    |own: &Option<&str>| own.is_none() || scheme.is_none() || *own == scheme;
                !taken.iter().any(|(own, name)| is_same(own) && name == host)
            });
            if plan.hosts.len() < before {
                let text = format!("server_name ({})", servers::place(server.directive));
                document.leave_out(Group::Site, &text, "an earlier server has the name");
                if plan.hosts.is_empty() && !plan.is_default.contains(&true) {
                    continue;
                }
            }
            taken.extend(plan.hosts.iter().map(|host| (scheme, host.clone())));
            sites.push(translate::site(&plan, common)?);
        }
    }
    // A default of one scheme before one of both, which else would take it.
    sites.sort_by_key(|own| (!own.is_default, own.is_default && own.scheme.is_none()));
    schemes(&mut sites);
    finish::separate(&mut sites);
    Ok(sites)
}

/// Where all sites are for the one scheme, that needs no word, but for a redirect to the other.
fn schemes(sites: &mut [Site]) {
    let first = sites.first().and_then(|own| own.scheme);
    let is_one = sites.iter().all(|own| own.scheme == first);
    for site in sites {
        let leads_away = site.body.redirects.iter().any(|own| own.leads_to_https())
            || site.places.iter().any(|place| {
                let mut redirects = place.body.redirects.iter();
                redirects.any(|own| own.leads_to_https())
            });
        if is_one && !leads_away {
            site.scheme = None;
        }
    }
}

/// What has no meaning here is one comment.
fn moot(names: &BTreeSet<String>, document: &mut Document) {
    if names.is_empty() {
        return;
    }
    document.gap(Group::Head);
    let mut line = "No equivalent is needed for:".to_owned();
    for name in names {
        if line.len() + name.len() + 3 > LINE {
            document.comment(Group::Head, &line);
            line = String::new();
        }
        line.push(' ');
        line.push_str(name);
        line.push(',');
    }
    document.comment(Group::Head, line.trim_end_matches(',').trim_start());
}

/// Whether the server would read it: if not, the translation is to blame and not the file.
fn check(text: &str) -> Result<(), ImportError> {
    let source = SourceText {
        name: "sooner.toml".into(),
        text: text.into(),
        flags: &[],
    };
    let own = |mistake| ImportError::Own {
        what: source.render(&mistake),
    };
    let config = Config::parse(text).map_err(own)?;
    config.check().map_err(own)?;
    config.check_without_files().map_err(own)
}

#[cfg(test)]
mod tests;
