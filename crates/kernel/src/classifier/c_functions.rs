//! Where in a function of C a probe costs least.
//!
//! A probe replaces an instruction. The kernel does what the simplest ones do by itself (Linux,
//! `arch/x86/kernel/uprobes.c`); others it runs one by one with a second trap, which a virtual
//! machine leaves for: 13 us a call were measured so, and 1 to 2 us without. So the probe stands at the
//! first of the simple ones before which the arguments are where they were.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};
use object::{Architecture, Object, ObjectSegment, ObjectSymbol};

/// Registers of the first three arguments.
const ARGUMENTS: [Register; 3] = [Register::RDI, Register::RSI, Register::RDX];
/// Instructions that are looked at.
const INSTRUCTIONS_MAX: usize = 24;
/// No instruction is longer.
const INSTRUCTION_BYTES_MAX: usize = 15;

/// Where in the file a probe of the function of this name stands; none where there is no such
/// function.
pub fn offset_of(library: &[u8], function: &str) -> Option<u64> {
    let file = object::File::parse(library).ok()?;
    let mut symbols = file.dynamic_symbols().chain(file.symbols());
    let symbol = symbols.find(|symbol| {
        symbol.is_definition() && symbol.name() == Ok(function) && symbol.address() > 0
    })?;
    let (offset, code) = code_at(&file, library, symbol.address())?;
    let code = &code[..code.len().min(INSTRUCTIONS_MAX * INSTRUCTION_BYTES_MAX)];
    match file.architecture() {
        Architecture::X86_64 => Some(offset + simple_instruction(code).unwrap_or(0)),
        _ => Some(offset),
    }
}

/// Where in the file an address is, and what stands there up to the end of its segment.
pub(super) fn code_at<'a>(
    file: &object::File<'_>,
    bytes: &'a [u8],
    address: u64,
) -> Option<(u64, &'a [u8])> {
    let segment = file.segments().find(|segment| {
        let begin = segment.address();
        (begin..begin.saturating_add(segment.size())).contains(&address)
    })?;
    let (begin, length) = segment.file_range();
    let inside = address - segment.address();
    let offset = begin.checked_add(inside)?;
    let end = usize::try_from(begin.checked_add(length)?).ok()?;
    let code = bytes.get(usize::try_from(offset).ok()?..end.min(bytes.len()))?;
    (!code.is_empty()).then_some((offset, code))
}

/// How far behind the begin of the function it is.
fn simple_instruction(code: &[u8]) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let mut infos = InstructionInfoFactory::new();
    for _ in 0..INSTRUCTIONS_MAX {
        let instruction = decoder.decode();
        if instruction.is_invalid() {
            return None;
        }
        if is_simple(&instruction) {
            return Some(instruction.ip());
        }
        let used = infos.info(&instruction).used_registers();
        let is_kept = used.iter().all(|used| {
            let is_read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            is_read || !ARGUMENTS.contains(&used.register().full_register())
        });
        if !is_kept || instruction.flow_control() != FlowControl::Next {
            return None;
        }
    }
    None
}

/// Whether the kernel does by itself what it does.
fn is_simple(instruction: &Instruction) -> bool {
    let length = instruction.len();
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => {
            instruction.is_jcc_short_or_near() && matches!(length, 2 | 6)
        }
        FlowControl::Call => instruction.is_call_near() && length == 5,
        FlowControl::UnconditionalBranch => {
            instruction.is_jmp_short_or_near() && matches!(length, 2 | 5)
        }
        FlowControl::Next => {
            let is_push = instruction.mnemonic() == Mnemonic::Push && length <= 2;
            is_push && instruction.op0_register().is_gpr64()
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_simple_instruction_is_found_while_the_arguments_are_there() {
        let cases: [(&str, &[u8], Option<u64>); 6] = [
            // push rbp; mov rbp, rsp.
            ("push", &[0x55, 0x48, 0x89, 0xe5], Some(0)),
            // endbr64; push r15.
            ("endbr64", &[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0x57], Some(4)),
            // sub rsp, 24; mov rax, fs:[40]; mov [rsp+8], rax; xor eax, eax; test edx, edx; js +58.
            (
                "SSL_write of OpenSSL 3.0",
                &[
                    0x48, 0x83, 0xec, 0x18, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00,
                    0x48, 0x89, 0x44, 0x24, 0x08, 0x31, 0xc0, 0x85, 0xd2, 0x78, 0x3a,
                ],
                Some(22),
            ),
            // sub rsp, 8; mov rsi, rdi; push rbx: an argument is gone.
            (
                "lost",
                &[0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xfe, 0x53],
                None,
            ),
            // ret.
            ("end", &[0xc3, 0x55], None),
            ("nothing", &[], None),
        ];
        for (words, code, expected) in cases {
            assert_eq!(simple_instruction(code), expected, "{words}");
        }
        assert_eq!(offset_of(b"no library", "SSL_write"), None);
    }

    proptest! {
        #[test]
        fn any_code_is_read(code: Vec<u8>) {
            let found = simple_instruction(&code);
            prop_assert!(found.is_none_or(|at| at < code.len() as u64));
        }
    }
}
