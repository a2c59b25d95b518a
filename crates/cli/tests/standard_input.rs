//! `-` where a file is read once: standard input.

use assert_cmd::Command;
use sooner_testbed::port;

fn piped(words: &[&str], text: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sooner"));
    let done = command.args(words).write_stdin(text).assert().success();
    String::from_utf8(done.get_output().stdout.clone()).unwrap()
}

#[test]
fn models_and_other_servers_files_come_through_a_pipe() {
    let model = "sizes = 'exp:mean=1'\nschedule = 0.5\npolicy = 'fair'\n[users]\nkind = 'open'\n";
    let found = piped(&["sim", "-", "--jobs", "20000", "--json"], model);
    let found: serde_json::Value = serde_json::from_str(&found).unwrap();
    let exact = found["runs"][0]["exact_mean_response"].as_f64().unwrap();
    assert!((exact - 2.0).abs() < 1e-9, "{exact}");
    let address = port::free().unwrap();
    let nginx = format!("http {{ server {{ listen {address}; root /srv/www; }} }}\nevents {{}}\n");
    let site = piped(&["serve", "import", "-"], &nginx);
    assert!(site.contains("root = \"/srv/www\""), "{site}");
    let pgbouncer = "[databases]\napp = host=127.0.0.1\n[pgbouncer]\nlisten_port = 6432\n\
                     listen_addr = 127.0.0.1\nauth_type = any\n";
    let gate = piped(&["gate", "import", "-"], pgbouncer);
    assert!(gate.contains("name = \"app\""), "{gate}");
}
