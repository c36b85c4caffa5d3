//! What the tests of the Vulkan backend have in common: the machine's drivers, programs that see only some of them, and
//! what the validation layer says.
//!
//! The loader reads its environment when an instance is made: whoever is to see another driver is a process of its own.

mod glsl;
mod machine;
mod process;

pub use glsl::{compile_glsl, glslang};
pub use machine::{Driver, beside, lavapipe, layer, stub};
pub use process::{VALIDATION, again, is_again, on, watched};
pub use test_process::{Finished, Messages, finish, required};

use libtest_mimic::{Completion, Failed, Trial};

/// A trial that is not run because something is missing: ignored, or failed where it is required.
#[must_use]
pub fn missing(name: &str, what: &str, reason: String) -> Trial {
    let excused = !required(what);
    Trial::ignorable_test(name, move || {
        if excused { Ok(Completion::ignored_with(reason)) } else { Err(Failed::from(reason)) }
    })
}
