//! Where a function of a Go program is, though its symbols were taken away: the table of functions
//! that Go's runtime needs for its stack traces stays.
//!
//! Layout: the Go sources, `internal/abi/symtab.go` and `runtime/symtab.go`, of Go 1.18 and later.

use object::{Object, ObjectSection, ObjectSegment};

/// Names of the table's section; the second in programs that may lie anywhere.
const TABLES: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The first number of the table: of Go 1.18 and 1.19, and of later ones.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Machines that are known write addresses in so many bytes.
const ADDRESS_BYTES: usize = 8;
/// What a function begins with that looks whether its stack suffices: x86_64 in two ways, and
/// aarch64. A probe anywhere else than at the begin of an instruction would break the program.
const BEGINNINGS: [&[u8]; 3] = [
    &[0x49, 0x3b, 0x66, 0x10],
    &[0x4c, 0x8d, 0x64, 0x24],
    &[0x90, 0x0b, 0x40, 0xf9],
];
/// The second way with a stack of more than 127 bytes.
const BEGINNING_OF_LARGE: &[u8] = &[0x4c, 0x8d, 0xa4, 0x24];

/// Where in a program's file the function of this name begins; none where it is no program of Go
/// that is known, or has no such function.
pub fn offset_of(program: &[u8], function: &str) -> Option<u64> {
    let file = object::File::parse(program).ok()?;
    let table = TABLES
        .iter()
        .find_map(|name| file.section_by_name(name)?.data().ok())?;
    // What Go 1.26 does not say any more is where its linker puts it. Where another linker did not,
    // no function begins there, or another one of the same kind.
    let text = file.section_by_name(".text")?.address();
    let address = address_of(table, text, function.as_bytes())?;
    let segment = file.segments().find(|segment| {
        let begin = segment.address();
        (begin..begin.saturating_add(segment.size())).contains(&address)
    })?;
    let (begin, length) = segment.file_range();
    let inside = address - segment.address();
    let offset = begin.checked_add(inside)?;
    let code = program.get(usize::try_from(offset).ok()?..)?;
    let is_known = |begin: &&[u8]| code.starts_with(begin);
    let is_function = BEGINNINGS.iter().any(is_known) || is_known(&BEGINNING_OF_LARGE);
    (inside < length && is_function).then_some(offset)
}

/// The function's address, as the table has it; `text` where the table does not say where all begin.
fn address_of(table: &[u8], text: u64, function: &[u8]) -> Option<u64> {
    let magic = u32_at(table, 0)?;
    if !MAGICS.contains(&magic) || *table.get(7)? != ADDRESS_BYTES as u8 {
        return None;
    }
    let [functions, _, begin, names, .., entries] = header(table)?;
    let text = if begin == 0 { text } else { begin };
    let names = table.get(usize::try_from(names).ok()?..)?;
    let entries = table.get(usize::try_from(entries).ok()?..)?;
    let mut before = 0;
    for entry in 0..usize::try_from(functions).ok()? {
        let begin = u32_at(entries, entry * 8)?;
        let about = usize::try_from(u32_at(entries, entry * 8 + 4)?).ok()?;
        if begin < before || u32_at(entries, about)? != begin {
            return None;
        }
        before = begin;
        let name = usize::try_from(u32_at(entries, about + 4)?).ok()?;
        let rest = names.get(name..)?;
        if rest
            .strip_prefix(function)
            .is_some_and(|rest| rest.first() == Some(&0))
        {
            return text.checked_add(u64::from(begin));
        }
    }
    None
}

/// The eight numbers behind the first eight bytes.
fn header(table: &[u8]) -> Option<[u64; 8]> {
    let mut numbers = [0; 8];
    for (place, number) in numbers.iter_mut().enumerate() {
        let at = 8 + place * ADDRESS_BYTES;
        let bytes = table.get(at..)?.first_chunk()?;
        *number = u64::from_le_bytes(*bytes);
    }
    Some(numbers)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table of functions at 0x400000 with these names, 64 bytes each.
    fn table(functions: &[&str]) -> Vec<u8> {
        let mut names = Vec::new();
        let mut entries = Vec::new();
        let mut about = Vec::new();
        for (place, function) in functions.iter().enumerate() {
            let begin = 64 * place as u32;
            let at = 8 * functions.len() + about.len();
            entries.extend(begin.to_le_bytes());
            entries.extend((at as u32).to_le_bytes());
            about.extend(begin.to_le_bytes());
            about.extend((names.len() as u32).to_le_bytes());
            names.extend(function.as_bytes());
            names.push(0);
        }
        let mut table = MAGICS[1].to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        let names_at = 8 + 8 * 8;
        let entries_at = names_at + names.len();
        let count = functions.len() as u64;
        let (names_at, entries_at) = (names_at as u64, entries_at as u64);
        for number in [count, 0, 0x40_0000, names_at, 0, 0, 0, entries_at] {
            table.extend(number.to_le_bytes());
        }
        table.extend(names);
        table.extend(entries);
        table.extend(about);
        table
    }

    #[test]
    fn a_function_is_found_by_its_whole_name() {
        let table = table(&["main.main", "main.mainly", "crypto/tls.(*Conn).Write"]);
        let found = |name: &str| address_of(&table, 7, name.as_bytes());
        assert_eq!(found("main.mainly"), Some(0x40_0040));
        assert_eq!(found("crypto/tls.(*Conn).Write"), Some(0x40_0080));
        assert_eq!(found("main.mai"), None);
        assert_eq!(offset_of(&table, "main.main"), None, "no program");
    }

    /// `fuzz/seeds`: two functions that look whether their stack suffices, from byte 0x100 on.
    #[test]
    fn an_offset_is_that_of_the_file() {
        let program = include_bytes!("../../../../fuzz/seeds/go_functions/program");
        let found = |name| offset_of(program, name);
        assert_eq!(found("crypto/tls.(*Conn).Write"), Some(0x140));
        assert_eq!(found("main.none"), None);
        let mut other = program.to_vec();
        other[0x140] = 0;
        assert_eq!(offset_of(&other, "crypto/tls.(*Conn).Write"), None);
    }

    proptest! {
        #[test]
        fn a_table_that_is_cut_or_changed_is_no_harm(at in 0usize..400, byte: u8, cut in 0usize..400) {
            let mut table = table(&["main.main", "crypto/tls.(*Conn).Write"]);
            if let Some(place) = table.get_mut(at) {
                *place = byte;
            }
            table.truncate(cut);
            let _ = address_of(&table, 7, b"crypto/tls.(*Conn).Write");
        }
    }
}
