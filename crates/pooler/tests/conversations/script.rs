//! Random conversations: what each client sends, and where it waits for answers.

use std::fmt;

/// Numbers that look random, the same for the same seed (splitmix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Of a row that is more than one read, and no number.
const LONG_ROW_BYTES: usize = 100_000;

/// What a client does next.
#[derive(Clone, PartialEq, Eq)]
pub enum Step {
    /// It sends a message of this type, with this body.
    Send(u8, Vec<u8>),
    /// It waits until the server waits for it.
    Wait,
    /// Where its statement sleeps, it cancels that.
    Cancel,
    /// It says that nothing more comes, without a goodbye, and reads on.
    Close,
    /// What came so far is sent but for a part of the last message, and that after a moment.
    Halt,
    /// The same, but the rest never comes.
    CutOff,
}

/// As it can be read in one line.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait => write!(f, "wait"),
            Self::Cancel => write!(f, "cancel"),
            Self::Close => write!(f, "close"),
            Self::Halt => write!(f, "halt"),
            Self::CutOff => write!(f, "cut off"),
            Self::Send(tag, body) => {
                let body = String::from_utf8_lossy(body).replace('\0', "~");
                let body = body.trim_end_matches('~').trim_end();
                let body = match body.char_indices().nth(200) {
                    Some((end, _)) => &body[..end],
                    None => body,
                };
                match body {
                    "" => write!(f, "{}", char::from(*tag)),
                    body => write!(f, "{}({body})", char::from(*tag)),
                }
            }
        }
    }
}

fn send(tag: char, parts: &[&str]) -> Step {
    let body = parts
        .iter()
        .flat_map(|part| [part.as_bytes(), b"\0"].concat());
    Step::Send(tag as u8, body.collect())
}

fn bare(tag: char) -> Step {
    Step::Send(tag as u8, Vec::new())
}

fn query(sql: &str) -> Step {
    send('Q', &[sql])
}

fn parse(name: &str, sql: &str) -> Step {
    let Step::Send(tag, mut body) = send('P', &[name, sql]) else {
        unreachable!()
    };
    body.extend([0, 0]);
    Step::Send(tag, body)
}

fn bind(portal: &str, name: &str) -> Step {
    let body = [portal.as_bytes(), b"\0", name.as_bytes(), &[0; 7]].concat();
    Step::Send(b'B', body)
}

fn execute(portal: &str, rows: i32) -> Step {
    let body = [portal.as_bytes(), b"\0", &rows.to_be_bytes()].concat();
    Step::Send(b'E', body)
}

fn about(tag: char, kind: char, name: &str) -> Step {
    send(tag, &[&format!("{kind}{name}")])
}

/// A call of a function by number that does not exist.
fn call() -> Step {
    Step::Send(b'F', vec![0; 10])
}

/// What the clients of one conversation do.
pub type Script = Vec<Vec<Step>>;

/// The conversation of this seed.
pub fn script(seed: u64) -> Script {
    let mut dice = Dice::new(seed);
    let clients = 1 + dice.below(3);
    (0..clients)
        .map(|client| Writer::write(&mut dice, client))
        .collect()
}

/// One client's part, as it is written.
struct Writer<'a> {
    dice: &'a mut Dice,
    client: usize,
    steps: Vec<Step>,
}

impl Writer<'_> {
    fn write(dice: &mut Dice, client: usize) -> Vec<Step> {
        let parts = 1 + dice.below(7);
        let mut writer = Writer {
            dice,
            client,
            steps: Vec::new(),
        };
        for _ in 0..parts {
            writer.part();
            if writer.dice.one_in(2) {
                writer.steps.push(Step::Wait);
            }
        }
        if writer.dice.one_in(3) {
            writer.steps.push(bare('S'));
        }
        writer.halt();
        match writer.dice.below(12) {
            0 | 1 => writer.steps.push(Step::Close),
            2 => {
                let cut_off = writer.message();
                writer.steps.extend([Step::Wait, cut_off, Step::CutOff]);
            }
            _ => writer.steps.push(bare('X')),
        }
        writer.steps
    }

    /// Some messages come in two parts.
    fn halt(&mut self) {
        for step in std::mem::take(&mut self.steps) {
            let halts = matches!(step, Step::Send(..)) && self.dice.one_in(12);
            self.steps.push(step);
            if halts {
                self.steps.push(Step::Halt);
            }
        }
    }

    fn part(&mut self) {
        match self.dice.below(15) {
            0..=2 => {
                let sql = self.sql();
                self.steps.push(query(&sql));
            }
            3..=5 => self.extended(true),
            6..=7 => self.pipeline(),
            8..=9 => self.mixed(),
            10..=11 => self.copy(),
            12 => self.transaction(),
            13 => self.sleep(),
            _ => {
                for _ in 0..=self.dice.below(4) {
                    let message = self.message();
                    self.steps.push(message);
                }
            }
        }
    }

    fn sql(&mut self) -> String {
        let (client, number) = (self.client, self.dice.below(6));
        let one = match self.dice.below(28) {
            0..=2 => format!("select {number}"),
            3 => "select 1/0".into(),
            4..=6 => format!("insert into t{client} values ({number})"),
            7 => "begin".into(),
            8 => "commit".into(),
            9 => "rollback".into(),
            10 => "savepoint s".into(),
            11 => "rollback to s".into(),
            12 => "release s".into(),
            13 => format!("copy t{client} from stdin"),
            14 => format!("copy (select i from t{client} order by i) to stdout"),
            15 => format!("copy g{client} from stdin"),
            16 => format!("select i from t{client} order by i"),
            17 => format!("insert into d{client} values ({})", number / 3),
            18 => format!("delete from t{client} where i = {number}"),
            19 => format!("select generate_series(1, {})", 1 << (2 * number)),
            20 => format!("select {number}::text || $$'$$ /* copy; */"),
            21 => "selec".into(),
            22 => String::new(),
            23 => format!("execute {}", self.dice.one_of(&["a", "b", "c"])),
            24 => format!("deallocate {}", self.dice.one_of(&["a", "b", "c"])),
            25 => format!(
                "alter table t{client} alter i type {}",
                self.dice.one_of(&["int", "bigint"])
            ),
            _ => format!("update t{client} set i = i + 10 where i = {number}"),
        };
        match self.dice.below(9) {
            0 => format!("{one}; {}", self.sql()),
            _ => one,
        }
    }

    /// One without the names of other statements: in a prepared text they are those of when it is
    /// prepared.
    fn prepared_sql(&mut self) -> String {
        let sql = self.sql();
        let is_named = sql.contains("execute ") || sql.contains("deallocate ");
        if is_named { "select 7".into() } else { sql }
    }

    fn name(&mut self) -> &'static str {
        self.dice.one_of(&["", "", "", "a", "b", "c"])
    }

    fn portal(&mut self) -> &'static str {
        self.dice.one_of(&["", "", "", "p", "q"])
    }

    fn extended(&mut self, syncs: bool) {
        let (name, portal, sql) = (self.name(), self.portal(), self.prepared_sql());
        if !name.is_empty() && self.dice.one_in(3) {
            self.steps.push(about('C', 'S', name));
        }
        if !self.dice.one_in(5) {
            self.steps.push(parse(name, &sql));
        }
        if self.dice.one_in(4) {
            self.steps.push(about('D', 'S', name));
        }
        if !self.dice.one_in(9) {
            self.steps.push(bind(portal, name));
        }
        if self.dice.one_in(3) {
            self.steps.push(about('D', 'P', portal));
        }
        for _ in 0..=usize::from(self.dice.one_in(6)) {
            let rows = self.dice.one_of(&[0, 0, 0, 1, 2]);
            self.steps.push(execute(portal, rows));
        }
        if syncs {
            self.steps.push(bare('S'));
        }
    }

    fn pipeline(&mut self) {
        for _ in 0..2 + self.dice.below(4) {
            let syncs = self.dice.one_in(3);
            self.extended(syncs);
            if self.dice.one_in(5) {
                self.steps.push(bare('H'));
            }
            if self.dice.one_in(8) {
                self.steps.push(Step::Wait);
            }
        }
        self.steps.push(bare('S'));
    }

    /// Queries and calls within a batch of the extended protocol, half of which fails.
    fn mixed(&mut self) {
        self.extended(false);
        if self.dice.one_in(2) {
            self.steps.push(parse("", "select 1/0"));
            self.steps.push(bind("", ""));
            self.steps.push(execute("", 0));
        }
        for _ in 0..1 + self.dice.below(4) {
            match self.dice.below(5) {
                0 => self.steps.push(call()),
                1 => self.steps.push(bare('H')),
                2 => self.extended(false),
                _ => {
                    let sql = self.sql();
                    self.steps.push(query(&sql));
                }
            }
        }
        if !self.dice.one_in(4) {
            self.steps.push(bare('S'));
        }
    }

    fn copy(&mut self) {
        let table = self.dice.one_of(&["t", "t", "t", "g", "none"]);
        let sql = format!("copy {table}{} from stdin", self.client);
        let is_simple = self.dice.one_in(2);
        if is_simple {
            let more = if self.dice.one_in(5) {
                "; select 1; "
            } else {
                ""
            };
            let again = if more.is_empty() { "" } else { &sql };
            self.steps.push(query(&format!("{sql}{more}{again}")));
        } else {
            let name = self.name();
            self.steps
                .extend([parse(name, &sql), bind("", name), execute("", 0)]);
        }
        self.rows(is_simple);
        if !is_simple && !self.dice.one_in(5) {
            self.steps.push(bare('S'));
        }
    }

    fn rows(&mut self, is_simple: bool) {
        for _ in 0..=self.dice.below(2) {
            if self.dice.one_in(3) {
                self.steps.push(Step::Wait);
            }
            for _ in 0..self.dice.below(5) {
                let row = match self.dice.below(8) {
                    0 => "x\n".into(),
                    1 => "\\.\n".into(),
                    2 if self.dice.one_in(3) => "1".repeat(LONG_ROW_BYTES) + "\n",
                    number => format!("{}\n", 20 + number + self.dice.below(4) * 10),
                };
                self.steps
                    .push(match self.dice.below(if is_simple { 14 } else { 8 }) {
                        0 => bare('S'),
                        1 => bare('H'),
                        _ => Step::Send(b'd', row.into_bytes()),
                    });
                if self.dice.one_in(10) {
                    self.steps.push(Step::Wait);
                }
            }
            let end = match self.dice.below(9) {
                0 => send('f', &["no more"]),
                // Whatever else comes now ends the session, if the COPY is still on.
                1 => self.message(),
                _ => bare('c'),
            };
            self.steps.push(end);
        }
    }

    fn transaction(&mut self) {
        self.steps.push(query("begin"));
        for _ in 0..1 + self.dice.below(4) {
            match self.dice.below(3) {
                0 => {
                    let sql = self.sql();
                    self.steps.push(query(&sql));
                }
                1 => self.extended(true),
                _ => self.copy(),
            }
        }
        let end = self.dice.one_of(&["commit", "rollback", "end"]);
        self.steps.push(query(end));
    }

    /// The text names the client, because only that can be seen in the database.
    fn sleep(&mut self) {
        let sql = format!("select pg_sleep(30) /* of {} */", self.client);
        if self.dice.one_in(2) {
            self.steps.push(query(&sql));
        } else {
            self.steps
                .extend([parse("", &sql), bind("", ""), execute("", 0)]);
            if self.dice.one_in(2) {
                self.steps.push(query("select 5"));
            }
            self.steps.push(bare('S'));
        }
        self.steps.push(Step::Cancel);
        // A query takes its place, so that no later Bind sleeps, which no cancel request would end.
        self.steps.push(query(""));
    }

    fn message(&mut self) -> Step {
        let (name, portal, sql) = (self.name(), self.portal(), self.sql());
        match self.dice.below(14) {
            0 => query(&sql),
            1 | 2 => parse(name, &self.prepared_sql()),
            3 | 4 => bind(portal, self.dice.one_of(&["a", ""])),
            5 => about('D', self.dice.one_of(&['S', 'P']), "b"),
            6 | 7 => execute(portal, self.dice.one_of(&[0, 0, 1])),
            8 => about('C', self.dice.one_of(&['S', 'P']), name),
            9 => bare('H'),
            10 => bare('c'),
            11 => call(),
            12 => Step::Send(b'd', b"7\n".to_vec()),
            _ => bare('S'),
        }
    }
}
