//! A target: its emulator, the link to it, and the session with the firmware that runs on it.

mod debug_link;
mod emulator;
mod fault;
mod flash_constants;
mod function_trace;
mod link;
mod mailbox;
mod named_pipe;
mod port;
mod program;
mod registers;
mod server;
mod session;
mod surroundings;
mod trace;
mod uart_link;

pub(crate) use flash_constants::{Constant, place as place_constants};
pub(crate) use function_trace::FunctionTrace;
pub(crate) use mailbox::{CONSTANT, KEEP, MAX_ARGS, MAX_TENSORS, POISON, SEED, TensorRecord};
pub(crate) use session::{Outcome, Session};
pub(crate) use surroundings::Surroundings;
