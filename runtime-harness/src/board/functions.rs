//! The count of each function of a program, from a run of its own: an emulator reports every instruction that it executes.

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use super::program::Program;
use super::{Board, count};
use crate::row::{CounterValue, error_text};

/// The name that asks for the counts.
const FUNCTIONS: &str = "functions";
/// The part of the count that no function has, where the ticks of a timer are rounded to instructions.
const ROUNDING: &str = "(rounding)";

/// The counters with these names.
pub(super) fn counters(
    board: &Board<'_>,
    program: &Program<'_>,
    number: u64,
    names: &[String],
) -> Vec<CounterValue> {
    let read = |name: &String| match name == FUNCTIONS {
        true => by_function(board, program, number),
        false => Err(Error::unsupported(format!("an embedded device has no counter but \"{FUNCTIONS}\""))),
    };
    let values = names.iter().map(|name| match read(name) {
        Ok(values) => values,
        Err(error) => {
            let reason = Some(error_text(&error));
            vec![CounterValue { name: name.clone(), reason, ..CounterValue::default() }]
        }
    });
    values.flatten().collect()
}

/// A counter per function that was executed, the largest first. Their sum is the count of the run.
fn by_function(board: &Board<'_>, program: &Program<'_>, number: u64) -> Result<Vec<CounterValue>> {
    let io = |error: std::io::Error| Error::new(ErrorKind::Io, format!("counts of functions: {error}"));
    let folder = TemporaryFolder::new("runtime-functions-").map_err(io)?;
    let file = folder.path().join("counts");
    program.flash(number, Some(&file))?;
    let total = count(&board.run()?)?;
    let text = std::fs::read_to_string(&file).map_err(io)?;
    let counts = text.lines().map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name, count.parse::<u64>().ok()?))
    });
    let malformed = || Error::new(ErrorKind::Io, format!("counts of functions: unexpected text \"{text}\""));
    let counts: Vec<(&str, u64)> = counts.collect::<Option<_>>().ok_or_else(malformed)?;
    let rest = total as f64 - counts.iter().map(|(_, count)| *count as f64).sum::<f64>();
    let counts = counts.into_iter().map(|(name, count)| (name, count as f64));
    let counts = counts.chain((rest != 0.0).then_some((ROUNDING, rest)));
    Ok(counts
        .map(|(name, count)| value(format!("{FUNCTIONS}:{name}"), count / number as f64, number))
        .collect())
}

fn value(name: String, value: f64, calls: u64) -> CounterValue {
    let known = Some(value);
    CounterValue {
        name,
        value: known,
        min: known,
        max: known,
        samples: vec![value],
        calls,
        passes: 1,
        ..CounterValue::default()
    }
}
