//! Where a function of a Go program is, though its symbols were taken away: the table of functions
//! that Go's runtime needs for its stack traces stays.
//!
//! Layout: the Go sources, `internal/abi/symtab.go` and `runtime/symtab.go`, of Go 1.18 and later.

use object::{Architecture, Object, ObjectSection};

use super::c_functions::code_at;

/// Names of the table's section; the second in programs that may lie anywhere.
const TABLES: [&str; 2] = [".gopclntab", ".data.rel.ro.gopclntab"];
/// The first number of the table: of Go 1.18 and 1.19, and of later ones.
const MAGICS: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
/// Machines that are known write addresses in so many bytes.
const ADDRESS_BYTES: usize = 8;
/// Instructions of four bytes after which, on aarch64, a function has looked at its stack.
const CHECK_INSTRUCTIONS_MAX: usize = 8;

/// Where in a program's file the function of this name has seen that its stack suffices: if it does
/// not, the function begins again from the start. Its arguments are still where they were. None
/// where it is no program of Go that is known, or has no such function.
pub fn offset_of(program: &[u8], function: &str) -> Option<u64> {
    let file = object::File::parse(program).ok()?;
    let table = TABLES
        .iter()
        .find_map(|name| file.section_by_name(name)?.data().ok())?;
    // What Go 1.26 does not say any more is where its linker puts it. Where another linker did not,
    // no function begins there, or another one.
    let text = file.section_by_name(".text")?.address();
    let address = address_of(table, text, function.as_bytes())?;
    let (offset, code) = code_at(&file, program, address)?;
    let check = match file.architecture() {
        Architecture::X86_64 => check_of_x86_64(code)?,
        Architecture::Aarch64 => check_of_aarch64(code)?,
        _ => return None,
    };
    (check < code.len() as u64).then_some(offset + check)
}

/// How many bytes a function's look at its stack has. A probe anywhere else than at the begin of an
/// instruction would break the program, so all of it has to be known.
fn check_of_x86_64(code: &[u8]) -> Option<u64> {
    // cmp rsp, [r14+16]; or lea r12, [rsp-N] and cmp r12, [r14+16].
    let compared = match code {
        [0x49, 0x3b, 0x66, 0x10, ..] => 4,
        [0x4c, 0x8d, 0x64, 0x24, _, 0x4d, 0x3b, 0x66, 0x10, ..] => 9,
        [
            0x4c,
            0x8d,
            0xa4,
            0x24,
            _,
            _,
            _,
            _,
            0x4d,
            0x3b,
            0x66,
            0x10,
            ..,
        ] => 12,
        _ => return None,
    };
    // jbe, near or far.
    match code.get(compared..)? {
        [0x76, _, ..] => Some(compared as u64 + 2),
        [0x0f, 0x86, ..] => Some(compared as u64 + 6),
        _ => None,
    }
}

/// The same: `ldr x16, [x28, #16]`, then a comparison, and `b.ls`.
fn check_of_aarch64(code: &[u8]) -> Option<u64> {
    let instructions = code.chunks_exact(4).take(CHECK_INSTRUCTIONS_MAX);
    let mut words = instructions.filter_map(|word| Some(u32::from_le_bytes(*word.first_chunk()?)));
    if words.next()? != 0xf940_0b90 {
        return None;
    }
    let before = words.position(|word| word & 0xff00_001f == 0x5400_0009)?;
    Some(4 * (before as u64 + 2))
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
        let program = include_bytes!("../../../../fuzz/seeds/probed_program/program");
        let found = |name| offset_of(program, name);
        assert_eq!(found("crypto/tls.(*Conn).Write"), Some(0x146));
        assert_eq!(found("main.none"), None);
        let mut other = program.to_vec();
        other[0x140] = 0;
        assert_eq!(offset_of(&other, "crypto/tls.(*Conn).Write"), None);
    }

    #[test]
    fn a_probe_stands_behind_the_look_at_the_stack() {
        let x86_64: [(&[u8], Option<u64>); 4] = [
            (&[0x49, 0x3b, 0x66, 0x10, 0x76, 0x20, 0x55], Some(6)),
            (
                &[
                    0x4c, 0x8d, 0xa4, 0x24, 0, 0xff, 0xff, 0xff, 0x4d, 0x3b, 0x66, 0x10, 0x0f,
                    0x86, 1, 2, 3, 4, 0x55,
                ],
                Some(18),
            ),
            (&[0x49, 0x3b, 0x66, 0x10, 0x77, 0x20], None),
            (&[0x55], None),
        ];
        for (code, expected) in x86_64 {
            assert_eq!(check_of_x86_64(code), expected, "{code:x?}");
        }
        // ldr x16, [x28, #16]; cmp sp, x16; b.ls; str x30.
        let aarch64 = [0xf940_0b90_u32, 0xeb30_63ff, 0x5400_0269, 0xf81e_0ffe];
        let code: Vec<u8> = aarch64.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(check_of_aarch64(&code), Some(12));
        assert_eq!(check_of_aarch64(&code[4..]), None);
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
