//! What a backend implements: a trait per object, and what their methods take. [`Buffer`](super::Buffer), which the views of a
//! launch know too, is beside this folder.

mod backend;
mod counters;
mod device;
mod graph;
mod module;
mod program;
mod queue;

pub use backend::Backend;
pub use counters::CounterSet;
pub use device::{Allocate, Device};
pub use graph::{Graph, NoGraph};
pub use module::{Kernel, Module, Source};
pub use program::{Program, ProgramArg, TensorDescription};
pub use queue::{Copy2D, Queue};
