//! Options: string keys with typed values, which backends describe and core validates.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::{Error, Result, abi};

/// A typed option value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum OptionValue {
    /// A boolean.
    Flag(bool),
    /// An integer.
    Integer(i64),
    /// A floating-point number.
    Number(#[serde(with = "bits")] f64),
    /// Text.
    Text(String),
}

/// A number as its bits: JSON has neither infinity nor NaN.
mod bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        number.to_bits().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        u64::deserialize(deserializer).map(f64::from_bits)
    }
}

impl OptionValue {
    /// Name of the type, for messages.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        kind_name(self.kind())
    }

    pub(crate) const fn kind(&self) -> u32 {
        match self {
            Self::Flag(_) => abi::VALUE_FLAG,
            Self::Integer(_) => abi::VALUE_INTEGER,
            Self::Number(_) => abi::VALUE_NUMBER,
            Self::Text(_) => abi::VALUE_TEXT,
        }
    }
}

const fn kind_name(kind: u32) -> &'static str {
    match kind {
        abi::VALUE_FLAG => "true or false",
        abi::VALUE_INTEGER => "an integer",
        abi::VALUE_NUMBER => "a number",
        _ => "text",
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

macro_rules! values {
    ($($ty:ty => $kind:ident),*) => {$(
        impl From<$ty> for OptionValue {
            fn from(value: $ty) -> Self {
                Self::$kind(value.into())
            }
        }
    )*};
}
values!(bool => Flag, i64 => Integer, f64 => Number, &str => Text, String => Text);

/// An ordered list of options. A repeated key forms a list.
///
/// The options of a device are those of its backend, which [`Runtime::options`](crate::Runtime::options) lists.
///
/// ```
/// # use runtime_core::{Options, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// let options = Options::new().with("compiler", true); // one of `Runtime::options("null")`
/// let device = runtime.open_with("null", &options)?;
/// assert!(device.info().open_options.flag("compiler"));
///
/// let error = runtime.open_with("null", &Options::new().with("compilers", true)).unwrap_err();
/// assert!(error.message().contains("did you mean \"compiler\"?"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options(Vec<(String, OptionValue)>);

impl Options {
    /// No options.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an option.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<OptionValue>) -> Self {
        self.push(key, value);
        self
    }

    /// Adds an option in place.
    pub fn push(&mut self, key: &str, value: impl Into<OptionValue>) {
        self.0.push((key.to_owned(), value.into()));
    }

    /// Adds a number in place, unless it is 0, which here means unknown, or does not fit into an option.
    pub fn push_nonzero(&mut self, key: &str, value: u64) {
        if let (1.., Ok(value)) = (value, i64::try_from(value)) {
            self.push(key, value);
        }
    }

    /// All options in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OptionValue)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether there are no options.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last value of `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&OptionValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The last value of `key`, if it is text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.value(key) {
            Some(OptionValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The last value of `key`, if it is an integer.
    #[must_use]
    pub fn integer(&self, key: &str) -> Option<i64> {
        match self.value(key) {
            Some(OptionValue::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    /// The last value of `key`, which must be in `range`; `default` if the key is not set.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the key and the range.
    pub fn integer_within(&self, key: &str, default: i64, range: RangeInclusive<i64>) -> Result<i64> {
        let Some(value) = self.integer(key) else { return Ok(default) };
        if range.contains(&value) {
            return Ok(value);
        }
        let (least, most) = range.into_inner();
        Err(Error::invalid(format!(
            "option \"{key}\" cannot be {value}; give {least} to {most}, or leave it out for {default}"
        )))
    }

    /// Whether `key` is set to true.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.value(key), Some(OptionValue::Flag(true)))
    }

    /// All text values of `key`, in order.
    pub fn texts<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter().filter_map(move |(name, value)| match value {
            OptionValue::Text(text) if name == key => Some(text.as_str()),
            _ => None,
        })
    }

    /// Checks keys, types and choices against the options described for `scope`; those of [`OptionScope::Device`] are also valid
    /// where code may be named.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the key, the valid values, and the nearest or all valid keys.
    pub fn validate(&self, specs: &[OptionSpec], scope: OptionScope) -> Result<()> {
        let valid: Vec<_> = specs.iter().filter(|spec| scope.includes(spec.scope)).collect();
        let names_code =
            |key| specs.iter().any(|spec| spec.key == key && spec.scope == OptionScope::DeviceCode);
        for (key, value) in self.iter() {
            if scope == OptionScope::Device && names_code(key) {
                return Err(Error::invalid(format!(
                    "option \"{key}\" names code that is executed; open the device with Runtime::open_with_code, which is unsafe"
                )));
            }
            let spec = valid.iter().find(|spec| spec.key == key).ok_or_else(|| {
                let keys: Vec<_> = valid.iter().map(|spec| spec.key.as_str()).collect();
                Error::invalid(format!("unknown option \"{key}\"; {}", did_you_mean(key, &keys)))
            })?;
            spec.check(value)?;
        }
        Ok(())
    }
}

/// Suggests the closest of the `valid` names, or lists them all; the end of every "unknown name" message.
#[must_use]
pub fn did_you_mean(given: &str, valid: &[&str]) -> String {
    if valid.is_empty() {
        return "there are none".to_owned();
    }
    let length = given.chars().count();
    let nearest = valid
        .iter()
        .map(|name| (2.max(name.len() / 3), name))
        // The distance of a very long name takes as long to compute.
        .filter(|(most, name)| length.abs_diff(name.chars().count()) <= *most)
        .map(|(most, name)| (most, strsim::damerau_levenshtein(given, name), name))
        .filter(|(most, distance, _)| distance <= most)
        .map(|(_, distance, name)| (distance, name))
        .min();
    match nearest {
        Some((_, name)) => format!("did you mean \"{name}\"? (valid: {})", valid.join(", ")),
        None => format!("valid: {}", valid.join(", ")),
    }
}

/// Where an option is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionScope {
    /// When a device is opened.
    Device,
    /// When a device is opened by [`Runtime::open_with_code`](crate::Runtime::open_with_code): the value names code, or where code
    /// comes from, that is executed.
    DeviceCode,
    /// When code is loaded.
    Module,
}

impl OptionScope {
    /// Whether an option of another scope is accepted as well.
    fn includes(self, other: Self) -> bool {
        self == other || (self, other) == (Self::DeviceCode, Self::Device)
    }
}

/// The description of an option.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// The key.
    pub key: String,
    /// Where it is accepted.
    pub scope: OptionScope,
    /// The default, which also determines the type of the option.
    pub default: OptionValue,
    /// Valid values; empty if every value of the type is valid.
    pub choices: Vec<String>,
    /// One sentence of documentation.
    pub doc: String,
}

impl OptionSpec {
    /// Describes a device option.
    pub fn device(key: &str, default: impl Into<OptionValue>, doc: &str) -> Self {
        Self::in_scope(OptionScope::Device, key, default.into(), doc)
    }

    /// Describes a device option whose value names code, or where code comes from, that is executed: a command, a compiler, a
    /// library, or a folder of these.
    pub fn device_code(key: &str, default: impl Into<OptionValue>, doc: &str) -> Self {
        Self::in_scope(OptionScope::DeviceCode, key, default.into(), doc)
    }

    /// Describes a load option.
    pub fn module(key: &str, default: impl Into<OptionValue>, doc: &str) -> Self {
        Self::in_scope(OptionScope::Module, key, default.into(), doc)
    }

    fn in_scope(scope: OptionScope, key: &str, default: OptionValue, doc: &str) -> Self {
        Self { key: key.to_owned(), scope, default, choices: Vec::new(), doc: doc.to_owned() }
    }

    /// Restricts the valid values.
    #[must_use]
    pub fn choices(mut self, choices: &[&str]) -> Self {
        self.choices = choices.iter().map(|&choice| choice.to_owned()).collect();
        self
    }

    fn check(&self, value: &OptionValue) -> Result<()> {
        // A choice that is a number may be given as an integer.
        let is_choice = matches!((value, &self.default), (OptionValue::Integer(_), OptionValue::Text(_)))
            && !self.choices.is_empty();
        if value.kind() != self.default.kind() && !is_choice {
            return Err(Error::invalid(format!(
                "option \"{}\" takes {}, got {} ({value})",
                self.key,
                self.default.type_name(),
                value.type_name()
            )));
        }
        if !self.choices.is_empty() && !self.choices.contains(&value.to_string()) {
            let choices: Vec<_> = self.choices.iter().map(String::as_str).collect();
            return Err(Error::invalid(format!(
                "option \"{}\" cannot be \"{value}\"; {}",
                self.key,
                did_you_mean(&value.to_string(), &choices)
            )));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs() -> Vec<OptionSpec> {
        vec![
            OptionSpec::device("platform", "hw", "Where to run.").choices(&["hw", "iss"]),
            OptionSpec::device_code("sdk", "", "Where tools are."),
            OptionSpec::module("flags", "", "Compiler flags."),
        ]
    }

    #[test]
    fn an_option_that_names_code_is_only_accepted_where_code_may_be_named() {
        let check = |key: &str, scope| Options::new().with(key, "hw").validate(&specs(), scope);
        let error = check("sdk", OptionScope::Device).unwrap_err();
        assert!(error.message().contains("Runtime::open_with_code"), "{error}");
        assert!(check("sdk", OptionScope::DeviceCode).is_ok());
        assert!(check("platform", OptionScope::DeviceCode).is_ok(), "any device option");
        assert!(check("flags", OptionScope::DeviceCode).is_err(), "a load option");
        assert!(check("sdk", OptionScope::Module).is_err());
    }

    #[test]
    fn an_integer_out_of_range_is_reported_with_the_range() {
        let within = |value: i64| Options::new().with("threads", value).integer_within("threads", 8, 1..=64);
        assert_eq!(Options::new().integer_within("threads", 8, 1..=64).unwrap(), 8);
        assert_eq!([1, 64].map(|value| within(value).unwrap()), [1, 64]);
        for value in [0, 65, -1, i64::MIN, i64::MAX] {
            let error = within(value).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::InvalidArgument);
            let words = format!("option \"threads\" cannot be {value}; give 1 to 64, or leave it out for 8");
            assert!(error.message().contains(&words), "{error}");
        }
    }

    #[test]
    fn an_invalid_option_is_reported_with_the_remedy() {
        let check = |options: Options| options.validate(&specs(), OptionScope::Device);
        assert!(check(Options::new().with("platform", "iss")).is_ok());
        let error = check(Options::new().with("plattform", "iss")).unwrap_err();
        assert!(error.message().contains("did you mean \"platform\"?"), "{error}");
        let error = check(Options::new().with("platform", "qemu")).unwrap_err();
        assert!(error.message().contains("hw, iss"), "{error}");
        let error = check(Options::new().with("platform", true)).unwrap_err();
        assert!(error.message().contains("takes text"), "{error}");
        assert!(check(Options::new().with("flags", "-O0")).is_err(), "a load option is not a device option");
    }
}
