//! The targets by name: a new one is a file in `targets` and a line here.

use arbitrary::{Arbitrary, Unstructured};

/// Has a module, a name and a call for each target.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(mod $name;)*

        /// The names of all targets.
        pub const NAMES: &[&str] = &[$(stringify!($name)),*];

        /// Tries an input; `false` where the bytes are none for this target, or there is no such
        /// target.
        pub fn run(target: &str, bytes: &[u8]) -> bool {
            match target {
                $(stringify!($name) => input(bytes).map($name::run).is_some(),)*
                _ => false,
            }
        }
    };
}

targets! {
    accept_encoding,
    admin_host,
    admission,
    config,
    crowd,
    duration,
    emulated_packet,
    experiment,
    fastcgi_response,
    host,
    http2_frames,
    htpasswd,
    http2_heads,
    job_log,
    json_fields,
    lab_counters,
    lab_peer,
    link,
    log_file,
    log_line,
    model,
    nginx_conf,
    pgbouncer_ini,
    policy,
    postgres_client,
    postgres_server,
    postgres_text,
    priority,
    probed_program,
    proxied_request,
    proxied_response,
    proxy_protocol,
    range,
    rate,
    redirect,
    request_target,
    request_text,
    schedule,
    sizes,
    trace_objects,
    trace_requests,
}

/// What libFuzzer's own macro makes of the bytes.
fn input<'a, T: Arbitrary<'a>>(bytes: &'a [u8]) -> Option<T> {
    if bytes.len() < T::size_hint(0).0 {
        return None;
    }
    T::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}
