//! A transaction that moves money and says so in the journal, in all the ways in which clients send
//! one.

use super::messages::{close, copied, execute, parse, query, sync};
use super::random::Random;

/// Accounts are numbered from 0.
pub const ACCOUNTS: u64 = 40;
/// Numbers of a client's transactions.
const TRANSFERS_MAX: u64 = 1_000_000;

/// Money that goes from one account to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// No other transfer has it.
    pub id: u64,
    pub from: u64,
    pub to: u64,
    pub amount: i64,
}

/// What is sent before the next answer is read.
pub struct Step {
    pub bytes: Vec<u8>,
    /// Whether the transaction may be committed once all of it has arrived.
    pub commits: bool,
    /// What the last command's tag is if all went well.
    pub tag: &'static str,
}

/// How a transaction is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A command at a time.
    Simple,
    /// All commands in one message.
    AtOnce,
    /// Statements that were prepared by name, one at a time.
    Prepared,
    /// The same, all before one Sync, which commits.
    Pipelined,
    /// The journal's line by COPY.
    Copy,
}

impl Style {
    /// One of them.
    pub fn choose(random: &mut Random) -> Self {
        let all = [
            Self::Simple,
            Self::AtOnce,
            Self::Prepared,
            Self::Pipelined,
            Self::Copy,
        ];
        all[random.below(all.len() as u64) as usize]
    }
}

/// Statements, by what they do; `$` stands for parameters.
const TEXTS: [&str; 3] = [
    "UPDATE accounts SET balance = balance - $1::bigint WHERE id = $2::int",
    "UPDATE accounts SET balance = balance + $1::bigint WHERE id = $2::int",
    "INSERT INTO journal SELECT $1::bigint, $2::int, $3::int, $4::bigint, current_setting('application_name')",
];

/// What a client calls the statement `index`: every client calls them by the same names, and by
/// each name something else.
pub fn statement_name(client: u64, index: usize) -> String {
    format!("s{}", (client as usize + index) % TEXTS.len())
}

/// Prepares all statements.
pub fn prepare_all(client: u64) -> Vec<u8> {
    let all =
        (0..TEXTS.len()).flat_map(|index| parse(&statement_name(client, index), TEXTS[index]));
    all.chain(sync()).collect()
}

/// Prepares one statement again.
pub fn prepare_again(client: u64, index: usize) -> Vec<u8> {
    let name = statement_name(client, index);
    [close(&name), parse(&name, TEXTS[index]), sync()].concat()
}

impl Transfer {
    /// Number `count` of a client's.
    pub fn choose(client: u64, count: u64, random: &mut Random) -> Self {
        let from = random.below(ACCOUNTS);
        let to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
        Self {
            id: client * TRANSFERS_MAX + count,
            from,
            to,
            amount: 1 + random.below(9) as i64,
        }
    }

    /// What its client says that it is called.
    pub fn name(&self) -> String {
        client_name(self.client())
    }

    fn client(&self) -> u64 {
        self.id / TRANSFERS_MAX
    }

    /// Its statements in this order: indexes into TEXTS with parameters. Accounts come in one order
    /// for all, because a deadlock takes a second.
    fn statements(&self) -> [(usize, Vec<String>); 3] {
        let words = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>();
        let amount = self.amount as u64;
        let mut updates = [
            (0, words(&[amount, self.from])),
            (1, words(&[amount, self.to])),
        ];
        if self.to < self.from {
            updates.reverse();
        }
        let [first, second] = updates;
        let line = words(&[self.id, self.from, self.to, amount]);
        [first, second, (2, line)]
    }

    /// How it is sent.
    pub fn steps(&self, style: Style) -> Vec<Step> {
        let step = |bytes, commits, tag| Step {
            bytes,
            commits,
            tag,
        };
        let begin = step(query("BEGIN"), false, "BEGIN");
        let end = step(query("COMMIT"), true, "COMMIT");
        let statements = self.statements();
        let tags = ["UPDATE 1", "UPDATE 1", "INSERT 0 1"];
        let bind = |(index, parameters): &(usize, Vec<String>)| {
            execute(&statement_name(self.client(), *index), parameters)
        };
        let texts = statements
            .iter()
            .map(|(index, parameters)| fill(*index, parameters));
        let texts: Vec<String> = texts.collect();
        let mut middle: Vec<Step> = match style {
            Style::Simple | Style::Copy => {
                let sent = texts.iter().zip(tags);
                sent.map(|(sql, tag)| step(query(sql), false, tag))
                    .collect()
            }
            Style::Prepared => {
                let sent = statements.iter().zip(tags);
                sent.map(|(statement, tag)| step([bind(statement), sync()].concat(), false, tag))
                    .collect()
            }
            Style::AtOnce => return vec![step(query(&texts.join(";")), true, tags[2])],
            Style::Pipelined => {
                let all = statements.iter().flat_map(bind).chain(sync());
                return vec![step(all.collect(), true, tags[2])];
            }
        };
        if style == Style::Copy {
            let row = [&statements[2].1[..], &[self.name()]].concat().join("\t");
            let bytes = [
                query("COPY journal FROM STDIN"),
                copied(&format!("{row}\n")),
            ]
            .concat();
            middle[2] = step(bytes, false, "COPY 1");
        }
        [begin].into_iter().chain(middle).chain([end]).collect()
    }
}

/// What a client says that it is called.
pub fn client_name(client: u64) -> String {
    format!("fire-{client}")
}

/// A statement with its parameters in it.
fn fill(index: usize, parameters: &[String]) -> String {
    let filled = parameters.iter().enumerate();
    filled.fold(TEXTS[index].to_owned(), |text, (at, parameter)| {
        text.replace(&format!("${}", at + 1), parameter)
    })
}
