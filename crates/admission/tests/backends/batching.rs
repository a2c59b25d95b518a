//! Backends that batch, step by step, as servers of language models do: a step brings each job of
//! the batch one token further and takes a little longer the more are in it; jobs join and leave
//! between steps, and those beyond the batch wait inside, first come, first served.

use std::collections::VecDeque;

use super::random::Random;
use super::{TICK_NS, Window};

/// What there is beside the steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    Steps,
    /// A job's prompt takes time first: so many tokens of prompts in a step at most.
    Prompts,
    /// And the batch holds so many tokens at most. Where they are more, the job that joined last
    /// gives its place up, is the first to join again, and all its tokens are computed anew.
    Memory,
}

/// How many steps jobs have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// The sum of so many exponential times: C2 is 1 over that.
    Light(usize),
    /// Lognormal, with this C2.
    Heavy(f64),
}

impl Law {
    fn steps(self, mean: f64, random: &mut Random) -> usize {
        let steps = match self {
            Self::Light(phases) => {
                let sum: f64 = (0..phases).map(|_| random.exponential()).sum();
                sum * mean / phases as f64
            }
            Self::Heavy(c2) => {
                let variance = (1.0 + c2).ln();
                mean * (variance.sqrt() * random.normal() - variance / 2.0).exp()
            }
        };
        (steps.round() as usize).max(1)
    }
}

/// Who comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many jobs a second.
    Open { per_sec: f64 },
    /// Users who think for so long between their jobs.
    Closed { users: usize, think_ns: f64 },
}

#[derive(Clone, Debug)]
pub struct Spec {
    /// Of a step, and for each token in it, ns.
    step_ns: f64,
    token_ns: f64,
    places: usize,
    law: Law,
    steps_mean: f64,
    /// Tokens of a prompt; 0: they cost nothing.
    prompt_mean: f64,
    /// Tokens of prompts in a step at most.
    chunk: usize,
    memory: usize,
}

impl Spec {
    pub fn random(variant: Variant, law: Law, random: &mut Random) -> Self {
        let places = random.log_between(4.0, 128.0) as usize;
        let step_ns = random.log_between(5e6, 40e6);
        // How much longer a full step takes than an empty one.
        let longer = random.log_between(0.1, 4.0);
        let steps_mean = random.log_between(10.0, 200.0);
        let prompt_mean = steps_mean * random.log_between(0.3, 3.0);
        let held = places as f64 * (prompt_mean + steps_mean);
        Self {
            step_ns,
            token_ns: longer * step_ns / places as f64,
            places,
            law,
            steps_mean,
            prompt_mean: if variant == Variant::Steps {
                0.0
            } else {
                prompt_mean
            },
            chunk: places + 16,
            memory: match variant {
                Variant::Memory => (held * random.between(0.2, 0.8)) as usize,
                _ => usize::MAX,
            },
        }
    }

    pub fn steps_mean(&self) -> f64 {
        self.steps_mean
    }

    /// A step of a full batch.
    pub fn full_ns(&self) -> f64 {
        self.step_ns + self.token_ns * self.places as f64
    }

    /// With so many inside all the time, where prompts cost nothing.
    pub fn tokens_per_sec(&self, inside: usize) -> f64 {
        let batch = inside.min(self.places) as f64;
        batch * 1e9 / (self.step_ns + self.token_ns * batch)
    }

    /// What a job takes alone, ns.
    pub fn alone_ns(&self) -> f64 {
        let prompts = (self.prompt_mean / self.chunk as f64).ceil();
        (self.steps_mean + prompts) * (self.step_ns + self.token_ns)
    }
}

#[derive(Clone, Copy, Debug)]
struct Job {
    steps_left: usize,
    /// Tokens that have to be computed before its next step.
    tokens: usize,
}

pub struct Backend {
    spec: Spec,
    arrivals: Arrivals,
    random: Random,
    outside: usize,
    thinking: usize,
    waiting: VecDeque<Job>,
    /// Those that get their tokens now, and how many of these are left.
    prompts: VecDeque<(Job, usize)>,
    /// Those that end with the next step, the one after it, ...: when they joined, and all of their
    /// tokens.
    ends: VecDeque<Vec<(u64, usize)>>,
    /// When each joined and with which step it ends; some have left.
    joined: Vec<(u64, u64)>,
    steps: u64,
    joins: u64,
    decoding: usize,
    /// Tokens of all that have joined.
    held: usize,
    made: u64,
    now_ns: f64,
    step_end_ns: f64,
    arrival_ns: f64,
    window: Window,
}

impl Backend {
    pub fn new(spec: Spec, arrivals: Arrivals, seed: u64) -> Self {
        let users = match arrivals {
            Arrivals::Open { .. } => 0,
            Arrivals::Closed { users, .. } => users,
        };
        let mut backend = Self {
            spec,
            arrivals,
            random: Random::new(seed),
            outside: 0,
            thinking: 0,
            waiting: VecDeque::new(),
            prompts: VecDeque::new(),
            ends: VecDeque::new(),
            joined: Vec::new(),
            steps: 0,
            joins: 0,
            decoding: 0,
            held: 0,
            made: 0,
            now_ns: 0.0,
            step_end_ns: f64::INFINITY,
            arrival_ns: f64::INFINITY,
            window: Window::default(),
        };
        (0..users).for_each(|_| backend.think());
        backend.expect_arrival();
        backend
    }

    fn think(&mut self) {
        match self.arrivals {
            Arrivals::Open { .. } => {}
            Arrivals::Closed { think_ns, .. } if think_ns > 0.0 => self.thinking += 1,
            Arrivals::Closed { .. } => self.outside += 1,
        }
    }

    /// All gaps are exponential, so one that is under way may begin anew.
    fn expect_arrival(&mut self) {
        let gap_ns = match self.arrivals {
            Arrivals::Open { per_sec } => 1e9 / per_sec,
            Arrivals::Closed { think_ns, .. } => think_ns / self.thinking as f64,
        };
        self.arrival_ns = if gap_ns.is_finite() && gap_ns > 0.0 {
            self.now_ns + gap_ns * self.random.exponential()
        } else {
            f64::INFINITY
        };
    }

    fn in_batch(&self) -> usize {
        self.prompts.len() + self.decoding
    }

    fn let_in(&mut self, limit: usize) {
        while self.outside > 0 && self.in_batch() + self.waiting.len() < limit {
            self.outside -= 1;
            let steps = self.spec.law.steps(self.spec.steps_mean, &mut self.random);
            let tokens = self.spec.prompt_mean * self.random.between(0.0, 2.0);
            // Servers bound what a job may ask for.
            let steps_max = (20.0 * self.spec.steps_mean) as usize;
            self.waiting.push_back(Job {
                steps_left: steps.min(steps_max).min(self.spec.memory / 4),
                tokens: tokens as usize,
            });
        }
    }

    /// It has a token more with each step from the next one on.
    fn decode(&mut self, job: Job) {
        while self.ends.len() < job.steps_left {
            self.ends.push_back(Vec::new());
        }
        self.joins += 1;
        self.ends[job.steps_left - 1].push((self.joins, job.tokens + job.steps_left));
        if self.spec.memory < usize::MAX {
            self.joined
                .push((self.joins, self.steps + job.steps_left as u64));
        }
        self.decoding += 1;
    }

    /// The one that joined last waits again.
    fn give_up(&mut self) -> bool {
        while let Some((number, end)) = self.joined.pop() {
            let steps_left = end.saturating_sub(self.steps) as usize;
            let Some(ends) = steps_left
                .checked_sub(1)
                .and_then(|at| self.ends.get_mut(at))
            else {
                continue;
            };
            let Some(at) = ends.iter().position(|(one, _)| *one == number) else {
                continue;
            };
            let (_, all) = ends.swap_remove(at);
            let tokens = all - steps_left;
            self.decoding -= 1;
            self.held -= tokens;
            self.waiting.push_front(Job { steps_left, tokens });
            return true;
        }
        false
    }

    fn join(&mut self) {
        let memory = self.spec.memory;
        while self.in_batch() > 1 && self.held + self.decoding > memory && self.give_up() {}
        while self.in_batch() < self.spec.places {
            let Some(job) = self.waiting.front().copied() else {
                break;
            };
            if self.in_batch() > 0 && self.held + job.tokens + self.in_batch() >= memory {
                break;
            }
            self.waiting.pop_front();
            self.held += job.tokens;
            if job.tokens == 0 {
                self.decode(job);
            } else {
                self.prompts.push_back((job, job.tokens));
            }
        }
    }

    fn begin_step(&mut self) {
        self.join();
        if self.in_batch() == 0 {
            return;
        }
        let mut room = self.spec.chunk;
        let mut ready = Vec::new();
        while let Some((job, left)) = self.prompts.front_mut() {
            let part = room.min(*left);
            *left -= part;
            room -= part;
            if *left > 0 {
                break;
            }
            ready.push(*job);
            self.prompts.pop_front();
        }
        let tokens = self.decoding + self.spec.chunk - room;
        self.step_end_ns = self.now_ns + self.spec.step_ns + self.spec.token_ns * tokens as f64;
        // The end of a prompt gives the first token.
        ready.into_iter().for_each(|job| self.decode(job));
    }

    fn end_step(&mut self) {
        self.step_end_ns = f64::INFINITY;
        self.steps += 1;
        self.made += self.decoding as u64;
        self.held += self.decoding;
        let Some(ended) = self.ends.pop_front() else {
            return;
        };
        self.decoding -= ended.len();
        self.window.completed += ended.len() as u64;
        for (_, tokens) in ended {
            self.held -= tokens;
            self.think();
        }
    }

    /// Runs for so long with `limit` inside.
    pub fn run(&mut self, duration_ns: f64, limit: usize) -> Window {
        let end_ns = self.now_ns + duration_ns;
        self.let_in(limit);
        while self.now_ns < end_ns {
            if self.step_end_ns.is_infinite() {
                self.begin_step();
            }
            let next_ns = self.step_end_ns.min(self.arrival_ns).min(end_ns);
            if self.outside > 0 {
                self.window.backlogged_ns += (next_ns - self.now_ns) as u64;
            }
            self.now_ns = next_ns;
            let has_come = self.now_ns == self.arrival_ns;
            if has_come {
                self.outside += 1;
                self.thinking = self.thinking.saturating_sub(1);
            }
            let has_ended = self.now_ns == self.step_end_ns;
            if has_ended {
                self.end_step();
            }
            if has_come || (has_ended && matches!(self.arrivals, Arrivals::Closed { .. })) {
                self.expect_arrival();
            }
            self.let_in(limit);
        }
        Window {
            duration_ns: duration_ns as u64,
            ..std::mem::take(&mut self.window)
        }
    }

    /// Steps of jobs that were done.
    pub fn made(&self) -> u64 {
        self.made
    }

    pub fn now_ns(&self) -> f64 {
        self.now_ns
    }

    pub fn tick(&mut self, limit: usize) -> Window {
        self.run(TICK_NS as f64, limit)
    }
}
