//! Backend libraries: search, manifest check, loading, version negotiation, and conversion of backend data to
//! owned data.

pub(crate) mod compiled;
pub mod convert;
pub(crate) mod decode;
pub(crate) mod host_log;
pub(crate) mod instance;
pub(crate) mod kernel_info;
pub(crate) mod load_report;
pub(crate) mod loader;
pub(crate) mod manifest;
pub(crate) mod native;
pub(crate) mod negotiate;
pub(crate) mod search;
