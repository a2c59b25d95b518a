//! From where lengths of responses are known besides heads in plain text, and why from one they are
//! not: TLS libraries, and sockets.

use sooner_kernel::classifier::{
    Classifier, ClassifierError, Options, lacks_for_sockets, lacks_for_tls,
};
use sooner_kernel::device::Device;

use super::config::{AttachConfig, Servers};
use super::tls_libraries::{Looked, TlsLibraries};

/// What is read, and what is missing for the rest.
#[derive(Debug)]
pub struct Sources {
    libraries: TlsLibraries,
    lacks_for_tls: Option<String>,
    lacks_for_sockets: Option<String>,
}

impl Sources {
    /// Puts the programs onto the device with all that this kernel takes; `options` becomes what it
    /// took.
    pub fn attach(
        device: &Device,
        options: &mut Options,
        config: &AttachConfig,
    ) -> Result<(Classifier, Sources), ClassifierError> {
        let is_behind = matches!(config.servers, Servers::Behind(_));
        let lacks = |is_wanted: bool, flag: &str, lacks: fn() -> Option<&'static str>| {
            if is_behind {
                Some("the servers are behind this host".to_owned())
            } else if !is_wanted {
                Some(flag.to_owned())
            } else {
                lacks().map(|what| format!("that needs {what}"))
            }
        };
        let mut sources = Sources {
            libraries: TlsLibraries::default(),
            lacks_for_tls: lacks(config.reads_tls, "--no-tls-lengths", lacks_for_tls),
            lacks_for_sockets: lacks(
                config.reads_sockets,
                "--no-socket-lengths",
                lacks_for_sockets,
            ),
        };
        options.reads_tls = sources.lacks_for_tls.is_none();
        options.reads_sockets = sources.lacks_for_sockets.is_none();
        let mut classifier = match Classifier::attach(device, options) {
            // All else may work all the same.
            Err(error) if options.reads_tls || options.reads_sockets => {
                (options.reads_tls, options.reads_sockets) = (false, false);
                for lacks in [&mut sources.lacks_for_tls, &mut sources.lacks_for_sockets] {
                    lacks.get_or_insert_with(|| error.to_string());
                }
                Classifier::attach(device, options)?
            }
            attached => attached?,
        };
        if let Some(look) = sources.look(config) {
            sources.take(&mut classifier, look());
        }
        Ok((classifier, sources))
    }

    /// A look for TLS libraries that came or went, which takes its time; none where they are not
    /// read.
    pub fn look(
        &self,
        config: &AttachConfig,
    ) -> Option<impl FnOnce() -> Looked + Send + 'static + use<>> {
        let is_read = self.lacks_for_tls.is_none();
        is_read.then(|| self.libraries.look(&config.servers))
    }

    /// Takes what such a look has found.
    pub fn take(&mut self, classifier: &mut Classifier, looked: Looked) {
        self.libraries.take(classifier, looked);
    }

    /// What is read, in a few words.
    pub fn description(&self) -> String {
        let problem = self.libraries.problem();
        let tls = match (&self.lacks_for_tls, problem, self.tls_libraries()) {
            (Some(why), _, _) => format!("not under TLS: {why}"),
            (None, Some(why), _) => format!("not under TLS everywhere: {why}"),
            (None, None, paths) if paths.is_empty() => "no TLS library found so far".to_owned(),
            (None, None, paths) => format!("under TLS before {}", paths.join(", ")),
        };
        match &self.lacks_for_sockets {
            // Said once: it is the same.
            Some(why) if self.lacks_for_tls.as_ref() != Some(why) => {
                format!("{tls}; not in sockets: {why}")
            }
            _ => tls,
        }
    }

    /// The paths of libraries that are read.
    pub fn tls_libraries(&self) -> Vec<String> {
        self.libraries.paths()
    }

    /// Why not, or not everywhere.
    pub fn tls_problem(&self) -> Option<String> {
        let own = self.lacks_for_tls.clone();
        own.or_else(|| self.libraries.problem().map(str::to_owned))
    }
}
