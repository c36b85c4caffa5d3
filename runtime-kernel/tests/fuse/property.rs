//! Random lists of kernels.
