//! What a client leaves behind on its server connection, what ties it and what is asked.

use super::*;
use crate::session::PossibleChanges;

#[test]
fn discard_all_forgets_and_unpins() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.turn("c:QLISTEN s:I");
    assert_eq!(talk.client.tied_by(), Some("LISTEN"));
    talk.turn("c:QDISCARD c:QLISTEN s:A s:I s:I");
    assert!(
        talk.client.tied_by().is_some() && talk.server.is_tainted,
        "it listens again"
    );
    talk.turn("c:QDISCARD s:A s:I");
    assert_eq!(talk.client.tied_by(), None);
    assert!(talk.client.statements.is_empty() && talk.server.statements.is_empty());
}

#[test]
fn what_a_text_means_only_here_serves_for_no_other_client() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    let mut first = std::mem::take(&mut talk.client);
    let prepares = "c:Pa=1 c:S s:1 s:t s:n s:T";
    let within = format!("c:QBEGIN s:T c:QSET/**/LOCAL s:T {prepares} c:QCOMMIT s:I");
    let is_asked = |talk: &mut Conversation, first: &mut ClientState| {
        talk.server.unreported.clear();
        std::mem::swap(&mut talk.client, first);
        let said = talk.turn("c:Ba s:1 s:t s:n c:Ba c:S s:2 s:I");
        talk.server = ServerState::new(10, Parameters::new());
        std::mem::swap(&mut talk.client, first);
        talk.next_client();
        said.starts_with("c:P#1,D#1,H?")
    };
    talk.server = ServerState::new(10, Parameters::new());
    talk.turn(&within);
    assert!(is_asked(&mut talk, &mut first));
    talk.client.pinned_by = Some("LISTEN");
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    assert!(is_asked(&mut talk, &mut first));
    // nor with settings of a first packet that others do not have
    let extra = (b"search_path".to_vec(), b"shop".to_vec());
    talk.server.unreported.extend([extra]);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    assert!(is_asked(&mut talk, &mut first));
    // but what is the same does
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.client = first;
    assert_eq!(talk.turn("c:Ba c:S s:2 s:I"), "c:B#5 c:S s:2 s:Z o");
}

#[test]
fn the_server_is_asked_for_what_may_have_changed() {
    let mut talk = Conversation::new(10);
    let asked = |talk: &Conversation| {
        let changes = &talk.client.changes;
        let names = changes
            .parameters
            .keys()
            .map(|name| String::from_utf8_lossy(name));
        let names: Vec<_> = names.collect();
        let ties = changes.ties.iter().map(crate::sql::Tie::words);
        let ties: Vec<_> = ties.collect();
        let resets = if changes.has_reset { "-" } else { "" };
        format!("{resets}{} {}", names.join(","), ties.join(","))
    };
    let mut changes = |events: &str| {
        talk.client.changes = PossibleChanges::default();
        talk.turn(events);
        asked(&talk)
    };
    assert_eq!(changes("c:Q s:I"), " ");
    assert_eq!(changes("c:QSET/**/work_mem=1 s:W s:I"), "work_mem ");
    // executed, not only prepared
    assert_eq!(changes("c:Pa=SET/**/b=1 c:S s:1 s:I"), " ");
    assert_eq!(changes("c:Ba c:E c:S s:2 s:W s:I"), "b ");
    assert_eq!(changes("c:QRESET/**/a.b s:R s:I"), "-a.b ");
    assert_eq!(changes("c:QLISTEN s:I"), " LISTEN");
    // what is known already is not asked again, and what is taken back only where it was
    assert_eq!(changes("c:QLISTEN s:I"), " ");
    assert_eq!(changes("c:QUNLISTEN/**/a s:I"), " LISTEN");
    assert_eq!(changes("c:QCLOSE/**/a s:I"), " ");
    talk.server
        .unreported
        .insert(b"geqo".to_vec(), b"off".to_vec());
    talk.client
        .unreported
        .insert(b"a.b".to_vec(), b"1".to_vec());
    let mut changes = |events: &str| {
        talk.client.changes = PossibleChanges::default();
        talk.turn(events);
        asked(&talk)
    };
    assert_eq!(changes("c:QRESET/**/ALL s:R s:I"), "-a.b,geqo ");
    assert_eq!(changes("c:QSET/**/a.b=1 s:W s:I"), " ", "it is");
    assert_eq!(changes("c:QSET/**/a.b=2;SET/**/a.b=1 s:W s:I"), "a.b ");
}

#[test]
fn what_makes_the_server_forget_is_answered_before_anything_else() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    // as Npgsql does
    let said = talk.turn("c:QDISCARD/**/ALL w:Pa=1 s:A s:I w:Pa=1");
    assert_eq!(said, "c:QDISCARD/**/ALL waits s:C s:Z goes o");
    assert!(!talk.server.is_tainted);
    let said = talk.turn("c:P=DEALLOCATE/**/ALL c:B c:E w:S c:S w:Q s:1 s:2 s:I");
    assert_eq!(said, "c:P c:B c:E goes c:S waits s:1 s:2 s:Z o");
}

#[test]
fn a_word_for_the_gate_counts_when_its_transaction_is_over_and_ties_nobody() {
    let mut talk = Conversation::new(10);
    let word = |talk: &Conversation| talk.client.session_class.clone().unwrap_or_default();
    talk.turn("c:QSET/**/sooner.class=gold s:W s:I");
    assert_eq!(
        (word(&talk).as_str(), talk.client.pinned_by),
        ("gold", None)
    );
    // The next client's first command is to be that it is forgotten there.
    assert!(talk.server.unreported.contains_key(&b"sooner.class"[..]));
    let in_transaction = "c:QSET/**/sooner.class=tin s:W s:T";
    talk.turn(&format!(
        "c:QBEGIN s:W s:T {in_transaction} c:QROLLBACK s:K s:I"
    ));
    assert_eq!(word(&talk), "gold", "rolled back");
    talk.turn("c:QSET/**/sooner.class=tin s:E s:I");
    assert_eq!(word(&talk), "gold", "refused");
    talk.turn(&format!(
        "c:QBEGIN s:W s:T {in_transaction} c:QCOMMIT s:W s:I"
    ));
    assert_eq!(word(&talk), "tin");
    talk.turn("c:P=RESET/**/sooner.class c:B c:E c:S s:1 s:2 s:R s:I");
    assert_eq!(word(&talk), "");
}

#[test]
fn a_prepared_word_for_the_gate_counts_each_time_that_it_is_executed() {
    let mut talk = Conversation::new(10);
    let word = |talk: &Conversation| talk.client.session_class.clone().unwrap_or_default();
    let is_left = |talk: &Conversation| {
        talk.server
            .unreported
            .contains_key(crate::sql::SESSION_CLASS.as_bytes())
    };
    talk.turn("c:Pgold=SET/**/sooner.class=gold c:S s:1 s:t s:n s:I");
    talk.turn("c:Pnone=RESET/**/sooner.class c:S s:1 s:t s:n s:I");
    assert!(word(&talk).is_empty() && !is_left(&talk), "only prepared");
    talk.turn("c:Bgold c:E c:S s:2 s:W s:I");
    assert_eq!(word(&talk), "gold");
    assert!(is_left(&talk) && talk.client.pinned_by.is_none());
    talk.turn("c:Bnone c:E c:S s:2 s:R s:I");
    assert_eq!(word(&talk), "");
    // On a server connection that does not know it, which has to forget it, too.
    talk.server = ServerState::new(10, Parameters::new());
    talk.turn("c:Bgold s:1 s:t s:n c:Bgold c:E c:S s:2 s:W s:I");
    assert!(word(&talk) == "gold" && is_left(&talk));
    talk.turn("c:Bnone s:1 s:t s:n c:Bnone c:E c:S s:2 s:E s:I");
    assert_eq!(word(&talk), "gold", "refused");
    talk.turn("c:QBEGIN s:W s:T c:Bnone c:E c:S s:2 s:R s:T c:QROLLBACK s:K s:I");
    assert_eq!(word(&talk), "gold", "rolled back");
    talk.next_client();
    talk.server.unreported.clear();
    talk.turn("c:Px=SET/**/sooner.class=gold c:Bx c:E c:S s:1 s:t s:n s:2 s:W s:I");
    assert_eq!(word(&talk), "gold");
    // Without a name, in a later turn.
    talk.turn("c:P=RESET/**/sooner.class c:S s:1 s:I");
    assert_eq!(word(&talk), "gold");
    talk.turn("c:B c:E c:S s:2 s:R s:I");
    assert_eq!(word(&talk), "");
}

#[test]
fn what_was_prepared_once_leaves_the_same_behind_again() {
    let mut talk = Conversation::new(10);
    talk.turn("c:Plocal=SET/**/LOCAL c:S s:1 s:t s:n s:I");
    talk.turn("c:Preset=RESET/**/ALL c:S s:1 s:t s:n s:I");
    assert!(!talk.client.changes.has_reset);
    talk.turn("c:Breset c:E c:S s:2 s:R s:I");
    assert!(talk.client.changes.has_reset);
    talk.client.changes = PossibleChanges::default();
    talk.turn("c:Pa=1 c:S s:1 s:t s:n s:I");
    talk.next_client();
    talk.turn("c:Plocal=SET/**/LOCAL c:S s:1 s:t s:n s:I");
    talk.turn(
        "c:QBEGIN s:T c:Blocal c:E c:S s:2 s:W s:T c:Pa=1 c:S s:3 s:1 s:t s:n s:T c:QCOMMIT s:I",
    );
    let number = talk.client.statements.named(b"a").unwrap().number();
    assert_eq!(number, 5, "what it means under the setting is its own");
}

/// However many commands execute each other, a message takes no longer.
#[test]
fn what_is_executed_is_followed_a_bounded_number_of_times() {
    let mut talk = Conversation::new(10);
    let text = |name: char| format!("EXECUTE/**/{name};").repeat(700);
    let names = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (name, next) in names.iter().zip(names.iter().cycle().skip(1)) {
        talk.turn(&format!("c:P{name}={} c:S s:1 s:I", text(*next)));
    }
    let mut rewriter = Rewriter::new(&mut talk.client, &mut talk.server, &talk.all);
    rewriter.note_session_changes(text('a').as_bytes());
    let pinned_by = Some("many commands that EXECUTE runs");
    assert_eq!(talk.client.pinned_by, pinned_by);
    // Those that leave nothing behind are not counted.
    talk.next_client();
    talk.turn("c:Pa=SELECT c:S s:1 s:t s:r s:I");
    let mut rewriter = Rewriter::new(&mut talk.client, &mut talk.server, &talk.all);
    rewriter.note_session_changes(text('a').as_bytes());
    assert_eq!(talk.client.pinned_by, None);
}

/// Settings that were reported of a new session.
fn reported(pairs: &[(&str, &str)]) -> Parameters {
    let bytes =
        |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    pairs.iter().map(bytes).collect()
}

/// A server reports what it has set when it is ready, and not before.
#[test]
fn what_is_prepared_behind_a_setting_in_the_same_cycle_serves_for_no_other_client() {
    let has = || {
        let zone = ("TimeZone", "Asia/Tokyo");
        reported(&[zone, ("DateStyle", "ISO, MDY"), ("application_name", "")])
    };
    let prepares = "c:Pa=1 c:S s:1 s:t s:n s:I";
    for (sets, is_own) in [
        ("c:P=SET/**/TimeZone='UTC' c:B c:E", true),
        ("c:P=SET/**/LOCAL/**/TimeZone='UTC' c:B c:E", true),
        (
            "c:P=SELECT/**/set_config('DateStyle',$1,false) c:B c:E",
            true,
        ),
        ("c:P=RESET/**/timezone c:B c:E", true),
        ("c:P=RESET/**/ALL c:B c:E", true),
        ("c:P=ROLLBACK c:B c:E", true),
        ("c:P=ROLLBACK/**/TO/**/a c:B c:E", true),
        ("c:P=COMMIT c:B c:E", true),
        ("c:P=SET/**/application_name='x' c:B c:E", false),
        ("c:P=SELECT c:B c:E", false),
    ] {
        let mut talk = Conversation::new(10);
        talk.server = ServerState::new(10, has());
        talk.turn(prepares);
        let mut first = std::mem::take(&mut talk.client);
        // The other prepares it itself behind the setting, or the gate does so for it.
        let elsewhere = format!("{sets} c:Pa=1 c:S s:1 s:2 s:W s:1 s:t s:n s:I");
        let again = format!("{sets} c:Ba s:1 s:2 s:W s:1 s:t s:n c:Ba c:S s:2 s:I");
        for (earlier, now) in [("", elsewhere), (prepares, again)] {
            talk.next_client();
            talk.turn(earlier);
            talk.server = ServerState::new(10, has());
            talk.turn(&now);
            talk.client.changes = PossibleChanges::default();
            std::mem::swap(&mut talk.client, &mut first);
            let (uses, expected) = if is_own {
                ("c:Ba s:1 s:t s:n c:Ba c:S s:2 s:I", "c:P#1,D#1,H?")
            } else {
                ("c:Ba c:S s:2 s:I", "c:B#")
            };
            let said = talk.turn(uses);
            std::mem::swap(&mut talk.client, &mut first);
            assert!(said.starts_with(expected), "{earlier} {now}: {said}");
        }
    }
}

#[test]
fn a_text_is_read_as_the_server_reads_it() {
    let listens = |has: &str, events: &str| {
        let mut talk = Conversation::new(10);
        talk.server = ServerState::new(10, reported(&[("standard_conforming_strings", has)]));
        talk.turn(events);
        talk.client.tied_by().unwrap_or_default()
    };
    let text = "INSERT('O\\'Brien');LISTEN/**/news";
    let other = "INSERT('O\\');LISTEN/**/news;--'";
    for (has, listened, hidden) in [("off", text, other), ("on", other, text)] {
        for events in ["c:Q{} s:I", "c:P={} c:B c:E c:S s:1 s:2 s:W s:I"] {
            assert_eq!(listens(has, &events.replace("{}", listened)), "LISTEN");
            assert_eq!(listens(has, &events.replace("{}", hidden)), "", "{hidden}");
        }
        // What it names is found there as well.
        let events = "c:Px=LISTEN/**/a c:S s:1 s:t s:n s:I c:Q{} s:I";
        let executes = listened.replace("LISTEN/**/news", "EXECUTE/**/x");
        assert_eq!(listens(has, &events.replace("{}", &executes)), "LISTEN");
    }
}

#[test]
fn a_text_that_may_be_read_in_two_ways_ties() {
    let mut talk = Conversation::new(10);
    let mut tied_by = |has: &str, events: &str| {
        talk.next_client();
        talk.server = ServerState::new(10, reported(&[("standard_conforming_strings", has)]));
        talk.turn(events);
        talk.client.tied_by().unwrap_or_default()
    };
    let strings = "standard_conforming_strings";
    let set = "c:P=SET/**/standard_conforming_strings=on c:B c:E";
    let rest = "c:B c:E c:S s:1 s:2 s:W s:1 s:2 s:W s:I";
    for (text, expected) in [("'a\\'", strings), ("'a\\b'", ""), ("'a'", "")] {
        let ahead = format!("{set} c:P={text} {rest}");
        assert_eq!(tied_by("off", &ahead), expected, "{ahead}");
        // Behind the answer nothing is in doubt.
        let later = format!("{set} c:S s:1 s:2 s:W s:I c:Q{text} s:I");
        assert_eq!(tied_by("off", &later), "", "{later}");
        let local = "c:QSET/**/LOCAL/**/standard_conforming_strings=off";
        let ahead = format!("c:QBEGIN s:W s:T {local} c:Q{text} s:W s:T s:W s:T c:QCOMMIT s:I");
        assert_eq!(tied_by("on", &ahead), expected, "{ahead}");
    }
    let alone = format!("c:P='a\\' c:B c:E c:P='a\\' {rest}");
    assert_eq!(tied_by("off", &alone), "");
}
