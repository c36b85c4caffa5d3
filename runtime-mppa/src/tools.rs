//! Kalray's programs, in the SDK or in `PATH`.

use std::path::{Path, PathBuf};

use runtime_core::backend::find_program;

use crate::environment::{self, Environment};

/// Where programs are searched for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools(Vec<PathBuf>);

impl Tools {
    /// The SDK's folder first, then `PATH`.
    pub(crate) fn new(sdk: Option<&Path>, environment: &Environment) -> Self {
        let path = environment.text(environment::PATH).unwrap_or_default();
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        Self(sdk.map(|sdk| sdk.join("bin")).into_iter().chain(folders).collect())
    }

    /// The path of a program.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        find_program(name, self.0.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::FakeRoot;

    #[test]
    fn the_sdk_precedes_the_path_and_only_programs_are_found() {
        let root = FakeRoot::new();
        root.tool("sdk/bin/kvx-cluster", "");
        root.tool("bin/kvx-cluster", "");
        root.tool("bin/kvx-mppa", "").parent().unwrap();
        root.write("bin/kvx-jtag-runner", "not a program");
        let sdk = root.path().join("sdk");
        let tools = Tools::new(Some(&sdk), &root.environment(&[]));
        assert_eq!(tools.find("kvx-cluster"), Some(sdk.join("bin/kvx-cluster")));
        assert_eq!(tools.find("kvx-mppa"), Some(root.path().join("bin/kvx-mppa")));
        assert_eq!(tools.find("kvx-jtag-runner"), None);
        assert_eq!(Tools::new(None, &Environment::default()).find("sh"), None);
    }
}
