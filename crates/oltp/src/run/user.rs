//! One user.

use std::rc::Rc;
use std::time::Duration;

use sooner_workload::Rng;
use tokio::time::sleep;

use super::Options;
use super::measured::Done;
use crate::{DatabaseUrl, Ended, Failure, Kit, Session, Unusable};

/// A transaction in the way of others is tried so often.
const TRIES_MAX: u32 = 100;
/// Before the next try comes a pause that is longer each time, or two keep meeting.
const STEP: Duration = Duration::from_millis(1);
const STEPS_MAX: u32 = 16;
/// Streams of random numbers: those of users are counted from here.
const USERS_PURPOSE: u64 = 1000;

/// One, with a connection for each class.
pub struct User<K: Kit> {
    kit: Rc<K>,
    state: K::User,
    pub random: Rng,
    /// One for each class.
    sessions: Vec<Session>,
}

impl<K: Kit> User<K> {
    /// The one of this number, connected.
    pub async fn open(
        kit: Rc<K>,
        url: &DatabaseUrl,
        options: &Options,
        number: u32,
    ) -> Result<Self, Unusable> {
        let mut random = Rng::new(options.seed, USERS_PURPOSE + u64::from(number));
        let mut sessions = Vec::new();
        for class in &options.classes {
            let Options {
                isolation,
                statements,
                ..
            } = *options;
            let texts = kit.statements();
            let session = Session::open(url, &class.name, texts, isolation, statements);
            sessions.push(session.await?);
        }
        Ok(Self {
            state: kit.user(number, &mut random),
            kit,
            random,
            sessions,
        })
    }

    /// Whether one of its connections is gone; it does not come back.
    pub fn is_gone(&self) -> bool {
        self.sessions.iter().any(Session::is_closed)
    }

    /// The next transaction, tried again while it is in the way of others.
    pub async fn next(&mut self, options: &Options) -> Done {
        let done = self.try_next(options).await;
        done.map_err(|failure| failure.sqlstate())
    }

    async fn try_next(&mut self, options: &Options) -> Result<(usize, usize, u32, bool), Failure> {
        let kind = self.kit.draw(&mut self.state, &mut self.random);
        let name = self.kit.kinds()[kind];
        let class = options.class(name, self.random.uniform());
        let remark = if options.remarks {
            format!("/*class='{}',kind='{name}'*/ ", options.classes[class].name)
        } else {
            String::new()
        };
        let session = &self.sessions[class];
        let mut retries = 0;
        let values = self.random.clone();
        loop {
            // The same values again.
            let mut random = values.clone();
            let carried_out =
                self.kit
                    .carry_out(session, &mut self.state, kind, &remark, &mut random);
            match carried_out.await {
                Ok(ended) => {
                    self.random = random;
                    return Ok((class, kind, retries, ended == Ended::RolledBack));
                }
                Err(failure) if failure.is_conflict() && retries < TRIES_MAX => {
                    session.roll_back().await?;
                    retries += 1;
                    let steps = f64::from(retries.min(STEPS_MAX));
                    sleep(STEP.mul_f64(steps * self.random.exponential())).await;
                }
                Err(failure) => {
                    self.random = random;
                    if !session.is_closed() {
                        session.roll_back().await?;
                    }
                    return Err(failure);
                }
            }
        }
    }
}
