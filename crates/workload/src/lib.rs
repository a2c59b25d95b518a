//! What arrives: traces, arrivals, schedules.
