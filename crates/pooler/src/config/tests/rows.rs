//! The configuration in force as keys and values: all of them, in the words of the file.

use super::*;

/// Tables that may come several times. SHOW DATABASES, USERS and CLASSES have three of them.
const LISTS: [&str; 5] = ["tls.", "database.", "user.", "rule.", "class."];
/// Keys that hold a list of names.
const NAMES: [&str; 3] = ["listen", "admins", "watchers"];

#[test]
fn every_key_is_shown() {
    let rows = config(SHOP).as_rows();
    let shown: Vec<&str> = rows.iter().map(|(key, ..)| key.as_str()).collect();
    for key in sooner_config::keys::<Config>() {
        let is_of_list = LISTS.iter().any(|list| key.starts_with(list));
        // Of some times the unit may be left out.
        let in_full = format!("{key}_seconds");
        let is_shown = [&key, &in_full]
            .iter()
            .any(|own| shown.contains(&own.as_str()));
        assert!(is_of_list || is_shown, "{key}");
    }
}

/// A file that says what these rows say.
fn written(rows: &[(String, String, String)]) -> String {
    let mut text = String::new();
    let mut table = "";
    for (key, value, _) in rows.iter().filter(|(_, value, _)| !value.is_empty()) {
        let (own, name) = key.rsplit_once('.').unwrap_or(("", key));
        if own != table {
            text += &format!("[{own}]\n");
            table = own;
        }
        let is_bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
        if NAMES.contains(&name) {
            let names: Vec<&str> = value.split(", ").collect();
            text += &format!("{name} = {names:?}\n");
        } else if is_bare {
            text += &format!("{name} = {value}\n");
        } else {
            text += &format!("{name} = {value:?}\n");
        }
    }
    text
}

#[test]
fn each_value_can_be_written_back() {
    let target = "[[class]]\nname = \"fast\"\ntarget = { mean = \"30ms\" }\n";
    let weight = "[[class]]\nname = \"heavy\"\nweight = 2\n";
    let rule = "[[rule]]\nuser = [\"ann\"]\nauth = \"trust\"\n";
    let limits = "[limits]\ntransactions = \"auto\"\nconnections = 7\nkept_idle = 5\n\
                  idle_in_transaction_seconds = 9\nconnections_per_address = 3\n";
    let asked = "[auth_query]\nuser = \"asker\"\n";
    for (head, tables) in [
        ("", String::new()),
        (
            "listen = [\"127.0.0.1:1\", \"/run/x\"]\nauth = \"scram-sha-256\"\n\
             admins = [\"ann\"]\nmode = \"session\"\nmetrics = \"127.0.0.1:2\"\n\
             order = \"fcfs\"\nshare_by = \"application_name\"\nobserve = true\n",
            format!("{limits}{asked}"),
        ),
        ("order = \"expected\"\n", String::new()),
        ("order = \"auto\"\nusers = \"u.txt\"\n", String::new()),
        ("late = \"in-proportion\"\n", target.to_owned()),
        ("", target.to_owned()),
        ("", weight.to_owned()),
        ("auth = \"md5\"\n", rule.to_owned()),
        ("auth = \"plain\"\n", String::new()),
        ("auth = \"cert\"\n", String::new()),
    ] {
        let rows = config(&format!("{head}{SHOP}{tables}")).as_rows();
        let lists: String = [target, weight, rule]
            .into_iter()
            .filter(|one| tables == *one)
            .collect();
        let text = format!("{}{SHOP}{lists}", written(&rows));
        let again = Config::parse(&text).unwrap_or_else(|error| panic!("{error:?}: {text}"));
        assert_eq!(again.check(), Ok(()), "{text}");
        assert_eq!(again.as_rows(), rows, "{text}");
    }
}

#[test]
fn what_does_not_count_is_not_shown_as_if_it_did() {
    let value = |text: &str, key: &str| {
        let rows = config(&format!("{SHOP}{text}")).as_rows();
        let row = rows.into_iter().find(|(own, ..)| own == key);
        row.map(|(_, value, _)| value).unwrap()
    };
    assert_eq!(value("", "order"), "fifo");
    assert_eq!(value("", "late"), "");
    assert_eq!(value("", "auth"), "scram");
    let target = "[[class]]\nname = \"fast\"\ntarget = { mean = \"30ms\" }\n";
    // Classes set the order.
    assert_eq!(value(target, "order"), "");
    assert_eq!(value(target, "late"), "by-priority");
    // Rules say it.
    assert_eq!(value("[[rule]]\nauth = \"md5\"\n", "auth"), "");
}
