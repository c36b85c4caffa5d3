//! Backend libraries: found, their manifests read, loaded, their tables taken whatever the version, and what they answer
//! converted to owned data.

pub mod convert;
pub(crate) mod decode;
pub(crate) mod host_log;
pub(crate) mod instance;
pub(crate) mod load_report;
pub(crate) mod loader;
pub(crate) mod manifest;
pub(crate) mod negotiate;
pub(crate) mod search;
