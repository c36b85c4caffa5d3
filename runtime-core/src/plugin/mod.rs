//! Backend libraries: found, their manifests read, loaded, their tables taken whatever the version, and what they answer
//! converted to owned data. Above this, no module knows the layout of a structure for C.

pub(crate) mod decode;
pub(crate) mod host_log;
pub(crate) mod instance;
pub(crate) mod load_report;
pub(crate) mod loader;
pub(crate) mod manifest;
pub(crate) mod negotiate;
pub(crate) mod platform;
pub(crate) mod search;
