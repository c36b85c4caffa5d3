//! One setting: its option, else its variable, with errors that name where the value came from.

use std::path::{Path, PathBuf};

use runtime_core::{Error, OptionValue, Options, Result};

use crate::environment::Environment;

/// Where settings come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) environment: &'a Environment,
    pub(super) options: &'a Options,
}

impl<'a> Source<'a> {
    /// The text of a setting, and where it comes from. An empty text counts as none.
    pub(super) fn text(self, option: &str, variable: &str) -> Result<Option<(&'a str, String)>> {
        match self.options.value(option) {
            Some(OptionValue::Text(text)) if text.is_empty() => {}
            Some(OptionValue::Text(text)) => return Ok(Some((text, format!("option \"{option}\"")))),
            Some(other) => {
                return Err(Error::invalid(format!("option \"{option}\" takes text, got {other}")));
            }
            None => {}
        }
        Ok(self.environment.text(variable).map(|text| (text, format!("variable {variable}"))))
    }
}

/// A setting that is one of several names.
pub(super) fn choice<T: Copy>(
    source: Source<'_>,
    option: &str,
    variable: &str,
    names: &[(&str, T)],
) -> Result<Option<T>> {
    let Some((text, from)) = source.text(option, variable)? else { return Ok(None) };
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let valid: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        Error::invalid(format!("{from} cannot be \"{text}\"; valid: {}", valid.join(", ")))
    })
}

/// A setting that is on or off.
pub(super) fn flag(source: Source<'_>, option: &str, variable: &str, default: bool) -> Result<bool> {
    match source.options.value(option) {
        Some(OptionValue::Flag(value)) => return Ok(*value),
        Some(other) => {
            return Err(Error::invalid(format!("option \"{option}\" takes true or false, got {other}")));
        }
        None => {}
    }
    let Some(text) = source.environment.text(variable) else { return Ok(default) };
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => {
            Err(Error::invalid(format!("variable {variable} cannot be \"{text}\"; valid: 0, 1, false, true")))
        }
    }
}

/// A setting that is an absolute path.
pub(super) fn path(source: Source<'_>, option: &str, variable: &str) -> Result<Option<PathBuf>> {
    let Some((text, from)) = source.text(option, variable)? else { return Ok(None) };
    if Path::new(text).is_absolute() {
        return Ok(Some(PathBuf::from(text)));
    }
    Err(Error::invalid(format!("{from} cannot be \"{text}\"; give an absolute path")))
}
