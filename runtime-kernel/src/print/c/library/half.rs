//! Half precision in CUDA C++ without CUDA's headers, which NVRTC does not include.

/// The type and its operators: sums and products are single instructions, everything else is computed in `float`.
pub(crate) const CUDA: &str = include_str!("half.cu");
