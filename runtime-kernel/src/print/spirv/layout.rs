//! Removes the layout that naga's writer gives to types that contain a `bool`.
//!
//! Booleans have no size in SPIR-V, and types that contain one never occur in host-visible memory. naga counts one
//! byte for each: the array stride of an `array<bool, N>` is 1. NVIDIA's compiler honours that in work-group memory
//! while storing four bytes per element, so that invocations overwrote the flags of their neighbours.

use spirv::{Decoration, Op};

use super::{HEADER, declarations, instructions, is};

const ARRAY_STRIDE: u32 = Decoration::ArrayStride as u32;
/// The decorations that lay out a structure's members.
const MEMBER_LAYOUT: [u32; 4] = [
    Decoration::RowMajor as u32,
    Decoration::ColMajor as u32,
    Decoration::MatrixStride as u32,
    Decoration::Offset as u32,
];

/// Removes the layout decorations of types that contain a `bool`.
pub(super) fn remove_from_bools(words: &mut Vec<u32>) {
    let bools = with_bool(words);
    if !declarations(words).any(|(_, instruction)| is_layout(instruction, &bools)) {
        return;
    }
    let mut kept = words[..HEADER.min(words.len())].to_vec();
    let others = instructions(words).filter(|(_, instruction)| !is_layout(instruction, &bools));
    others.for_each(|(_, instruction)| kept.extend_from_slice(instruction));
    *words = kept;
}

/// Whether an instruction decorates one of `types` with a layout.
fn is_layout(instruction: &[u32], types: &[u32]) -> bool {
    match *instruction {
        [word, id, ARRAY_STRIDE, ..] if is(word, Op::Decorate) => types.contains(&id),
        [word, id, _, kind, ..] if is(word, Op::MemberDecorate) => {
            types.contains(&id) && MEMBER_LAYOUT.contains(&kind)
        }
        _ => false,
    }
}

/// The types that are or contain a `bool`. Types precede those that contain them.
fn with_bool(words: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    for (_, instruction) in declarations(words) {
        let &[word, id, ref parts @ ..] = instruction else { continue };
        let parts = if is(word, Op::TypeStruct) {
            parts
        } else if is(word, Op::TypeVector) || is(word, Op::TypeArray) {
            // The first operand is the element type.
            parts.get(..1).unwrap_or_default()
        } else {
            if is(word, Op::TypeBool) {
                found.push(id);
            }
            continue;
        };
        if parts.iter().any(|part| found.contains(part)) {
            found.push(id);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checks, Program, Specialisation};

    /// The number of layout decorations on types that contain a `bool`.
    fn laid_out(declared: &str) -> usize {
        let code = format!(
            "struct S {{ n: u32, flag: bool, m: mat2x2<f32> }} struct T {{ n: u32, s: array<S, 2> }}
             @group(0) @binding(0) var<storage, read_write> y: array<u32>; var<workgroup> w: {declared};
             @compute @workgroup_size(1) fn main() {{ let p = &w; y[0] = 1u; }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::BoundedOnce).unwrap();
        let bools = with_bool(&words);
        assert!(!bools.is_empty(), "{declared} has no bool");
        instructions(&words).filter(|(_, instruction)| is_layout(instruction, &bools)).count()
    }

    #[test]
    fn types_with_a_bool_have_no_layout() {
        for declared in ["array<bool, 33>", "array<vec2<bool>, 3>", "array<array<bool, 2>, 3>", "S", "T"] {
            assert_eq!(laid_out(declared), 0, "{declared}");
        }
    }

    #[test]
    fn other_types_keep_their_layout_and_malformed_code_terminates() {
        let first = |length: u32, op: Op| length << 16 | op as u32;
        let mut words = vec![0; HEADER];
        words.extend([first(4, Op::Decorate), 7, ARRAY_STRIDE, 4, first(4, Op::TypeArray), 7, 2, 3]);
        let before = words.clone();
        remove_from_bools(&mut words);
        assert_eq!(words, before);
        words.extend([first(2, Op::TypeBool), 9, first(40, Op::Decorate), 9]);
        assert_eq!(with_bool(&words), [9]);
        remove_from_bools(&mut Vec::new());
    }
}
