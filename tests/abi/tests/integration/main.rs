//! The ABI: its layout, other minor versions on either side of it, and what safe code can do.

mod backend_versions;
mod core_versions;
mod layout;
mod safe_code;
