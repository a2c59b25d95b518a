//! Load generator: replay, closed.
