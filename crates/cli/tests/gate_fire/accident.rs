//! What happens to a transaction beside what is meant to.

use super::random::Random;

/// One of these at most.
#[derive(Clone, Copy, Debug)]
pub enum Accident {
    None,
    /// The client is gone, after nothing, half or all of this step.
    Gone {
        step: usize,
        sent: Sent,
        leaving: Leaving,
    },
    /// The step's message comes in two parts with a pause between.
    Slow {
        step: usize,
    },
    /// The client cancels itself while this step runs.
    CancelIn {
        step: usize,
    },
    /// The same as soon as the step is answered: after the last one that is too late, and must hit
    /// no other client.
    CancelAfter {
        step: usize,
    },
}

/// How much of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    Nothing,
    Half,
    All,
}

/// How a client goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    Close,
    Reset,
    HalfClose,
    Terminate,
}

impl Accident {
    /// What happens to a transaction of so many steps; whether its client ever cancels anything.
    pub fn choose(random: &mut Random, steps: usize, cancels: bool) -> Self {
        let step = random.below(steps as u64) as usize;
        // Requests that come as the server connection goes to another client are what may hit the
        // wrong one.
        let or_last = if random.in_1000(500) { steps - 1 } else { step };
        match random.below(100) {
            0..8 => {
                let sent = [Sent::Nothing, Sent::Half, Sent::All];
                let leaving = [
                    Leaving::Close,
                    Leaving::Reset,
                    Leaving::HalfClose,
                    Leaving::Terminate,
                ];
                Self::Gone {
                    step,
                    sent: sent[random.below(3) as usize],
                    leaving: leaving[random.below(4) as usize],
                }
            }
            8..12 => Self::Slow { step },
            12..45 if cancels => Self::CancelIn { step: or_last },
            45..60 if cancels => Self::CancelAfter { step: or_last },
            _ => Self::None,
        }
    }

    /// How the client leaves in this step, if it does.
    pub fn leaves_in(self, index: usize) -> Option<(Sent, Leaving)> {
        match self {
            Self::Gone {
                step,
                sent,
                leaving,
            } if step == index => Some((sent, leaving)),
            _ => None,
        }
    }

    /// Whether this step is sent in two parts.
    pub fn slows(self, index: usize) -> bool {
        matches!(self, Self::Slow { step } if step == index)
    }

    /// Whether the client cancels itself while this step runs.
    pub fn cancels_in(self, index: usize) -> bool {
        matches!(self, Self::CancelIn { step } if step == index)
    }

    /// Whether it does once this step is answered.
    pub fn cancels_after(self, index: usize) -> bool {
        matches!(self, Self::CancelAfter { step } if step == index)
    }
}
