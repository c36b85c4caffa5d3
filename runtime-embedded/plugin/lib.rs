//! The backend for bare-metal processors as a dynamic library, `libruntime_embedded.so`.
//!
//! Only this crate exports the symbol, so that programs can link `runtime-embedded` itself.

runtime_core::export_backend!(backend::Embedded);
