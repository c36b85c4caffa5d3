//! The Vulkan backend as a dynamic library, `libruntime_vulkan.so`.
//!
//! Only this crate has the exported symbol, so that programs, and other backends, can link the backend itself in.

runtime_core::export_backend!(backend::Vulkan);
