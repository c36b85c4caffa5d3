//! Arguments that several commands have.

mod pool;
mod timing;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use runtime_core::backend::did_you_mean;
use runtime_core::{CommonRuntime, DType, Error, OptionValue, Options, Result, Runtime};
use runtime_harness::Overrides;
use runtime_harness::spec::{EXTENT_KEYS, Extent, Number};

pub(crate) use pool::{PoolArguments, ShareArguments, TrustArguments, this_program};
pub(crate) use timing::SettingsArguments;

/// Longer limits are as good as none.
const MAX_SECONDS: f64 = 2_592_000.0;

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write a report for the authors of a backend, such as `cuda`, with user names, host name and home folders redacted
    #[arg(value_name = "BACKEND", value_parser = parse_backend)]
    pub(crate) backend: Option<String>,
    /// The new text file for it; `-` is standard output [default: runtime-BACKEND-report.txt]
    #[arg(value_name = "FILE|-", requires = "backend")]
    pub(crate) file: Option<PathBuf>,
}

/// The name of a backend, which is a part of a file's name.
fn parse_backend(text: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    match text.chars().all(is_valid) && !text.starts_with('-') {
        true => Ok(text.to_owned()),
        false => Err("a backend's name has only a-z, 0-9, _ and -".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct OpenArguments {
    /// An option to open the devices with; may be repeated
    #[arg(long = "option", value_name = "KEY=VALUE", value_parser = parse_option)]
    options: Vec<(String, OptionValue)>,
}

impl OpenArguments {
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new();
        for (key, value) in &self.options {
            options.push(key, value.clone());
        }
        options
    }

    /// Opens a device with the options.
    ///
    /// # Errors
    /// As [`Runtime::open_with`].
    #[allow(unsafe_code, reason = "options of the command line may name code")]
    pub(crate) fn open(&self, runtime: &Runtime, device: &str) -> Result<Arc<dyn CommonRuntime>> {
        // SAFETY: the user of the command line is responsible for what its options name.
        unsafe { runtime.open_with_code(device, &self.options()) }
    }
}

/// What an override sets.
#[derive(Clone, Debug, PartialEq)]
enum Override {
    Value(String, Number),
    /// A value of a load option; it replaces those of the spec.
    Option(String, OptionValue),
    Launch(String, Vec<Extent>),
}

/// Overrides of values in the specs. Each override must apply to every spec.
#[derive(Debug, Args)]
pub(crate) struct OverrideArguments {
    /// Override a scalar argument or a constant, a load option of the kernel (`options.KEY=VALUE`), or an extent of its launch
    /// (`launch.groups=4,2`); may be repeated
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = parse_override)]
    set: Vec<Override>,
    /// Override the element type, e.g. `f16`
    #[arg(long, value_name = "DTYPE")]
    element: Option<DType>,
}

impl OverrideArguments {
    /// The overrides, checked for duplicates.
    ///
    /// # Errors
    /// `InvalidArgument` if a name has two values; load options may have several.
    pub(crate) fn overrides(&self) -> Result<Overrides> {
        let mut overrides = Overrides { element: self.element, ..Overrides::default() };
        let twice = |what: &str| Err(Error::invalid(format!("{what}: give only one value")));
        for set in &self.set {
            match set {
                Override::Value(name, value) => {
                    if let Some((_, other)) = overrides.values.iter().find(|(other, _)| other == name) {
                        return twice(&format!("--set {name}={other} and --set {name}={value}"));
                    }
                    overrides.values.push((name.clone(), *value));
                }
                Override::Option(key, value) => {
                    match overrides.options.iter_mut().find(|(other, _)| other == key) {
                        Some((_, values)) => values.push(value.clone()),
                        None => overrides.options.push((key.clone(), vec![value.clone()])),
                    }
                }
                Override::Launch(key, extents) => {
                    if overrides.launch.insert(key.clone(), extents.clone()).is_some() {
                        return twice(&format!("--set launch.{key}"));
                    }
                }
            }
        }
        Ok(overrides)
    }
}

pub(crate) fn parse_real(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value >= 0.0 && f64::is_finite(value) => Ok(value),
        _ => Err("expected a finite number of at least 0".to_owned()),
    }
}

/// Parses a time limit in seconds, of at most 30 days.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match parse_real(text)? {
        seconds if seconds <= MAX_SECONDS => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("expected at most {MAX_SECONDS} seconds, which are 30 days")),
    }
}

/// Parses `KEY=VALUE`. A value that is not a boolean, an integer or a number is text.
pub(crate) fn parse_option(text: &str) -> Result<(String, OptionValue), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("expected KEY=VALUE")?;
    let value = match (value.parse(), value.parse(), value.parse()) {
        (Ok(flag), _, _) => OptionValue::Flag(flag),
        (_, Ok(integer), _) => OptionValue::Integer(integer),
        (_, _, Ok(number)) => OptionValue::Number(number),
        _ => OptionValue::Text(value.to_owned()),
    };
    Ok((key.to_owned(), value))
}

/// Parses `NAME=NUMBER`, where `true` and `false` count as numbers, `options.KEY=VALUE` and `launch.KEY=EXTENT,…`.
fn parse_override(text: &str) -> Result<Override, String> {
    let (name, value) = parse_option(text).map_err(|_| "expected NAME=NUMBER")?;
    if let Some(key) = name.strip_prefix("options.").filter(|key| !key.is_empty()) {
        return Ok(Override::Option(key.to_owned(), value));
    }
    if let Some(key) = name.strip_prefix("launch.") {
        if !EXTENT_KEYS.contains(&key) {
            return Err(did_you_mean(key, &EXTENT_KEYS));
        }
        let extent =
            |text: &str| text.parse().map_or_else(|_| Extent::Expression(text.to_owned()), Extent::Number);
        let extents = text.split_once('=').map_or("", |(_, extents)| extents).split(',');
        return Ok(Override::Launch(key.to_owned(), extents.map(str::trim).map(extent).collect()));
    }
    match value {
        OptionValue::Flag(flag) => Ok(Override::Value(name, Number::Bool(flag))),
        OptionValue::Integer(integer) => Ok(Override::Value(name, Number::Integer(i128::from(integer)))),
        OptionValue::Number(number) => Ok(Override::Value(name, Number::Float(number))),
        _ => Err("expected NAME=NUMBER".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_bounded() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_seconds("2592000"), Ok(Duration::from_secs(2_592_000)));
        for text in ["2592001", "1e308", "inf", "nan", "-1", "x"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_options_and_extents_are_set() {
        let set = |texts: &[&str]| {
            let set = texts.iter().map(|text| parse_override(text)).collect::<Result<_, _>>()?;
            let arguments = OverrideArguments { set, element: None };
            arguments.overrides().map_err(|error| error.to_string())
        };
        let overrides = set(&[
            "n=3",
            "options.flags=-O3 -DA=1",
            "options.flags=-g",
            "options.debug=true",
            "launch.groups=4, ceil(n / 2)",
        ]);
        let overrides = overrides.unwrap();
        assert_eq!(overrides.values, [("n".to_owned(), Number::Integer(3))]);
        let flags = vec![OptionValue::Text("-O3 -DA=1".to_owned()), OptionValue::Text("-g".to_owned())];
        let debug = vec![OptionValue::Flag(true)];
        assert_eq!(overrides.options, [("flags".to_owned(), flags), ("debug".to_owned(), debug)]);
        let groups = [Extent::Number(4), Extent::Expression("ceil(n / 2)".to_owned())];
        assert_eq!(overrides.launch["groups"], groups);
        for (wrong, word) in [
            (&["n=x"][..], "NAME=NUMBER"),
            (&["options.=x"], "NAME=NUMBER"),
            (&["launch.group=4"], "groups"),
            (&["n=3", "n=4"], "only one value"),
            (&["launch.grain=3", "launch.grain=4"], "only one value"),
        ] {
            let error = set(wrong).unwrap_err();
            assert!(error.contains(word), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn option_values_are_typed() {
        for (text, value) in [
            ("a=true", OptionValue::Flag(true)),
            ("a=-3", OptionValue::Integer(-3)),
            ("a=1e3", OptionValue::Number(1000.0)),
            ("a=b=c", OptionValue::Text("b=c".to_owned())),
            ("a=", OptionValue::Text(String::new())),
        ] {
            assert_eq!(parse_option(text), Ok(("a".to_owned(), value)), "{text}");
        }
        assert!(parse_option("flag").is_err());
        assert!(parse_option("=1").is_err());
    }
}
