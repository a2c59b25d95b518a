//! Messages as bytes (PostgreSQL's documentation, chapter "Frontend/Backend Protocol"): cut out of
//! a stream, read where their content matters, written where the proxy speaks for itself.

mod backend;
mod bind;
mod fatal;
mod fields;
mod frame;
mod frontend;
mod rows;
mod startup;

pub use backend::{
    BackendMessage, ErrorReport, ParameterStatus, TransactionStatus, code_of_error, is_fatal,
    look_at_backend, message_of_error, write_authentication, write_error, write_key_data,
    write_negotiate_version, write_notice, write_parameter_status, write_ready,
};
pub use bind::parameter_of_bind;
pub use fatal::write_as_fatal;
pub use fields::Malformed;
pub use frame::{FrameError, HEADER_BYTES, Look, Part, Piece, Splitter};
pub use frontend::{
    FrontendMessage, STATEMENT_BYTES_MAX, Target, look_at_frontend, write_bind, write_close_portal,
    write_close_statement, write_describe_statement, write_flush, write_parse, write_password,
    write_query, write_renamed_parse, write_run, write_sasl_first, write_sync, write_terminate,
};
pub use rows::{
    Column, ColumnType, columns, names_of_columns, texts_of_row, write_columns, write_complete,
    write_empty, write_parameter_types, write_question, write_row,
};
pub use startup::{
    FIRST_PACKET_BYTES_MAX, FirstPacket, Startup, StartupError, Version, truncate_name,
};
