//! Linux: socket options, timers, devices, bands.
