//! Conversations in messages, through the gate and directly: what a client hears and what is in the
//! database afterwards.

mod support;

#[path = "conversations/turns.rs"]
mod turns;
