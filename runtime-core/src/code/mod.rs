//! Code: what describes [modules](crate::Module) and [kernels](crate::Kernel), and the arguments of launches.

pub(crate) mod arg;
pub(crate) mod argument_tuples;
pub(crate) mod compile;
pub(crate) mod kernel;
pub(crate) mod launch_checks;
pub(crate) mod layout;
pub(crate) mod loading;
pub(crate) mod lowering;
pub(crate) mod module;
pub(crate) mod owned_arg;
pub(crate) mod portable;
pub(crate) mod raw_launch;
pub(crate) mod record;
pub(crate) mod registers;
pub(crate) mod return_type;
pub(crate) mod scalar;
pub(crate) mod source;

pub use crate::model::access::ArgKind;
pub use crate::model::code_load::{CodeLoad, CodeOrigin};
pub use crate::model::compiled::{Compiled, CompiledCode, Fit};
pub use crate::model::geometry::{Occupancy, ParallelRange};
pub use crate::model::kernel_info::{ImageSizes, KernelInfo, Param, Register, RunReport};
pub use argument_tuples::{ArgList, Arguments, IntoArg};
pub use layout::{TensorLayout, layout};
pub use record::Record;
pub use scalar::Scalar;
pub use source::AsSource;
