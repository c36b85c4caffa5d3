//! Tables of expressions: a line with types and an expression, followed by lines with values.
//!
//! ```text
//! # a comment: the section of the specification
//! i32, i32 -> i32: x / y
//!     7, 2 => 3
//! f32 -> f32 within 2 ulp: inverseSqrt(x)
//!     4 => 0.5
//! ```
//!
//! The operands are named `x`, `y`, `z`, `w`. A result `a|b` accepts either value, `_` accepts anything; a line of
//! values may have its own tolerance.

use crate::expect::{Expect, Tolerance};
use crate::program::{Buffer, Check, Expectation, Program};
use crate::shape::Shape;

const OPERANDS: [&str; 4] = ["x", "y", "z", "w"];
/// Not a multiple of common vector sizes, so that the last group is not full.
const GROUP: usize = 8;

/// The types and the expression of a header line.
struct Header<'a> {
    operands: Vec<Shape>,
    result: Shape,
    tolerance: Tolerance,
    expression: &'a str,
}

/// Parses a table; `name` is part of the names of entry points.
///
/// # Panics
/// On a syntax error, with the line.
#[must_use]
pub fn parse(name: &str, text: &str) -> Vec<Program> {
    let mut programs = Vec::new();
    let mut rows: Vec<(usize, &str)> = Vec::new();
    let mut header: Option<(usize, &str)> = None;
    let end = [(0, "end:")];
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line)).chain(end) {
        match line.trim() {
            "" => {}
            comment if comment.starts_with('#') => {}
            row if line.starts_with(' ') => rows.push((number, row)),
            next => {
                if let Some((at, text)) = header.replace((number, next)) {
                    let entry = format!("{name}_{at}");
                    let program = Header::parse(text).and_then(|header| header.program(&entry, text, &rows));
                    programs.push(program.unwrap_or_else(|error| panic!("{name}, line {at}: {error}")));
                }
                rows.clear();
            }
        }
    }
    programs
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Result<Self, String> {
        let (types, expression) = line.split_once(": ").ok_or("no `: ` before the expression")?;
        let (operands, result) = types.split_once("->").ok_or("no `->`")?;
        let (result, tolerance) = within(result).ok_or("invalid tolerance")?;
        let shape = |name: &str| Shape::parse(name.trim()).ok_or(format!("unknown type {name}"));
        Ok(Self {
            operands: operands.split(", ").map(shape).collect::<Result<_, _>>()?,
            result: shape(result)?,
            tolerance: tolerance.unwrap_or(Tolerance::Exact),
            expression: expression.trim(),
        })
    }

    fn program(&self, entry: &str, text: &str, rows: &[(usize, &str)]) -> Result<Program, String> {
        let mut inputs = vec![Vec::new(); self.operands.len()];
        let mut checks = Vec::new();
        for (row, (line, values)) in rows.iter().enumerate() {
            let (given, expected) = values.split_once("=>").ok_or(format!("no `=>` in line {line}"))?;
            let wrong = || format!("line {line}: invalid values");
            let given = split(given);
            if given.len() != self.operands.len() {
                return Err(wrong());
            }
            for ((shape, input), value) in self.operands.iter().zip(&mut inputs).zip(&given) {
                input.extend(store(*shape, value).ok_or_else(wrong)?);
            }
            let expectations = self.expectations(row, expected).ok_or_else(wrong)?;
            checks.push(Check { name: format!("{text} ({})", given.join(", ")), expectations });
        }
        let mut buffers: Vec<_> = (self.operands.iter().zip(inputs))
            .map(|(shape, bytes)| Buffer { kind: shape.kind, written: false, bytes })
            .collect();
        // A pattern that is not a plausible result.
        let bytes = vec![0xcd; rows.len() * self.result.stride()];
        buffers.push(Buffer { kind: self.result.kind, written: true, bytes });
        let groups = [u32::try_from(rows.len().div_ceil(GROUP)).unwrap_or(1), 1, 1];
        let code = self.code(entry);
        Ok(Program {
            entry: entry.to_owned(),
            code,
            needs: self.needs(),
            constants: Vec::new(),
            by_value: Vec::new(),
            element: None,
            groups,
            buffers,
            scalars: Vec::new(),
            checks,
            says: Vec::new(),
        })
    }

    fn expectations(&self, row: usize, expected: &str) -> Option<Vec<Expectation>> {
        let (expected, tolerance) = within(expected)?;
        let expectation = |(index, text)| {
            let kind = self.result.kind;
            Some(Expectation {
                buffer: self.operands.len(),
                offset: row * self.result.stride() + index * kind.bytes(),
                expect: Expect::parse(kind, text, tolerance.unwrap_or(self.tolerance))?,
            })
        };
        self.result.components(expected)?.into_iter().enumerate().map(expectation).collect()
    }

    fn needs(&self) -> Vec<String> {
        let kinds = self.operands.iter().chain([&self.result]).map(|shape| shape.kind);
        let mut needs: Vec<_> = kinds.filter_map(|kind| kind.need().map(str::to_owned)).collect();
        needs.sort();
        needs.dedup();
        needs
    }

    fn code(&self, entry: &str) -> String {
        let mut declarations = String::new();
        let mut operands = String::new();
        for (binding, (shape, name)) in self.operands.iter().zip(OPERANDS).enumerate() {
            let stored = shape.stored();
            declarations += &format!(
                "@group(0) @binding({binding}) var<storage, read> {entry}_{name}: array<{stored}>;\n"
            );
            let value = shape.from_memory(&format!("{entry}_{name}[i]"));
            operands += &format!("    let {name} = {value};\n");
        }
        let (binding, stored) = (self.operands.len(), self.result.stored());
        let result = self.result.to_memory(self.expression);
        format!(
            "{declarations}@group(0) @binding({binding}) var<storage, read_write> {entry}_r: array<{stored}>;\n\
             @compute @workgroup_size({GROUP})\n\
             fn {entry}(@builtin(global_invocation_id) id: vec3<u32>) {{\n    let i = id.x;\n    \
             if (i >= arrayLength(&{entry}_r)) {{ return; }}\n{operands}    {entry}_r[i] = {result};\n}}\n"
        )
    }
}

/// Splits off a tolerance at the end.
fn within(text: &str) -> Option<(&str, Option<Tolerance>)> {
    match text.split_once("within") {
        Some((text, tolerance)) => Some((text.trim(), Some(Tolerance::parse(tolerance.trim())?))),
        None => Some((text.trim(), None)),
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).collect()
}

/// The bytes of a value, including the padding after a vector of three.
fn store(shape: Shape, text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for component in shape.components(text)? {
        bytes.extend(&shape.kind.read(component)?.to_le_bytes()[..shape.kind.bytes()]);
    }
    bytes.resize(shape.stride(), 0xee);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# a comment\n\
        i32, i32 -> i32: x / y\n    7, 2 => 3\n    -7, 2 => -3\n\n\
        vec3<f16>, bool -> vec3<f16> within rounded: select(x, -x, y)\n    (1, 2, 3), true => (-1, -2, -3)\n";

    #[test]
    fn rows_become_kernels_with_data() {
        let [division, vectors] = parse("t", TABLE).try_into().unwrap();
        assert_eq!((division.entry.as_str(), division.checks.len()), ("t_2", 2));
        assert_eq!(division.checks[1].name, "i32, i32 -> i32: x / y (-7, 2)");
        assert_eq!(division.buffers[0].bytes, [7, 0, 0, 0, 0xf9, 0xff, 0xff, 0xff]);
        assert!(division.code.contains("t_2_r[i] = x / y;"), "{}", division.code);
        assert_eq!(vectors.needs, ["f16"]);
        assert_eq!(vectors.buffers[0].bytes, [0, 0x3c, 0, 0x40, 0, 0x42, 0xee, 0xee]);
        assert!(vectors.text().starts_with("enable f16;"));
    }

    #[test]
    fn a_wrong_result_is_reported() {
        let division = parse("t", TABLE).remove(0);
        let mut outputs: Vec<_> = division.buffers.iter().map(|buffer| buffer.bytes.clone()).collect();
        outputs[2] = [3i32.to_le_bytes(), (-4i32).to_le_bytes()].concat();
        assert_eq!(division.checks[0].verdict(&division.buffers, &outputs), Ok(()));
        let message = division.checks[1].verdict(&division.buffers, &outputs).unwrap_err();
        assert_eq!(message, "buffer 2[1] is -4, not -3");
    }

    #[test]
    #[should_panic(expected = "t, line 1: line 2: invalid values")]
    fn an_invalid_table_is_reported_with_its_line() {
        let _ = parse("t", "i32 -> i32: x\n    1, 2 => 3\n");
    }
}
