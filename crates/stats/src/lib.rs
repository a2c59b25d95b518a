//! What happened: response time and slowdown by size.
