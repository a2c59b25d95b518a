//! Stack distances of a row of requests.

/// Counts over how many of the `files` each request of the round comes back to its file; first
/// requests have no distance. The last count takes all that are longer.
pub(super) fn count(round: &[u32], files: usize, distances: &mut [u64]) {
    // A Fenwick tree with a 1 where the last request for each file is.
    let mut tree = vec![0u32; round.len() + 1];
    let mut last = vec![None; files];
    let add = |tree: &mut Vec<u32>, at: usize, change: i32| {
        let mut node = at + 1;
        while node < tree.len() {
            tree[node] = tree[node].wrapping_add_signed(change);
            node += node & node.wrapping_neg();
        }
    };
    let before = |tree: &Vec<u32>, at: usize| {
        let (mut node, mut sum) = (at, 0);
        while node > 0 {
            sum += tree[node];
            node &= node - 1;
        }
        sum as usize
    };
    for (at, file) in round.iter().enumerate() {
        if let Some(earlier) = last[*file as usize].replace(at) {
            let distance = before(&tree, at) - before(&tree, earlier);
            distances[(distance - 1).min(distances.len() - 1)] += 1;
            add(&mut tree, earlier, -1);
        }
        add(&mut tree, at, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_the_files_between() {
        let mut distances = vec![0; 4];
        // 0 comes back over 2, 1 and itself; 1 over 0, 2 and itself; 1 again over itself alone.
        count(&[0, 1, 2, 2, 0, 1, 1], 3, &mut distances);
        assert_eq!(distances, [2, 0, 2, 0]);
    }
}
