//! What is in force: flags over the file over defaults.

use super::args::ServeArgs;
use crate::config_file::{located, put, put_all, read};
use sooner_config::Spanned;
use sooner_operate::say;
use sooner_web::config::{Config, Misconfigured, SourceText, from_command_line};
use sooner_web::tls::TlsConfig;
use std::path::Path;

/// Keys that flags put over the file.
const FLAGS: &[(&str, &str)] = &[
    ("root", "DIR"),
    ("user", "--user"),
    ("workers", "--workers"),
    ("listen", "--listen"),
    ("listen_tls", "--listen-tls"),
    ("tls.certificate", "--certificate"),
    ("tls.key", "--key"),
    ("admin.listen", "--admin"),
    ("uplink.rate", "--uplink"),
    ("uplink.policy", "--policy"),
    ("uplink.share_by", "--share-by"),
    ("uplink.mechanism", "--mechanism"),
    ("uplink.bands", "--bands"),
    ("uplink.ahead", "--ahead"),
    ("uplink.device", "--uplink-device"),
    ("log.access", "--access-log"),
];

/// A configuration with the text it came from, for mistakes that are found later.
#[derive(Debug)]
pub struct Effective {
    /// What is in force.
    pub config: Config,
    /// Where it stands.
    pub source: SourceText,
}

impl Effective {
    /// Reads the file, if one was named, and puts the flags over it; the error is a line with the
    /// place for each mistake.
    pub fn load(args: &ServeArgs) -> anyhow::Result<Self> {
        let source = read(args.config.as_deref(), FLAGS)?;
        match assemble(&source, args) {
            Ok(config) => Ok(Self { config, source }),
            Err(mistakes) => {
                let lines = mistakes.iter().map(|mistake| source.render(mistake));
                Err(anyhow::Error::msg(lines.collect::<Vec<_>>().join("\n")))
            }
        }
    }

    /// A mistake in this configuration as an error of one line.
    pub fn located(&self, mistake: Misconfigured) -> anyhow::Error {
        located(&self.source, &self.config.as_written(mistake))
    }

    /// Says on standard error what works and needs a look, a line each.
    pub fn say(&self, remarks: impl IntoIterator<Item = Misconfigured>) {
        for remark in remarks {
            say(format_args!("{:#}", self.located(remark)));
        }
    }
}

fn assemble(source: &SourceText, args: &ServeArgs) -> Result<Config, Vec<Misconfigured>> {
    let mut config = Config::parse(&source.text).map_err(|_| Config::mistakes(&source.text))?;
    if let Some(folder) = Path::new(&source.name).parent() {
        config.relative_to(folder);
    }
    args.put_over(&mut config);
    match config.mistakes_together() {
        mistakes if mistakes.is_empty() => Ok(config),
        mistakes => Err(mistakes),
    }
}

impl ServeArgs {
    /// Flags that were given replace what stands in the file.
    fn put_over(&self, config: &mut Config) {
        put(&mut config.root, self.dir.as_ref());
        put(&mut config.user, self.user.as_ref());
        put(&mut config.workers, self.workers.as_ref());
        put_all(&mut config.listen, &self.listen);
        put_all(&mut config.listen_tls, &self.listen_tls);
        self.put_over_uplink(config);
        self.put_over_log(config);
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            put_certificate(&mut config.tls, certificate, key);
        }
        put(&mut config.admin.listen, self.admin.as_ref());
        if let Some(seconds) = self.grace {
            config.limits.grace_seconds = seconds;
        }
    }

    fn put_over_uplink(&self, config: &mut Config) {
        let uplink = &mut config.uplink;
        put(
            &mut uplink.rate,
            self.uplink.map(|rate| rate.to_string()).as_ref(),
        );
        put(&mut uplink.policy, self.policy.as_ref());
        put(&mut uplink.share_by, self.share_by.map(Into::into).as_ref());
        put(
            &mut uplink.mechanism,
            self.mechanism.map(Into::into).as_ref(),
        );
        put(&mut uplink.bands, self.bands.as_ref());
        put(&mut uplink.ahead, self.ahead.as_ref());
        put(&mut uplink.device, self.uplink_device.as_ref());
        uplink.replace_qdisc |= self.replace_qdisc;
    }

    fn put_over_log(&self, config: &mut Config) {
        put(&mut config.log.access, self.access_log.as_ref());
        if let Some(format) = self.log_format {
            config.log.format = format.into();
        }
    }
}

/// One certificate over all of the file's. What the file's tables say for all names stays: who may
/// come is no matter of the certificate.
fn put_certificate(tables: &mut Vec<TlsConfig>, certificate: &Path, key: &Path) {
    let only = TlsConfig {
        certificate: from_command_line(certificate.into()),
        key: from_command_line(key.into()),
        client_ca: tables.iter().find_map(|table| table.client_ca.clone()),
        client_required: tables
            .iter()
            .find_map(|table| table.client_required.clone()),
        versions: tables.iter().find_map(|table| table.versions.clone()),
    };
    // One that says something else stays as well, for the check to refuse it.
    tables.retain(|table| {
        differs(table.client_ca.as_ref(), only.client_ca.as_ref())
            || differs(
                table.client_required.as_ref(),
                only.client_required.as_ref(),
            )
            || differs(table.versions.as_ref(), only.versions.as_ref())
    });
    tables.insert(0, only);
}

fn differs<T: PartialEq>(one: Option<&Spanned<T>>, other: Option<&Spanned<T>>) -> bool {
    one.zip(other)
        .is_some_and(|(one, other)| one.get_ref() != other.get_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(rest: [&str; 2]) -> Vec<TlsConfig> {
        let of = |rest| format!("[[tls]]\ncertificate = \"a\"\nkey = \"b\"\n{rest}\n");
        let mut config = Config::parse(&rest.map(of).concat()).unwrap();
        put_certificate(&mut config.tls, Path::new("c.pem"), Path::new("k.pem"));
        config.tls
    }

    #[test]
    fn a_certificate_leaves_the_files_word_on_clients() {
        let first = "client_ca = \"ca.pem\"\nclient_required = false";
        let tables = tables([first, "versions = [\"1.3\"]"]);
        let [only] = &tables[..] else {
            panic!("{tables:?}");
        };
        assert_eq!(only.certificate.get_ref(), Path::new("c.pem"));
        assert_eq!(only.key.get_ref(), Path::new("k.pem"));
        let client_ca = only.client_ca.as_ref().unwrap();
        assert_eq!(client_ca.get_ref(), Path::new("ca.pem"));
        assert!(!only.client_required.as_ref().unwrap().get_ref());
        assert_eq!(only.versions.as_ref().unwrap().get_ref().len(), 1);
    }

    #[test]
    fn tables_that_contradict_each_other_are_left_to_the_check() {
        let tables = tables(["client_ca = \"one.pem\"", "client_ca = \"other.pem\""]);
        let said = tables.iter().map(|table| table.client_ca.as_ref().unwrap());
        let said: Vec<_> = said.map(|file| file.get_ref().to_str().unwrap()).collect();
        assert_eq!(said, ["one.pem", "other.pem"]);
    }
}
