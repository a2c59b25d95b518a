//! A COPY that reads rows, where client and server may not agree on what belongs to it.

use bytes::{BufMut, BytesMut};

use super::{Exchange, NOBODYS};
use crate::wire::{write_close_statement, write_sync};

impl Exchange<'_> {
    /// What the server is to be asked now that it has answered: how many of the Syncs between a COPY's rows it did not read as such.
    pub fn ask(&mut self, out: &mut BytesMut) {
        if std::mem::take(&mut self.has_doubt) {
            write_sync(out);
            write_close_statement(out, NOBODYS);
            write_sync(out);
        }
    }

    /// The client sends what is no row: the server ends the session when it sees the type.
    pub(super) fn break_off(&mut self, tag: u8, out: &mut BytesMut) {
        out.put_u8(tag);
        out.put_i32(4);
        self.drops = true;
        self.is_left = true;
    }
}
