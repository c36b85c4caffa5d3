//! WGSL files of kernels with their data in comments.
//!
//! ```text
//! //# name: §section, what it shows
//! //= groups 2 1 1
//! //= read u32: 1 2 3 4
//! //= write f32: 0*4 -> 1 2 3 _
//! //= scalar i32: 7
//! //= needs subgroups
//! //= constant N=4
//! //= element f16
//! //= by_value params
//! @group(0) @binding(0) var<storage, read> …
//! ```
//!
//! Tensors are listed by binding. `v*n` repeats a value; `1.5f` is the bits of an `f32` in a tensor of words. The
//! expected values follow `->`: `a|b` accepts either, `_` accepts anything. All names of a block, including the entry
//! point, are unique, so that the blocks of a file can be loaded together.

use crate::expect::{Expect, Tolerance};
use crate::program::{Buffer, Check, Expectation, Program};
use crate::scalar::Kind;

/// Parses a file.
///
/// # Panics
/// On a syntax error, with the block and line.
#[must_use]
pub fn parse(text: &str) -> Vec<Program> {
    let blocks = text.split("//# ").skip(1);
    blocks.map(|block| self::block(block).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn block(text: &str) -> Result<Program, String> {
    let (title, code) = text.split_once('\n').unwrap_or((text, ""));
    let (entry, _) = title.split_once(':').ok_or(format!("{title}: no `:` after the name"))?;
    let mut program = Program {
        entry: entry.to_owned(),
        code: format!("// {title}\n{code}"),
        needs: Vec::new(),
        constants: Vec::new(),
        by_value: Vec::new(),
        element: None,
        groups: [1; 3],
        buffers: Vec::new(),
        scalars: Vec::new(),
        checks: vec![Check { name: entry.to_owned(), expectations: Vec::new() }],
        says: Vec::new(),
    };
    for line in code.lines().filter_map(|line| line.strip_prefix("//= ")) {
        directive(&mut program, line).ok_or(format!("{entry}: invalid directive: {line}"))?;
    }
    Ok(program)
}

fn directive(program: &mut Program, line: &str) -> Option<()> {
    let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
    match what {
        "groups" => {
            for (group, number) in program.groups.iter_mut().zip(rest.split_whitespace()) {
                *group = number.parse().ok()?;
            }
        }
        "says" => {
            let words = rest.split('|').map(str::trim).filter(|word| !word.is_empty());
            program.says.extend(words.map(str::to_owned));
        }
        "needs" => program.needs.extend(rest.split_whitespace().map(str::to_owned)),
        "scalar" => {
            let (kind, value) = typed(rest)?;
            program.scalars.push((kind, kind.read(value)?));
        }
        "constant" => {
            let (name, value) = rest.split_once('=')?;
            program.constants.push((name.to_owned(), value.to_owned()));
        }
        "by_value" => program.by_value.push(rest.to_owned()),
        "element" => program.element = Some(Kind::parse(rest)?),
        "read" | "write" => tensor(program, what == "write", rest)?,
        _ => return None,
    }
    Some(())
}

fn typed(text: &str) -> Option<(Kind, &str)> {
    let (kind, rest) = text.split_once(':')?;
    Some((Kind::parse(kind)?, rest.trim()))
}

fn tensor(program: &mut Program, written: bool, text: &str) -> Option<()> {
    let (kind, values) = typed(text)?;
    let (initial, due) = values.split_once("->").map_or((values, None), |(a, b)| (a, Some(b)));
    let scalars = words(kind, initial)?.iter().map(|word| kind.read(word)).collect::<Option<Vec<_>>>()?;
    let buffer = program.buffers.len();
    let (due, tolerance) = match due.and_then(|due| due.split_once("within")) {
        Some((due, tolerance)) => (Some(due), Tolerance::parse(tolerance.trim())?),
        None => (due, Tolerance::Exact),
    };
    let due = due.map_or(Some(Vec::new()), |due| words(kind, due))?;
    if !due.is_empty() && due.len() != scalars.len() {
        return None;
    }
    for (index, word) in due.iter().enumerate() {
        let expect = Expect::parse(kind, word, tolerance)?;
        program.checks[0].expectations.push(Expectation { buffer, offset: index * kind.bytes(), expect });
    }
    program.buffers.push(Buffer::new(kind, written, &scalars));
    Some(())
}

/// The values of a list, with repetitions expanded and floats converted to words.
fn words(kind: Kind, text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let (value, times) = word.split_once('*').unwrap_or((word, "1"));
        let value = match value.strip_suffix('f') {
            Some(float) if !kind.is_float() && !value.starts_with("0x") => {
                format!("0x{:x}", float.parse::<f32>().ok()?.to_bits())
            }
            _ => value.to_owned(),
        };
        words.extend(vec![value; times.parse().ok()?]);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_kernel_with_its_data() {
        let text = "// a file\n//# one: §x, a thing\n//= groups 2 3\n//= read u32: 1.5f 0xf 7*2\n\
                    //= write f32: 0*2 -> 1 _ within 2 ulp\n//= scalar i32: -1\n//= needs f16\nfn one() {}\n\
                    //# two: §y\nfn two() {}\n";
        let [one, two] = parse(text).try_into().unwrap();
        assert_eq!(
            (one.entry.as_str(), one.groups, one.needs.as_slice()),
            ("one", [2, 3, 1], &["f16".into()][..])
        );
        assert_eq!(one.buffers[0].bytes[..8], [0, 0, 0xc0, 0x3f, 15, 0, 0, 0]);
        assert_eq!(one.buffers[0].bytes.len(), 16);
        assert_eq!(one.scalars, [(Kind::I32, 0xffff_ffff)]);
        assert_eq!(one.checks[0].expectations.len(), 2);
        assert!(two.code.contains("fn two()") && two.buffers.is_empty());
    }

    #[test]
    #[should_panic(expected = "one: invalid directive: write f32: 0 -> 1 2")]
    fn an_invalid_directive_is_reported() {
        let _ = parse("//# one: §x\n//= write f32: 0 -> 1 2\n");
    }
}
