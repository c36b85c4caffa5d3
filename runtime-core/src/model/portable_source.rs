//! Portable code, as a lowering gets it.

use crate::Options;

/// Portable code to lower.
#[derive(Clone, Copy, Debug)]
pub struct PortableSource<'a> {
    /// The source text.
    pub code: &'a str,
    /// Path of the source file, for messages; empty for code from memory.
    pub path: &'a str,
    /// The load options that the lowering describes, validated.
    pub options: &'a Options,
}
