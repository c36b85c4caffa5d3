//! Peaks as text: a table of figures per device, and what is missing below it.

use std::fmt::Write;

use runtime_core::Result;
use runtime_harness::Peak;
use runtime_harness::peak::{Direction, Figure, HostMemory, MemoryLevel};
use runtime_harness::printable::printable;

use crate::report::{duration, significant, uncertainty};

/// A line of the table: what was measured, by what, and the figure.
type Line = [String; 4];

/// The text about a device.
pub(super) fn peaks(device: &str, peak: &Result<Peak>, is_next: bool) -> String {
    let mut text = if is_next { "\n".to_owned() } else { String::new() };
    let peak = match peak {
        Ok(peak) => peak,
        Err(error) => return text + &format!("{device}: not measured: {error}\n"),
    };
    let driver = peak.subject.driver_version.as_deref().map(|version| format!(", driver {version}"));
    let subject = printable(&(peak.subject.name.clone() + &driver.unwrap_or_default()));
    let _ = writeln!(text, "{device}: {subject}");
    let lines = lines(peak);
    let mut widths = [0; 4];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in lines {
        let mut out = String::new();
        for (cell, width) in line.iter().zip(widths) {
            let _ = write!(out, "  {cell:width$}");
        }
        let _ = writeln!(text, "{}", out.trim_end());
    }
    for missing in &peak.missing {
        let _ = writeln!(text, "  not measured: {}: {}", missing.what, printable(&missing.reason));
    }
    if let Some(disturbance) = peak.disturbance() {
        let remedy = "until they are measured again, no time is called impossible";
        let _ = writeln!(text, "  perhaps too low: {}; {remedy}", printable(disturbance));
    }
    text
}

fn lines(peak: &Peak) -> Vec<Line> {
    let compute = peak.compute.iter().map(|compute| {
        let what = format!("{} {}", compute.dtype, compute.unit.name());
        line(what, compute.format.clone(), &compute.gflops_per_s, operations)
    });
    let memory = peak.memory.iter().flat_map(level);
    let transfers = peak.transfers.iter().map(|transfer| {
        let direction = match transfer.direction {
            Direction::HostToDevice => "to device",
            Direction::DeviceToHost => "to host",
        };
        let memory = match transfer.memory {
            HostMemory::Pageable => "pageable",
            HostMemory::Pinned => "pinned",
        };
        line(direction.to_owned(), memory.to_owned(), &transfer.gbytes_per_s, bytes)
    });
    let launches = peak.launches.iter().flat_map(|launches| {
        [("submit and wait", &launches.latency_ns), ("of a batch", &launches.throughput_ns)]
            .map(|(how, figure)| line("launch".to_owned(), how.to_owned(), figure, duration))
    });
    compute.chain(memory).chain(transfers).chain(launches).collect()
}

fn level(level: &MemoryLevel) -> Vec<Line> {
    let figures = [
        ("read", &level.read_gbytes_per_s),
        ("copy", &level.copy_gbytes_per_s),
        ("triad", &level.triad_gbytes_per_s),
    ];
    let measured = figures.into_iter().filter_map(|(how, figure)| Some((how, figure.as_ref()?)));
    measured.map(|(how, figure)| line(level.name.clone(), how.to_owned(), figure, bytes)).collect()
}

fn line(what: String, how: String, figure: &Figure, unit: fn(f64) -> String) -> Line {
    let interval = figure.ci95.map(|interval| uncertainty(figure.median, interval)).unwrap_or_default();
    [
        what,
        how,
        format!("{} {interval}", unit(figure.median)),
        format!("best {}, {}", unit(figure.best), figure.clock),
    ]
}

fn operations(gflops_per_s: f64) -> String {
    match gflops_per_s < 1e3 {
        true => format!("{} GFLOP/s", significant(gflops_per_s)),
        false => format!("{} TFLOP/s", significant(gflops_per_s / 1e3)),
    }
}

fn bytes(gbytes_per_s: f64) -> String {
    match gbytes_per_s < 1e3 {
        true => format!("{} GB/s", significant(gbytes_per_s)),
        false => format!("{} TB/s", significant(gbytes_per_s / 1e3)),
    }
}
