//! Those who have nothing to do. One is taken by lot: if the last who came back went first, the
//! same few would do everything, and the data that the others own would rest.

use sooner_workload::Rng;

/// Those without a visit.
pub struct Free<T> {
    all: Vec<T>,
    random: Rng,
}

impl<T> Free<T> {
    /// All of these, drawn with numbers that nothing else draws.
    pub fn new(all: Vec<T>, random: Rng) -> Self {
        Self { all, random }
    }

    /// One of them, if there is one.
    pub fn take(&mut self) -> Option<T> {
        let count = self.all.len() as u64;
        (count > 0).then(|| {
            let at = self.random.below(count);
            self.all.swap_remove(at as usize)
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// One has come back.
    pub fn put(&mut self, one: T) {
        self.all.push(one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_taken_alike_where_few_are_taken_at_a_time() {
        let mut free = Free::new((0..20).collect(), Rng::new(1, 3));
        let mut counts = [0u32; 20];
        for _ in 0..10_000 {
            let (one, other): (usize, usize) = (free.take().unwrap(), free.take().unwrap());
            counts[one] += 1;
            counts[other] += 1;
            free.put(one);
            free.put(other);
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn nobody_is_taken_twice() {
        let mut free = Free::new(vec!['a', 'b'], Rng::new(1, 3));
        let mut taken = [free.take().unwrap(), free.take().unwrap()];
        taken.sort_unstable();
        assert_eq!((taken, free.take()), (['a', 'b'], None));
    }
}
