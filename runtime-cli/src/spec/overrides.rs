//! What the command line changes of a spec: other sizes, constants and element types of the same kernel.

use std::path::Path;

use runtime_core::{DType, Error, Result, suggest};

use super::scalar::Number;

/// Overrides to a spec; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// Other values of scalar arguments and of constants, each name once.
    pub(crate) values: Vec<(String, Number)>,
    /// Another element type.
    pub(crate) element: Option<DType>,
}

impl Overrides {
    /// The value that `name` is changed to.
    pub(super) fn value(&self, name: &str) -> Option<Number> {
        self.values.iter().find(|(changed, _)| changed == name).map(|(_, value)| *value)
    }

    /// Refuses what the spec at `path` has no place for.
    pub(super) fn check(&self, path: &Path, names: &[&str], has_element: bool) -> Result<()> {
        if let Some((name, _)) = self.values.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            return Err(Error::invalid(format!(
                "--set {name}: {} has no scalar argument and no constant of that name; {}",
                path.display(),
                suggest(name, names)
            )));
        }
        match self.element {
            Some(element) if !has_element => Err(Error::invalid(format!(
                "--element {element}: {} has no element type; it would stand in [specialise]",
                path.display()
            ))),
            _ => Ok(()),
        }
    }

    /// What is added to the name of the row, so that rows of one spec can be told apart.
    pub(super) fn describe(&self) -> String {
        let values = self.values.iter().map(|(name, value)| format!(" {name}={value}"));
        let element = self.element.iter().map(|element| format!(" {element}"));
        values.chain(element).collect()
    }
}
