//! Removes the layout that naga's writer gives to types that contain a `bool`.
//!
//! Booleans have no size in SPIR-V, and types that contain one never occur in host-visible memory. naga counts one
//! byte for each: the array stride of an `array<bool, N>` is 1. NVIDIA's compiler honours that in work-group memory
//! while storing four bytes per element, so that invocations overwrote the flags of their neighbours.

use super::{HEADER, instructions};

/// Opcodes and decorations.
const DECORATE: u32 = 71;
const MEMBER_DECORATE: u32 = 72;
const TYPE_BOOL: u32 = 20;
const TYPE_VECTOR: u32 = 23;
const TYPE_ARRAY: u32 = 28;
const TYPE_STRUCT: u32 = 30;
const ARRAY_STRIDE: u32 = 6;
/// `RowMajor`, `ColMajor`, `MatrixStride` and `Offset` of a structure's members.
const MEMBER_LAYOUT: [u32; 4] = [4, 5, 7, 35];

/// Removes the layout decorations of types that contain a `bool`.
pub(super) fn remove_from_bools(words: &mut Vec<u32>) {
    let bools = with_bool(words);
    if bools.is_empty() {
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
        [word, id, ARRAY_STRIDE, ..] if word & 0xffff == DECORATE => types.contains(&id),
        [word, id, _, kind, ..] if word & 0xffff == MEMBER_DECORATE => {
            types.contains(&id) && MEMBER_LAYOUT.contains(&kind)
        }
        _ => false,
    }
}

/// The types that are or contain a `bool`. Types precede those that contain them.
fn with_bool(words: &[u32]) -> Vec<u32> {
    let mut found = Vec::new();
    for (_, instruction) in instructions(words) {
        let &[word, id, ref parts @ ..] = instruction else { continue };
        let parts = match word & 0xffff {
            TYPE_BOOL => {
                found.push(id);
                continue;
            }
            // The first operand is the element type.
            TYPE_VECTOR | TYPE_ARRAY => parts.get(..1).unwrap_or_default(),
            TYPE_STRUCT => parts,
            _ => continue,
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
        let mut words =
            vec![0, 0, 0, 0, 0, 4 << 16 | DECORATE, 7, ARRAY_STRIDE, 4, 4 << 16 | TYPE_ARRAY, 7, 2, 3];
        let before = words.clone();
        remove_from_bools(&mut words);
        assert_eq!(words, before);
        words.extend([2 << 16 | TYPE_BOOL, 9, 40 << 16 | DECORATE, 9]);
        assert_eq!(with_bool(&words), [9]);
        remove_from_bools(&mut Vec::new());
    }
}
