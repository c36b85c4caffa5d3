//! Overrides of a spec's values, by the command line, a sweep or a tuner.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use runtime_core::backend::did_you_mean;
use runtime_core::{DType, Error, OptionValue, Options, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Number, json};
use crate::text_json;

/// The keys of `[launch]` whose extents can be overridden.
pub const EXTENT_KEYS: [&str; 4] = ["groups", "group_size", "cluster", "grain"];

/// Overrides of a spec; none by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Values of scalar arguments and constants; each name occurs once.
    #[serde(with = "json::values")]
    pub values: Vec<(String, Number)>,
    /// The element type.
    #[serde(with = "text_json")]
    pub element: Option<DType>,
    /// Load options of the kernel; each key occurs once, and its values replace all those of the spec.
    #[serde(with = "json::options", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, Vec<OptionValue>)>,
    /// Extents of `[launch]`: `groups`, `group_size`, `cluster` or `grain`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub launch: BTreeMap<String, Vec<Extent>>,
}

/// An extent of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Extent {
    /// A number.
    Number(i64),
    /// An expression over scalar arguments, constants and shapes.
    Expression(String),
}

impl fmt::Display for Extent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Expression(text) => text.fmt(formatter),
        }
    }
}

impl Overrides {
    /// The override of `name`.
    pub(super) fn value(&self, name: &str) -> Option<Number> {
        self.values.iter().find(|(overridden, _)| overridden == name).map(|(_, value)| *value)
    }

    /// Rejects overrides that do not apply to the spec at `path`.
    pub(super) fn check(&self, path: &Path, names: &[&str], has_element: bool) -> Result<()> {
        if let Some((name, _)) = self.values.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(Error::invalid(format!(
                "--set {name}: {} has no scalar argument or constant of that name; {}",
                path.display(),
                did_you_mean(name, names)
            )));
        }
        match self.element {
            Some(element) if !has_element => Err(Error::invalid(format!(
                "--element {element}: {} has no element type; set `element` in [specialise]",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// The options of the kernel with these overrides.
    pub(super) fn applied_to(&self, options: &Options) -> Options {
        let is_kept = |key: &str| self.options.iter().all(|(overridden, _)| overridden != key);
        let mut applied = Options::new();
        for (key, value) in options.iter().filter(|(key, _)| is_kept(key)) {
            applied.push(key, value.clone());
        }
        for (key, values) in &self.options {
            values.iter().for_each(|value| applied.push(key, value.clone()));
        }
        applied
    }

    /// These overrides, and those of `other`, which take precedence.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.values.retain(|(name, _)| other.value(name).is_none());
        both.values.extend(other.values.iter().cloned());
        both.element = other.element.or(self.element);
        both.options.retain(|(key, _)| other.options.iter().all(|(overridden, _)| overridden != key));
        both.options.extend(other.options.iter().cloned());
        both.launch.extend(other.launch.clone());
        both
    }

    /// The overrides as data, by name: `element`, `options.KEY` and `launch.KEY` beside the values.
    #[must_use]
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
        let values =
            self.values.iter().map(|(name, value)| (name.clone(), json(serde_json::to_value(value))));
        let element = self.element.iter().map(|element| ("element".to_owned(), element.to_string().into()));
        let option = |(key, values): &(String, Vec<OptionValue>)| {
            (format!("options.{key}"), single(values.iter().map(crate::describe::option).collect()))
        };
        let launch = |(key, extents): (&String, &Vec<Extent>)| {
            let extents = extents.iter().map(|extent| json(serde_json::to_value(extent)));
            (format!("launch.{key}"), single(extents.collect()))
        };
        let rest = self.options.iter().map(option).chain(self.launch.iter().map(launch));
        values.chain(element).chain(rest).collect()
    }

    /// The overrides in words, each after a space: the suffix of the row's name, which tells rows of one spec apart.
    #[must_use]
    pub fn describe(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!(" {name}={value}"));
        let element = self.element.iter().map(|element| format!(" {element}"));
        let options = self.options.iter().map(|(key, values)| format!(" {key}={}", joined(values, " ")));
        let launch = self.launch.iter().map(|(key, extents)| format!(" {key}={}", joined(extents, "×")));
        values.chain(element).chain(options).chain(launch).collect()
    }
}

fn joined<T: ToString>(items: &[T], separator: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(separator)
}

/// A list, or its only item.
fn single(mut items: Vec<Value>) -> Value {
    match items.len() {
        1 => items.remove(0),
        _ => Value::Array(items),
    }
}
