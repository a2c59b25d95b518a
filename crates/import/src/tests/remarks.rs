//! Remarks in the result, and where they stand.

use super::*;

#[test]
fn a_remark_stands_above_what_it_is_about() {
    let made = |text: &str| {
        let imported = result(&[("p.ini", text), ("users.txt", "\"ann\" \"\"\n")]);
        imported.unwrap().text
    };
    let tls = "client_tls_cert_file=c.pem\nclient_tls_key_file=k.pem\nclient_tls_sslmode=require\n";
    let asked = "auth_type=trust\nauth_user=asker\n";
    for (text, below) in [
        ("[pgbouncer]\n".to_owned(), "auth = \"md5\""),
        (format!("[pgbouncer]\n{tls}"), "[[rule]]\nauth = \"md5\""),
        (
            format!("[pgbouncer]\nlisten_addr=127.0.0.1\n{asked}{tls}"),
            "[[rule]]\nauth = \"trust\"",
        ),
    ] {
        let made = made(&text);
        let remarks = [
            "# PgBouncer's default.\n",
            "with \"trust\" the gate does not.\n",
        ];
        let is_above = |remark: &&str| made.contains(&format!("{remark}{below}"));
        assert!(remarks.iter().any(is_above), "{made}");
        let is_stray = made.contains("# PgBouncer's default.\n\n");
        assert!(!is_stray, "{made}");
    }
}

#[test]
fn a_key_of_zalandos_image_is_left_out_with_the_reason() {
    has(
        "[pgbouncer]\nstats_users_prefix = robot_\n",
        &["# not carried over: stats_users_prefix = robot_: only the PgBouncer of Zalando's"],
    );
}
