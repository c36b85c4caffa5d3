//! Reports of `runtime eval`: the table, JSON, CSV and Markdown, each to its destination.

mod chain;
mod counters;
mod files;
mod markdown;
mod sink;
mod table;

pub(crate) use counters::by_reason;
pub(crate) use files::ReportFiles;
pub(crate) use markdown::{escaped, made};
pub(crate) use runtime_harness::number_format::{count, duration, median, significant, uncertainty};
pub(crate) use runtime_harness::row::headline;
pub(crate) use sink::{Format, Reports, Sink};
pub(crate) use table::{Columns, status};
