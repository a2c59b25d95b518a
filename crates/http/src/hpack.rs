//! Request heads of HTTP/2 on their way to the protocol library (HPACK, RFC 7541).

mod block;
mod head_filter;
mod huffman;
mod table;

pub use head_filter::HeadFilter;
