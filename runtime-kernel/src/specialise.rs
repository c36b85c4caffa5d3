//! What is fixed when a kernel is loaded: `override` constants and the element type.

use runtime_core::DType;

/// Values for a kernel's `override` constants and its element type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Specialisation {
    /// Name or `@id` of an override, and its value as text.
    pub constants: Vec<(String, String)>,
    /// What replaces `f32` in `alias T = f32;`.
    pub element: Option<DType>,
}
