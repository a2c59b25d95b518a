//! A program in which functions of Go and of C are looked for: none is found outside of it.

use sooner_kernel::classifier::{offset_of_c_function, offset_of_go_function};

/// Tries one input.
pub fn run(program: &[u8]) {
    let found = offset_of_go_function(program, "crypto/tls.(*Conn).Write");
    assert!(found.is_none_or(|offset| offset < program.len() as u64));
    let found = offset_of_c_function(program, "SSL_write");
    assert!(found.is_none_or(|offset| offset < program.len() as u64));
}
