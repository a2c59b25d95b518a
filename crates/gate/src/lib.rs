//! Holds jobs outside a backend and lets them in, in order.
