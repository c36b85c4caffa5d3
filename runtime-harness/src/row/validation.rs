//! Comparisons of outputs with their expected contents, as plain data.

use runtime_core::{Mismatch as CoreMismatch, Validation as CoreValidation};
use serde::{Deserialize, Deserializer, Serialize};

use super::Status;

/// The comparison of the outputs with their expected contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Validation {
    /// An output is wrong.
    Wrong(Mismatch),
    /// Every output is right.
    Right(Agreement),
}

/// How closely right outputs agree with their expected contents.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Number of elements compared.
    pub elements: usize,
    /// The largest absolute error.
    #[serde(deserialize_with = "null_is_infinite")]
    pub max_absolute_error: f64,
}

/// How an output differs from its expected content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Index of the argument.
    pub argument: usize,
    /// Name of the argument.
    pub name: Option<String>,
    /// Number of its elements.
    pub elements: usize,
    /// Number of wrong elements.
    pub wrong: usize,
    /// Number of wrong elements that the kernel never wrote.
    pub unwritten: usize,
    /// Index of the worst element.
    pub worst_index: Vec<usize>,
    /// The worst element.
    pub actual: String,
    /// Its expected value.
    pub expected: String,
    /// Its absolute error.
    #[serde(deserialize_with = "null_is_infinite")]
    pub absolute_error: f64,
    /// Its relative error.
    #[serde(deserialize_with = "null_is_infinite")]
    pub relative_error: f64,
}

impl Validation {
    /// The comparison as plain data, with the names of the arguments; `None` if there was none.
    pub(crate) fn of(validation: &CoreValidation, name: impl Fn(usize) -> Option<String>) -> Option<Self> {
        match validation {
            CoreValidation::Passed(agreement) => Some(Self::Right(Agreement {
                elements: agreement.elements,
                max_absolute_error: agreement.max_absolute_error,
            })),
            CoreValidation::Failed(mismatch) => Some(Self::Wrong(Mismatch::of(mismatch, name(mismatch.arg)))),
            CoreValidation::Skipped { .. } => None,
        }
    }
}

impl Mismatch {
    fn of(mismatch: &CoreMismatch, name: Option<String>) -> Self {
        Self {
            argument: mismatch.arg,
            name,
            elements: mismatch.elements,
            wrong: mismatch.wrong,
            unwritten: mismatch.unwritten,
            worst_index: mismatch.index.clone(),
            actual: mismatch.actual.clone(),
            expected: mismatch.expected.clone(),
            absolute_error: mismatch.absolute_error,
            relative_error: mismatch.relative_error,
        }
    }
}

/// The status of a kernel that ran.
#[must_use]
pub const fn status_of(validation: &CoreValidation) -> Status {
    match validation {
        CoreValidation::Passed(_) => Status::Right,
        CoreValidation::Failed(_) => Status::Wrong,
        CoreValidation::Skipped { .. } => Status::Unchecked,
    }
}

/// JSON has no infinity; a report has `null` in its place.
fn null_is_infinite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validations_survive_json() {
        let mismatch = Mismatch {
            argument: 1,
            name: None,
            elements: 4,
            wrong: 1,
            unwritten: 1,
            worst_index: vec![3],
            actual: "NaN".to_owned(),
            expected: "0.1".to_owned(),
            absolute_error: f64::INFINITY,
            relative_error: 0.1,
        };
        let agreement = Agreement { elements: 4, max_absolute_error: 1e-300 };
        for validation in [Validation::Wrong(mismatch), Validation::Right(agreement)] {
            let text = serde_json::to_string(&validation).unwrap();
            assert_eq!(serde_json::from_str::<Validation>(&text).unwrap(), validation, "{text}");
        }
    }
}
