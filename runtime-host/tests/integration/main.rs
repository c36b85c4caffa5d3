//! The host backend through core, one module per theme.

mod conventions;
mod failures;
mod polybench;
mod through_core;
