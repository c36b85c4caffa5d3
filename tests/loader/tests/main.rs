//! The loader, against libraries that are broken in every way that a library can be.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
mod fixture;
mod instances;
mod lifecycle;
mod panics;
mod search;
mod symbols;
mod tables;
