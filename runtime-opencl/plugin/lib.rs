//! The OpenCL backend as a dynamic library, `libruntime_opencl.so`.
//!
//! Only this crate exports the symbol, so that programs and other backends can link `runtime-opencl` itself.

runtime_core::export_backend!(backend::OpenCl);
