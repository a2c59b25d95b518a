//! A bounded queue in front of something that may block, and the thread that feeds it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The pause before a full queue is tried again, at the end only.
const FULL_PAUSE: Duration = Duration::from_millis(10);

enum Entry<T> {
    Item(T),
    /// Everything before it has been written.
    End(SyncSender<()>),
}

/// Takes items without waiting; a thread writes them.
pub struct Outlet<T> {
    queue: SyncSender<Entry<T>>,
    lost: Arc<AtomicU64>,
}

impl<T: Send + 'static> Outlet<T> {
    /// Starts the thread `name`, before which `waiting_max` items may wait. It calls `write` with
    /// each item and the number of those that were lost since the last call that succeeded; an item
    /// that `write` fails with is lost too. An error means that there is no thread.
    pub fn start(
        name: &str,
        waiting_max: usize,
        write: impl FnMut(T, u64) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (queue, entries) = sync_channel(waiting_max);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        thread::Builder::new()
            .name(name.into())
            .spawn(move || write_all(&entries, &counted, write))?;
        Ok(Self { queue, lost })
    }

    /// Has `item` written, or loses and counts it when too many wait. Never waits.
    pub fn give(&self, item: T) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Entry::Item(item)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many items were lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until what was given before has been written, for `within` at most. For the end of a
    /// process, not for an event loop.
    pub fn finish(&self, within: Duration) {
        let until = Instant::now() + within;
        let (written, done) = sync_channel(1);
        let mut end = Entry::End(written);
        while let Err(TrySendError::Full(full)) = self.queue.try_send(end) {
            if Instant::now() >= until {
                return;
            }
            end = full;
            thread::sleep(FULL_PAUSE);
        }
        let _ = done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

fn write_all<T>(
    entries: &Receiver<Entry<T>>,
    lost: &AtomicU64,
    mut write: impl FnMut(T, u64) -> io::Result<()>,
) {
    let mut told = 0;
    for entry in entries {
        match entry {
            Entry::Item(item) => {
                let so_far = lost.load(Ordering::Relaxed);
                match write(item, so_far - told) {
                    Ok(()) => told = so_far,
                    Err(_) => drop(lost.fetch_add(1, Ordering::Relaxed)),
                }
            }
            Entry::End(written) => drop(written.try_send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write, pipe};

    const LINES: u64 = 3000;

    #[test]
    fn a_reader_that_stalls_loses_items_and_stops_no_writer() {
        let (reader, mut writer) = pipe().unwrap();
        let outlet = Outlet::start("test", 100, move |line: String, lost| {
            writer.write_all(format!("{lost} {line}\n").as_bytes())
        })
        .unwrap();
        for _ in 0..LINES {
            outlet.give("x".repeat(200));
        }
        let lost = outlet.lost();
        assert!(lost > 0);
        outlet.finish(Duration::ZERO);
        let reading = thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            lines.fold((0, 0), |(lines, lost), line| {
                (
                    lines + 1,
                    lost + line.split(' ').next().unwrap().parse::<u64>().unwrap(),
                )
            })
        });
        outlet.finish(Duration::from_secs(60));
        drop(outlet);
        assert_eq!(reading.join().unwrap(), (LINES - lost, lost));
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let (told, seen) = std::sync::mpsc::channel();
        let outlet = Outlet::start("test", 100, move |works: bool, lost| {
            told.send(lost).unwrap();
            works.then_some(()).ok_or(io::ErrorKind::StorageFull.into())
        })
        .unwrap();
        for works in [false, false, true, true] {
            outlet.give(works);
        }
        outlet.finish(Duration::from_secs(60));
        assert_eq!(outlet.lost(), 2);
        assert_eq!(seen.try_iter().collect::<Vec<_>>(), [0, 1, 2, 0]);
    }
}
