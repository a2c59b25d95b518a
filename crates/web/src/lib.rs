//! HTTP server: static files.
