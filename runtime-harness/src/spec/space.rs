//! The space of a tuner or a sweep: every combination of the values of its parameters that satisfies its conditions.
//!
//! Combinations are numbered and made on demand, so that a space of 10⁹ of them costs nothing.

use runtime_core::{DType, Error, OptionValue, Result};

use super::expression::{Symbol, Symbols, evaluate};
use super::permutation::Permutation;
use super::scalar::value;
use super::{Extent, Number, Overrides};

/// The most combinations that are tried one by one.
pub const MAX_TRIED: u64 = 1 << 22;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// A scalar argument or a constant.
    Number(Number),
    /// The element type.
    Element(DType),
    /// The values of a load option.
    Option(Vec<OptionValue>),
    /// Extents of the launch.
    Launch(Vec<Extent>),
}

/// The values of a parameter, by position.
#[derive(Clone, Debug)]
pub(super) enum Choices {
    List(Vec<Choice>),
    /// `first`, `first + step`, …
    Integers {
        first: i128,
        step: i128,
        count: u64,
    },
    Reals {
        first: f64,
        step: f64,
        count: u64,
    },
}

impl Choices {
    pub(super) fn count(&self) -> u64 {
        match self {
            Self::List(list) => list.len() as u64,
            Self::Integers { count, .. } | Self::Reals { count, .. } => *count,
        }
    }

    /// The value at a position below the count.
    pub(super) fn choice(&self, position: u64) -> Choice {
        match self {
            Self::List(list) => list[usize::try_from(position).unwrap_or(usize::MAX)].clone(),
            Self::Integers { first, step, .. } => {
                Choice::Number(Number::Integer(first + step * i128::from(position)))
            }
            Self::Reals { first, step, .. } => {
                Choice::Number(Number::Float(step.mul_add(position as f64, *first)))
            }
        }
    }
}

/// What is varied, and how.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// The scalar argument, constant, option or key of `[launch]`; empty for the element type.
    pub(super) name: String,
    pub(super) choices: Choices,
}

/// What combinations must satisfy.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) text: String,
    /// `file:line`, for messages.
    pub(super) location: String,
}

/// The combinations of a `[tune]` or `[sweep]` table.
#[derive(Clone, Debug)]
pub struct Space {
    /// `[tune]` or `[sweep]`.
    pub(super) table: &'static str,
    /// `file:line` of the table.
    pub(super) location: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) conditions: Vec<Condition>,
    /// The values of scalar arguments and constants that are not varied.
    pub(super) names: Symbols,
    /// The product of the numbers of values.
    pub(super) combinations: u64,
}

/// A combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its number in its space.
    pub index: u64,
    /// Its values.
    pub overrides: Overrides,
}

impl Space {
    /// Number of combinations, whether or not they satisfy the conditions.
    #[must_use]
    pub const fn combinations(&self) -> u64 {
        self.combinations
    }

    /// The names of what is varied, as in [`Overrides::parameters`].
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.point(0).overrides.parameters().into_keys().collect()
    }

    /// The combination of this number, below [`Space::combinations`]. Parameters are in the order of their
    /// names; the last one varies fastest.
    #[must_use]
    pub fn point(&self, index: u64) -> Point {
        let mut overrides = Overrides::default();
        let mut rest = index;
        for parameter in self.parameters.iter().rev() {
            let count = parameter.choices.count();
            match parameter.choices.choice(rest % count) {
                Choice::Number(number) => overrides.values.insert(0, (parameter.name.clone(), number)),
                Choice::Element(element) => overrides.element = Some(element),
                Choice::Option(values) => overrides.options.insert(0, (parameter.name.clone(), values)),
                Choice::Launch(extents) => {
                    overrides.launch.insert(parameter.name.clone(), extents);
                }
            }
            rest /= count;
        }
        Point { index, overrides }
    }

    /// Whether a combination satisfies every condition.
    #[must_use]
    pub fn admits(&self, point: &Point) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let mut names = self.names.clone();
        for (name, number) in &point.overrides.values {
            names.insert(name.clone(), Symbol::Value(value(*number)));
        }
        if let Some(element) = point.overrides.element {
            names.insert("element".to_owned(), Symbol::Shape(Vec::new(), element.bytes()));
        }
        self.conditions.iter().all(|condition| holds(condition, &names))
    }

    /// Every combination that satisfies the conditions, in order.
    ///
    /// # Errors
    /// `InvalidArgument`, with file and line, if there are more than `most` combinations to try, or none satisfies the
    /// conditions.
    pub fn all(&self, most: u64) -> Result<Vec<Point>> {
        if self.combinations > most {
            return Err(self.error(&format!(
                "{} combinations are too many to try one by one, the limit is {most}",
                self.combinations
            )));
        }
        let points = (0..self.combinations).map(|index| self.point(index));
        let points: Vec<Point> = points.filter(|point| self.admits(point)).collect();
        match points.is_empty() {
            true => Err(self.unsatisfiable()),
            false => Ok(points),
        }
    }

    /// A random sample of the combinations that satisfy the conditions, without repetition: all of them if there are no more
    /// than `count`. A seed gives the same sample in every run. At most [`MAX_TRIED`] combinations are tried.
    ///
    /// # Errors
    /// `InvalidArgument`, with file and line, if no combination that was tried satisfies the conditions.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<Point>> {
        let shuffled = Permutation::new(self.combinations, seed);
        let tried =
            (0..self.combinations.min(MAX_TRIED)).map(|position| self.point(shuffled.apply(position)));
        let sample: Vec<Point> = tried.filter(|point| self.admits(point)).take(count).collect();
        match sample.is_empty() && count > 0 {
            true => Err(self.unsatisfiable()),
            false => Ok(sample),
        }
    }

    /// The error that names the condition that no combination satisfies, or all if each has some.
    fn unsatisfiable(&self) -> Error {
        let alone = self.conditions.iter().find(|condition| {
            let space = Self { conditions: vec![(*condition).clone()], ..self.clone() };
            let shuffled = Permutation::new(self.combinations, 0);
            !(0..self.combinations.min(MAX_TRIED))
                .any(|position| space.admits(&space.point(shuffled.apply(position))))
        });
        match alone {
            Some(condition) => Error::invalid(format!(
                "{}: where in {}: no combination satisfies \"{}\"",
                condition.location, self.table, condition.text
            )),
            None => self.error("no combination satisfies all conditions"),
        }
    }

    fn error(&self, message: &str) -> Error {
        Error::invalid(format!("{}: {}: {message}", self.location, self.table))
    }
}

/// Names were checked when the table was read; an undefined value, such as 1 % 0, satisfies nothing.
fn holds(condition: &Condition, names: &Symbols) -> bool {
    evaluate(&condition.text, names).is_ok_and(|value| value != 0.0 && !value.is_nan())
}
