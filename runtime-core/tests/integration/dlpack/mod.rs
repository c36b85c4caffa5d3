//! DLPack on a simulated accelerator: layouts, lifetimes, and invalid structures.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "plays the other library")]

mod broken;
mod layouts;
mod lifetimes;
mod outgoing;
mod producer;
