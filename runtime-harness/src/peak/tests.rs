//! Tests of peaks, rooflines, the choice of levels, and saved peaks.

use runtime_core::{CodeFormat, DeviceInfo, DeviceKind};
use serde_json::json;

use super::*;
use crate::row::{Limit, Roofline, Row};
use crate::row_fixture::row;

fn figure(best: f64) -> Figure {
    Figure {
        median: 0.9 * best,
        ci95: Some([0.8 * best, best]),
        best,
        clock: "host_wall".to_owned(),
        disturbance: None,
    }
}

fn level(name: &str, keeps_bytes: Option<u64>, gbytes_per_s: f64) -> MemoryLevel {
    MemoryLevel {
        name: name.to_owned(),
        keeps_bytes,
        working_set_bytes: 1,
        read_gbytes_per_s: Some(figure(gbytes_per_s)),
        copy_gbytes_per_s: None,
        triad_gbytes_per_s: Some(figure(0.5 * gbytes_per_s)),
    }
}

/// A peak of the device of [`row`]: 1000 GFLOP/s, a cache of 1 MB with 400 GB/s, memory with 100 GB/s.
pub(crate) fn peak(row: &Row) -> Peak {
    let compute = |dtype: &str, unit, gflops_per_s| ComputePeak {
        dtype: dtype.to_owned(),
        unit,
        format: "c".to_owned(),
        gflops_per_s: figure(gflops_per_s),
    };
    Peak {
        subject: Subject::of(row.device_info.as_ref().unwrap()).unwrap(),
        measured_unix_s: 1,
        compute: vec![
            compute("f32", Unit::Vector, 1000.0),
            compute("f16", Unit::Vector, 2000.0),
            compute("f16", Unit::Matrix, 9000.0),
        ],
        memory: vec![
            level("work-group memory", Some(0), 5000.0),
            level("L2", Some(1_000_000), 400.0),
            level("DRAM", None, 100.0),
        ],
        transfers: Vec::new(),
        launches: Some(LaunchPeak { latency_ns: figure(1.0), throughput_ns: figure(1.0) }),
        missing: Vec::new(),
    }
}

/// The same peak, measured under load.
pub(crate) fn disturbed(mut peak: Peak) -> Peak {
    peak.figures_mut().for_each(|figure| figure.disturbance = Some("others were busy".to_owned()));
    peak
}

fn roofline(edit: impl FnOnce(&mut Value)) -> Option<Roofline> {
    // 2 GFLOP and 1 GB in 20 ms: 100 GFLOP/s, 50 GB/s.
    let row = row("k", &[20e6; 7], edit);
    peak(&row).roofline(&row)
}

#[test]
fn the_longer_of_both_times_binds() {
    let memory = roofline(|_| {}).unwrap();
    assert_eq!((memory.limit, memory.text().as_str()), (Limit::Memory, "50% of DRAM bandwidth"));
    assert_eq!(memory.intensity_flops_per_byte, Some(2.0));
    assert_eq!(memory.attainable_gflops_per_s, Some(200.0), "intensity × bandwidth");
    let compute = roofline(|row| row["measurement"]["bytes"] = json!(1e7)).unwrap();
    assert_eq!((compute.limit, compute.text().as_str()), (Limit::Compute, "10% of f32 peak"));
    assert_eq!(compute.attainable_gflops_per_s, Some(1000.0), "the peak");
    let bytes = roofline(|row| row["measurement"]["flops"] = json!(null)).unwrap();
    assert_eq!((bytes.share, bytes.attainable_gflops_per_s, bytes.compute), (0.5, None, None));
}

#[test]
fn the_bytes_of_the_arguments_choose_the_level() {
    let of = |bytes: u64| roofline(|row| row["working_set_bytes"] = json!(bytes)).unwrap().memory.unwrap();
    assert_eq!(
        (of(0).level.as_str(), of(1_000_000).level.as_str(), of(1_000_001).level.as_str()),
        ("L2", "L2", "DRAM")
    );
    assert_eq!((of(1).gbytes_per_s, of(2_000_000).gbytes_per_s), (400.0, 100.0));
    let flushed = roofline(|row| {
        row["working_set_bytes"] = json!(1);
        row["settings"]["flush_cache"] = json!("call");
    });
    assert_eq!(flushed.unwrap().memory.unwrap().level, "DRAM", "a flushed cache keeps nothing");
}

#[test]
fn a_level_reaches_what_a_larger_one_reaches() {
    let row = row("k", &[1.0], |_| {});
    let mut peak = peak(&row);
    peak.memory[1] = level("L2", Some(1), 7.0);
    assert_eq!(peak.bandwidth_gbytes_per_s("L2"), 100.0);
}

#[test]
fn matrix_units_are_for_code_that_reaches_them() {
    let share = |format: &str| {
        let roofline = roofline(|row| {
            row["dtype"] = json!("f16");
            row["kernel"]["format"] = json!(format);
            row["measurement"]["bytes"] = json!(1.0);
        });
        roofline.unwrap().limit_text()
    };
    assert_eq!((share("wgsl").as_str(), share("cuda-c").as_str()), ("f16 peak", "f16 matrix peak"));
}

#[test]
fn without_a_known_limit_there_is_no_share() {
    assert_eq!(roofline(|row| row["dtype"] = json!("u32")), None, "operations of an unknown peak");
    assert_eq!(roofline(|row| row["measurement"]["cold"] = json!(true)), None);
    assert_eq!(roofline(|row| row["measurement"] = json!(null)), None);
    let no_cost = |row: &mut Value| {
        row["measurement"]["flops"] = json!(null);
        row["measurement"]["bytes"] = json!(null);
    };
    assert_eq!(roofline(no_cost), None);
}

#[test]
fn bytes_without_a_known_bandwidth_have_no_share() {
    let row = row("k", &[20e6; 7], |_| {});
    let mut peak = peak(&row);
    peak.memory.clear();
    assert_eq!(peak.roofline(&row), None, "perhaps memory binds");
    let only_flops =
        crate::row_fixture::row("k", &[20e6; 7], |row| row["measurement"]["bytes"] = json!(null));
    assert_eq!(peak.roofline(&only_flops).unwrap().text(), "10% of f32 peak");
}

#[test]
fn saved_peaks_are_found_for_each_device_of_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = PeakStore::in_folder(folder.path());
    let on = |uuid: &str| row("k", &[1.0], |row| row["device_info"]["uuid"] = json!(uuid));
    let rows = [on("a"), on("b"), on("a"), on("unknown")];
    for (row, unix_s) in rows[..2].iter().zip([11, 12]) {
        store.save(&Peak { measured_unix_s: unix_s, ..peak(row) }).unwrap();
    }
    let found = store.of_rows(&rows);
    let found: Vec<(&str, u64)> =
        found.iter().map(|(subject, peak)| (&*subject.identity, peak.measured_unix_s)).collect();
    assert_eq!(found, [("a", 11), ("b", 12)]);
}

#[test]
fn a_saved_peak_is_for_one_device_in_one_state() {
    let folder = tempfile::tempdir().unwrap();
    let store = PeakStore::in_folder(folder.path());
    let peak = peak(&row("k", &[1.0], |_| {}));
    assert_eq!(store.find(&peak.subject), Lookup::Absent);
    store.save(&peak).unwrap();
    assert_eq!(store.find(&peak.subject), Lookup::Found(Box::new(peak.clone())));
    for changed in [
        Subject { driver_version: Some("Linux 7".to_owned()), ..peak.subject.clone() },
        Subject { clock_hz: Some(1), ..peak.subject.clone() },
        Subject { program: "0.0.9".to_owned(), ..peak.subject.clone() },
    ] {
        assert_eq!(store.find(&changed), Lookup::Outdated, "{changed:?}");
        store.save(&Peak { subject: changed, ..peak.clone() }).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the old one is replaced");
    }
    let other = Subject { identity: "GPU-2".to_owned(), ..peak.subject.clone() };
    assert_eq!(store.find(&other), Lookup::Absent);
    let renumbered = Subject { device: "host:1".to_owned(), ..peak.subject.clone() };
    assert!(renumbered.is_same(&peak.subject));
}

#[test]
fn a_damaged_file_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = PeakStore::in_folder(folder.path());
    let peak = peak(&row("k", &[1.0], |_| {}));
    store.save(&peak).unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    for damaged in [
        &text[..text.len() / 2],
        "",
        "{}",
        &text.replace("400.0", "-400.0"),
        &text.replace("\"version\": 1", "\"version\": 2"),
    ] {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(store.find(&peak.subject), Lookup::Absent, "{damaged}");
    }
    store.save(&peak).unwrap();
    assert!(matches!(store.find(&peak.subject), Lookup::Found(_)));
    let error = PeakStore::in_folder(folder.path().join("missing")).save(&peak).unwrap_err();
    assert!(
        error.kind() == runtime_core::ErrorKind::Io && error.message().starts_with("cannot keep the peaks"),
        "{error}"
    );
}

#[test]
fn levels_come_from_the_description_of_a_device() {
    let mut host = DeviceInfo::new(DeviceKind::Host, 0, "CPU");
    host.formats.push(CodeFormat::C);
    host.compute_units = Some(4);
    host.properties.push("l1d_bytes", 32_768i64);
    host.properties.push("l3_bytes", 1i64 << 25);
    let names = |info: &DeviceInfo| -> Vec<(String, Option<u64>)> {
        memory::levels(info).into_iter().map(|level| (level.name, level.keeps_bytes)).collect()
    };
    let named = |name: &str, bytes| (name.to_owned(), bytes);
    assert_eq!(names(&host), [named("L1", Some(131_072)), named("L3", Some(1 << 25)), named("DRAM", None)]);
    assert!(memory::levels(&host)[2].fits_bytes >= 12 << 25, "three arrays of four times the last cache");
    let mut gpu = DeviceInfo::new(DeviceKind::Accelerator, 0, "GPU");
    gpu.properties.push("l2_bytes", 50i64 << 20);
    assert_eq!(names(&gpu), [named("L1", Some(0)), named("L2", Some(50 << 20)), named("DRAM", None)]);
    let unknown = DeviceInfo::new(DeviceKind::Accelerator, 0, "GPU");
    assert_eq!(names(&unknown)[0], named("4 MiB", Some(4 << 20)));
}
