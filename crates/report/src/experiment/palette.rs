//! Which colour a peer has: the same one in every picture and table of a page.
//!
//! The baseline has the colour of FAIR, the first peer that orders by remaining size that of SRPT. Past six peers colours come again,
//! with another pattern of the line; patterns also tell neighbours apart where colours cannot be seen.

use super::Page;

/// Colours beside those of the baseline and of SRPT.
const OTHERS: [&str; 6] = ["p2", "p3 d1", "p4", "p5 d2", "p6 d3", "p7"];
/// Added to a colour that comes again.
const AGAIN: &str = "d4";

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
                let colour = OTHERS[(others - 1) % OTHERS.len()];
                match others > OTHERS.len() {
                    true => format!("{} {AGAIN}", colour.split(' ').next().unwrap_or(colour)),
                    false => colour.to_owned(),
                }
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

/// The peer that the page is about: the first one that orders by remaining size, else the first that is not the baseline.
pub fn compared(page: &Page) -> Option<&str> {
    let all = || page.cases.iter().flat_map(|case| &case.peers);
    let others = || all().filter(|peer| peer.name != page.baseline);
    let ordered = others().find(|peer| peer.name.contains("srpt"));
    Some(&ordered.or(others().next())?.name)
}
