//! Selects the backends and devices to test.

use std::path::PathBuf;

use runtime_core::backend::LinkedBackend;

use crate::exceptions::{self, Exception};

/// Lists required backends, separated by commas: if one is unavailable, the run fails.
const REQUIRE: &str = "RUNTIME_REQUIRE";
/// Names in the same list that are not targets; other tests use them.
const TOOLS: [&str; 20] = [
    "clang",
    "glslang",
    "intel-opencl",
    "llvm-spirv",
    "mount-namespace",
    "mppa-stand-in",
    "nvrtc",
    "numpy",
    "oclgrind",
    "package",
    "python",
    "safetensors",
    "sandbox",
    "set-uid",
    "slurm",
    "spirv-val",
    "ssh",
    "torch",
    "tvm",
    "vulkan-validation",
];

/// The backends and devices to test, and the expected exceptions.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Backend libraries (paths), targets (`host`) and devices (`null:0`); if empty, every device found.
    pub backends: Vec<String>,
    /// Targets that must have a usable device.
    pub required: Vec<String>,
    /// Known exceptions.
    pub exceptions: &'static [Exception],
    /// Linked-in backends, tested together with `backends` and instead of everything found.
    pub linked: Vec<LinkedBackend>,
    /// A folder with the suite's kernels in other formats.
    pub kernels: Option<PathBuf>,
    /// Do not fail when a device launched no kernel although cases need one.
    pub allow_no_launches: bool,
}

impl Selection {
    /// Selects `backends`, with the required targets of the environment variable `RUNTIME_REQUIRE` and the known
    /// exceptions.
    #[must_use]
    pub fn new(backends: Vec<String>) -> Self {
        let required = required(&std::env::var(REQUIRE).unwrap_or_default());
        let (kernels, allow_no_launches) = (None, false);
        let linked = Vec::new();
        Self { backends, required, exceptions: exceptions::KNOWN, linked, kernels, allow_no_launches }
    }

    /// Whether the absence of a target is a failure.
    pub(crate) fn requires(&self, target: &str) -> bool {
        self.required.iter().any(|name| name == target)
    }
}

impl Default for Selection {
    /// Every device found: [`Selection::new`] without backends.
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// The backends in a list of requirements.
fn required(list: &str) -> Vec<String> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty() && !TOOLS.contains(word));
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::required;

    #[test]
    fn any_word_that_is_not_a_tool_is_a_required_backend() {
        assert_eq!(required("host, python,null,,spirv-val"), ["host", "null"]);
        assert_eq!(required("hots"), ["hots"], "a misspelt backend is reported, not ignored");
    }
}
