//! Placeholder.

pub mod abi;
pub mod backend;
mod device_info;
mod dtype;
mod error;
mod geometry;
mod negotiate;
mod options;

pub use backend::{KernelInfo, Param, QueueOptions, RunReport};
pub use device_info::*;
pub use dtype::{DType, DTypeClass, Element};
pub use error::{Error, ErrorKind, Result};
pub use geometry::{Dim3, Geometry};
pub use options::{OptionScope, OptionSpec, Options, Value, suggest};

mod argument;
pub use argument::{Access, ArgKind};
