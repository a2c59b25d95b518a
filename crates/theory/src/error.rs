//! What cannot be computed, and what could be.

/// A model that has no solution here.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TheoryError {
    /// Work comes faster than it can be done, or none comes.
    #[error(
        "load {0}: a formula needs a load above 0 and below 1; from 1 on, response times grow without bound"
    )]
    Load(f64),
    /// Nothing alternates, or never above 1.
    #[error(
        "an alternating overload has one phase above 1 and one below, like 0.2,1.2,10,10: low load, high load, and the length of each"
    )]
    NoOverload,
    /// Sizes without a mean have no load.
    #[error("the sizes have no finite mean above 0, so no load can be given")]
    Mean,
    /// Too few users, or too many.
    #[error("{0} users are out of range; give 1 to 5000")]
    Users(usize),
    /// Too few servers, or too many.
    #[error("{0} servers are out of range; give 1 to 1000000")]
    Servers(u32),
    /// A station that cannot be.
    #[error("a station: {0}")]
    Station(String),
    /// No limit on jobs, or one with too many states.
    #[error("a limit of {0} jobs is out of range; give 1 to 400")]
    Mpl(usize),
    /// Sizes without a finite number of phases.
    #[error("a limit on jobs is solved only for sizes with phases; give exp or h2")]
    NotHyperexponential,
    /// The iteration found none.
    #[error("no solution was found: the load is too near to 1; give a lower one")]
    NoSolution,
    /// A name that is none.
    #[error("there is no formula for policy `{0}`; use fcfs, fair, sjf, srpt, psjf or las")]
    Policy(String),
}
