//! Programs that people use, against the real `sooner serve`: one table of requests, asked by each
//! of them in every way it can speak. What comes must be what the files say, and what the server's
//! log says of it. A program that is not installed is skipped, and that is said.

mod backend;
mod chromium;
mod client;
mod conformance;
mod curl;
mod h2load;
mod nghttp;
mod scripted;
mod site;
mod table;
mod visits;
mod way;
mod wget;
