//! The loader, with libraries that are broken in many ways.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod files;
mod fixture;
mod instances;
mod lifecycle;
mod panics;
mod search;
mod symbols;
mod tables;
