//! What code is compiled for, with load options for that target alone.

use std::fmt;
use std::str::FromStr;

use runtime_core::backend::{OptionScope, OptionSpec};
use runtime_core::{Error, OptionValue, Options, Result};

/// A target, such as `cuda:sm_90`, with load options for it alone.
///
/// ```
/// # fn main() -> runtime_core::Result<()> {
/// let target: runtime_package::CompileTarget = "cuda:sm_90,registers=128".parse()?;
/// assert_eq!((target.name.as_str(), target.options.text("registers")), ("cuda:sm_90", Some("128")));
/// assert_eq!(target.to_string(), "cuda:sm_90,registers=128");
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CompileTarget {
    /// Backend and architecture, as for [`Runtime::compile`](runtime_core::Runtime::compile).
    pub name: String,
    /// Load options, after those of the kernel file. Text becomes a number or a flag where the backend declares one.
    pub options: Options,
}

impl CompileTarget {
    /// A target without options of its own.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), options: Options::new() }
    }
}

impl FromStr for CompileTarget {
    type Err = Error;

    /// Parses `TARGET:ARCHITECTURE,KEY=VALUE,…`. Values with a comma cannot be written so.
    ///
    /// # Errors
    /// `InvalidArgument` for an option without a key or without `=`.
    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.split(',');
        let mut target = Self::new(parts.next().unwrap_or_default());
        for part in parts {
            let (key, value) = part.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Error::invalid(format!(
                    "target \"{text}\": \"{part}\" is no option; expected TARGET:ARCHITECTURE,KEY=VALUE,…"
                ))
            })?;
            target.options.push(key, value);
        }
        Ok(target)
    }
}

impl fmt::Display for CompileTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.options.iter().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// The options with values of the types that a backend declares, where they can be read as such.
pub(crate) fn typed(options: &Options, specs: &[OptionSpec]) -> Options {
    let mut typed = Options::new();
    for (key, value) in options.iter() {
        let spec = specs.iter().find(|spec| spec.scope == OptionScope::Module && spec.key == key);
        let converted = spec.and_then(|spec| match (&spec.default, value) {
            (OptionValue::Text(_), value) => Some(OptionValue::Text(value.to_string())),
            (OptionValue::Flag(_), OptionValue::Text(text)) => text.parse().ok().map(OptionValue::Flag),
            (OptionValue::Integer(_), OptionValue::Text(text)) => text.parse().ok().map(OptionValue::Integer),
            (OptionValue::Number(_), OptionValue::Text(text)) => text.parse().ok().map(OptionValue::Number),
            _ => None,
        });
        typed.push(key, converted.unwrap_or_else(|| value.clone()));
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_its_options_in_order() {
        let target: CompileTarget = "host:x86-64-v3,flags=-O2,define=N=4,flags=-g".parse().unwrap();
        assert_eq!(target.name, "host:x86-64-v3");
        assert_eq!(
            target.options,
            Options::new().with("flags", "-O2").with("define", "N=4").with("flags", "-g")
        );
        assert_eq!("cuda:sm_90".parse::<CompileTarget>().unwrap(), CompileTarget::new("cuda:sm_90"));
        for wrong in ["cuda:sm_90,", "cuda:sm_90,registers", "cuda:sm_90,=4"] {
            let error = wrong.parse::<CompileTarget>().unwrap_err();
            assert!(error.message().contains("KEY=VALUE"), "{wrong}: {error}");
        }
    }

    #[test]
    fn values_get_the_types_that_the_backend_declares() {
        let specs = [
            OptionSpec::module("registers", "default", ""),
            OptionSpec::module("debug", false, ""),
            OptionSpec::module("level", 3i64, ""),
            OptionSpec::module("scale", 1.0, ""),
            OptionSpec::device("threads", 1i64, ""),
        ];
        let given = Options::new()
            .with("registers", 128i64)
            .with("debug", "true")
            .with("level", "2")
            .with("scale", "0.5")
            .with("threads", "7")
            .with("level", "many");
        let expected = Options::new()
            .with("registers", "128")
            .with("debug", true)
            .with("level", 2i64)
            .with("scale", 0.5)
            .with("threads", "7")
            .with("level", "many");
        assert_eq!(typed(&given, &specs), expected);
    }
}
