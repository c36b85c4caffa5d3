//! Reports of `runtime eval`: the table, JSON and CSV, each to its destination.

mod number_format;
mod sink;
mod table;

pub(crate) use number_format::{duration, significant};
pub(crate) use sink::{Format, Reports, Sink};
pub(crate) use table::Columns;
