//! What is in force: flags over the file over defaults.

use super::args::ServeArgs;
use crate::config_file::{located, put, put_all, read};
use sooner_operate::say;
use sooner_web::config::{Config, Misconfigured, SourceText, from_command_line};
use sooner_web::tls::TlsConfig;
use std::path::Path;

/// Keys that flags put over the file.
const FLAGS: &[(&str, &str)] = &[
    ("root", "DIR"),
    ("user", "--user"),
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
        put_all(&mut config.listen, &self.listen);
        put_all(&mut config.listen_tls, &self.listen_tls);
        self.put_over_uplink(config);
        self.put_over_log(config);
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            config.tls = vec![TlsConfig {
                certificate: from_command_line(certificate.clone()),
                key: from_command_line(key.clone()),
                client_ca: None,
                client_required: None,
                versions: None,
            }];
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
