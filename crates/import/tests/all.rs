//! All integration tests in one program, which links once.

mod broken;
mod defaults;
