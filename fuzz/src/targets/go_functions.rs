//! A program in which a function of Go is looked for: none is found outside of it.

use sooner_kernel::classifier::offset_of_go_function;

/// Tries one input.
pub fn run(program: &[u8]) {
    let found = offset_of_go_function(program, "crypto/tls.(*Conn).Write");
    assert!(found.is_none_or(|offset| offset < program.len() as u64));
}
