//! The count of each function of a program, from a run of its own: an emulator reports every instruction that it executes.

use std::fmt::Display;
use std::time::Duration;

use runtime_core::backend::TemporaryFolder;
use runtime_core::{Error, ErrorKind, Result};

use super::program::{Count, Program};
use super::{Board, count};
use crate::row::{CounterValue, Counts, error_text};

/// The name that asks for the counts.
const FUNCTIONS: &str = "functions";
/// A lower bound on the speed of a traced run on a busy host, in instructions per second.
const TRACED_PER_SECOND: f64 = 20_000.0;
/// Time limit for everything in a traced run except its instructions.
const MIN_DEADLINE: Duration = Duration::from_secs(10);

/// The counters with these names, of a program with these counts.
pub(super) fn counters(
    board: &Board<'_>,
    program: &Program<'_>,
    counts: &Counts,
    names: &[String],
) -> Vec<CounterValue> {
    let read = |name: &String| match name == FUNCTIONS {
        true => by_function(board, program, counts),
        false => {
            Err(Error::unsupported(format!("the only counter of an embedded device is \"{FUNCTIONS}\"")))
        }
    };
    let missing = |name, error| vec![CounterValue::missing(name, &error_text(&error))];
    names.iter().flat_map(|name| read(name).unwrap_or_else(|error| missing(name, error))).collect()
}

/// An error of the counts.
fn io(what: impl Display) -> Error {
    Error::new(ErrorKind::Io, format!("counts of functions: {what}"))
}

/// A counter per function that was executed, the largest first. Their sum is the count of the run.
fn by_function(board: &Board<'_>, program: &Program<'_>, counts: &Counts) -> Result<Vec<CounterValue>> {
    let folder = TemporaryFolder::new("runtime-functions-").map_err(io)?;
    let file = folder.path().join("counts");
    program.flash(counts.number, Count::Functions(&file))?;
    let total = count(&board.embedded.run(deadline(counts.median * counts.number as f64))?)?;
    let text = std::fs::read_to_string(&file).map_err(io)?;
    let functions = parse(&text, total)?;
    let per_call = |count: u64| count as f64 / counts.number as f64;
    let values = functions.into_iter().map(|(name, count)| {
        let name = format!("{FUNCTIONS}:{name}");
        let counter = CounterValue { name, calls: counts.number, passes: 1, ..CounterValue::default() };
        counter.with_samples(vec![per_call(count)])
    });
    Ok(values.collect())
}

/// The time for a traced run of so many instructions.
fn deadline(instructions: f64) -> Duration {
    MIN_DEADLINE + Duration::from_secs_f64(instructions / TRACED_PER_SECOND)
}

/// The functions in the lines `NAME COUNT` that a run has written.
///
/// # Errors
/// `Io` for other lines, and if their sum is not the count of the run.
fn parse(text: &str, total: u64) -> Result<Vec<(&str, u64)>> {
    let counts = text.lines().map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name, count.parse().ok()?))
    });
    let counts =
        counts.collect::<Option<Vec<_>>>().ok_or_else(|| io(format!("unexpected text \"{text}\"")))?;
    match counts.iter().map(|(_, count)| count).sum::<u64>() {
        sum if sum == total => Ok(counts),
        sum => Err(io(format!("their sum is {sum}, and the count of the run {total}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_do_not_add_up_are_an_error() {
        assert_eq!(parse("f 7\ng h 2\n", 9).unwrap(), [("f", 7), ("g h", 2)]);
        for (text, total, word) in [("f 7\n", 8, "sum is 7"), ("f\n", 0, "unexpected"), ("", 1, "sum is 0")] {
            let error = parse(text, total).unwrap_err();
            assert!(error.kind() == ErrorKind::Io && error.message().contains(word), "{error}");
        }
    }

    #[test]
    fn more_instructions_have_more_time() {
        assert_eq!([0.0, 1e6].map(deadline), [10, 60].map(Duration::from_secs));
    }
}
