//! Writers: C in three dialects, and SPIR-V.

pub(crate) mod c;
pub(crate) mod spirv;
