//! A client of the GDB remote serial protocol: the language of QEMU's stub, `OpenOCD`, probe-rs, `pyOCD` and J-Link's server.
//!
//! It depends on nothing else in this crate. [`packet`] frames bytes, [`Transport`] moves them, [`Client`] makes requests of
//! them. Each operation has a deadline. After an error that leaves request and reply out of step, the client is
//! [broken](Client::is_broken) and refuses further requests, because a late reply would answer the wrong one.
//!
//! The protocol is specified in the manual of GDB, appendix "Remote Protocol".

mod client;
mod description;
mod error;
mod features;
mod flash;
mod hex;
mod memory;
pub mod packet;
mod registers;
mod stop;
mod transport;

pub use client::{Client, Deadlines};
pub use error::{GdbError, GdbErrorKind};
pub use features::Features;
pub use flash::FlashRegion;
pub use stop::StopReply;
pub use transport::Transport;
pub(crate) use transport::{continue_after, left};
