//! Each row's share of the peak of its device, as `runtime peak` has saved it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;

use runtime_harness::Row;
use runtime_harness::peak::{Lookup, PeakStore, Subject};

use crate::output;

/// The saved peaks of the devices of a run.
pub(super) struct Shares {
    store: PeakStore,
    /// Each device is read once. Workers on several machines may have devices of the same name.
    found: RefCell<BTreeMap<Subject, Lookup>>,
}

impl Shares {
    pub(super) fn new() -> Self {
        Self { store: PeakStore::of_user(), found: RefCell::default() }
    }

    /// The row with its share, if the peak of its device is saved.
    pub(super) fn complete(&self, row: &Row) -> Row {
        let mut row = row.clone();
        let has_cost = row.measurement.as_ref().is_some_and(|it| it.cost.flops.or(it.cost.bytes).is_some());
        let Some(subject) = row.device_info.as_ref().filter(|_| has_cost).and_then(Subject::of) else {
            return row;
        };
        let mut found = self.found.borrow_mut();
        let lookup = found.entry(subject).or_insert_with_key(|subject| self.store.find(subject));
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
            let subjects = found.iter().filter(|(_, lookup)| *lookup == wanted);
            let names: BTreeSet<&str> = subjects.map(|(subject, _)| &*subject.device).collect();
            names.iter().map(|name| format!(" --device {name}")).collect::<String>()
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
    use runtime_harness::peak::{ComputePeak, Figure, Peak};
    use runtime_harness::row::Unit;
    use serde_json::{Value, json};

    use super::*;

    fn info(device: &str, uuid: &str) -> Value {
        json!({ "id": device, "target": "cuda", "name": "GPU", "uuid": uuid })
    }

    fn subject(device: &str) -> Subject {
        Subject::of(&info(device, device)).unwrap()
    }

    /// A row of 1 GFLOP in 10 ms.
    fn row(info: &Value) -> Row {
        let settings = runtime_harness::Settings::default().effective();
        let statistics = json!({
            "min_ns": 1e7, "median_ns": 1e7, "mean_ns": 1e7, "max_ns": 1e7, "stddev_ns": null, "p5_ns": 1e7, "p95_ns": 1e7,
            "median_ci95_ns": null, "outliers": 0,
        });
        let row = json!({
            "spec": "k.toml", "device": "cuda:0", "device_info": info, "code": null, "settings": settings, "status": "right",
            "kernel": { "name": "k", "path": "k.cu", "entry": "k", "format": "cuda-c", "options": {} },
            "reason": null, "error_kind": null, "outcome": { "kind": "ok" }, "validation": null, "dtype": "f32",
            "measurement": {
                "clock": "host_wall", "cold": false, "repeat": 1, "number": 1, "calls": 1, "samples_ns": [1e7],
                "statistics": statistics, "overhead_ns": null, "transfer": null, "flops": 1e9, "bytes": null,
                "gflops_per_s": 100.0, "gbytes_per_s": null,
            },
        });
        serde_json::from_value(row).unwrap()
    }

    fn peak(info: &Value, gflops_per_s: f64) -> Peak {
        let gflops_per_s =
            Figure { median: gflops_per_s, ci95: None, best: gflops_per_s, clock: "host_wall".to_owned() };
        let (dtype, format) = ("f32".to_owned(), "wgsl".to_owned());
        Peak {
            subject: Subject::of(info).unwrap(),
            measured_unix_s: 1,
            compute: vec![ComputePeak { dtype, unit: Unit::Vector, format, gflops_per_s }],
            memory: Vec::new(),
            transfers: Vec::new(),
            launches: None,
            missing: Vec::new(),
        }
    }

    #[test]
    fn devices_of_one_name_on_two_machines_have_a_peak_each() {
        let folder = tempfile::tempdir().unwrap();
        let shares = Shares { store: PeakStore::in_folder(folder.path()), found: RefCell::default() };
        let share = |uuid: &str| Some(shares.complete(&row(&info("cuda:0", uuid))).roofline?.share);
        for (uuid, gflops_per_s) in [("a", 200.0), ("b", 1000.0)] {
            shares.store.save(&peak(&info("cuda:0", uuid), gflops_per_s)).unwrap();
        }
        assert_eq!([share("a"), share("b"), share("c")], [Some(0.5), Some(0.1), None]);
        assert_eq!(shares.hint().unwrap(), "run `runtime peak --device cuda:0` to see shares of the peak");
    }

    #[test]
    fn the_hint_names_the_devices_without_a_peak() {
        let shares = Shares::new();
        assert_eq!(shares.hint(), None);
        shares.found.borrow_mut().insert(subject("host:0"), Lookup::Absent);
        assert_eq!(shares.hint().unwrap(), "run `runtime peak --device host:0` to see shares of the peak");
        shares.found.borrow_mut().insert(subject("cuda:0"), Lookup::Outdated);
        assert!(shares.hint().unwrap().contains("--device host:0 --device cuda:0`"));
    }
}
