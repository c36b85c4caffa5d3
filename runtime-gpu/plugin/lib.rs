//! The CUDA backend as a dynamic library, `libruntime_cuda.so`.
//!
//! Only this crate exports the symbol, so that programs and other backends can link the backend itself.

runtime_core::export_backend!(backend::Cuda);
