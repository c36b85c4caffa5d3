//! Command-line overrides of a spec's scalars, constants and element type.

use std::path::Path;

use runtime_core::{DType, Error, Result, did_you_mean};
use serde::{Deserialize, Serialize};

use super::{Number, json};

/// Overrides of a spec; none by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Values of scalar arguments and constants; each name occurs once.
    #[serde(with = "json::values")]
    pub values: Vec<(String, Number)>,
    /// The element type.
    #[serde(with = "json::element")]
    pub element: Option<DType>,
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

    /// The suffix of the row's name, which tells rows of one spec apart.
    pub(super) fn describe(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!(" {name}={value}"));
        let element = self.element.iter().map(|element| format!(" {element}"));
        values.chain(element).collect()
    }
}
