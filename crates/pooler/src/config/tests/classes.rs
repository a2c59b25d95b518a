//! What a class takes, by what is known of a client and of its transaction.

use super::*;
use sooner_postgres::hints::Hints;

#[test]
fn a_class_is_who_fits_all_that_it_names() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"buyers\"\npriority = 1\nuser = [\"shop\"]\napplication_name = [\"checkout\"]\n"
    ));
    let silent = Hints::default();
    let of = |user, application_name| ClassSubject {
        user,
        database: "shop",
        application_name,
        address: None,
        session: "",
        hints: &silent,
    };
    let class = &config.class[0];
    assert!(class.is_for(of("shop", "checkout")));
    assert!(!class.is_for(of("shop", "report")) && !class.is_for(of("ann", "checkout")));
    assert!(!config.needs_hints());
}

#[test]
fn a_class_names_what_begins_so() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"a\"\nuser = [\"svc_*\", \"ann\"]\ndatabase = [\"sh*\"]\napplication_name = [\"batch*\"]\nsession = [\"*\"]\n"
    ));
    let silent = Hints::default();
    let is_in = |user, database, application_name, session| {
        config.class[0].is_for(ClassSubject {
            user,
            database,
            application_name,
            address: None,
            session,
            hints: &silent,
        })
    };
    assert!(is_in("svc_1", "shop", "batch 7", "any"));
    assert!(is_in("ann", "shop", "batch", ""));
    assert!(!is_in("anna", "shop", "batch", "") && !is_in("svc_1", "ship2", "bat", ""));
    assert!(!is_in("svc_1", "stock", "batch", ""));
}

#[test]
fn a_class_is_what_a_transaction_says_of_itself() {
    let config = config(&format!(
        "{SHOP}[[class]]\nname = \"word\"\nsession = [\"gold\"]\n\
         [[class]]\nname = \"pay\"\ncomment = {{ route = [\"/pay*\"], class = [\"gold\", \"silver\"] }}\n\
         [[class]]\nname = \"print\"\nfingerprint = [\"90356c2a5f55a6f1\"]\n\
         [[class]]\nname = \"shape\"\nstatement = [\"select a from*\", \"select b\"]\n"
    ));
    assert!(config.needs_hints());
    let class = |session: &str, sql: &str| {
        let hints = Hints::of(sql.as_bytes());
        let of = ClassSubject {
            user: "ann",
            database: "shop",
            application_name: "",
            address: None,
            session,
            hints: &hints,
        };
        let at = config.class.iter().find(|class| class.is_for(of));
        at.map_or("", |class| class.name.get_ref())
    };
    for (session, sql, expected) in [
        ("gold", "SELECT 1", "word"),
        ("", "/*class=silver,route=/pay/now*/ SELECT 1", "pay"),
        ("", "/*class=silver*/ SELECT 1", ""),
        ("", "/*class=tin,route=/pay*/ SELECT 1", ""),
        ("", "SELECT * FROM t WHERE id = 5", "print"),
        ("", "SELECT a FROM t", "shape"),
        ("", "SELECT b", "shape"),
        ("", "SELECT b, 1", ""),
        ("", "", ""),
    ] {
        assert_eq!(class(session, sql), expected, "{sql}");
    }
}
