//! What a reverse proxy passes on: requests to an upstream, responses to a client, and the route
//! between them.

pub mod forwarded;
pub mod headers;
pub mod request;
pub mod response;
pub mod routes;
#[cfg(test)]
mod tests;
