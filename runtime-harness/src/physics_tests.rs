//! Rows beside kept peaks. What is measured again is given by the tests, so that no busy machine changes them.

use runtime_core::Error;
use serde_json::{Value, json};

use super::*;
use crate::peak::tests::{disturbed, peak};
use crate::row::{Limit, Status};
use crate::row_fixture::row;

/// A call of this many milliseconds, of 2 GFLOP and 1 GB in DRAM: at 32 times 1000 GFLOP/s they take 62.5 µs, at twice 100 GB/s, and
/// without what the cache of 1 MB may hold, almost 5 ms.
fn call(ms: f64, edit: impl FnOnce(&mut Value)) -> Row {
    row("k", &[ms * 1e6; 7], edit)
}

/// A store with a peak of the device of [`call`].
struct Kept {
    folder: tempfile::TempDir,
    store: PeakStore,
}

fn kept(edit: impl FnOnce(&mut Peak)) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let store = PeakStore::in_folder(folder.path());
    let mut kept = own_peak();
    edit(&mut kept);
    store.save(&kept).unwrap();
    Kept { folder, store }
}

/// The peak of the device of [`call`], whose code reaches vector units only.
fn own_peak() -> Peak {
    let mut peak = peak(&call(1.0, |_| {}));
    peak.compute.truncate(1);
    peak
}

/// A machine that is as it was.
fn confirms(_: &Part) -> Result<Peak> {
    Ok(own_peak())
}

fn never(part: &Part) -> Result<Peak> {
    panic!("{part:?} is measured again")
}

/// A peak with bandwidths this many times as high.
fn faster(mut peak: Peak, factor: f64) -> Peak {
    for level in &mut peak.memory {
        for figure in [&mut level.read_gbytes_per_s, &mut level.triad_gbytes_per_s].into_iter().flatten() {
            figure.best *= factor;
        }
    }
    peak
}

fn cause(row: &Row) -> Option<UnknownFloor> {
    match row.floor.as_ref().unwrap() {
        Floor::Unknown { cause, .. } => Some(*cause),
        Floor::Known(_) => None,
    }
}

#[test]
fn a_time_that_the_device_can_reach_is_right() {
    let row = compared(call(5.0, |_| {}), &kept(|_| {}).store, &mut never);
    assert_eq!((row.status, row.outcome, row.reason), (Status::Right, Outcome::Ok, None));
    assert_eq!(row.roofline.unwrap().share, 2.0, "a share is about the peak, not about the least time");
    let Some(Floor::Known(bound)) = row.floor else { panic!("{:?}", row.floor) };
    assert_eq!((bound.limit, bound.peak.as_str(), bound.slack), (Limit::Memory, "DRAM bandwidth", 2.0));
    assert!((4.9e6..5e6).contains(&bound.least_ns), "{bound:?}");
}

#[test]
fn a_spec_that_overcounts_is_impossible_after_the_peak_was_measured_again() {
    let kept = kept(|_| {});
    let mut parts = Vec::new();
    let mut again = |part: &Part| {
        parts.push(part.clone());
        confirms(part)
    };
    // 2 GFLOP in 1 µs.
    let flops = |row: &mut Value| row["measurement"]["bytes"] = json!(null);
    for _ in 0..3 {
        let row = compared(call(0.001, flops), &kept.store, &mut again);
        let Outcome::Impossible { median_ns, bound } = &row.outcome else { panic!("{:?}", row.outcome) };
        assert_eq!((*median_ns, bound.limit, bound.least_ns), (1000.0, Limit::Compute, 62_500.0));
        assert_eq!((row.status, bound.peak.as_str()), (Status::Impossible, "f32 peak"));
        assert!(row.reason.unwrap().contains("32 times the f32 peak (1000 GFLOP/s"));
    }
    let row = compared(call(0.1, |_| {}), &kept.store, &mut again);
    assert_eq!(row.status, Status::Impossible, "{:?}", row.reason);
    let unchecked = compared(call(0.1, |row| row["status"] = json!("unchecked")), &kept.store, &mut again);
    assert_eq!(unchecked.status, Status::Impossible);
    let memory = Part::Memory { level: "DRAM".to_owned(), working_set_bytes: 1_000_000_000 };
    assert_eq!(parts, [Part::Compute, memory], "each once");
}

#[test]
fn what_is_wrong_anyway_stays_so() {
    let wrong = |row: &mut Value| {
        row["status"] = json!("inconsistent");
        row["outcome"] = json!({ "kind": "inconsistent", "batch_ns": 1.0, "single_ns": 2.0 });
    };
    let row = compared(call(0.001, wrong), &kept(|_| {}).store, &mut never);
    assert_eq!(row.status, Status::Inconsistent);
}

#[test]
fn a_peak_that_was_too_low_is_measured_again_and_kept() {
    let kept = kept(|peak| *peak = faster(peak.clone(), 0.01));
    let row = compared(call(5.0, |_| {}), &kept.store, &mut confirms);
    assert_eq!((row.status, row.roofline.unwrap().share), (Status::Right, 2.0));
    let Lookup::Found(found) = PeakStore::in_folder(kept.folder.path()).find(&own_peak().subject) else {
        panic!("no peak is kept")
    };
    assert_eq!(found.bandwidth_gbytes_per_s("DRAM"), 100.0);
    assert_eq!(compared(call(5.0, |_| {}), &kept.store, &mut never).status, Status::Right);
}

#[test]
fn a_device_may_have_more_cache_than_it_tells() {
    // What measures DRAM again finds what it was; but this working set is as fast as the cache.
    let kept = kept(|_| {});
    let again = |part: &Part| {
        let Part::Memory { working_set_bytes, .. } = part else { panic!("{part:?}") };
        let mut again = own_peak();
        let mut probed = again.memory.remove(1);
        (probed.name, probed.keeps_bytes) = ("954 MiB".to_owned(), Some(*working_set_bytes));
        again.memory.push(probed);
        Ok(again)
    };
    let row = compared(call(2.0, |_| {}), &kept.store, &mut { again });
    assert_eq!(row.status, Status::Right, "{:?}", row.reason);
    assert_eq!(row.roofline.unwrap().limit_text(), "the bandwidth within 954 MiB");
    let larger = |row: &mut Value| {
        row["working_set_bytes"] = json!(8_000_000_000_u64);
        row["measurement"]["bytes"] = json!(8e9);
    };
    let row = compared(call(1.0, larger), &kept.store, &mut confirms);
    assert_eq!(row.status, Status::Impossible, "all else is as before");
}

#[test]
fn without_a_quiet_peak_there_is_no_verdict() {
    let fast = || call(0.001, |_| {});
    let folder = tempfile::tempdir().unwrap();
    let row = compared(fast(), &PeakStore::in_folder(folder.path()), &mut never);
    assert_eq!((row.status, cause(&row)), (Status::Right, Some(UnknownFloor::Absent)));

    let outdated = kept(|peak| peak.subject.driver_version = Some("Linux 5".to_owned()));
    let row = compared(fast(), &outdated.store, &mut never);
    assert_eq!((row.status, cause(&row)), (Status::Right, Some(UnknownFloor::Outdated)));

    let noisy = kept(|peak| *peak = disturbed(peak.clone()));
    let row = compared(call(50.0, |_| {}), &noisy.store, &mut never);
    assert_eq!((row.status, cause(&row)), (Status::Right, Some(UnknownFloor::Disturbed)));
    assert_eq!(row.floor.unwrap().note(), None, "nothing depends on it");

    let unmeasured = kept(|peak| {
        peak.compute.clear();
        peak.memory.clear();
    });
    let row = compared(fast(), &unmeasured.store, &mut never);
    assert_eq!((row.status, cause(&row)), (Status::Right, Some(UnknownFloor::Unmeasured)));
}

#[test]
fn measuring_again_under_load_confirms_nothing() {
    for kept in [kept(|_| {}), kept(|peak| *peak = disturbed(peak.clone()))] {
        let attempts = std::cell::Cell::new(0);
        let mut again = |_: &Part| {
            attempts.set(attempts.get() + 1);
            Ok(disturbed(own_peak()))
        };
        for _ in 0..5 {
            let row = compared(call(0.1, |_| {}), &kept.store, &mut again);
            assert_eq!((row.status, cause(&row)), (Status::Right, Some(UnknownFloor::Unconfirmed)));
            assert!(row.floor.unwrap().note().unwrap().contains("measured again: others were busy"));
        }
        assert_eq!(attempts.get(), 3, "a machine that is always busy is not measured for each row");
    }
    let kept = kept(|_| {});
    let mut fails = |_: &Part| Err(Error::unsupported("no compiler"));
    let row = compared(call(0.1, |_| {}), &kept.store, &mut fails);
    assert_eq!(cause(&row), Some(UnknownFloor::Unconfirmed));
    assert_eq!(cause(&compared(call(0.1, |_| {}), &kept.store, &mut never)), Some(UnknownFloor::Unconfirmed));
}

#[test]
fn a_quiet_measurement_decides_for_a_noisy_one() {
    let kept = kept(|peak| *peak = disturbed(peak.clone()));
    assert_eq!(compared(call(0.1, |_| {}), &kept.store, &mut confirms).status, Status::Impossible);
}

#[test]
fn a_call_that_touches_little_of_its_tensors_finds_it_in_a_cache() {
    let small = |row: &mut Value| {
        row["measurement"]["bytes"] = json!(1e6);
        row["measurement"]["flops"] = json!(null);
    };
    let Some(Floor::Known(bound)) = compared(call(1.0, small), &kept(|_| {}).store, &mut never).floor else {
        panic!("no floor")
    };
    assert_eq!((bound.peak.as_str(), bound.least_ns), ("L2 bandwidth", 1e6 / 800.0));
    // Just more than the cache holds: almost all of it may come from there.
    let larger = |row: &mut Value| {
        small(row);
        row["measurement"]["bytes"] = json!(1_000_100.0);
    };
    let Some(Floor::Known(bound)) = compared(call(1.0, larger), &kept(|_| {}).store, &mut never).floor else {
        panic!("no floor")
    };
    assert!(bound.least_ns < 1.0, "{bound:?}");
}

#[test]
fn matrix_units_raise_the_peak_of_every_type() {
    let kept = kept(|all| *all = peak(&call(1.0, |_| {})));
    let flops = |row: &mut Value| row["measurement"]["bytes"] = json!(null);
    let Some(Floor::Known(bound)) = compared(call(1.0, flops), &kept.store, &mut never).floor else {
        panic!("no floor")
    };
    assert_eq!((bound.peak.as_str(), bound.slack), ("f16 matrix peak", 4.0));
}

#[test]
fn without_a_cost_there_is_no_floor() {
    let kept = kept(|_| {});
    let free = |row: &mut Value| {
        row["measurement"]["bytes"] = json!(null);
        row["measurement"]["flops"] = json!(null);
    };
    assert_eq!(compared(call(0.001, free), &kept.store, &mut never).floor, None);
}
