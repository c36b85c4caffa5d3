//! Each row's share of the peak of its device, by what `runtime peak` has kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IsTerminal;

use runtime_harness::Row;
use runtime_harness::peak::{KeptPeaks, Lookup, Subject};

use crate::output;

/// The kept peaks of the devices of a run.
pub(super) struct Shares {
    kept: KeptPeaks,
    /// By device, each read once.
    found: RefCell<BTreeMap<String, Lookup>>,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self { kept: KeptPeaks::of_user(), found: RefCell::default() }
    }

    /// The row with its share, if the peak of its device is kept.
    pub(super) fn complete(&self, row: &Row) -> Row {
        let mut row = row.clone();
        let has_cost = row.measurement.as_ref().is_some_and(|it| it.flops.or(it.bytes).is_some());
        let Some(subject) = row.device_info.as_ref().filter(|_| has_cost).and_then(Subject::of) else {
            return row;
        };
        let mut found = self.found.borrow_mut();
        let lookup = found.entry(row.device.clone()).or_insert_with(|| self.kept.find(&subject));
        row.roofline = match lookup {
            Lookup::Found(peak) => peak.roofline(&row),
            _ => None,
        };
        row
    }

    /// Tells the reader of a terminal how to get shares.
    pub(super) fn print_hint(&self) {
        if std::io::stdout().is_terminal()
            && let Some(hint) = self.hint()
        {
            output::print_stderr(&hint);
        }
    }

    /// How to get the shares that are missing.
    fn hint(&self) -> Option<String> {
        let found = self.found.borrow();
        let devices = |wanted: &Lookup| {
            let names = found
                .iter()
                .filter(|(_, lookup)| *lookup == wanted)
                .map(|(name, _)| format!(" --device {name}"));
            names.collect::<String>()
        };
        let (absent, outdated) = (devices(&Lookup::Absent), devices(&Lookup::Outdated));
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
        let shares = Shares::new();
        assert_eq!(shares.hint(), None);
        shares.found.borrow_mut().insert("host:0".to_owned(), Lookup::Absent);
        assert_eq!(shares.hint().unwrap(), "run `runtime peak --device host:0` to see shares of the peak");
        shares.found.borrow_mut().insert("cuda:0".to_owned(), Lookup::Outdated);
        assert!(shares.hint().unwrap().contains("--device host:0 --device cuda:0`"));
    }
}
