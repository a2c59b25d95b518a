//! What a server says of a prepared statement: the types of its parameters, and its columns.

use crate::wire::Column;
use sha2::{Digest, Sha256};

/// What a server said of a statement when it was prepared.
///
/// Two statements of one text and shape can take each other's place: PostgreSQL itself refuses to
/// run a statement with other columns than before (0A000), and plans it anew with the same
/// parameter types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// How many and which, as in ParameterDescription and in Parse.
    parameters: Vec<u8>,
    /// Names, types and modifiers, digested: what is kept for a client is bounded by its texts.
    columns: Option<[u8; 32]>,
}

impl Description {
    /// Of a ParameterDescription's body, and the columns of a RowDescription; `None` where it
    /// returns no rows.
    pub fn new(parameters: &[u8], columns: Option<&[Column<'_>]>) -> Self {
        Self {
            parameters: parameters.to_vec(),
            columns: columns.map(digest),
        }
    }

    /// How many parameters and which types, as they stand in a Parse.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// Whether it returns rows.
    pub fn has_columns(&self) -> bool {
        self.columns.is_some()
    }
}

fn digest(columns: &[Column<'_>]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for column in columns {
        digest.update((column.name.len() as u64).to_be_bytes());
        digest.update(column.name);
        digest.update(column.type_oid.to_be_bytes());
        digest.update(column.type_modifier.to_be_bytes());
    }
    digest.finalize().into()
}
