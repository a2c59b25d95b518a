//! TLS with clients.

use crate::document::Group;
use crate::ini::ImportError;
use crate::rules::Rule;
use crate::translation::Translation;
use crate::values;

const MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];

impl Translation<'_> {
    fn client_mode(&self) -> String {
        let mode = self.source.word("client_tls_sslmode");
        mode.unwrap_or_else(|| "disable".into())
    }

    /// Whether clients can encrypt.
    pub fn can_encrypt(&self) -> bool {
        self.client_mode() != "disable"
    }

    /// Whether clients from elsewhere have to.
    pub fn must_encrypt(&self) -> bool {
        self.wants_certificates() || self.client_mode() == "require"
    }

    fn wants_certificates(&self) -> bool {
        ["verify-ca", "verify-full"].contains(&self.client_mode().as_str())
    }

    /// Whether clients can prove by a certificate who they are.
    pub fn can_check_certificates(&self) -> bool {
        self.can_encrypt() && self.source.get("client_tls_ca_file").is_some()
    }

    /// `auth_type = cert` does not go without them.
    pub fn check_certificates(&self) -> Result<(), ImportError> {
        if self.client_mode() == "verify-full" && self.can_check_certificates() {
            return Ok(());
        }
        let at = &self.source.settings["auth_type"].at;
        Err(at
            .wrong("auth_type: cert needs client_tls_sslmode = verify-full and client_tls_ca_file"))
    }

    /// The first of all rules, where there has to be one.
    pub fn reject_clear_text(&mut self) -> Result<(), ImportError> {
        let mode = self.client_mode();
        if !MODES.contains(&mode.as_str()) {
            return Err(self.wrong_mode("client_tls_sslmode"));
        }
        if self.must_encrypt() {
            let words =
                format!("client_tls_sslmode = {mode}: socket files may be used in clear text.");
            self.write_rule(&Rule {
                comment: Some(words),
                transport: Some("clear"),
                ..Rule::everybody("reject")
            });
        }
        Ok(())
    }

    /// A mode that there is not.
    pub fn wrong_mode(&self, key: &str) -> ImportError {
        let setting = &self.source.settings[key];
        let modes = MODES.join(", ");
        let value = &setting.value;
        setting
            .at
            .wrong(format!("{key}: {value:?} is not a mode; use {modes}"))
    }

    /// `[[tls]]`.
    pub fn tls(&mut self) -> Result<(), ImportError> {
        let keys = ["client_tls_cert_file", "client_tls_key_file"];
        if !self.can_encrypt() {
            for key in [
                keys[0],
                keys[1],
                "client_tls_ca_file",
                "client_tls_protocols",
            ] {
                let said = self.source.get(key);
                // What PgBouncer has by itself, by both of its names.
                let is_default = |value: &str| ["secure", "default"].contains(&value);
                if said.is_some_and(|own| !is_default(&own.value)) {
                    let why =
                        "with client_tls_sslmode = disable, the default, clients cannot encrypt";
                    self.leave_out(Group::Tls, key, why);
                }
            }
            return Ok(());
        }
        let mut paths = Vec::new();
        for key in keys {
            let Some(setting) = self.source.get(key) else {
                let at = &self.source.settings["client_tls_sslmode"].at;
                return Err(at.wrong(format!(
                    "client_tls_sslmode: clients can encrypt only with a certificate; write {key}"
                )));
            };
            paths.push(self.files.absolute(&setting.value));
        }
        self.document.table(Group::Tls, "[[tls]]");
        self.document.text(Group::Tls, "certificate", &paths[0]);
        self.document.text(Group::Tls, "key", &paths[1]);
        self.client_ca()?;
        self.versions()
    }

    fn client_ca(&mut self) -> Result<(), ImportError> {
        let Some(setting) = self.source.get("client_tls_ca_file") else {
            if !self.wants_certificates() {
                return Ok(());
            }
            let at = &self.source.settings["client_tls_sslmode"].at;
            return Err(at.wrong(
                "client_tls_sslmode: write client_tls_ca_file, who signs the clients' certificates",
            ));
        };
        let path = self.files.absolute(&setting.value);
        let by_rule = self.source.word("auth_type").as_deref() == Some("hba");
        if !self.wants_certificates() && !by_rule {
            let why = "without verify-ca or verify-full clients' certificates are not checked";
            self.leave_out(Group::Tls, "client_tls_ca_file", why);
            return Ok(());
        }
        self.document.text(Group::Tls, "client_ca", &path);
        let is_required = self.wants_certificates();
        self.document
            .value(Group::Tls, "client_required", is_required);
        Ok(())
    }

    fn versions(&mut self) -> Result<(), ImportError> {
        let Some(setting) = self.source.get("client_tls_protocols") else {
            return Ok(());
        };
        let mut versions: Vec<String> = Vec::new();
        let mut is_same = true;
        for name in values::list(&setting.value.to_ascii_lowercase().replace(':', ",")) {
            match name.as_str() {
                "secure" | "default" => versions.extend(["1.2".into(), "1.3".into()]),
                "all" | "legacy" => {
                    versions.extend(["1.2".into(), "1.3".into()]);
                    is_same = false;
                }
                "tlsv1.2" => versions.push("1.2".into()),
                "tlsv1.3" => versions.push("1.3".into()),
                "tlsv1.0" | "tlsv1.1" => is_same = false,
                "tlsv1" => {
                    versions.extend(["1.2".into(), "1.3".into()]);
                    is_same = false;
                }
                _ => {
                    return Err(setting.at.wrong(format!(
                        "client_tls_protocols: {name:?} is not a protocol; use tlsv1.2, tlsv1.3, secure and all"
                    )));
                }
            }
        }
        versions.sort();
        versions.dedup();
        if !is_same {
            let why = "TLS 1.0 and 1.1 are broken, and not to be had";
            self.leave_out(Group::Tls, "client_tls_protocols", why);
        }
        if versions.len() == 1 {
            self.document.list(Group::Tls, "versions", &versions);
        }
        Ok(())
    }
}
