//! What disturbed a measurement: the state of host and device during its samples, defects of the series, and advice.

mod advice;
mod cpu_list;
mod device;
mod host;
mod load;
mod process_usage;
mod recorder;
mod series;
mod system;

pub(crate) use advice::{Evidence, advice};
pub(crate) use load::Load;
pub(crate) use recorder::Recorder;
pub use series::defect;
