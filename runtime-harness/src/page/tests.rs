//! Tests of the page.

use serde_json::json;

use super::*;
use crate::peak::tests::peak;
use crate::row::Row;
use crate::row_fixture::row;

const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x onerror=y>\0\u{1b}[2J";

fn page_of(rows: Vec<Row>) -> String {
    let peak = peak(&rows[0]);
    let peaks = BTreeMap::from([(peak.subject.clone(), peak)]);
    page(&Report { rows, ..Report::new() }, &peaks)
}

#[test]
fn nothing_hostile_becomes_markup() {
    let hostile = row(HOSTILE, &[5.0, 6.0], |row| {
        for key in ["spec", "device", "reason"] {
            row[key] = json!(HOSTILE);
        }
        row["device_info"]["name"] = json!(HOSTILE);
        row["device_info"]["driver_version"] = json!(HOSTILE);
        row["kernel"]["options"] = json!({ HOSTILE: HOSTILE });
        row["parameters"] = json!({ HOSTILE: 1 });
        row["settings"]["clock"] = json!(HOSTILE);
    });
    // The clock of a measurement is one of those that the program knows.
    assert!(serde_json::from_value::<runtime_core::evaluate::Clock>(json!(HOSTILE)).is_err());
    let page = page_of(vec![hostile]);
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "the name is shown");
    let is_forbidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!page.contains(is_forbidden));
}

#[test]
fn two_runs_on_one_machine_are_told_apart_by_title_and_head() {
    let page_of = |time: &str, command: &str, id: &str| {
        let row = row("k", &[5.0, 6.0], |row| row["commit"] = json!({ "id": id, "changed": true }));
        let mut report = Report { rows: vec![row.clone(), row], ..Report::begin(Default::default(), None) };
        let origin = report.origin.as_mut().unwrap();
        (origin.time, origin.host, origin.command) =
            (time.to_owned(), Some("lab".to_owned()), Some(command.to_owned()));
        page(&report, &BTreeMap::new())
    };
    let first = page_of("2026-11-29T10:00:00Z", "runtime eval a.toml", "a1b2c3");
    let second = page_of("2026-11-29T11:00:00Z", "runtime eval 'b<i>.toml'", "d4e5f6");
    assert!(
        first.contains("<title>Kernel evaluation, 2026-11-29T10:00:00Z, a1b2c3 (with changes)</title>"),
        "{first}"
    );
    assert!(
        second.contains("<title>Kernel evaluation, 2026-11-29T11:00:00Z, d4e5f6 (with changes)</title>"),
        "{second}"
    );
    let head = second.split("<h2>").next().unwrap();
    for text in [
        "made at 2026-11-29T11:00:00Z on lab",
        "commit d4e5f6 (with changes)",
        "eval &#39;b&lt;i&gt;.toml&#39;",
    ] {
        assert!(head.contains(text), "{text}: {head}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let page = page_of(vec![row("k", &[5.0, 6.0], |_| {})]);
    for word in ["src=", "href=", "url(", "@import", "<link", "<script", "https:"] {
        assert!(!page.contains(word), "{word}");
    }
    let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
    assert!(!page.replace(namespace, "").contains("http://"), "{page}");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
}

#[test]
fn every_part_of_the_report_is_on_the_page() {
    let failed = row("broken", &[1.0], |row| {
        row["measurement"] = json!(null);
        row["status"] = json!("failed");
        row["reason"] = json!("cc: note\nk.c:1: error: no such thing");
    });
    let timed = row("fine", &[20e6; 7], |row| {
        row["validation"] = json!({ "elements": 77, "max_absolute_error": 0.25 });
        row["time"] = json!("2026-11-29T10:00:00Z");
        row["code_sha256"] = json!("f00d".repeat(16));
        row["judged"] = json!({ "sandboxed": true, "inputs": "fresh" });
    });
    let page = page_of(vec![timed, failed]);
    for text in [
        "2 rows: 1 right, 1 failed",
        "fine",
        "no such thing",
        "77 elements",
        "2.5e-1",
        "Linux 6",
        "2026-11-29T10:00:00Z",
        "f00df00d",
        "<td class=\"\">fresh</td>",
        "min_repeat_ms",
        "DRAM: read",
        "<svg",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

#[test]
fn devices_of_one_name_on_two_machines_are_two() {
    let on = |name: &str| row("k", &[5.0, 6.0], |row| row["device_info"]["name"] = json!(name));
    let rows = vec![on("fast"), on("slow"), on("slow")];
    let peaks = rows[..2].iter().map(peak).map(|peak| (peak.subject.clone(), peak)).collect();
    let page = page(&Report { rows, ..Report::new() }, &peaks);
    for text in ["<td class=\"\">fast</td>", "<td class=\"\">slow</td>"] {
        assert_eq!(page.matches(text).count(), 1, "a line of the machine table: {text}");
    }
    assert!(page.contains("host:0 (fast, host:0)") && page.contains("host:0 (slow, host:0)"), "peaks");
}

#[test]
fn counters_and_energy_are_on_the_page_if_there_are_any() {
    let counter = |name: &str, value: Option<f64>, unit: Option<&str>, reason: Option<&str>| {
        json!({
            "name": name, "value": value, "unit": unit, "is_ratio": unit == Some("%"), "counted_share": value.map(|_| 0.25),
            "calls": 7, "passes": 2, "reason": reason,
        })
    };
    let counted = row("k", &[5.0, 6.0], |row| {
        row["counters"] = json!([
            json!({
                "name": "ticks", "value": 2000.0, "min": 1000.0, "max": 3000.0, "samples": [1000.0, 2000.0, 3000.0],
                "time_ns": 2000.0, "unit": "cycles", "counted_share": null, "calls": 5, "passes": 1, "reason": null,
            }),
            counter("cycles", Some(1234.5), None, None),
            counter("busy", Some(50.0), Some("%"), None),
            counter("misses", None, None, Some("no <such> counter")),
        ]);
        row["energy"] = json!({
            "microjoules_per_call": 42.0, "resolution_microjoules": 3, "total_microjoules": 420, "calls": 10, "reason": null,
        });
    });
    let without_energy = row("other", &[5.0, 6.0], |row| {
        row["energy"] = json!({
            "microjoules_per_call": null, "resolution_microjoules": null, "total_microjoules": 0, "calls": 0,
            "reason": "the device reports no energy",
        });
    });
    let page = page_of(vec![counted, without_energy]);
    for text in [
        "<h2>Counters and energy</h2>",
        "1234",
        "50.00 %",
        "5 calls, 2.000 µs, 1000 to 3000 in 3 repeats",
        "7 calls, 2 passes, extrapolated from 25% of the time",
        "no &lt;such&gt; counter",
        "42.00 µJ",
        "10 calls, resolution 3 µJ",
        "the device reports no energy",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let without = page_of(vec![row("k", &[5.0, 6.0], |_| {})]);
    assert!(!without.contains("Counters and energy"));
}
