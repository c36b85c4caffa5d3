//! Shared by the tests of the Vulkan backend: the installed drivers, processes that see only one of them, and messages of the
//! validation layer.
//!
//! The loader reads its environment when an instance is created, so that each choice of driver needs its own process.

mod glsl;
mod installed;
mod process;

pub use glsl::{compile_glsl, require_glslang};
pub use installed::{Driver, built_file, install_stub, lavapipe, validation_layer};
pub use process::{VALIDATION_VARIABLE, child_part, respawn, use_driver, with_validation_log};
pub use test_process::{Finished, Messages, finish, required};

use libtest_mimic::{Completion, Failed, Trial};

/// A trial whose requirement is missing: ignored, or failed if it is required.
#[must_use]
pub fn missing(name: &str, requirement: &str, reason: String) -> Trial {
    let may_be_missing = !required(requirement);
    Trial::ignorable_test(name, move || {
        if may_be_missing { Ok(Completion::ignored_with(reason)) } else { Err(Failed::from(reason)) }
    })
}
