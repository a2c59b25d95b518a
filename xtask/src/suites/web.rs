//! Suites about `sooner serve`: a client that others wrote does the same against nginx and against
//! it, with the same files and the same backends, and what came of it is compared.

mod apt;
mod aria2;
mod backend;
mod git;
mod grpc;
mod h2spec;
mod needs;
mod pair;
mod pip;
mod slowhttptest;
mod testssl;
mod visit;
mod websockets;
mod zsync;

use super::Suite;

pub use git::SUITE as GIT;
pub use zsync::SUITE as ZSYNC;

/// The suites, those that take long at the end.
pub const SUITES: [Suite; 10] = [
    zsync::SUITE,
    apt::SUITE,
    pip::SUITE,
    git::SUITE,
    aria2::SUITE,
    websockets::SUITE,
    grpc::SUITE,
    h2spec::SUITE,
    testssl::SUITE,
    slowhttptest::SUITE,
];
