//! A target: its emulator, and the session with the firmware that runs on it.

mod emulator;
mod fault;
mod mailbox;
mod session;
mod spawner;

pub(crate) use mailbox::{MAX_ARGS, MAX_TENSORS, TensorRecord};
pub(crate) use session::Session;
pub(crate) use spawner::Spawner;
