//! The MPPA backend as a dynamic library, `libruntime_mppa.so`.
//!
//! Only this crate exports the symbol, so that programs can link `runtime-mppa` itself.

runtime_core::export_backend!(backend::Mppa);
