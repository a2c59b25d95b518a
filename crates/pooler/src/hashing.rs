//! Passwords that are hashed often, beside the clients that are served meanwhile.

use sooner_postgres::auth::scram;
use std::io;
use tokio::sync::Semaphore;

/// Passwords that are hashed one after the other: together they take one processor.
pub struct Hashing(Semaphore);

/// Those that clients send.
pub static OF_CLIENTS: Hashing = Hashing(Semaphore::const_new(1));
/// Those by which the gate logs in.
pub static OF_LOGINS: Hashing = Hashing(Semaphore::const_new(1));

impl Hashing {
    /// Does what hashes a password so often: at once where it is as usual, which takes a few
    /// milliseconds, else in a thread of its own.
    pub async fn run<T: Send + 'static>(
        &self,
        hashes: u32,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        if hashes <= scram::ITERATIONS {
            return Ok(work());
        }
        let _turn = self.0.acquire().await.map_err(io::Error::other)?;
        let worked = tokio::task::spawn_blocking(work).await;
        worked.map_err(io::Error::other)
    }
}
