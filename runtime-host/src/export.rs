//! The one symbol, the table and the manifest.

use crate::HostBackend;

runtime_core::export_backend!(HostBackend);
