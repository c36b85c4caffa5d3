//! Tests of the page.

use serde_json::json;

use super::*;
use crate::peak::tests::peak;
use crate::row::Row;
use crate::row_fixture::row;

const HOSTILE: &str = "<script>alert('x')</script>\"><img src=x onerror=y>\0\u{1b}[2J";

fn page_of(rows: Vec<Row>) -> String {
    let peaks = BTreeMap::from([("host:0".to_owned(), peak(&rows[0]))]);
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
        row["measurement"]["clock"] = json!(HOSTILE);
    });
    let page = page_of(vec![hostile]);
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)"), "the name is shown");
    let is_forbidden = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!page.contains(is_forbidden));
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
    });
    let page = page_of(vec![timed, failed]);
    for text in [
        "2 rows: 1 right, 1 failed",
        "fine",
        "no such thing",
        "77 elements",
        "2.5e-1",
        "Linux 6",
        "min_repeat_ms",
        "DRAM: read",
        "<svg",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}
