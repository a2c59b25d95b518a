//! How many connections a server allows, which it says itself, and how many of the recent
//! transactions had to log in first.

use crate::pool::server_session::{LoginError, ServerSession};
use std::time::{Duration, Instant};

/// Known for so long; another value needs a new start of the server, after which it is asked again.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Of the connections that a server allows, the others are for those who come by another way.
const SHARE: (usize, usize) = (3, 4);

/// What a server has said of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// `max_connections`.
    pub max: usize,
    /// Of these, those that only some roles may have.
    pub reserved: usize,
}

impl Capacity {
    /// Those that every role may have.
    pub fn free(self) -> usize {
        self.max.saturating_sub(self.reserved).max(1)
    }

    /// How many the gate keeps where nothing is said: three quarters, or all that transactions
    /// need.
    pub fn kept(self, transactions_most: usize) -> usize {
        let share = self.free() * SHARE.0 / SHARE.1;
        share.max(transactions_most).min(self.free()).max(1)
    }
}

/// What is known of a server's capacity, and since when.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownCapacity {
    capacity: Option<Capacity>,
    asked_at: Option<Instant>,
}

impl KnownCapacity {
    /// Whether the next session has to be asked.
    pub fn is_old(self) -> bool {
        self.asked_at.is_none_or(|at| at.elapsed() >= KNOWN_FOR)
    }

    /// The next session will be asked, and no other meanwhile.
    pub fn changes(self) -> Self {
        let asked_at = Some(Instant::now());
        Self { asked_at, ..self }
    }

    /// This was the answer; a server that has none is taken as it was.
    pub fn answered(self, capacity: Option<Capacity>) -> Self {
        Self {
            capacity: capacity.or(self.capacity),
            ..self
        }
    }

    /// What it has said last.
    pub fn capacity(self) -> Option<Capacity> {
        self.capacity
    }
}

/// Asks a new session; `None` where the server does not know.
pub async fn ask(session: &mut ServerSession) -> Result<Option<Capacity>, LoginError> {
    let mut parameters = std::mem::take(&mut session.parameters);
    let mut sql = "SHOW max_connections;SHOW superuser_reserved_connections".to_owned();
    let version = parameters.get(&b"server_version"[..]).map(Vec::as_slice);
    if major(version.unwrap_or_default()) >= Some(16) {
        sql.push_str(";SHOW reserved_connections");
    }
    let answer = session.query(sql.as_bytes(), &mut parameters).await;
    session.parameters = parameters;
    let rows = match answer {
        Ok(rows) => rows,
        Err(LoginError::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let numbers = rows.iter().flatten().flatten();
    let numbers: Result<Vec<usize>, _> = numbers.map(|text| text.parse()).collect();
    Ok(match numbers.as_deref() {
        Ok([max, reserved @ ..]) if *max > 0 => Some(Capacity {
            max: *max,
            reserved: reserved.iter().sum(),
        }),
        _ => None,
    })
}

fn major(version: &[u8]) -> Option<u32> {
    let digits = version.split(|byte| !byte.is_ascii_digit()).next()?;
    str::from_utf8(digits).ok()?.parse().ok()
}

/// So many transactions are looked at together.
const TRANSACTIONS: u64 = 100;
/// Fewer logins are no news.
const LOGINS_MIN: u64 = 10;
/// Between two lines.
const PAUSE: Duration = Duration::from_secs(3600);

/// Recent transactions of a server, and those that had to log in first.
#[derive(Debug, Default)]
pub struct LoginShare {
    transactions: u64,
    logins: u64,
    waits: u64,
    opening: Duration,
    said_at: Option<Instant>,
}

/// Too many transactions had to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManyLogins {
    /// That had to.
    pub logins: u64,
    /// Of so many.
    pub transactions: u64,
    /// That had to wait before they could.
    pub waits: u64,
    /// How long a login took in the mean.
    pub mean: Duration,
}

impl LoginShare {
    /// A transaction has its connection; `opening` is how long its login took, if it needed one.
    pub fn note(&mut self, opening: Option<Duration>) {
        self.transactions += 1;
        if let Some(opening) = opening {
            self.logins += 1;
            self.opening += opening;
        }
    }

    /// A transaction has to wait before it may log in.
    pub fn note_wait(&mut self) {
        self.waits += 1;
    }

    /// Looks whether more than a tenth had to log in, or many had to wait for that; told at most
    /// once an hour.
    pub fn look(&mut self, now: Instant) -> Option<ManyLogins> {
        if self.transactions < TRANSACTIONS {
            return None;
        }
        let (logins, transactions) = (self.logins, self.transactions);
        let opening = std::mem::take(&mut self.opening);
        let waits = std::mem::take(&mut self.waits);
        (self.logins, self.transactions) = (0, 0);
        let is_much = logins >= LOGINS_MIN && (logins * 10 > transactions || waits >= LOGINS_MIN);
        let is_soon = |at: Instant| now.duration_since(at) < PAUSE;
        if !is_much || self.said_at.is_some_and(is_soon) {
            return None;
        }
        self.said_at = Some(now);
        Some(ManyLogins {
            logins,
            transactions,
            waits,
            mean: opening.div_f64(logins as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_left_to_others_unless_transactions_need_it() {
        let kept = |max, reserved, transactions| Capacity { max, reserved }.kept(transactions);
        assert_eq!(kept(100, 3, 20), 72);
        assert_eq!(kept(100, 3, 90), 90);
        assert_eq!(kept(100, 3, 500), 97);
        assert_eq!(kept(4, 3, 20), 1);
        assert_eq!(kept(2, 3, 1), 1);
    }

    #[test]
    fn more_than_a_tenth_is_told_once() {
        let mut share = LoginShare::default();
        let now = Instant::now();
        let ten_ms = Duration::from_millis(10);
        let pass = |share: &mut LoginShare, logins: u64| {
            for number in 0..100 {
                share.note((number < logins).then_some(ten_ms));
            }
        };
        share.note(Some(ten_ms));
        assert_eq!(share.look(now), None, "too few");
        pass(&mut share, 8);
        assert_eq!(share.look(now), None);
        pass(&mut share, 20);
        let told = share.look(now).unwrap();
        assert_eq!(
            (told.logins, told.transactions, told.mean),
            (20, 100, ten_ms)
        );
        assert_eq!(told.waits, 0);
        pass(&mut share, 100);
        assert_eq!(share.look(now + Duration::from_secs(60)), None);
        pass(&mut share, 100);
        assert!(share.look(now + PAUSE).is_some());
    }

    #[test]
    fn few_logins_are_told_where_many_wait_for_them() {
        let mut share = LoginShare::default();
        for number in 0..1000 {
            share.note((number < 10).then_some(Duration::from_millis(10)));
        }
        assert_eq!(share.look(Instant::now()), None);
        for number in 0..1000 {
            share.note((number < 10).then_some(Duration::from_millis(10)));
            (number < 10).then(|| share.note_wait());
        }
        let told = share.look(Instant::now()).unwrap();
        assert_eq!((told.logins, told.waits), (10, 10));
    }
}
