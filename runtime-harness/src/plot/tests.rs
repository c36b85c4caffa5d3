//! Tests of pictures.

use roxmltree::Document;
use serde_json::json;

use super::*;
use crate::peak::tests::peak;
use crate::row_fixture::row;

fn peaks<const N: usize>(peaks: [Peak; N]) -> BTreeMap<Subject, Peak> {
    peaks.into_iter().map(|peak| (peak.subject.clone(), peak)).collect()
}

fn count(svg: &str, tag: &str) -> usize {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", tag))).count()
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    document
        .descendants()
        .filter(|node| node.is_text())
        .map(|node| node.text().unwrap_or_default().trim().to_owned())
        .collect()
}

#[test]
fn there_is_a_mark_for_each_sample() {
    for samples in [vec![5.0], vec![5.0; 9], vec![1.0, 2.0, 3.0, 1e9], vec![0.0, 0.0]] {
        let rows = [row("a", &samples, |_| {}), row("b", &samples, |_| {})];
        let panels = panels(&rows, &BTreeMap::new());
        assert_eq!(panels.len(), 1, "without peaks there is no roofline");
        assert_eq!(count(&panels[0].svg, "circle"), 2 * samples.len(), "{samples:?}");
    }
}

#[test]
fn hostile_names_stay_text() {
    let name = "<script>alert(\"1\" & '2')</script>\u{1b}[2J\0\u{fffe}";
    let rows = [row(name, &[5.0, 6.0], |_| {})];
    let svg = document(&rows, &peaks([peak(&rows[0])]));
    assert_eq!(count(&svg, "script"), 0);
    assert!(texts(&svg).iter().any(|text| text.starts_with("<script>alert(")), "{svg}");
}

#[test]
fn a_roofline_has_a_line_for_each_level_and_a_share_for_each_kernel() {
    let mut rows = vec![row("a", &[20e6; 7], |_| {}), row("b", &[40e6; 7], |_| {})];
    let peak = peak(&rows[0]);
    for row in &mut rows {
        row.roofline = peak.roofline(row);
    }
    let svg = panels(&rows, &peaks([peak]))[0].svg.clone();
    let texts = texts(&svg);
    for text in [
        "Roofline of host:0 (CPU)",
        "L2",
        "DRAM",
        "400 GB/s",
        "100 GB/s",
        "f32",
        "1000 GFLOP/s",
        "a",
        "b",
        "50%",
        "25%",
    ] {
        assert!(texts.iter().any(|found| found == text), "{text}: {texts:?}");
    }
    assert!(!texts.contains(&"work-group memory".to_owned()), "no kernel is compared with it");
    let without_peak = panels(&rows, &BTreeMap::new());
    assert!(without_peak[0].title.starts_with("Roofline"), "the limits of the rows are drawn");
}

#[test]
fn each_device_model_has_one_roofline_whatever_its_device_strings() {
    let on = |device: &str, name: &str, uuid: &str| {
        row("k", &[20e6; 7], |row| {
            row["device"] = json!(device);
            for (key, value) in [("id", device), ("name", name), ("uuid", uuid)] {
                row["device_info"][key] = json!(value);
            }
        })
    };
    let rows = [
        on("cuda:0", "fast", "1"),
        on("cuda:0", "slow", "2"),
        on("cuda:1", "fast", "3"),
        on("cuda:0", "fast", "4"),
    ];
    let mut slow = peak(&rows[1]);
    slow.memory[2].keeps_bytes = None;
    slow.compute[0].gflops_per_s.best = 300.0;
    let panels = panels(&rows, &peaks([peak(&rows[0]), slow]));
    let titles: Vec<&str> = panels.iter().map(|panel| &*panel.title).collect();
    assert_eq!(
        titles,
        ["Roofline of cuda:0, cuda:1 (fast)", "Roofline of cuda:0 (slow)", "Samples"],
        "one per model"
    );
    let has = |panel: usize, text: &str| texts(&panels[panel].svg).iter().any(|found| found == text);
    assert!(has(0, "1000 GFLOP/s") && !has(0, "300 GFLOP/s") && has(1, "300 GFLOP/s"));
    assert!(has(0, "k · cuda:1") && has(1, "k"), "the device is named where there are several");
}

#[test]
fn a_sweep_shows_all_rows_and_keeps_unlike_devices_of_one_name_apart() {
    let many = u64::try_from(MAX_ROWS).unwrap() + 5;
    let rows: Vec<Row> = (0..2 * many)
        .map(|index| {
            row("k", &[5.0], |row| {
                row["parameters"] = json!({ "n": index / 2 });
                row["device_info"]["name"] = json!(["fast", "slow"][usize::from(index % 2 == 1)]);
            })
        })
        .collect();
    let sweeps = Sweep::all(&rows);
    let points: Vec<usize> = sweeps[0].devices.iter().map(|(_, points)| points.len()).collect();
    assert_eq!(points, [MAX_ROWS + 5; 2]);
    let svg = sweeps[0].panel().svg;
    let texts = texts(&svg);
    assert!(texts.contains(&"host:0 (fast)".to_owned()) && texts.contains(&"host:0 (slow)".to_owned()));
    // The first device's mark is a dot, in both plots and in the legend.
    assert_eq!(count(&svg, "circle"), 2 * (MAX_ROWS + 5) + 1);
}

#[test]
fn many_rows_are_cut_with_a_note() {
    let rows: Vec<Row> = (0..MAX_ROWS + 5).map(|index| row(&format!("k{index}"), &[5.0], |_| {})).collect();
    let panels = panels(&rows, &BTreeMap::new());
    assert_eq!(panels[0].title, format!("Samples: the first {MAX_ROWS} of {} timed rows", MAX_ROWS + 5));
    assert_eq!(count(&panels[0].svg, "circle"), MAX_ROWS);
}

#[test]
fn a_report_without_times_is_a_picture_too() {
    let rows = [row("a", &[1.0], |row| row["measurement"] = json!(null))];
    assert!(texts(&document(&rows, &BTreeMap::new())).contains(&"No row was timed".to_owned()));
}

#[test]
fn rows_that_differ_in_one_number_are_a_sweep() {
    let swept = |n: serde_json::Value, tile: u64, device: &str| {
        row("k", &[5.0, 6.0], |row| {
            row["parameters"] = json!({ "n": n, "TILE": tile });
            row["device"] = json!(device);
        })
    };
    let two = |second: (serde_json::Value, u64)| {
        let rows =
            [swept(json!(8), 4, "host:0"), swept(second.0, second.1, "host:0"), swept(json!(8), 4, "cuda:0")];
        Sweep::all(&rows).into_iter().map(|sweep| (sweep.parameter, sweep.devices.len())).collect::<Vec<_>>()
    };
    assert_eq!(two((json!(16), 4)), [("n".to_owned(), 2)]);
    assert_eq!(two((json!(16), 8)), [], "two parameters differ");
    assert_eq!(two((json!("many"), 4)), [], "not a number");
    assert_eq!(two((json!(8), 4)), [], "nothing differs");
    let rows = [swept(json!(16), 4, "host:0"), swept(json!(8), 4, "host:0")];
    let sweeps = Sweep::all(&rows);
    assert_eq!(sweeps[0].devices[0].1[0].0, 8.0, "in order");
    assert_eq!(
        count(&document(&rows, &BTreeMap::new()), "svg"),
        3,
        "the document, the sweep and the samples"
    );
}
