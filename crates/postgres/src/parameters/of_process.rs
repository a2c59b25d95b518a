//! Settings that count only when a server process begins. A server connection of the gate's has begun
//! before its clients come, and serves many of them.

/// It could be set later, and would load nothing then.
const LIBRARIES: [&str; 2] = ["local_preload_libraries", "session_preload_libraries"];
/// Those that PostgreSQL calls settings of a backend.
const OF_BACKEND: [&str; 6] = [
    "ignore_system_indexes",
    "jit_debugging_support",
    "jit_profiling_support",
    "log_connections",
    "log_disconnections",
    "post_auth_delay",
];

/// What is wrong with a setting in a first packet, if it is one of them.
pub fn refusal(name: &[u8], value: &[u8]) -> Option<String> {
    let is_it = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    let library = LIBRARIES.into_iter().find(is_it);
    let (name, place) = match library.filter(|_| !value.is_empty()) {
        Some(name) => (name, "at the server (ALTER ROLE ... SET)"),
        None => {
            let name = OF_BACKEND.into_iter().find(is_it)?;
            (name, "at the server (postgresql.conf)")
        }
    };
    Some(format!(
        "{name:?} counts only when a server process begins, and one of the gate's serves many clients: set it {place}"
    ))
}
