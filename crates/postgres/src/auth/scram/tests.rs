//! Both sides against each other, and against another implementation.

use super::*;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};
use proptest::prelude::*;

const SALT: &str = "W22ZaJ0SNY7soEsUEjb6gQ==";

fn pencil() -> Verifier {
    Verifier::of_password("pencil", &STANDARD.decode(SALT).unwrap())
}

/// RFC 7677, 3.
#[test]
fn the_example_of_the_standard() {
    let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    let (exchange, answer) = ServerExchange::begin(first, pencil(), nonce).unwrap();
    assert_eq!(
        answer,
        format!("r=rOprNGfwEbeRWgbNEkqO{nonce},s={SALT},i=4096")
    );
    let last = format!(
        "c=biws,r=rOprNGfwEbeRWgbNEkqO{nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let (answer, _) = exchange.end(last.as_bytes()).unwrap();
    assert_eq!(answer, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
}

/// An exchange with another implementation's client.
fn with_their_client(password: &str, verifier: Verifier) -> Result<Keys, ScramError> {
    let mut client = ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported());
    let (exchange, answer) = ServerExchange::begin(client.message(), verifier, "server").unwrap();
    client.update(answer.as_bytes()).unwrap();
    let (answer, keys) = exchange.end(client.message())?;
    client.finish(answer.as_bytes()).unwrap();
    Ok(keys)
}

#[test]
fn another_implementations_client_gets_in_with_the_password_only() {
    assert!(with_their_client("pencil", pencil()).is_ok());
    assert_eq!(
        with_their_client("pencils", pencil()).err(),
        Some(ScramError::Wrong)
    );
    let unknown = Verifier::of_nobody(&[7; 32], "ann", ITERATIONS);
    assert!(unknown == Verifier::of_nobody(&[7; 32], "ann", ITERATIONS));
    assert_eq!(
        with_their_client("pencil", unknown).err(),
        Some(ScramError::Wrong)
    );
    let theirs: Verifier = postgres_protocol::password::scram_sha_256("schl\u{fc}ssel".as_bytes())
        .parse()
        .unwrap();
    assert!(with_their_client("schl\u{fc}ssel", theirs).is_ok());
}

#[test]
fn a_client_that_was_let_in_can_be_logged_in_elsewhere_without_the_password() {
    let log_in = |proof: Proof, verifier: Verifier| {
        let (client, first) = ClientExchange::begin(proof, "client");
        let (server, answer) = ServerExchange::begin(first.as_bytes(), verifier, "server").unwrap();
        let (end, last) = client.answer(answer.as_bytes())?;
        let (answer, _) = server.end(last.as_bytes())?;
        end.check(answer.as_bytes())
    };
    let keys = with_their_client("pencil", pencil()).unwrap();
    let by_keys = Proof::Keys(keys);
    assert_eq!(log_in(by_keys.clone(), pencil()), Ok(()));
    let by_password = Proof::Password("pencil".into());
    assert_eq!(log_in(by_password, pencil()), Ok(()));
    // the same password under another salt is another verifier
    assert_eq!(
        log_in(by_keys, Verifier::of_password("pencil", b"other")),
        Err(ScramError::Wrong)
    );
}

#[test]
fn a_server_that_does_not_know_the_password_is_found_out() {
    let keys = with_their_client("pencil", pencil()).unwrap();
    let (client, _) = ClientExchange::begin(Proof::Keys(keys), "client");
    let (end, _) = client
        .answer(format!("r=clientx,s={SALT},i=4096").as_bytes())
        .unwrap();
    let forged = format!("v={}", STANDARD.encode([0; 32]));
    assert_eq!(end.check(forged.as_bytes()), Err(ScramError::Wrong));
}

#[test]
fn a_server_may_have_a_password_hashed_often_and_not_without_end() {
    let begin = |proof| ClientExchange::begin(proof, "client").0;
    let password = || begin(Proof::Password("pencil".into()));
    let first = |count: u32| format!("r=clientx,s={SALT},i={count}");
    assert_eq!(password().hashes(first(210_000).as_bytes()), 210_000);
    assert!(password().answer(first(210_000).as_bytes()).is_ok());
    let too_often = password().answer(first(2_000_001).as_bytes());
    assert_eq!(too_often.err(), Some(ScramError::TooOften));
    let keys = with_their_client("pencil", pencil()).unwrap();
    assert_eq!(begin(Proof::Keys(keys)).hashes(first(4096).as_bytes()), 0);
}

#[test]
fn what_is_no_message_of_the_exchange_is_refused() {
    for first in [
        "",
        "n",
        "n,,",
        "p=tls-server-end-point,,n=,r=x",
        "n,a=root,n=,r=x",
        "n,,n=,r=",
        "n,,n=,r=a b",
        "n,,m=x,n=,r=x",
    ] {
        let begun = ServerExchange::begin(first.as_bytes(), pencil(), "s");
        assert!(matches!(begun, Err(ScramError::Malformed(_))), "{first}");
    }
    for last in [
        "",
        "c=biws,r=xs",
        "c=eSws,r=xs,p=AAAA",
        "c=biws,r=other,p=AAAA",
        "c=biws,r=xs,p=AAAA",
    ] {
        let (exchange, _) = ServerExchange::begin(b"n,,n=,r=x", pencil(), "s").unwrap();
        assert!(
            matches!(exchange.end(last.as_bytes()), Err(ScramError::Malformed(_))),
            "{last}"
        );
    }
}

#[test]
fn a_verifier_is_read_or_refused() {
    let often = "SCRAM-SHA-256$210000:W22ZaJ0SNY7soEsUEjb6gQ==$CB0Sl+yQbquNhezX0SIjfy70F1z6uX6kmMfMGSSeG/w=:iBY+Pt4UAVsqj/IlPfk0a8mY1iykiOUvbBgNSbsdnR8=";
    let often: Verifier = often.parse().unwrap();
    assert_eq!(often.iterations(), 210_000);
    assert!(often.is_password("pencil") && !often.is_password("pencils"));
    let good = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    assert!(good.parse::<Verifier>().unwrap() == pencil());
    // It can be proved, and is compared with no password sent in clear text.
    let most: Verifier = good.replace("4096", "2147483647").parse().unwrap();
    assert!(!most.is_password("pencil"));
    for bad in [
        "SCRAM-SHA-256$".into(),
        good.replace("4096", "0"),
        good.replace("4096", "2147483648"),
        good.replace("4096", "-1"),
        good.replace("W22ZaJ0SNY7soEsUEjb6gQ==", ""),
        good.replace("WG5d", "!!!!"),
        good.replace("WG5d", ""),
    ] {
        assert!(bad.parse::<Verifier>().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn any_message_is_answered_or_refused(first in prop::collection::vec(any::<u8>(), 0..60), last in "c=biws,r=xs,p=.{0,60}") {
        let _ = ServerExchange::begin(&first, Verifier::of_nobody(&[0; 32], "x", ITERATIONS), "s");
        let (exchange, _) = ServerExchange::begin(b"n,,n=,r=x", Verifier::of_nobody(&[0; 32], "x", ITERATIONS), "s").unwrap();
        prop_assert!(exchange.end(last.as_bytes()).is_err());
    }
}
