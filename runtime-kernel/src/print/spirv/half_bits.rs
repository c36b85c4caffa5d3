//! Replaces conversions between a word and two `f16`, which naga writes through `f32`, by casts of the bits.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use spirv::{GlslStd450Op, Op};

use super::{instructions, is};

/// A cast, and the instruction that it replaces.
struct Cast {
    replaced: Range<usize>,
    ty: u32,
    result: u32,
    operand: u32,
}

/// Replaces these conversions in a module. The values in between stay, as they may have other uses.
pub(super) fn cast(words: &mut [u32]) {
    for Cast { replaced, ty, result, operand } in casts(words) {
        let replaced = &mut words[replaced];
        replaced.fill(1 << 16 | Op::Nop as u32);
        replaced[..4].copy_from_slice(&[4 << 16 | Op::Bitcast as u32, ty, result, operand]);
    }
}

fn casts(words: &[u32]) -> Vec<Cast> {
    let half = find(words, Op::TypeFloat, |operands| operands == [16]);
    let pair = half.and_then(|half| find(words, Op::TypeVector, |operands| operands == [half, 2]));
    let Some(pair) = pair else { return Vec::new() };
    // By result: words that are unpacked, pairs that become `f32`, and all pairs.
    let (mut unpacked, mut widened, mut pairs) = (HashMap::new(), HashMap::new(), HashSet::new());
    let mut casts = Vec::new();
    for (at, instruction) in instructions(words) {
        let [first, ty, result, ref operands @ ..] = *instruction else { continue };
        if ty == pair {
            pairs.insert(result);
        }
        let replaced = at..at + instruction.len();
        let add = |operand: Option<&u32>| {
            casts.extend(operand.map(|&operand| Cast { replaced, ty, result, operand }));
        };
        match *operands {
            [_, function, word]
                if is(first, Op::ExtInst) && function == GlslStd450Op::UnpackHalf2x16 as u32 =>
            {
                unpacked.insert(result, word);
            }
            [_, function, value]
                if is(first, Op::ExtInst) && function == GlslStd450Op::PackHalf2x16 as u32 =>
            {
                add(widened.get(&value));
            }
            [value] if is(first, Op::FConvert) && ty == pair => add(unpacked.get(&value)),
            [value] if is(first, Op::FConvert) && pairs.contains(&value) => {
                widened.insert(result, value);
            }
            _ => {}
        }
    }
    casts
}

/// The type with this opcode and these operands.
fn find(words: &[u32], op: Op, has: impl Fn(&[u32]) -> bool) -> Option<u32> {
    instructions(words).find_map(|(_, instruction)| match *instruction {
        [first, id, ref operands @ ..] if is(first, op) && has(operands) => Some(id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checks, Program, Specialisation};

    /// The casts, the conversions that pack, and those that unpack in the code of `statements`.
    fn count(statements: &str) -> [usize; 3] {
        let code = format!(
            "enable f16;
             @group(0) @binding(0) var<storage, read_write> y: array<u32>;
             @group(0) @binding(1) var<storage, read_write> h: array<vec2<f16>>;
             @group(0) @binding(2) var<storage, read_write> d: array<vec2<f32>>;
             @compute @workgroup_size(1) fn main() {{ {statements} }}"
        );
        let program = Program::parse(&code, "", &Specialisation::default()).unwrap();
        let words = program.spirv(Checks::BoundedOnce).unwrap();
        let of = |op: Op| instructions(&words).filter(|(_, instruction)| is(instruction[0], op)).count();
        let glsl = |function: GlslStd450Op| {
            let is_it =
                |instruction: &[u32]| is(instruction[0], Op::ExtInst) && instruction[4] == function as u32;
            instructions(&words).filter(|(_, instruction)| is_it(instruction)).count()
        };
        [of(Op::Bitcast), glsl(GlslStd450Op::PackHalf2x16), glsl(GlslStd450Op::UnpackHalf2x16)]
    }

    #[test]
    fn conversions_through_f32_are_casts() {
        assert_eq!(count("h[0] = bitcast<vec2<f16>>(y[0]);"), [1, 0, 1]);
        assert_eq!(count("h[0] = vec2<f16>(unpack2x16float(y[0]));"), [1, 0, 1]);
        assert_eq!(count("y[0] = bitcast<u32>(vec2<f16>(h[0].x, h[1].y));"), [1, 0, 0]);
        assert_eq!(count("y[0] = pack2x16float(vec2<f32>(h[0]));"), [1, 0, 0]);
    }

    #[test]
    fn other_conversions_stay() {
        assert_eq!(count("d[0] = unpack2x16float(y[0]);"), [0, 0, 1]);
        assert_eq!(count("y[0] = pack2x16float(d[0]);"), [0, 1, 0]);
        assert_eq!(count("h[0] = vec2<f16>(d[0]); d[1] = vec2<f32>(h[0]);"), [0, 0, 0]);
    }
}
