//! Random valid configurations, made from every key that the manual has.

use super::place::{ConfigFolder, certify};
use super::random::Random;
use sooner_policy::PolicyName;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

/// What the server has to answer once a configuration is in force.
pub struct Expected {
    /// The number that `/number.txt` holds.
    pub number: String,
    /// The servers that may answer below `/app`.
    pub servers: Vec<usize>,
    /// The path that they see when a client requests `/app/x`.
    pub path: &'static str,
}

/// Makes configurations that all serve a folder and pass `/app` on to some of `servers`.
pub struct Maker<'a> {
    pub random: Random,
    pub place: &'a ConfigFolder,
    pub servers: [String; 2],
    pub keys: BTreeSet<String>,
    text: String,
    table: &'static str,
    /// Whether classes share servers by weight.
    has_shares: bool,
    /// Whether they may have targets.
    has_targets: bool,
}

impl<'a> Maker<'a> {
    pub fn new(seed: u64, place: &'a ConfigFolder, servers: [String; 2]) -> Self {
        Self {
            random: Random(seed),
            place,
            servers,
            keys: BTreeSet::new(),
            text: String::new(),
            table: "",
            has_shares: false,
            has_targets: false,
        }
    }

    /// A configuration; `is_first` is one to start with, later ones change what takes effect at the
    /// next start too.
    pub fn make(&mut self, number: usize, is_first: bool) -> (String, Expected) {
        self.text.clear();
        let root = format!("root-{number}");
        fs::create_dir_all(self.place.path(&root)).unwrap();
        fs::write(
            self.place.path(&root).join("number.txt"),
            number.to_string(),
        )
        .unwrap();
        fs::write(self.place.path(&root).join("a.txt"), "one").unwrap();
        let users = "anna:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n";
        fs::write(self.place.path("users"), users).unwrap();
        self.table = "";
        self.put("listen", "[\"127.0.0.1:0\"]");
        let has_root = self.random.chance();
        if has_root {
            self.put("root", &format!("\"{root}\""));
        }
        self.put("listen_tls", "[\"127.0.0.1:0\"]");
        if is_first {
            // Or a server that starts may say first that it compresses nothing.
            self.put("compress", "true");
        } else {
            self.may("compress", &["true", "false"]);
        }
        // Classes come last, and what they may say depends on the upstreams' order.
        self.has_shares = self.random.chance();
        self.has_targets = !self.has_shares && self.random.chance();
        if self.has_targets {
            self.may("late", &["\"by-priority\"", "\"in-proportion\""]);
        }
        if !is_first {
            self.may("user", &["\"nobody\""]);
            self.may("workers", &["1", "3", "\"auto\""]);
            self.what_takes_effect_at_the_next_start();
        }
        self.limits();
        self.tables(is_first);
        if !has_root {
            self.sites(&root);
        }
        let servers = self.upstreams();
        let path = self.routes();
        self.classes();
        let expected = Expected {
            number: number.to_string(),
            servers,
            path,
        };
        (self.text.clone(), expected)
    }

    fn begin(&mut self, table: &'static str, header: &str) {
        self.table = table;
        writeln!(self.text, "{header}").unwrap();
    }

    fn note(&mut self, key: &str) {
        let path = match self.table {
            "" => key.to_owned(),
            table => format!("{table}.{key}"),
        };
        self.keys.insert(path);
    }

    fn put(&mut self, key: &str, value: &str) {
        self.note(key);
        writeln!(self.text, "{key} = {value}").unwrap();
    }

    fn may(&mut self, key: &str, values: &[&str]) {
        if self.random.chance() {
            let value = self.random.one(values);
            self.put(key, value);
        }
    }

    fn what_takes_effect_at_the_next_start(&mut self) {
        self.begin("uplink", "[uplink]");
        let rate = self.random.one(&["\"10mbit\"", "\"1gbit\""]);
        self.put("rate", rate);
        let policies = PolicyName::ALL.map(PolicyName::as_str);
        let policy = format!("\"{}\"", self.random.one(&policies));
        self.put("policy", &policy);
        if self.random.chance() {
            self.put("mechanism", "\"bands\"");
            self.may("bands", &["2", "8"]);
            self.may("device", &["\"lo\""]);
            self.may("replace_qdisc", &["true", "false"]);
        } else if self.random.chance() {
            self.may("mechanism", &["\"user-space\"", "\"auto\""]);
            self.may("ahead", &["\"5\"", "\"30kb\"", "\"20ms\""]);
            self.may("share_by", &["\"client\""]);
        } else {
            self.put("mechanism", "\"none\"");
        }
        self.may("streams", &["\"standard\"", "\"size\""]);
        self.may("trust_priority", &["true", "false"]);
    }

    fn limits(&mut self) {
        self.begin("limits", "[limits]");
        self.may("head_bytes", &["4096", "1048576"]);
        self.may("head_seconds", &["20", "31"]);
        self.may("idle_seconds", &["1", "75"]);
        self.may("receive_bytes_per_sec", &["0", "500"]);
        self.may("body_bytes", &["100", "1000000"]);
        self.may("connections", &["50", "500"]);
        self.may("connections_per_address", &["50", "500"]);
        self.may("streams_per_connection", &["1", "128"]);
        self.may("stall_seconds", &["50", "60"]);
        self.may("grace_seconds", &["0", "10"]);
        self.may("file_memory_bytes", &["0", "1000", "100000000"]);
    }

    fn tables(&mut self, is_first: bool) {
        self.begin("log", "[log]");
        if is_first {
            self.put("access", "\"access.log\"");
        } else {
            self.may("access", &["\"access.log\"", "\"off\"", "\"-\""]);
            self.may("format", &["\"json\"", "\"combined\""]);
            self.begin("admin", "[admin]");
            self.may("listen", &["\"127.0.0.1:0\""]);
            self.may("hosts", &["[\"metrics.example\"]"]);
        }
        self.compression();
        self.begin("proxy_protocol", "[proxy_protocol]");
        let from = self.random.one(&["[]", "[\"192.0.2.0/24\"]"]);
        self.put("from", from);
        self.begin("tls", "[[tls]]");
        let name = self.random.one(&["red", "blue"]);
        self.put("certificate", &format!("\"{name}.pem\""));
        self.put("key", &format!("\"{name}.key\""));
        if self.random.chance() {
            self.put("client_ca", "\"red.pem\"");
            self.may("client_required", &["true", "false"]);
        }
        self.may("versions", &["[\"1.3\"]", "[\"1.2\", \"1.3\"]"]);
    }

    fn compression(&mut self) {
        self.begin("compression", "[compression]");
        self.may("codings", &["[\"gzip\"]", "[\"br\", \"gzip\", \"zstd\"]"]);
        self.may("types", &["[\"text/*\", \"*+json\", \"a/b\"]", "[]"]);
        self.may("minimum_bytes", &["0", "1", "100000"]);
        self.may("gzip_level", &["1", "9"]);
        self.may("br_level", &["0", "5"]);
        self.may("zstd_level", &["1", "10"]);
        self.may("memory_bytes", &["4194304", "100000000"]);
        self.may("cache_bytes", &["0", "1000", "10000000"]);
    }

    fn sites(&mut self, root: &str) {
        for hosts in ["[]", "[\"a.example\", \"*.b.example\"]"] {
            self.begin("site", "[[site]]");
            self.put("hosts", hosts);
            self.put("root", &format!("\"{root}\""));
            self.may("index", &["[]", "[\"a.txt\", \"b.txt\"]"]);
            self.may("listing", &["\"auto\"", "\"off\""]);
            self.may("fallback", &["\"/a.txt\""]);
            self.may("dot_files", &["true", "false"]);
            self.may("symlinks", &["\"none\"", "\"inside\""]);
            self.may("precompressed", &["[]", "[\"zstd\", \"br\", \"gzip\"]"]);
            self.may("compress", &["true", "false"]);
            self.may("headers", &["{ X-A = \"1\" }", "{}"]);
            self.may("errors", &["{ 404 = \"/a.txt\" }", "{}"]);
            // One of the two answers each scheme.
            let scheme = if hosts == "[]" {
                "\"https\""
            } else {
                "\"http\""
            };
            self.may("scheme", &[scheme]);
            if self.random.chance() {
                self.begin("site.auth", "[[site.auth]]");
                self.put("file", "\"users\"");
                self.put("path", "\"/staff\"");
                self.may("realm", &["\"Staff\""]);
                self.begin("site.expires", "[[site.expires]]");
                let after = self.random.one(&["\"30d\"", "\"1h30m\"", "\"max\""]);
                self.put("after", after);
                self.may("path", &["\"/assets\""]);
                self.may("extensions", &["[\"css\", \"js\"]"]);
                self.may("types", &["[\"image/*\"]"]);
                self.may("immutable", &["true", "false"]);
                self.may("proxied", &["true", "false"]);
            }
            if self.random.chance() {
                self.begin("site.redirect", "[[site.redirect]]");
                self.put("from", "\"/old/*\"");
                self.put("to", "\"/new/$1\"");
                self.may("status", &["301", "308"]);
            }
            if self.random.chance() {
                self.location(root);
            }
        }
    }

    fn location(&mut self, root: &str) {
        self.begin("site.location", "[[site.location]]");
        self.put("paths", "[\"/elsewhere/*\", \"*.elsewhere\"]");
        self.may("ignore_case", &["true", "false"]);
        if self.random.chance() {
            self.put("status", "403");
            self.may("text", &["\"no\""]);
        } else if self.random.chance() {
            self.put("root", &format!("\"{root}\""));
            self.may("strip_prefix", &["\"/elsewhere/\""]);
        }
        self.may("index", &["[]", "[\"a.txt\"]"]);
        self.may("listing", &["\"html\"", "\"off\""]);
        self.may("fallback", &["\"/a.txt\""]);
        self.may("headers", &["{ X-A = \"2\" }", "{}"]);
        self.may("errors", &["{ 404 = \"/a.txt\" }", "{}"]);
        if self.random.chance() {
            self.begin("site.location.redirect", "[[site.location.redirect]]");
            self.put("from", "\"/elsewhere/old\"");
            self.put("to", "\"/new\"");
            self.may("status", &["301", "308"]);
        }
    }

    fn upstreams(&mut self) -> Vec<usize> {
        self.begin("proxy", "[proxy]");
        self.may("trusted", &["[]", "[\"127.0.0.0/8\"]"]);
        self.may("response_buffer_bytes", &["0", "100", "1000000"]);
        self.may("buffer_bytes", &["0", "1000", "1000000"]);
        self.may("look_bytes", &["1", "100", "1000000"]);
        let servers = match self.random.below(3) {
            0 => vec![0],
            1 => vec![1],
            _ => vec![0, 1],
        };
        let named: Vec<_> = (servers.iter())
            .map(|server| format!("\"http://{}\"", self.servers[*server]))
            .collect();
        // A long response keeps its place to the end, of the same server also after reloads: others
        // need one more.
        let fewest = match servers.len() {
            1 => "2",
            _ => "1",
        };
        self.upstream("app", &format!("[{}]", named.join(", ")), fewest);
        // Its certificates are others each time, also behind a table that did not change.
        certify(self.place, "ca", 2100);
        let secure = format!("[\"https://{}\"]", self.servers[0]);
        if self.random.chance() {
            self.upstream("secure", &secure, "1");
        } else {
            self.begin("upstream", "[[upstream]]");
            self.put("name", "\"secure\"");
            self.put("servers", &secure);
        }
        self.put("ca", "\"ca.pem\"");
        self.begin("upstream", "[[upstream]]");
        self.put("name", "\"scripts\"");
        self.put("servers", "[\"fastcgi+unix:/nowhere.sock\"]");
        self.table = "upstream.fastcgi";
        for key in ["root", "index", "fallback"] {
            self.note(key);
        }
        let scripts = "fastcgi = { root = \".\", index = \"a.php\", fallback = \"/a.php\" }";
        writeln!(self.text, "{scripts}").unwrap();
        servers
    }

    /// Whether it is one that is found.
    fn limit(&mut self, fewest: &str) -> bool {
        let is_found = self.random.chance();
        let has_limit = is_found || self.random.chance();
        if is_found {
            self.put("limit", "\"auto\"");
            self.may("limit_max", &["8", "300"]);
            self.may("throughput_loss", &["0.02", "0.2"]);
        } else if has_limit {
            let limit = self.random.one(&[fewest, "2", "100"]);
            self.put("limit", limit);
        }
        // Nothing waits without a limit.
        if has_limit {
            self.may("waiting_max", &["100", "1000"]);
            self.may("observe", &["true", "false"]);
        }
        is_found
    }

    fn upstream(&mut self, name: &str, servers: &str, fewest: &str) {
        self.begin("upstream", "[[upstream]]");
        self.put("name", &format!("\"{name}\""));
        self.put("servers", servers);
        let is_found = self.limit(fewest);
        if !self.has_shares && !self.has_targets {
            self.may(
                "share_by",
                &[
                    "\"client\"",
                    "\"header:x-key\"",
                    "\"cookie:c\"",
                    "\"body:user\"",
                ],
            );
            let orders = [
                "\"auto\"",
                "\"shortest\"",
                "\"fifo\"",
                "\"expected\"",
                "\"fcfs\"",
                "\"boost\"",
                "\"hrrn\"",
                "\"nudge\"",
            ];
            // There is nothing to follow without a limit.
            self.may("order", &orders[usize::from(!is_found)..]);
        }
        self.may(
            "tell_wait",
            &[
                "[]",
                "[\"server\"]",
                "[\"client\", \"server\"]",
                "[\"stream\"]",
            ],
        );
        self.may(
            "amount",
            &["\"length\"", "\"body:max_tokens\"", "\"query:rows\""],
        );
        self.may(
            "kind",
            &[
                "[\"path\", \"query\"]",
                "[\"query:route\", \"header:X-Model\"]",
            ],
        );
        for key in [
            "queue_seconds",
            "connect_seconds",
            "response_seconds",
            "idle_seconds",
        ] {
            self.may(key, &["50", "60.5"]);
        }
        self.may("keep_seconds", &["0.01", "60"]);
        self.may("retries", &["0", "2"]);
        self.may("fails", &["1", "1000"]);
        self.may("host", &["\"upstream\"", "\"h.example\""]);
        self.may(
            "headers",
            &["{ X-A = \"$remote_addr\", Accept-Encoding = \"\" }", "{}"],
        );
        self.health();
    }

    fn health(&mut self) {
        if !self.random.chance() {
            return;
        }
        let mut health = String::from("path = \"/health\"");
        self.table = "upstream.health";
        self.note("path");
        for (key, values) in [
            ("seconds", ["0.02", "5"]),
            ("fails", ["100", "1000"]),
            ("passes", ["1", "3"]),
        ] {
            self.note(key);
            write!(health, ", {key} = {}", self.random.one(&values)).unwrap();
        }
        self.table = "upstream";
        writeln!(self.text, "health = {{ {health} }}").unwrap();
    }

    /// With weights or targets, where upstreams have no order of their own; else with priorities.
    fn classes(&mut self) {
        for name in ["first", "second", "third"] {
            self.begin("class", "[[class]]");
            self.put("name", &format!("\"{name}\""));
            self.put("path", &format!("[\"/app/{name}/*\", \"/secure/{name}\"]"));
            if self.has_shares {
                self.may("weight", &["1", "30"]);
            } else {
                self.may("priority", &["1", "200"]);
            }
            if self.has_targets {
                let target = self
                    .random
                    .one(&["{ mean = \"30ms\" }", "{ p95 = \"1s\", p50 = \"9ms\" }"]);
                self.put("target", target);
                self.may("variability", &["\"reduce\""]);
            }
            let cap = self.random.one(&["requests", "transactions"]);
            self.may(cap, &["1"]);
            if self.random.chance() {
                self.put("longest", "\"2 s\"");
                self.put("longest_action", "\"cancel\"");
            }
            self.may("host", &["[\"*.example\", \"h.*\"]"]);
            self.may("method", &["[\"GET\", \"POST\"]"]);
            self.may("header", &["{ X-Tier = [\"gold*\"] }"]);
            self.may("cookie", &["{ plan = [\"pro\"] }"]);
            self.may("body", &["{ model = \"a*\", \"m.n\" = [1, true, \"x\"] }"]);
            self.may("address", &["[\"127.0.0.0/8\"]"]);
            self.may("tls_name", &["[\"h.example\"]"]);
            self.may("upstream", &["[\"app\", \"secure\"]"]);
        }
    }

    fn routes(&mut self) -> &'static str {
        let strips = self.random.chance();
        for (path, upstream) in [("/app", "app"), ("/secure", "secure")] {
            self.begin("route", "[[route]]");
            self.put("path", &format!("\"{path}\""));
            self.put("upstream", &format!("\"{upstream}\""));
            self.may("hosts", &["[]"]);
            self.may("class", &["0", "7"]);
            self.may("compress", &["true", "false"]);
            self.put("strip_prefix", if strips { "true" } else { "false" });
            self.may("files_first", &["true", "false"]);
            self.put("upgrade", "[\"websocket\"]");
            for key in [
                "queue_seconds",
                "response_seconds",
                "idle_seconds",
                "tunnel_seconds",
            ] {
                self.may(key, &["55", "70.25"]);
            }
        }
        if strips { "/x" } else { "/app/x" }
    }
}
