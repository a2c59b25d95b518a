//! Where an error is in the text that the client has sent: on the server that text has names of
//! ours, which are of other lengths.

use super::Rewriter;
use crate::sql::Encoding;
use std::collections::VecDeque;
use std::ops::Range;

/// A name of ours in the place of another.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// Where it begins in the text that the server has, in characters.
    start: usize,
    /// Characters of ours.
    ours: usize,
    /// Characters of the client's.
    clients: usize,
}

/// The names that were replaced in one text, in their order.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    all: Vec<Replacement>,
    /// Characters that the server's text has up to and with the last of them.
    end: usize,
}

impl Replacements {
    /// One more: behind `between`, which is the same in both texts, a name of ours stands for the
    /// client's.
    pub(super) fn add(&mut self, encoding: Encoding, between: &[u8], ours: &[u8], clients: &[u8]) {
        let [between, ours, clients] =
            [between, ours, clients].map(|text| encoding.characters(text));
        let start = self.end + between;
        self.end = start + ours;
        self.all.push(Replacement {
            start,
            ours,
            clients,
        });
    }

    /// The place in the client's text of one in the server's, in characters. What is inside a name
    /// of ours is at the beginning of the client's.
    fn in_clients_text(&self, place: usize) -> usize {
        let before = self
            .all
            .iter()
            .take_while(|replacement| replacement.start <= place);
        let (mut client_end, mut server_end) = (0, 0);
        for replacement in before {
            client_end += replacement.start - server_end;
            if place < replacement.start + replacement.ours {
                return client_end;
            }
            client_end += replacement.clients;
            server_end = replacement.start + replacement.ours;
        }
        client_end + place - server_end
    }
}

/// Messages of which the errors are about one text.
#[derive(Debug)]
struct Text {
    /// Their numbers among all that were sent; without an end where no other text has come.
    from: u64,
    until: Option<u64>,
    replacements: Replacements,
}

/// The texts with names of ours that are not answered.
#[derive(Debug, Default)]
pub(super) struct Texts(VecDeque<Text>);

impl Texts {
    /// The text of the message of this number is another one.
    fn end(&mut self, number: u64, answered: u64) {
        let is_answered = |text: &mut Text| text.until.is_some_and(|until| until <= answered);
        while self.0.pop_front_if(is_answered).is_some() {}
        if let Some(last) = self.0.back_mut() {
            last.until.get_or_insert(number);
        }
    }

    fn of(&self, number: u64) -> Option<&Replacements> {
        let is_it =
            |text: &&Text| text.from <= number && text.until.is_none_or(|until| number < until);
        self.0.iter().find(is_it).map(|text| &text.replacements)
    }
}

impl Rewriter<'_> {
    /// What is sent next is about another text, as the client has sent it.
    pub(super) fn begin_text(&mut self) {
        let (number, answered) = (self.pipeline.sent_count(), self.pipeline.answered_count());
        self.texts.end(number, answered);
    }

    /// What is sent next is about a text in which these names were replaced.
    pub(super) fn begin_replaced_text(&mut self, replacements: Replacements) {
        self.begin_text();
        self.texts.0.push_back(Text {
            from: self.pipeline.sent_count(),
            until: None,
            replacements,
        });
    }

    /// An error's body with the position that it has in the client's text; `None` where it is the
    /// same.
    pub(super) fn with_clients_position(&self, body: &[u8]) -> Option<Vec<u8>> {
        let replacements = self.texts.of(self.pipeline.answered_count())?;
        let at = position_of(body)?;
        let position: usize = str::from_utf8(&body[at.clone()]).ok()?.parse().ok()?;
        // The first character is 1.
        let place = replacements.in_clients_text(position.checked_sub(1)?);
        let position = (place + 1).to_string();
        Some([&body[..at.start], position.as_bytes(), &body[at.end..]].concat())
    }
}

/// Where the field `P` of an error has its digits.
fn position_of(body: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    loop {
        let kind = *body.get(start)?;
        let text_bytes = body[start + 1..].iter().position(|byte| *byte == 0)?;
        let text = start + 1..start + 1 + text_bytes;
        if kind == b'P' {
            return Some(text);
        }
        start = text.end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_place_moves_by_what_stands_before_it() {
        // EXECUTE s1(1); DEALLOCATE longer; x
        // EXECUTE "sooner_7"(1); DEALLOCATE "sooner_~0"; x
        let mut replacements = Replacements::default();
        let utf8 = Encoding::Utf8;
        replacements.add(utf8, b"EXECUTE ", b"\"sooner_7\"", b"s1");
        replacements.add(utf8, b"(1); DEALLOCATE ", b"\"sooner_~0\"", b"longer");
        for (server, client) in [
            (0, 0),
            (7, 7),
            (8, 8),
            (17, 8),
            (18, 10),
            (33, 25),
            (34, 26),
            (44, 26),
            (45, 32),
            (47, 34),
        ] {
            assert_eq!(replacements.in_clients_text(server), client, "{server}");
        }
    }

    #[test]
    fn the_position_is_found_among_the_fields() {
        let body = b"SERROR\0C42703\0MP1 is none\0P12\0Fparse.c\0\0";
        let at = position_of(body).unwrap();
        assert_eq!(&body[at], b"12");
        for none in [&b"SERROR\0C42703\0\0"[..], b"P12", b"", b"\0"] {
            assert_eq!(position_of(none), None);
        }
    }

    proptest! {
        #[test]
        fn any_body_is_read(body in prop::collection::vec(any::<u8>(), 0..40)) {
            position_of(&body);
        }
    }
}
