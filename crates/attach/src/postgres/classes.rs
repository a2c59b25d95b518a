//! Which class a session is in, and of which kind its transaction is, by what pg_stat_activity
//! shows of it.

use std::collections::HashMap;
use std::rc::Rc;

use sooner_pooler::config::{ClassSubject, ClassTable};
use sooner_postgres::hints::Hints;
use sooner_postgres::sql::first_words;

use super::activity::{Phase, Session};

/// What is known of a session's transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The class, by number: those of the configuration in their order, then the one of all others.
    pub class: usize,
    /// What the transaction calls itself.
    pub kind: Option<Rc<str>>,
    /// Its statement without constants; of one that only makes room for others its first word.
    pub statement: Rc<str>,
}

#[derive(Debug)]
struct Known {
    transaction_us: Option<i64>,
    statement_us: i64,
    told: Told,
}

/// Finds classes; what a session's statement says is read once.
#[derive(Debug)]
pub struct Classifier {
    classes: Vec<ClassTable>,
    known: HashMap<i32, Known>,
}

impl Classifier {
    /// By these tables; the first that fits counts.
    pub fn new(classes: Vec<ClassTable>) -> Classifier {
        Classifier {
            classes,
            known: HashMap::new(),
        }
    }

    /// Names, the one of what is in no class last.
    pub fn names(&self) -> Vec<String> {
        let names = self
            .classes
            .iter()
            .map(|class| class.name.get_ref().clone());
        let rest = if self.classes.is_empty() {
            "all"
        } else {
            "(none)"
        };
        names.chain([rest.to_owned()]).collect()
    }

    /// The priority of a class, 1 first; what is in none has that of a class that names none.
    pub fn priority(&self, class: usize) -> u8 {
        let class = self.classes.get(class);
        class.map_or(100, |class| *class.priority.get_ref())
    }

    /// Whether there are classes at all.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Of a session with a user and a database of these names. What a transaction has said of itself
    /// once counts until its end.
    pub fn told(&mut self, session: &Session, user: &str, database: &str) -> Told {
        let before = self.known.get(&session.pid);
        let is_same = |known: &&Known| {
            known.statement_us == session.statement_us
                && known.transaction_us == session.transaction_us
        };
        if let Some(known) = before.filter(is_same) {
            return known.told.clone();
        }
        let hints = match session.phase {
            Phase::Idle => Hints::default(),
            _ => Hints::of(session.query.as_bytes()),
        };
        let of_this = before.filter(|known| {
            session.transaction_us.is_some() && known.transaction_us == session.transaction_us
        });
        let subject = ClassSubject {
            user,
            database,
            application_name: &session.application_name,
            address: session.address,
            session: "",
            hints: &hints,
        };
        let mut classes = self.classes.iter();
        let class = classes.position(|class| class.is_for(subject));
        let told = Told {
            class: match (class, of_this) {
                // Its comment may stand in the first statement alone.
                (Some(class), Some(known)) => class.min(known.told.class),
                (Some(class), None) => class,
                (None, Some(known)) => known.told.class,
                (None, None) => self.classes.len(),
            },
            kind: hints
                .named_kind()
                .map(Rc::from)
                .or_else(|| of_this.and_then(|known| known.told.kind.clone())),
            statement: match &hints.shape {
                Some(shape) => Rc::from(shape.text.as_str()),
                None => first_word(&session.query),
            },
        };
        let known = Known {
            transaction_us: session.transaction_us,
            statement_us: session.statement_us,
            told: told.clone(),
        };
        self.known.insert(session.pid, known);
        told
    }

    /// Forgets sessions that `keeps` does not want.
    pub fn retain(&mut self, keeps: impl Fn(i32) -> bool) {
        self.known.retain(|pid, _| keeps(*pid));
    }
}

fn first_word(query: &str) -> Rc<str> {
    let word = first_words(query.as_bytes()).next().unwrap_or_default();
    String::from_utf8_lossy(word).to_ascii_lowercase().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sooner_pooler::config::Config;

    const CLASSES: &str = "[[database]]\nname = \"*\"\nserver = \"postgresql://localhost\"\n\
        [[class]]\nname = \"pay\"\ncomment = { kind = [\"pay\"] }\n\
        [[class]]\nname = \"rest\"\n";

    fn session(transaction_us: Option<i64>, statement_us: i64, query: &str) -> Session {
        Session {
            pid: 7,
            user_id: 10,
            database_id: 5,
            application_name: String::new(),
            address: None,
            phase: match transaction_us {
                Some(_) => Phase::Active,
                None => Phase::Idle,
            },
            wait: None,
            transaction_us,
            statement_us,
            began_us: 0,
            now_us: statement_us,
            query: query.into(),
        }
    }

    #[test]
    fn what_the_first_statement_says_counts_until_the_end() {
        let classes = Config::parse(CLASSES).unwrap().class;
        let mut classifier = Classifier::new(classes);
        let mut class = |transaction_us, statement_us, query: &str| {
            let session = session(transaction_us, statement_us, query);
            classifier.told(&session, "ann", "shop").class
        };
        let of_one = [
            class(Some(1), 1, "BEGIN /*kind='pay'*/"),
            class(Some(1), 2, "UPDATE t SET a = 1"),
            class(Some(1), 3, "COMMIT"),
        ];
        assert_eq!(of_one, [0, 0, 0]);
        let of_next = [
            class(Some(4), 4, "BEGIN"),
            class(Some(4), 5, "UPDATE t SET a = 1 /*kind='pay'*/"),
            class(Some(4), 6, "SELECT 1"),
            class(Some(7), 7, "SELECT 1"),
        ];
        assert_eq!(of_next, [1, 0, 0, 1]);
    }
}
