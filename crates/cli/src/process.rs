//! How the process speaks and ends, on Linux and elsewhere.

#[cfg(all(target_os = "linux", feature = "linux"))]
pub use linux::{end_by_closed_pipe, finish, say, when_ended};
#[cfg(not(all(target_os = "linux", feature = "linux")))]
pub use portable::{end_by_closed_pipe, finish, say, when_ended};

#[cfg(all(target_os = "linux", feature = "linux"))]
mod linux {
    use sooner_kernel::signals::EndSignals;
    use std::thread;

    pub use sooner_kernel::signals::end_by_closed_pipe;
    pub use sooner_operate::{finish, say};

    /// Calls back at the first signal that asks for the end.
    pub fn when_ended(told: impl FnOnce() + Send + 'static) {
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            // Without it signals end the process, as they do without us.
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                if let Ok(mut signals) = EndSignals::listen() {
                    signals.next().await;
                    told();
                }
            });
        });
    }
}

#[cfg(not(all(target_os = "linux", feature = "linux")))]
mod portable {
    use crate::output;

    /// Writes one line to standard error.
    pub fn say(line: &str) {
        output::say(format_args!("sooner: {line}"));
    }

    /// Nothing is written by other threads here.
    pub fn finish() {}

    /// The exit code says it.
    pub fn end_by_closed_pipe() {}

    /// Signals end the process here.
    pub fn when_ended(_told: impl FnOnce() + Send + 'static) {}
}
