//! The clients of boards against servers of the tests.

mod gdb;
mod uart;
