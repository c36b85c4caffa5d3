//! Packages on the null backend: written, read, chosen from, and damaged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "loads builtins of the null backend")]

mod choice;
mod fixture;
mod hostile;
mod round_trip;
