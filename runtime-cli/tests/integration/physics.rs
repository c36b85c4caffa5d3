//! Times beside kept peaks. What the machine does meanwhile is unknown, so it decides whether a time is called impossible or nobody knows;
//! it never decides whether an honest kernel is right.

use runtime_harness::peak::{ComputePeak, Figure, MemoryLevel, Peak, PeakStore, Subject};
use runtime_harness::row::Unit;
use serde_json::Value;

use super::fixture::{Finished, Folder, SCALE, command, runtime};

/// A folder with a cache in which peaks of `host:0` are kept.
struct Kept {
    folder: Folder,
    peak: Peak,
}

impl Kept {
    fn new(rate: f64) -> Self {
        let devices: Value = serde_json::from_str(&runtime(&["devices", "--json"]).stdout).unwrap();
        let target = devices["targets"].as_array().unwrap().iter().find(|target| target["target"] == "host");
        let subject = Subject::of(&target.unwrap()["devices"][0]).unwrap();
        let figure =
            Figure { median: rate, ci95: None, best: rate, clock: "host_wall".to_owned(), disturbance: None };
        let (dtype, format) = ("f32".to_owned(), "c".to_owned());
        let compute = vec![ComputePeak { dtype, unit: Unit::Vector, format, gflops_per_s: figure.clone() }];
        let memory = vec![MemoryLevel {
            name: "L1".to_owned(),
            keeps_bytes: None,
            working_set_bytes: 1,
            read_gbytes_per_s: Some(figure),
            copy_gbytes_per_s: None,
            triad_gbytes_per_s: None,
        }];
        let (transfers, launches, missing) = (Vec::new(), None, Vec::new());
        let peak = Peak { subject, measured_unix_s: 1, compute, memory, transfers, launches, missing };
        let folder = Folder::new();
        let kept = folder.path().join("cache/runtime/peak");
        std::fs::create_dir_all(&kept).unwrap();
        PeakStore::in_folder(kept).save(&peak).unwrap();
        Self { folder, peak }
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        let mut command = command(arguments);
        command.current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command.output().unwrap().into()
    }

    /// Evaluates a spec; its row and the run.
    fn eval(&self, arguments: &[&str]) -> (Value, Finished) {
        let eval = ["eval", "scale.toml", "--device", "host:0", "--repeat", "7", "--json", "rows.json"];
        let run = self.run(&[&eval[..], arguments].concat());
        let document: Value = serde_json::from_str(&self.folder.read("rows.json")).unwrap();
        (document["rows"][0].clone(), run)
    }

    fn kept_file(&self) -> String {
        let kept = self.folder.path().join("cache/runtime/peak");
        let file = std::fs::read_dir(kept).unwrap().next().unwrap().unwrap().path();
        std::fs::read_to_string(file).unwrap()
    }
}

/// Why a machine that is busy gives no verdict.
fn is_unconfirmed(row: &Value) -> bool {
    let floor = &row["floor"];
    floor["kind"] == "unknown"
        && floor["cause"] == "unconfirmed"
        && floor["reason"].as_str().unwrap().starts_with("when the peak was measured again: ")
}

#[test]
fn a_peak_that_was_too_low_makes_no_honest_kernel_impossible() {
    for mode in [&[][..], &["--isolate"], &["--interleave"]] {
        let kept = Kept::new(1e-6);
        let before = kept.kept_file();
        let (row, run) = kept.eval(mode);
        assert_eq!((run.code, &row["status"]), (0, &"right".into()), "{mode:?}: {row:#}, {run:?}");
        assert!(row["roofline"]["share"].as_f64().unwrap() < 1e6, "{mode:?}: {row:#}");
        assert!(run.stderr.contains("are measured again, which \"scale\" beats"), "{run:?}");
        assert_ne!(kept.kept_file(), before, "{mode:?}: the better figures are kept");
        let subject = &kept.peak.subject.name;
        assert!(kept.kept_file().contains(subject), "{subject}");
    }
}

#[test]
fn a_spec_that_overcounts_is_impossible() {
    for mode in [&[][..], &["--isolate"]] {
        let kept = Kept::new(1000.0);
        kept.folder.write("scale.toml", &SCALE.replacen("flops = \"len(x)\"", "flops = 1e18", 1));
        let (row, run) = kept.eval(&[mode, &["--csv", "rows.csv"]].concat());
        if is_unconfirmed(&row) {
            assert!(run.code == 0 && run.stdout.contains("floor unknown: when the peak"), "{run:?}");
            continue;
        }
        let outcome = &row["outcome"];
        assert_eq!((run.code, &row["status"]), (1, &"impossible".into()), "{row:#}, {run:?}");
        assert_eq!((&outcome["kind"], &outcome["limit"]), (&"impossible".into(), &"compute".into()));
        assert!(outcome["median_ns"].as_f64() < outcome["least_ns"].as_f64(), "{outcome}");
        assert!(
            run.stdout.contains("  impossible  ") && run.stdout.contains("an error of the spec"),
            "{run:?}"
        );
        assert!(kept.folder.read("rows.csv").contains(",impossible,"));
        // A worker tells how to repeat it.
        let command = row["command"].as_str();
        assert_eq!(command.is_some(), !mode.is_empty(), "{row:#}");
        if let (Some(command), Some(seed)) = (command, row["judged"]["input_seed"].as_u64()) {
            assert!(command.ends_with(&format!(" --input-seed {seed}")), "{command}");
        }
        assert_eq!(row["judged"]["input_seed"].is_u64(), row["judged"]["inputs"] == "fresh", "{row:#}");
    }
}
