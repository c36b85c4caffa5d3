//! Reports of `runtime eval`: the table, JSON, CSV and Markdown, each to its destination.

mod beside;
mod chain;
mod markdown;
mod sink;
mod table;

pub(crate) use markdown::{Notes, escaped};
pub(crate) use runtime_harness::number_format::{count, duration, significant, uncertainty};
pub(crate) use runtime_harness::row::headline;
pub(crate) use sink::{Format, Reports, Sink};
pub(crate) use table::{Columns, status};
