//! Writers: C in three dialects, and SPIR-V. They decide how code is spelled; modules arrive already checked and
//! transformed.

pub(crate) mod c;
pub(crate) mod spirv;
