//! What the operator meant by a name that does not exist.

/// The candidate nearest to `name`, if one is near enough to be what was meant.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let name = with_one_kind_of_dash(name);
    let edits_max = ((name.chars().count() + 1) / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| {
            (
                distance(&name, &with_one_kind_of_dash(candidate)),
                candidate,
            )
        })
        .min_by_key(|(edits, _)| *edits)
        .filter(|(edits, _)| *edits <= edits_max)
        .map(|(_, candidate)| candidate)
}

fn with_one_kind_of_dash(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// How many letters to insert, delete, replace or swap with their neighbour; a name begun and not
/// finished is one step away.
fn distance(from: &str, to: &str) -> usize {
    if from.chars().count() >= 4 && to.starts_with(from) {
        return 1;
    }
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, &letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &other) in to.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != other);
            let mut edits = replaced.min(above[column + 1] + 1).min(current[column] + 1);
            let is_swap =
                row > 0 && column > 0 && from[row - 1] == other && letter == to[column - 1];
            if is_swap {
                edits = edits.min(before[column - 1] + 1);
            }
            current.push(edits);
        }
        before = std::mem::replace(&mut above, current);
    }
    above[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_word_is_not() {
        let keys = ["listen", "listen_tls", "root", "uplink", "limits"];
        assert_eq!(nearest("lisen", keys), Some("listen"));
        assert_eq!(nearest("lsiten", keys), Some("listen"));
        assert_eq!(nearest("listen-tls", keys), Some("listen_tls"));
        assert_eq!(nearest("Root", keys), Some("root"));
        assert_eq!(nearest("uplinks", keys), Some("uplink"));
        assert_eq!(nearest("certificate", keys), None);
        assert_eq!(nearest("", keys), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn distances() {
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("head", "head_seconds"), 1);
    }
}
