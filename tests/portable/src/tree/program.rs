//! Builds programs from expression trees, many trees in one kernel.

use std::fmt::Write;

use super::{Base, Input, Tree, Type, Value, evaluate, text};
use crate::expect::Expect;
use crate::program::{Buffer, Check, Expectation, Program};
use crate::random::Random;
use crate::scalar::Kind;

/// The number of scalars of each type that trees read.
const SCALARS: usize = 4;
const GROUP: usize = 16;
const BASES: [(Base, &str); 4] = [(Base::I32, "i"), (Base::U32, "u"), (Base::F32, "f"), (Base::Bool, "b")];

/// The variables of a batch: scalars `i0` … `b3`, and vectors of consecutive ones, `i2v0`, ….
#[must_use]
pub fn inputs() -> Vec<Input> {
    let mut inputs = Vec::new();
    for (base, letter) in BASES {
        for index in 0..SCALARS {
            inputs.push(Input { name: format!("{letter}{index}"), ty: Type::scalar(base) });
        }
        for width in 2..=4 {
            for index in 0..2 {
                inputs.push(Input { name: format!("{letter}{width}v{index}"), ty: Type::new(base, width) });
            }
        }
    }
    inputs
}

/// The values of all variables, computed from the scalars.
#[must_use]
pub fn values(scalars: &[u32]) -> Vec<Value> {
    let mut values = Vec::new();
    for scalars in scalars.chunks(SCALARS) {
        values.extend(scalars.iter().map(|scalar| [*scalar, 0, 0, 0]));
        for width in 2..=4 {
            for index in 0..2 {
                let component = |at: usize| if at < width { scalars[(index + at) % SCALARS] } else { 0 };
                values.push(std::array::from_fn(component));
            }
        }
    }
    values
}

/// Random scalars for `rows` invocations.
#[must_use]
pub fn rows(random: &mut Random, rows: usize) -> Vec<Vec<u32>> {
    let mut scalar = |base: Base| match base {
        Base::Bool => random.below(2) as u32,
        Base::F32 => ((random.below(257) as f32 - 128.0) * 0.5).to_bits(),
        _ => random.bits(),
    };
    let row = |_| BASES.iter().flat_map(|(base, _)| [*base; SCALARS]).map(&mut scalar).collect();
    (0..rows).map(row).collect()
}

/// A kernel that evaluates `trees` for each of `rows`; one check per tree.
#[must_use]
pub fn batch(entry: &str, trees: &[Tree], rows: &[Vec<u32>]) -> Program {
    let scalars = BASES.len() * SCALARS;
    let width: usize = trees.iter().map(|tree| tree.ty.width).sum();
    let (mut body, mut checks, mut at) = (String::new(), Vec::new(), 0);
    let inputs = inputs();
    for tree in trees {
        let text = text(tree, &inputs);
        let _ = writeln!(body, "    {{ let r = {text};");
        for component in 0..tree.ty.width {
            let value = if tree.ty.width == 1 { "r".to_owned() } else { format!("r[{component}]") };
            let _ = writeln!(body, "    {entry}_r[i * {width}u + {at}u] = {};", word(tree.ty.base, &value));
            at += 1;
        }
        let _ = writeln!(body, "    }}");
        checks.push(Check { name: text, expectations: expectations(tree, rows, width, at) });
    }
    let words = rows.concat().iter().map(|word| u64::from(*word)).collect::<Vec<_>>();
    Program {
        entry: entry.to_owned(),
        code: format!(
            "@group(0) @binding(0) var<storage, read> {entry}_x: array<u32>;\n\
             @group(0) @binding(1) var<storage, read_write> {entry}_r: array<u32>;\n\
             @compute @workgroup_size({GROUP})\n\
             fn {entry}(@builtin(global_invocation_id) id: vec3<u32>) {{\n    let i = id.x;\n    \
             if (i * {scalars}u >= arrayLength(&{entry}_x)) {{ return; }}\n{}{body}}}\n",
            preamble(entry)
        ),
        needs: Vec::new(),
        constants: Vec::new(),
        by_value: Vec::new(),
        element: None,
        groups: [rows.len().div_ceil(GROUP) as u32, 1, 1],
        buffers: vec![
            Buffer::new(Kind::U32, false, &words),
            Buffer::new(Kind::U32, true, &vec![0xcdcd_cdcd; rows.len() * width]),
        ],
        scalars: Vec::new(),
        checks,
        says: Vec::new(),
    }
}

/// The expected results of a tree in all rows; its last component is word `end - 1` of a row.
fn expectations(tree: &Tree, rows: &[Vec<u32>], width: usize, end: usize) -> Vec<Expectation> {
    // Compare floats as floats, because a zero may have any sign.
    let expect = |bits| match tree.ty.base {
        Base::F32 if f32::from_bits(bits) == 0.0 => Expect::any(Kind::U32, &[0, 0x8000_0000]),
        _ => Expect::bits(Kind::U32, u64::from(bits)),
    };
    let mut expectations = Vec::new();
    for (row, scalars) in rows.iter().enumerate() {
        let value = evaluate(tree, &values(scalars));
        for (component, bits) in value.iter().enumerate().take(tree.ty.width) {
            let word = row * width + end - tree.ty.width + component;
            expectations.push(Expectation { buffer: 1, offset: word * 4, expect: expect(*bits) });
        }
    }
    expectations
}

fn word(base: Base, value: &str) -> String {
    match base {
        Base::U32 => value.to_owned(),
        Base::Bool => format!("select(0u, 1u, {value})"),
        Base::I32 | Base::F32 => format!("bitcast<u32>({value})"),
    }
}

/// The text of the declarations of the variables.
fn preamble(entry: &str) -> String {
    let mut text = String::new();
    let mut at = 0;
    for (base, letter) in BASES {
        for index in 0..SCALARS {
            let word = format!("{entry}_x[i * {}u + {at}u]", BASES.len() * SCALARS);
            let value = match base {
                Base::U32 => word,
                Base::Bool => format!("{word} != 0u"),
                _ => format!("bitcast<{}>({word})", base.name()),
            };
            let _ = writeln!(text, "    let {letter}{index} = {value};");
            at += 1;
        }
        for width in 2..=4 {
            for first in 0..2 {
                let parts: Vec<_> =
                    (0..width).map(|part| format!("{letter}{}", (first + part) % SCALARS)).collect();
                let name = Type::new(base, width).name();
                let _ = writeln!(text, "    let {letter}{width}v{first} = {name}({});", parts.join(", "));
            }
        }
    }
    text
}

/// A tree and all its parts except leaves, smallest first.
#[must_use]
pub fn parts(tree: &Tree) -> Vec<Tree> {
    let mut all: Vec<Tree> = tree.arguments.iter().flat_map(parts).collect();
    if !tree.arguments.is_empty() {
        all.push(tree.clone());
    }
    all.sort_by_key(Tree::size);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Generator, Operation, tree};

    fn trees(seed: u64, n: usize) -> Vec<Tree> {
        let (mut random, inputs) = (Random::new(seed), inputs());
        let readable: Vec<_> = (0..inputs.len()).collect();
        let generator = Generator { inputs: &inputs, readable: &readable, rich: true };
        (0..n).map(|_| tree(&mut random, &generator, 4)).collect()
    }

    #[test]
    fn naga_takes_random_expressions() {
        let rows = rows(&mut Random::new(1), 5);
        for seed in 0..20 {
            let text = batch("t", &trees(seed, 25), &rows).code;
            let module = runtime_kernel::naga::front::wgsl::parse_str(&text);
            module.unwrap_or_else(|error| panic!("{}", error.emit_to_string(&text)));
        }
    }

    #[test]
    fn floats_stay_exact() {
        let rows = rows(&mut Random::new(2), 20);
        for tree in trees(3, 2000).iter().flat_map(parts).filter(|tree| tree.ty.base == Base::F32) {
            for row in &rows {
                let value = evaluate(&tree, &values(row));
                let fits = |bits: &u32| {
                    let value = f32::from_bits(*bits);
                    value.abs() < 1e5 && (value * 2.0).fract() == 0.0
                };
                assert!(value[..tree.ty.width].iter().all(fits), "{}", text(&tree, &inputs()));
            }
        }
    }

    #[test]
    fn every_operation_occurs() {
        let all: Vec<_> = trees(4, 4000).iter().flat_map(parts).map(|tree| tree.operation).collect();
        for operation in [
            Operation::Divide,
            Operation::Remainder,
            Operation::ShiftRight,
            Operation::ExtractBits,
            Operation::InsertBits,
            Operation::DotI8,
            Operation::PackI8Clamp,
            Operation::UnpackU8,
            Operation::Index,
            Operation::Bitcast,
            Operation::Fract,
            Operation::Either,
        ] {
            assert!(all.contains(&operation), "{operation:?}");
        }
    }
}
