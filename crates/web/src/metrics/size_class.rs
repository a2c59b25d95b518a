//! Sizes in decades, as everything that is shown by size is divided.

/// A range of sizes, from where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Its name as a label.
    pub name: &'static str,
    /// The largest size in it, bytes; `None`: no end.
    pub up_to_bytes: Option<u64>,
    index: usize,
}

/// All classes, smallest first.
pub const SIZE_CLASSES: [SizeClass; 6] = [
    SizeClass::new(0, "1K", Some(1_000)),
    SizeClass::new(1, "10K", Some(10_000)),
    SizeClass::new(2, "100K", Some(100_000)),
    SizeClass::new(3, "1M", Some(1_000_000)),
    SizeClass::new(4, "10M", Some(10_000_000)),
    SizeClass::new(5, "inf", None),
];

impl SizeClass {
    const fn new(index: usize, name: &'static str, up_to_bytes: Option<u64>) -> Self {
        Self {
            name,
            up_to_bytes,
            index,
        }
    }

    /// The class of a size.
    pub fn of(bytes: u64) -> Self {
        let index = SIZE_CLASSES
            .partition_point(|class| class.up_to_bytes.is_some_and(|up_to| up_to < bytes));
        SIZE_CLASSES[index]
    }

    /// Its place in [`SIZE_CLASSES`].
    pub fn index(self) -> usize {
        self.index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_its_class() {
        for (index, class) in SIZE_CLASSES.into_iter().enumerate() {
            assert_eq!(class.index(), index);
            if let Some(up_to) = class.up_to_bytes {
                assert_eq!(SizeClass::of(up_to), class);
                assert_eq!(SizeClass::of(up_to + 1).index(), index + 1);
            }
        }
        assert_eq!(SizeClass::of(0).name, "1K");
        assert_eq!(SizeClass::of(u64::MAX).name, "inf");
    }
}
