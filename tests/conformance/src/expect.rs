//! Expectations of the cases: comparisons that report the first difference, and errors of a given kind.

use std::fmt::Debug;

use runtime_core::{Error, ErrorKind, Result, Tensor};

use crate::case::{Failure, Verdict};

/// Expects equal elements; reports the first difference.
pub(crate) fn expect_equal<T: PartialEq + Debug>(what: &str, actual: &[T], expected: &[T]) -> Verdict {
    if actual.len() != expected.len() {
        return Err(Failure::Differs(format!("{what}: {} elements, not {}", actual.len(), expected.len())));
    }
    match actual.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let wrong = actual.iter().zip(expected).filter(|(a, b)| a != b).count();
            let text = format!(
                "{what}: element {at} is {:?}, not {:?} ({wrong} of {} differ)",
                actual[at],
                expected[at],
                actual.len()
            );
            Err(Failure::Differs(text))
        }
    }
}

/// Expects that every element of a tensor is `value`.
pub(crate) fn expect_all(what: &str, tensor: &Tensor, value: f32) -> Verdict {
    let actual = tensor.to_vec::<f32>()?;
    expect_equal(what, &actual, &vec![value; actual.len()])
}

/// Expects an error of `kind` whose one line contains all `words`.
pub(crate) fn expect_error<T>(
    what: &str,
    result: Result<T>,
    kind: ErrorKind,
    words: &[&str],
) -> Result<Error, Failure> {
    let Err(error) = result else {
        return Err(Failure::Failed(format!("{what}: succeeded, but {kind} was expected")));
    };
    let text = error.to_string();
    let problem = if error.kind() != kind {
        format!("its kind is {}, not {kind}", error.kind())
    } else if let Some(word) = words.iter().find(|word| !text.contains(**word)) {
        format!("the message does not contain \"{word}\"")
    } else if text.contains('\n') {
        "the message has more than one line".to_owned()
    } else {
        return Ok(error);
    };
    Err(Failure::Failed(format!("{what}: {problem}: {text}")))
}
