//! A client of the firmware's protocol for serial lines, which `docs/embedded.md` specifies.
//!
//! Requests and replies are frames with a length, a checksum and the number of the session, which the client chooses at
//! random: a target that was reset does not know it any more. Damaged and lost frames are sent again. Messages of the
//! program may come between replies.

mod checksum;
mod client;
pub mod frame;
mod messages;

pub(crate) use checksum::crc32;
pub use client::{Client, Deadlines, Log, RunState};
pub use messages::Greeting;
