//! Which row of one report belongs to which of the other.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::row::Row;

/// What identifies a row in a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowKey {
    /// Name of the kernel.
    pub kernel: String,
    /// The device string.
    pub device: String,
}

impl RowKey {
    pub(super) fn of(row: &Row) -> Self {
        Self { kernel: row.kernel.name.clone(), device: row.device.clone() }
    }

    pub(super) fn is_of(&self, row: &Row) -> bool {
        self.kernel == row.kernel.name && self.device == row.device
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.kernel, self.device)
    }
}
