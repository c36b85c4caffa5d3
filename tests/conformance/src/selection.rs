//! What is tested.

use std::path::PathBuf;

use runtime_core::backend::LinkedBackend;

use crate::exceptions::{self, Exception};

/// Names of backends that must be there, separated by commas: then "not on this machine" is a failure.
const REQUIRE: &str = "RUNTIME_REQUIRE";
/// Words of the same list that name no backend: other tests look for them.
const TOOLS: [&str; 14] = [
    "clang",
    "glslang",
    "intel-opencl",
    "llvm-spirv",
    "nvrtc",
    "numpy",
    "oclgrind",
    "python",
    "safetensors",
    "set-uid",
    "spirv-val",
    "torch",
    "tvm",
    "vulkan-validation",
];

/// Which backends and devices are tested, and what is expected of them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Backend libraries (paths), targets (`host`) and devices (`null:0`); none: every device that is found.
    pub backends: Vec<String>,
    /// Targets of which a device must be usable.
    pub required: Vec<String>,
    /// What is known not to work, and why.
    pub exceptions: &'static [Exception],
    /// Backends that are linked in: they are tested instead of all that are found, beside what `backends` names.
    pub linked: Vec<LinkedBackend>,
    /// A folder with the suite's kernels in formats that the suite does not have.
    pub kernels: Option<PathBuf>,
    /// A device on which cases want kernels and none was launched is no failure.
    pub allow_no_launches: bool,
}

impl Selection {
    /// Selects `backends`, requires what the environment variable `RUNTIME_REQUIRE` lists, and knows the usual
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
    /// Every device that is found, as [`Selection::new`] without backends.
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

/// The backends of a list of what must be there.
fn required(list: &str) -> Vec<String> {
    let words = list.split(',').map(str::trim).filter(|word| !word.is_empty() && !TOOLS.contains(word));
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::required;

    #[test]
    fn what_is_no_tool_is_a_backend_that_must_be_there() {
        assert_eq!(required("host, python,null,,spirv-val"), ["host", "null"]);
        assert_eq!(required("hots"), ["hots"], "a misspelt backend is missed, not passed over");
    }
}
