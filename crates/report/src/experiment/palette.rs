//! Which colour a peer has: the same one in every picture and table of a page.
//!
//! The baseline has the colour of FAIR, the first peer that orders by remaining size that of SRPT.
//! Every other peer has a colour and a pattern of its line: the pattern tells apart what colours
//! cannot, on paper and for eyes that see few of them.

use super::Page;

/// Colours beside those of the baseline and of SRPT.
const COLOURS: [&str; 6] = ["p2", "p3", "p4", "p5", "p6", "p7"];
/// Patterns of a line; the first is solid.
const PATTERNS: [&str; 6] = ["", " d1", " d2", " d3", " d4", " d5"];

/// CSS classes by peer.
pub struct Palette(Vec<(String, String)>);

impl Palette {
    /// The classes of all peers of the page, in the order in which they are first named.
    pub fn of(page: &Page) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for peer in page.cases.iter().flat_map(|case| &case.peers) {
            if !names.contains(&peer.name.as_str()) {
                names.push(&peer.name);
            }
        }
        let ordered = compared(page);
        let mut others = 0;
        let mut class = |name: &str| match name {
            _ if name == page.baseline => "fair".to_owned(),
            _ if Some(name) == ordered => "srpt".to_owned(),
            _ => {
                others += 1;
                other(others - 1)
            }
        };
        let classes = names.iter().map(|name| ((*name).to_owned(), class(name)));
        Self(classes.collect())
    }

    /// The classes of this peer.
    pub fn class(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(peer, _)| peer == name);
        found.map_or("p5", |(_, class)| class)
    }

    /// All peers, in the order in which they are first named.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

/// The classes of the peer with this number among the others: no two of the first 36 look the same.
fn other(number: usize) -> String {
    let (colour, round) = (number % COLOURS.len(), number / COLOURS.len());
    let pattern = (colour + round) % PATTERNS.len();
    format!("{}{}", COLOURS[colour], PATTERNS[pattern])
}

/// The peer that the page is about: the first one that orders by remaining size, else the first
/// that is not the baseline.
pub fn compared(page: &Page) -> Option<&str> {
    let all = || page.cases.iter().flat_map(|case| &case.peers);
    let others = || all().filter(|peer| peer.name != page.baseline);
    let ordered = others().find(|peer| peer.name.contains("srpt"));
    Some(&ordered.or(others().next())?.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_others_all_look_different() {
        let mut classes: Vec<String> = (0..36).map(other).collect();
        assert_eq!(classes[..2], ["p2", "p3 d1"]);
        classes.sort();
        classes.dedup();
        assert_eq!(classes.len(), 36);
    }
}
