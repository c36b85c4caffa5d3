//! The backend in C, but for the conformance suite.

mod kernels;
mod library;
mod six_steps;
