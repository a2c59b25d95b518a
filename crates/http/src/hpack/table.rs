//! What of HPACK's tables (RFC 7541, 2.3) decides whether a field can be read: how long names are,
//! of which kind, and which entries a client has put in that are malformed.

use std::collections::VecDeque;

/// What an entry counts beside its octets (RFC 7541, 4.1).
const ENTRY_BYTES: usize = 32;
/// The largest table that a client may use: the default, as no other is announced.
pub const TABLE_BYTES_MAX: usize = 4096;

/// What a field is, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `:authority`, `:scheme`, `:protocol`.
    Text,
    /// `:path`.
    Path,
    /// `:method`.
    Method,
    /// `:status`.
    Status,
    /// A field of the message.
    Field,
}

/// The name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its length, bytes.
    pub bytes: usize,
    /// What it names; `None` where it is malformed.
    pub kind: Option<Kind>,
}

/// An entry of either table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: Name,
    /// The length of its value, bytes.
    pub value_bytes: usize,
    /// Whether name or value is malformed.
    pub is_malformed: bool,
}

impl Name {
    /// Whether it begins with a colon.
    pub fn is_pseudo(self) -> bool {
        self.kind != Some(Kind::Field)
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.name.bytes + self.value_bytes + ENTRY_BYTES
    }
}

/// The dynamic table of one direction of one connection.
#[derive(Debug)]
pub struct Table {
    /// The latest first.
    entries: VecDeque<Entry>,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            bytes: 0,
            bytes_max: TABLE_BYTES_MAX,
        }
    }
}

impl Table {
    /// The entry at `index`, which counts through both tables from 1; `None` if there is none.
    pub fn entry(&self, index: usize) -> Option<Entry> {
        let index = index.checked_sub(1)?;
        if let Some(&(name_bytes, kind)) = STATIC.get(index) {
            return Some(Entry {
                name: Name {
                    bytes: name_bytes,
                    kind: Some(kind),
                },
                value_bytes: 0,
                is_malformed: false,
            });
        }
        self.entries.get(index - STATIC.len()).copied()
    }

    /// Puts an entry in; older ones give way.
    pub fn insert(&mut self, entry: Entry) {
        self.shrink_to(self.bytes_max.saturating_sub(entry.bytes()));
        if entry.bytes() <= self.bytes_max {
            self.bytes += entry.bytes();
            self.entries.push_front(entry);
        }
    }

    /// The client uses no more than `bytes_max`.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.shrink_to(bytes_max);
    }

    fn shrink_to(&mut self, bytes: usize) {
        while self.bytes > bytes
            && let Some(oldest) = self.entries.pop_back()
        {
            self.bytes -= oldest.bytes();
        }
    }
}

/// Lengths and kinds of the names in the static table (RFC 7541, appendix A).
const STATIC: [(usize, Kind); 61] = {
    let lengths = [
        10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16,
        14, 16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11,
        6, 10, 25, 17, 10, 4, 3, 16,
    ];
    let mut table = [(0, Kind::Field); 61];
    let mut index = 0;
    while index < table.len() {
        table[index] = (
            lengths[index],
            match index {
                0 | 5 | 6 => Kind::Text,
                3 | 4 => Kind::Path,
                1 | 2 => Kind::Method,
                7..=13 => Kind::Status,
                _ => Kind::Field,
            },
        );
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name_bytes: usize, value_bytes: usize) -> Entry {
        Entry {
            name: Name {
                bytes: name_bytes,
                kind: Some(Kind::Field),
            },
            value_bytes,
            is_malformed: false,
        }
    }

    #[test]
    fn the_latest_entry_comes_first_and_the_oldest_gives_way() {
        let mut table = Table::default();
        assert_eq!(table.entry(0), None);
        assert_eq!(table.entry(4).unwrap().name.kind, Some(Kind::Path));
        assert_eq!(
            table.entry(61).unwrap().name.bytes,
            "www-authenticate".len()
        );
        assert_eq!(table.entry(62), None);
        table.insert(entry(10, 2000));
        table.insert(entry(11, 2000));
        assert_eq!(
            [62, 63].map(|index| table.entry(index).unwrap().name.bytes),
            [11, 10]
        );
        table.insert(entry(12, 0));
        assert_eq!(table.entry(63).unwrap().name.bytes, 11);
        assert_eq!(table.entry(64), None, "4096 bytes hold no third one");
        table.set_bytes_max(100);
        assert_eq!(
            (table.entry(62).unwrap().name.bytes, table.entry(63)),
            (12, None)
        );
        table.insert(entry(1, 100));
        assert_eq!(
            table.entry(62),
            None,
            "larger than all of it: nothing is left"
        );
        assert_eq!(table.bytes, 0);
    }
}
