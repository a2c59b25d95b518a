//! One life of a server, or of our session on it: what is tried, changed and put back in it.

use std::convert::Infallible;
use std::io;

use sooner_kernel::scheduling::RealTime;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_postgres::Error;

use super::asking::{Answer, Asker, Asking, Question};
use super::attached::Attached;
use super::connection::Connection;
use super::daemon::{DaemonError, DaemonEvent, Options, WorkError};
use super::gate_tasks::GateTasks;
use super::leftovers::{Leftovers, Lowering};
use super::levels::{Level, Levels};
use super::mechanism::{Mechanism, objection};
use super::snapshot::{Snapshot, order_in_words};
use super::trial::{Trial, test};

use crate::control::{self, Control};
use crate::process_id::ProcessId;
use crate::record::{Record, name_of};
use crate::turn::Turn;

/// After a question that the server answered with an error.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// What is attached to a server.
pub struct Session {
    connection: Connection,
    control: Control,
    leftovers: Leftovers,
    trials: Vec<Trial>,
    levels: Levels,
    last: Option<Snapshot>,
    _real_time: Option<RealTime>,
}

/// What stays to answer while a server is waited for.
pub struct Waiting {
    control: Control,
    snapshot: Option<Snapshot>,
}

impl Waiting {
    /// Does something, and answers each request until that is done.
    pub async fn during<T>(waiting: Option<&Waiting>, work: impl Future<Output = T>) -> T {
        match waiting {
            Some(waiting) => tokio::select! {
                biased;
                done = work => done,
                never = waiting.answer() => match never {},
            },
            None => work.await,
        }
    }

    async fn answer(&self) -> Infallible {
        loop {
            let snapshot = self.snapshot.clone();
            let gone = || io::Error::from(io::ErrorKind::NotFound);
            self.control
                .answer(|| snapshot.clone().ok_or_else(gone))
                .await;
        }
    }
}

/// What it takes before a session begins; nothing is changed by it.
pub struct Prepared {
    connection: Connection,
    trials: Vec<Trial>,
    mechanism: Mechanism,
    lowering: Option<Mechanism>,
}

impl Prepared {
    /// Logs in, and finds out what works.
    pub async fn with(options: &Options) -> Result<Prepared, DaemonError> {
        let connection = options.login.connect().await?;
        no_other_is_attached(connection.first_process)?;
        let levels = Levels::of(&options.classes, options.lowers);
        let trials = test(&options.login, options.mechanism, &levels).await?;
        let works = |lowers| {
            let own = trials.iter().filter(|trial| trial.lowers == lowers);
            let works = own.clone().find(|trial| trial.outcome.works());
            let words = || own.map(ToString::to_string).collect::<Vec<_>>().join(", ");
            works.map(|trial| trial.mechanism).ok_or_else(words)
        };
        let lowering = match levels.lowers() {
            true => Some(works(true).map_err(DaemonError::NothingLowers)?),
            false => None,
        };
        let mechanism = match lowering {
            Some(lowering) if !levels.raises() => lowering,
            _ => works(false).map_err(DaemonError::NothingWorks)?,
        };
        Ok(Prepared {
            connection,
            trials,
            mechanism,
            lowering,
        })
    }
}

impl Session {
    /// Writes down what has to be put back. `waiting` gives way to the answers of this one.
    pub fn begin(
        options: &Options,
        prepared: Prepared,
        tell: &mut dyn FnMut(DaemonEvent),
        waiting: &mut Option<Waiting>,
    ) -> Result<Session, DaemonError> {
        let Prepared {
            connection,
            trials,
            mechanism,
            lowering,
        } = prepared;
        let server = connection.first_process;
        let levels = Levels::of(&options.classes, options.lowers);
        let usual_of = |mechanism: Mechanism| match mechanism {
            // Each session has one of its own.
            Mechanism::Autogroup => Ok(0),
            _ => mechanism.usual_of(server),
        };
        let lowered = match lowering {
            Some(mechanism) => Some(Lowering {
                mechanism,
                usual: usual_of(mechanism)?,
                least: None,
            }),
            None => None,
        };
        let leftovers = Leftovers {
            server: ProcessId::of(server)?,
            mechanism,
            usual: usual_of(mechanism)?,
            top: levels.top(),
            lowering: lowered,
            gates: Vec::new(),
        };
        let control = take_place(&leftovers, waiting)?;
        tell(DaemonEvent::Tested(trials.clone()));
        if let Some(words) = objection(mechanism) {
            tell(DaemonEvent::Problem(format!("{mechanism}: {words}")));
        }
        // Above all that it raises and the gates, or it could not lower them.
        let real_time = match mechanism {
            Mechanism::RoundRobin => RealTime::enter_at(levels.top() + 2).ok(),
            _ => None,
        };
        tell(DaemonEvent::Ready(format!(
            "PostgreSQL {} (process {server}): the processor {}",
            connection.version,
            order_in_words(&named(options, &levels), mechanism, lowering),
        )));
        Ok(Session {
            connection,
            control,
            leftovers,
            trials,
            levels,
            last: None,
            _real_time: real_time,
        })
    }

    /// Until the session on the server is lost.
    pub async fn work(
        &mut self,
        options: &Options,
        gates: &mut GateTasks,
        tell: &mut dyn FnMut(DaemonEvent),
    ) -> WorkError {
        let parts = (&self.levels, self.trials.as_slice());
        let attached = Attached::new(&self.connection, options, parts, &mut self.leftovers).await;
        let mut attached = match attached {
            Ok(attached) => attached,
            Err(error) => return error,
        };
        let mut questions = Questions { tell, last: None };
        let mut look_at = Instant::now();
        let mut inherit_at = Instant::now();
        let mut asking: Option<(Question, Asking<'_>)> = None;
        let error = loop {
            let is_free = asking.is_none();
            let question = tokio::select! {
                // In no order: gates that tell without a pause keep nothing else out.
                one = gates.next() => {
                    let rested = attached.rests();
                    attached.take(one);
                    if rested && !attached.rests() {
                        look_at = look_at.min(Instant::now() + attached.busy_interval());
                    }
                    continue;
                }
                (question, asker, answer) = next_answer(&mut asking) => {
                    asking = None;
                    let asked = attached.answered(asker, answer);
                    let (at, interval) = match question {
                        Question::Sessions => (&mut look_at, attached.look_interval()),
                        Question::Holders => (&mut inherit_at, attached.inherit_interval()),
                    };
                    *at = Instant::now() + interval;
                    match questions.after(asked) {
                        Err(error) => break error,
                        Ok(true) => {}
                        Ok(false) => *at = Instant::now() + ERROR_PAUSE,
                    }
                    continue;
                }
                () = sleep_until(inherit_at), if is_free && attached.has_to_inherit() => {
                    Question::Holders
                }
                () = sleep_until(look_at), if is_free => Question::Sessions,
                () = self.control.answer(|| Ok(attached.snapshot())) => continue,
            };
            asking = attached.ask(question).map(|asking| (question, asking));
        };
        drop(asking);
        self.last = Some(Snapshot {
            is_waiting: true,
            raised: 0,
            inheriting: 0,
            lowered: 0,
            spared: 0,
            gates: 0,
            ..attached.snapshot()
        });
        error
    }

    /// Puts everything back; what stays answers until the next session.
    pub fn end(self) -> io::Result<Waiting> {
        self.leftovers.put_back()?;
        Ok(Waiting {
            control: self.control,
            snapshot: self.last,
        })
    }
}

/// The answer to the question that is under way; never where none is.
async fn next_answer<'a>(
    asking: &mut Option<(Question, Asking<'a>)>,
) -> (Question, Asker<'a>, Result<Answer, Error>) {
    match asking {
        Some((question, asking)) => {
            let (asker, answer) = asking.await;
            (*question, asker, answer)
        }
        None => std::future::pending().await,
    }
}

fn no_other_is_attached(server: u32) -> Result<(), DaemonError> {
    let holder = control::holder(&name_of::<Leftovers>(server))?;
    let holder = holder.map(|pid| pid.as_raw_nonzero().get().cast_unsigned());
    match holder.filter(|pid| *pid != std::process::id()) {
        Some(pid) => Err(DaemonError::Attached { pid, server }),
        None => Ok(()),
    }
}

/// Answers for the server from now on, unless another process has begun to, and writes down what
/// has to be put back: a record without an answer is that of a killed one.
fn take_place(
    leftovers: &Leftovers,
    waiting: &mut Option<Waiting>,
) -> Result<Control, DaemonError> {
    let server = leftovers.server.pid;
    let _turn = Turn::wait(&control::own_folder()?)?;
    no_other_is_attached(server)?;
    // It may have the same place.
    let before = waiting.take().map(|waiting| waiting.snapshot);
    let control = Control::listen(&name_of::<Leftovers>(server))?;
    if let Err(error) = leftovers.write() {
        *waiting = before.map(|snapshot| Waiting { control, snapshot });
        return Err(error.into());
    }
    Ok(control)
}

/// What comes of questions to the server.
struct Questions<'a> {
    tell: &'a mut dyn FnMut(DaemonEvent),
    last: Option<String>,
}

impl Questions<'_> {
    /// Whether it was answered; an error where the session is lost. One of the server's own is told
    /// once.
    fn after(&mut self, asked: Result<(), Error>) -> Result<bool, WorkError> {
        let Err(error) = asked else {
            self.last = None;
            return Ok(true);
        };
        let own = error.as_db_error();
        let is_answer = own.is_some_and(|own| !matches!(own.severity(), "FATAL" | "PANIC"));
        if error.is_closed() || !is_answer {
            return Err(error.into());
        }
        let words = own.map_or_else(|| error.to_string(), ToString::to_string);
        if self.last.as_ref() != Some(&words) {
            let told = format!("the server answers {words}; it is asked again");
            (self.tell)(DaemonEvent::Problem(told));
            self.last = Some(words);
        }
        Ok(false)
    }
}

/// Classes with their levels.
pub fn named(options: &Options, levels: &Levels) -> Vec<(String, Level)> {
    let classes = options.classes.iter();
    let named = classes.map(|class| {
        let level = levels.level(*class.priority.get_ref());
        (class.name.get_ref().clone(), level)
    });
    named.collect()
}
