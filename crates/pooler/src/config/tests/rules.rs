//! Which rule counts for a client.

use super::*;
use std::net::IpAddr;

#[test]
fn the_first_rule_that_fits_counts_and_who_fits_none_may_not_come() {
    let config = config(&format!(
        "{SHOP}[[rule]]\nuser = [\"ann\"]\naddress = [\"10.0.0.0/8\"]\nauth = \"trust\"\n\
         [[rule]]\nuser = [\"ann\"]\nauth = \"md5\"\n\
         [[rule]]\ntransport = \"unix\"\n"
    ));
    let required_auth = |user: &str, address: Option<&str>| {
        let address: Option<IpAddr> = address.map(|text| text.parse().unwrap());
        let transport = match address {
            Some(_) => Transport::Clear,
            None => Transport::Unix,
        };
        let client = LoginAttempt {
            user,
            database: "shop",
            address,
            transport,
        };
        super::required_auth(&config.rule, config.auth, client)
    };
    assert_eq!(required_auth("ann", Some("10.1.2.3")), AuthMethod::Trust);
    assert_eq!(required_auth("ann", Some("192.0.2.1")), AuthMethod::Md5);
    assert_eq!(required_auth("ann", None), AuthMethod::Md5);
    assert_eq!(required_auth("bob", None), AuthMethod::Scram);
    assert_eq!(required_auth("bob", Some("10.1.2.3")), AuthMethod::Reject);
    let client = LoginAttempt {
        user: "bob",
        database: "shop",
        address: None,
        transport: Transport::Unix,
    };
    assert_eq!(
        super::required_auth(&[], AuthMethod::Md5, client),
        AuthMethod::Md5
    );
}

#[test]
fn what_rules_say_of_one_name_of_the_gates_own_database_holds_for_the_other() {
    let config = config(&format!(
        "{SHOP}[[rule]]\ndatabase = [\"pgbouncer\"]\naddress = [\"10.0.0.5/32\"]\n\
         [[rule]]\ndatabase = [\"sooner\"]\nauth = \"reject\"\n[[rule]]\nauth = \"trust\"\n"
    ));
    let required_auth = |database: &str, address: &str| {
        let client = LoginAttempt {
            user: "ann",
            database,
            address: Some(address.parse().unwrap()),
            transport: Transport::Clear,
        };
        super::required_auth(&config.rule, config.auth, client)
    };
    for own in OWN_DATABASES {
        assert_eq!(required_auth(own, "10.0.0.5"), AuthMethod::Scram, "{own}");
        assert_eq!(required_auth(own, "10.0.0.6"), AuthMethod::Reject, "{own}");
    }
    assert_eq!(required_auth("shop", "10.0.0.5"), AuthMethod::Trust);
}
