//! What the workers' proxies have in common, and which of them has a proxy.

use super::Proxy;
use super::buffer_budget::BufferBudget;
use super::upstream::{Settings, SharedUpstream};
use std::sync::Arc;

/// What all workers have in common of a proxy: one queue and one health for each upstream, and the
/// memory that bodies may take. It is part of the proxy of the first worker, and goes to the others.
#[derive(Clone)]
pub struct ProxyShare {
    pub(super) upstreams: Vec<ShareOfUpstream>,
    /// For bodies of responses.
    pub(super) budget: Arc<BufferBudget>,
    /// For bodies of requests.
    pub(super) look_budget: Arc<BufferBudget>,
}

/// What all have in common of one upstream.
#[derive(Clone)]
pub struct ShareOfUpstream {
    pub(super) upstream: Arc<SharedUpstream>,
    /// What this configuration says of it.
    pub(super) settings: Arc<Settings>,
}

/// Which worker has a proxy.
#[derive(Clone, Copy)]
pub enum WorkerPart<'a> {
    /// The first of so many: it makes what all have in common, and does what is done once.
    First(usize),
    /// Another one, beside the first, which has made this.
    Beside(&'a ProxyShare),
}

impl Proxy {
    /// What the proxies of further workers are built with.
    pub fn share(&self) -> ProxyShare {
        let next = self.next.borrow();
        let upstreams = self.upstreams.iter().zip(&*next).map(|(upstream, next)| {
            let settings = next.clone();
            ShareOfUpstream {
                upstream: upstream.shared().clone(),
                settings: settings.unwrap_or_else(|| Arc::clone(&upstream.settings())),
            }
        });
        ProxyShare {
            upstreams: upstreams.collect(),
            budget: self.budget.clone(),
            look_budget: self.look.budget.clone(),
        }
    }
}
