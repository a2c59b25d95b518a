//! Experiments and the demo.
