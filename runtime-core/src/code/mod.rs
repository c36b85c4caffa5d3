//! Code: sources, loaded modules and kernels, launch arguments, and the lowering of portable code.

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
