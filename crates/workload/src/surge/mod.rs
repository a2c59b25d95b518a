//! Tmp.
