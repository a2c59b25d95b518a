//! A COPY that reads rows, where client and server may not agree on what belongs to it.

use super::{NO_STATEMENT, Rewriter};
use crate::wire::{write_close_statement, write_sync};
use bytes::BytesMut;

impl Rewriter<'_> {
    /// What the server is to be asked now that it has answered: how many of the Syncs between a COPY's rows it did not read as such.
    pub fn ask(&mut self, out: &mut BytesMut) {
        if std::mem::take(&mut self.wants_probe) {
            write_sync(out);
            write_close_statement(out, NO_STATEMENT);
            write_sync(out);
        }
    }
}
