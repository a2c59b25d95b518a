//! Compressed forms of files, each made once: found by the version of the file and the coding. The
//! least used make room (second chance).

use super::entry::File;
use super::identity::Identity;
use bytes::Bytes;
use sooner_http::negotiation::Coding;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use tokio::sync::OnceCell;

/// The compressed form of a file, once it is made; `None` where it is no shorter than the file.
/// Those who want it meanwhile wait for the first.
pub type VariantCell = Rc<OnceCell<Option<Bytes>>>;

type Key = (Identity, Coding);

/// Compressed forms of files within bounds.
pub struct VariantCache {
    slots: HashMap<Key, Slot>,
    /// Every key of `slots` once, in the order in which they are asked to go.
    queue: VecDeque<Key>,
    count_max: usize,
    bytes_max: u64,
    bytes: u64,
}

struct Slot {
    cell: VariantCell,
    /// What of its content is counted.
    bytes: u64,
    was_used: bool,
}

impl VariantCache {
    /// Room for `count_max` forms of `bytes_max` together.
    pub fn new(count_max: usize, bytes_max: u64) -> Self {
        Self {
            slots: HashMap::new(),
            queue: VecDeque::new(),
            count_max: count_max.max(1),
            bytes_max,
            bytes: 0,
        }
    }

    /// The place of the compressed form of `file`; empty if it is not made yet.
    pub fn cell(&mut self, file: &File, coding: Coding) -> VariantCell {
        let key = (file.version(), coding);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.was_used = true;
            return slot.cell.clone();
        }
        let cell = VariantCell::default();
        let slot = Slot {
            cell: cell.clone(),
            bytes: 0,
            was_used: false,
        };
        self.slots.insert(key, slot);
        self.queue.push_back(key);
        self.make_room();
        cell
    }

    /// The compressed form of `file` has been made: it counts from now on, and stays if there is
    /// room.
    pub fn made(&mut self, file: &File, coding: Coding) {
        let Some(slot) = self.slots.get_mut(&(file.version(), coding)) else {
            return;
        };
        if slot.bytes == 0 {
            slot.bytes = slot
                .cell
                .get()
                .map_or(0, |form| form.as_ref().map_or(0, bytes_of));
            self.bytes += slot.bytes;
        }
        self.make_room();
    }

    fn make_room(&mut self) {
        while self.slots.len() > self.count_max || self.bytes > self.bytes_max {
            let Some(key) = self.queue.pop_front() else {
                return;
            };
            match self.slots.get_mut(&key) {
                Some(slot) if slot.was_used => {
                    slot.was_used = false;
                    self.queue.push_back(key);
                }
                _ => {
                    let slot = self.slots.remove(&key);
                    self.bytes -= slot.map_or(0, |slot| slot.bytes);
                }
            }
        }
    }
}

fn bytes_of(form: &Bytes) -> u64 {
    form.len() as u64
}

#[cfg(test)]
mod tests {
    use super::super::entry::Description;
    use super::super::extra_headers::ExtraHeaders;
    use super::*;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use std::time::SystemTime;

    fn file(path: &Path) -> File {
        let description = Description {
            path: b"a",
            coding: None,
            is_negotiated: false,
            extra: &ExtraHeaders::default(),
        };
        let descriptor = OwnedFd::from(std::fs::File::open(path).unwrap());
        let stat = rustix::fs::fstat(&descriptor).unwrap();
        File::new(description, descriptor, &stat, 0, SystemTime::now()).unwrap()
    }

    #[test]
    fn a_form_is_made_once_for_each_version_and_coding() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let mut cache = VariantCache::new(10, 1000);
        let (one, again) = (file(&path), file(&path));
        let cell = cache.cell(&one, Coding::Gzip);
        assert!(Rc::ptr_eq(&cell, &cache.cell(&again, Coding::Gzip)));
        assert!(!Rc::ptr_eq(&cell, &cache.cell(&one, Coding::Br)));
        std::fs::write(&path, "another").unwrap();
        assert!(!Rc::ptr_eq(&cell, &cache.cell(&file(&path), Coding::Gzip)));
    }

    #[test]
    fn there_are_never_more_bytes_or_forms_than_there_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let mut cache = VariantCache::new(3, 100);
        for number in 0..10u8 {
            let path = folder.path().join(number.to_string());
            std::fs::write(&path, "x".repeat(usize::from(number) + 1)).unwrap();
            let file = file(&path);
            let cell = cache.cell(&file, Coding::Zstd);
            cell.set(Some(vec![0; 40].into())).unwrap();
            cache.made(&file, Coding::Zstd);
            cache.made(&file, Coding::Zstd);
            let counted: u64 = cache.slots.values().map(|slot| slot.bytes).sum();
            assert_eq!(cache.bytes, counted);
            assert!(cache.bytes <= 100 && cache.slots.len() <= 3);
            assert_eq!(cache.queue.len(), cache.slots.len());
        }
        assert_eq!(cache.bytes, 80);
    }

    #[test]
    fn a_form_that_is_too_long_for_all_room_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "a").unwrap();
        let mut cache = VariantCache::new(3, 10);
        let file = file(&path);
        let cell = cache.cell(&file, Coding::Zstd);
        cell.set(Some(vec![0; 11].into())).unwrap();
        cache.made(&file, Coding::Zstd);
        assert_eq!(
            (cache.bytes, cache.slots.len(), cache.queue.len()),
            (0, 0, 0)
        );
    }
}
