//! The lowering from a kernel author's view, one module per theme.

mod front;
mod groups;
mod matrix_units;
mod signature;
