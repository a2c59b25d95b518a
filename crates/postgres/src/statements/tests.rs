//! Statements of clients and of server connections, without a server.

use super::client::Refused;
use super::*;
use crate::wire::Column;
use proptest::prelude::*;
use std::collections::HashSet;

#[test]
fn equal_texts_of_all_clients_are_one_and_their_statements_are_not() {
    let mut all = Statements::default();
    let (one, same, other) = (
        all.share(b"", b"SELECT 1\0\0\0"),
        all.share(b"", b"SELECT 1\0\0\0"),
        all.share(b"", b"SELECT 2\0\0\0"),
    );
    assert!(Arc::ptr_eq(one.text(), same.text()));
    assert!(!Arc::ptr_eq(one.text(), other.text()));
    let names = [&one, &same, &other].map(|statement| statement.server_name());
    assert_eq!(names, ["sooner_1", "sooner_2", "sooner_3"].map(Vec::from));
}

#[test]
fn what_no_client_has_is_forgotten() {
    let mut all = Statements::default();
    for number in 0..100_000 {
        all.share(b"", format!("SELECT {number}").as_bytes());
    }
    assert!(all.len() * ENTRY_BYTES <= SWEEP_MIN_BYTES, "{}", all.len());
    // settings that change what a constant means make another text
    let [utc, tokyo] = [b"UTC", b"JST"].map(|zone| all.share(zone, b"SELECT 1"));
    assert!(!Arc::ptr_eq(utc.text(), tokyo.text()));
}

#[test]
fn a_client_has_names_of_its_own() {
    let (mut all, mut client) = (Statements::default(), ClientStatements::default());
    let [one, two] = [b"1", b"2"].map(|text| all.share(b"", text));
    assert_eq!(client.prepare(b"a", one.clone()), Ok(()));
    assert_eq!(client.prepare(b"a", two.clone()), Err(Refused::Exists));
    assert_eq!(client.named(b"a"), Ok(&one));
    assert_eq!(client.named(b"b"), Err(Refused::Unknown));
    // the one without a name gives way
    assert_eq!(client.prepare(b"", one), Ok(()));
    assert_eq!(client.prepare(b"", two.clone()), Ok(()));
    assert_eq!(client.named(b""), Ok(&two));
    client.close(b"a");
    client.close(b"a");
    assert_eq!(client.len(), 1);
}

#[test]
fn what_is_kept_for_a_client_is_bounded() {
    let (mut all, mut client) = (Statements::default(), ClientStatements::default());
    let (mut prepared, mut text_bytes) = (0_u32, 0);
    loop {
        let statement = all.share(b"", format!("{prepared:01000}").as_bytes());
        let name = prepared.to_be_bytes();
        if !client.has_room(&name, &statement) {
            break;
        }
        text_bytes += statement.text().key.len();
        assert_eq!(client.prepare(&name, statement), Ok(()));
        prepared += 1;
    }
    assert!((1500..2000).contains(&prepared), "{prepared}");
    assert!(client.kept_bytes() <= 4 << 20 && text_bytes < client.kept_bytes());
    // Only the one without a name has room beside them.
    let other = all.own(&[b'x'; 5000]);
    assert!(client.has_room(b"", &other) && !client.has_room(b"name", &other));
    for number in 0..prepared {
        client.close(&number.to_be_bytes());
    }
    assert_eq!(client.kept_bytes(), 0);
    // preparing the same again takes no more
    for _ in 0..3 {
        assert_eq!(client.prepare(b"", all.own(b"text")), Ok(()));
    }
    assert_eq!(client.kept_bytes(), ENTRY_BYTES + 2 * 4);
    client.close_named();
    assert_eq!(
        (client.len(), client.kept_bytes()),
        (1, ENTRY_BYTES + 2 * 4)
    );
    client.pass_on_unnamed(1);
    assert_eq!((client.len(), client.kept_bytes()), (0, 0));
}

/// Texts of a size that object-relational mappers make.
fn texts(count: usize) -> Vec<Vec<u8>> {
    let text = |number: usize| format!("{number:05500} $1, $2\0\0\0").into_bytes();
    (0..count).map(text).collect()
}

/// How many of these a client can prepare.
fn prepared(all: &mut Statements, client: &mut ClientStatements, texts: &[Vec<u8>]) -> usize {
    let mut names = (0..).map(|number: usize| number.to_string());
    let prepare = |text: &Vec<u8>| {
        let (name, statement) = (names.next()?, all.share(b"UTC", text));
        let has_room = client.has_room(name.as_bytes(), &statement);
        (has_room && client.prepare(name.as_bytes(), statement).is_ok()).then_some(())
    };
    texts.iter().map_while(prepare).count()
}

#[test]
fn the_statements_that_a_driver_caches_have_room() {
    let (mut all, mut client) = (Statements::default(), ClientStatements::default());
    assert_eq!(prepared(&mut all, &mut client, &texts(256)), 256);
}

#[test]
fn a_text_that_others_have_as_well_takes_less() {
    let (mut all, texts) = (Statements::default(), texts(1000));
    let clients = [(); 4].map(|()| ClientStatements::default());
    let counts = clients.map(|mut client| {
        let count = prepared(&mut all, &mut client, &texts);
        // It keeps them beside the next.
        (count, client)
    });
    let counts: Vec<usize> = counts.iter().map(|(count, _)| *count).collect();
    assert!(counts.is_sorted() && counts[0] < 500, "{counts:?}");
    assert_eq!(counts[3], 1000, "{counts:?}");
    // However many share a text, a client has a bounded number of bytes.
    let mut greedy = ClientStatements::default();
    let _others: Vec<_> = texts.iter().map(|text| all.share(b"UTC", text)).collect();
    let mut kept_bytes = 0;
    for number in 0..10 {
        let name = |at: usize| format!("{number} {at}");
        for (at, text) in texts.iter().enumerate() {
            let statement = all.share(b"UTC", text);
            if greedy.has_room(name(at).as_bytes(), &statement) {
                kept_bytes += text.len();
                greedy.prepare(name(at).as_bytes(), statement).unwrap();
            }
        }
    }
    assert!(kept_bytes <= 4 * (4 << 20), "{kept_bytes}");
}

#[test]
fn the_types_of_parameters_count() {
    let (mut all, mut client) = (Statements::default(), ClientStatements::default());
    let declares = b"$1\0\0\x01\0\0\0\x17";
    assert_eq!(client.prepare(b"", all.own(declares)), Ok(()));
    let text_bytes = 2 * declares.len();
    assert_eq!(client.kept_bytes(), ENTRY_BYTES + text_bytes + 7 + 4);
}

/// A shape with one parameter of this type, and one column of that.
fn description(parameter: u8, column: i32) -> Description {
    let column = Column {
        name: b"x",
        type_oid: column,
        type_modifier: -1,
    };
    Description::new(&[0, 1, 0, 0, 0, parameter], Some(&[column]))
}

/// One server connection, and the statements of clients by letters.
struct Play {
    all: Statements,
    server: ServerStatements,
    statements: HashMap<String, Arc<Statement>>,
}

impl Play {
    fn new(max: usize) -> Self {
        Self {
            all: Statements::default(),
            server: ServerStatements::new(max),
            statements: HashMap::new(),
        }
    }

    /// `+ab:7` a client prepares text `a` as `b`, and it is described with parameter 7; `.b` it is
    /// used: what serves for it, or `-` and it is prepared here; `xb` forgotten. What was closed
    /// for it stands in front.
    fn play(&mut self, steps: &str) -> String {
        steps
            .split(' ')
            .map(|step| self.step(step))
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn step(&mut self, step: &str) -> String {
        let (what, rest) = step.split_at(1);
        match what {
            "+" => {
                let (names, parameter) = rest.split_once(':').unwrap();
                let (text, name) = names.split_at(1);
                let statement = self.all.share(b"", text.as_bytes());
                self.statements.insert(name.into(), statement.clone());
                let closed = self.prepare(&statement, statement.number());
                statement.note_description(description(parameter.parse().unwrap(), 0));
                self.server.described(&statement);
                closed + name
            }
            "." => {
                let statement = self.statements[rest].clone();
                match self.server.find(&statement).cloned() {
                    Some(known) => {
                        self.server.touch(known.number());
                        self.name(&known)
                    }
                    None => {
                        let now = self.all.made();
                        let closed = self.prepare(&statement, now);
                        self.server.described(&statement);
                        format!("{closed}-")
                    }
                }
            }
            _ => {
                self.server.forget(self.statements[rest].number());
                "x".into()
            }
        }
    }

    fn prepare(&mut self, statement: &Arc<Statement>, parsed_at: u64) -> String {
        let closed = self.server.insert(ServerStatement {
            statement: statement.clone(),
            parsed_at,
            is_shared: true,
        });
        let names = closed
            .iter()
            .map(|known| format!("({})", self.name(&known.statement)));
        names.collect()
    }

    fn name(&self, statement: &Statement) -> String {
        let mut named = self.statements.iter();
        named
            .find(|(_, own)| ***own == *statement)
            .unwrap()
            .0
            .clone()
    }
}

#[test]
fn the_last_that_was_prepared_serves_for_those_before_it_and_not_for_later_ones() {
    let mut play = Play::new(10);
    assert_eq!(play.play("+ab:7 +ac:7 .b .c"), "b c c c");
    // the one before the last is closed when the next is prepared
    assert_eq!(play.play("+zd:7"), "(b)d");
    // on another connection each Parse is requested once
    play.server = ServerStatements::new(10);
    assert_eq!(play.play(".b .c .b"), "- b b");
    assert_eq!(play.play("+ad:7 .b .c .d"), "d d d d");
    // one that was prepared later elsewhere is prepared here too, and serves for all then
    let before = std::mem::replace(&mut play.server, ServerStatements::new(10));
    play.play("+ae:7");
    play.server = before;
    assert_eq!(play.play(".d .e .b"), "d (b)- e");
}

#[test]
fn one_of_another_shape_serves_for_none() {
    let mut play = Play::new(10);
    // the column was altered between the two
    assert_eq!(play.play("+ab:7 +ac:8 .b .c"), "b c b c");
    play.server = ServerStatements::new(10);
    assert_eq!(play.play(".c .b .c .b"), "- - c b");
}

#[test]
fn what_is_not_described_serves_for_itself() {
    let mut all = Statements::default();
    let [one, two] = [(); 2].map(|()| all.share(b"", b"SELECT 1"));
    let mut server = ServerStatements::new(10);
    server.insert(ServerStatement {
        statement: two.clone(),
        parsed_at: 2,
        is_shared: true,
    });
    assert_eq!((server.find(&one), server.find(&two)), (None, Some(&two)));
}

#[test]
fn the_statement_that_was_not_used_for_longest_gives_way() {
    let mut play = Play::new(2);
    assert_eq!(
        play.play("+aA:1 +bB:1 .A +cC:1 .B .A"),
        "A B A (B)C (A)- (C)-"
    );
}

#[test]
fn what_a_failed_cycle_did_not_do_is_not_believed() {
    let mut play = Play::new(1);
    play.play("+aA:1");
    let statement = play.all.share(b"", b"b");
    let known = ServerStatement {
        statement: statement.clone(),
        parsed_at: 2,
        is_shared: true,
    };
    let closed = play.server.insert(known);
    // neither was the second prepared nor the first closed
    play.server.forget(statement.number());
    closed
        .into_iter()
        .for_each(|closed| play.server.still_knows(closed));
    assert_eq!(play.play(".A +cC:1"), "A (A)C");
}

proptest! {
    #[test]
    fn a_server_connection_knows_what_was_prepared_and_not_closed(
        max in 1_usize..5,
        uses in prop::collection::vec((0_u8..8, any::<bool>()), 0..60),
    ) {
        let mut all = Statements::default();
        let mut server = ServerStatements::new(max);
        let mut model: HashSet<u64> = HashSet::new();
        let mut last: Vec<Option<Arc<Statement>>> = vec![None; 8];
        for (text, is_parse) in uses {
            let own = &mut last[usize::from(text)];
            let statement = match own {
                Some(statement) if !is_parse => statement.clone(),
                _ => own.insert(all.share(b"", &[text])).clone(),
            };
            if let Some(known) = server.find(&statement) {
                prop_assert!(model.contains(&known.number()));
                prop_assert!(known.number() >= statement.number());
                continue;
            }
            let parsed_at = all.made();
            for closed in server.insert(ServerStatement { statement: statement.clone(), parsed_at, is_shared: true }) {
                prop_assert!(model.remove(&closed.statement.number()));
            }
            model.insert(statement.number());
            statement.note_description(description(1, 2));
            server.described(&statement);
            prop_assert!(model.len() <= max);
            prop_assert_eq!(model.len(), server.len());
        }
    }
}
