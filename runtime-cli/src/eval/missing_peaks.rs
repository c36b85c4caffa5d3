//! How to get the shares of the peak that rows lack.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::IsTerminal;

use runtime_harness::Row;
use runtime_harness::row::{Floor, UnknownFloor};

use crate::output;

/// The devices of a run whose peaks are not kept.
#[derive(Default)]
pub(super) struct MissingPeaks {
    absent: RefCell<BTreeSet<String>>,
    outdated: RefCell<BTreeSet<String>>,
}

impl MissingPeaks {
    /// Takes note of a row.
    pub(super) fn note(&self, row: &Row) {
        let missing = match &row.floor {
            Some(Floor::Unknown { cause: UnknownFloor::Absent, .. }) => &self.absent,
            Some(Floor::Unknown { cause: UnknownFloor::Outdated, .. }) => &self.outdated,
            _ => return,
        };
        missing.borrow_mut().insert(row.device.clone());
    }

    /// Tells the reader of a terminal how to get shares.
    pub(super) fn print_hint(&self) {
        if std::io::stdout().is_terminal()
            && let Some(hint) = self.hint()
        {
            output::print_stderr(&hint);
        }
    }

    fn hint(&self) -> Option<String> {
        let devices = |missing: &RefCell<BTreeSet<String>>| {
            missing.borrow().iter().map(|name| format!(" --device {name}")).collect::<String>()
        };
        let (absent, outdated) = (devices(&self.absent), devices(&self.outdated));
        match (&*absent, &*outdated) {
            ("", "") => None,
            (absent, "") => Some(format!("run `runtime peak{absent}` to see shares of the peak")),
            ("", outdated) => Some(format!(
                "run `runtime peak{outdated}` again to see shares of the peak: the driver, its clock limit or this program has changed"
            )),
            (absent, outdated) => {
                Some(format!("run `runtime peak{absent}{outdated}` to see shares of the peak"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_devices_without_a_peak() {
        let missing = MissingPeaks::default();
        assert_eq!(missing.hint(), None);
        missing.absent.borrow_mut().insert("host:0".to_owned());
        assert_eq!(missing.hint().unwrap(), "run `runtime peak --device host:0` to see shares of the peak");
        missing.outdated.borrow_mut().insert("cuda:0".to_owned());
        assert!(missing.hint().unwrap().contains("--device host:0 --device cuda:0`"));
    }
}
