//! Judge and runner: a candidate's native code runs in a process that has nothing else, and the process that judges it has no
//! foreign code. `docs/trust.md` has the design.

mod judge;
mod loaded;
mod memory;
mod process;
mod program;
mod protocol;
mod reference;
mod windows;

pub(crate) use judge::{Judge, Place, is_sandboxed};
pub use program::run;
