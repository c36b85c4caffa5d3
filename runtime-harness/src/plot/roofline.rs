//! The roofline of a device: operations per second over operations per byte (Williams, Waterman and Patterson 2009).

use std::collections::{BTreeMap, BTreeSet};

use super::canvas::{self, Align, Canvas};
use super::device_model::{device_and_model, is_same_model};
use super::names::{number, shortened};
use super::scale::Scale;
use super::style::{GREY, INK, colour, dash, mark};
use super::{MAX_ROWS, Panel, WIDTH};
use crate::peak::{Peak, Subject};
use crate::row::{Row, Unit};

const TOP: i32 = 62;
const BOTTOM: i32 = 440;
const LEFT: i32 = 64;
const RIGHT: i32 = 610;
/// Height of a line of the legend.
const LINE: i32 = 17;
/// Left and right edge of the legend.
const LEGEND: i32 = RIGHT + 26;
const EDGE: i32 = WIDTH.cast_signed() - 16;

/// A kernel in the picture.
struct Kernel {
    name: String,
    intensity: f64,
    gflops_per_s: f64,
    share: Option<String>,
}

/// The limits of a device.
#[derive(Default)]
struct Roofs {
    /// Names with 10⁹ operations per second.
    compute: Vec<(String, f64)>,
    /// Names with 10⁹ bytes per second.
    memory: Vec<(String, f64)>,
}

/// A picture for each device model that has limits and a kernel with operations and bytes.
pub(super) fn panels(rows: &[Row], peaks: &BTreeMap<Subject, Peak>) -> Vec<Panel> {
    let mut models: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match models.iter_mut().find(|rows| is_same_model(rows[0], row)) {
            Some(rows) => rows.push(row),
            None => models.push(vec![row]),
        }
    }
    models.iter().filter_map(|rows| panel_of_model(rows, peaks)).collect()
}

fn panel_of_model(rows: &[&Row], peaks: &BTreeMap<Subject, Peak>) -> Option<Panel> {
    let devices: BTreeSet<&str> = rows.iter().map(|row| &*row.device).collect();
    let kernels = rows.iter().filter_map(|row| Kernel::of(row, devices.len() > 1));
    let kernels: Vec<Kernel> = kernels.collect();
    let peak = rows.iter().find_map(|row| peaks.get(&Subject::of_row(row)?));
    let roofs = peak.map_or_else(|| Roofs::of_rows(rows), |peak| Roofs::of_peak(peak, rows));
    let is_empty = kernels.is_empty() || roofs.compute.is_empty() || roofs.memory.is_empty();
    let devices: Vec<&str> = devices.into_iter().collect();
    (!is_empty).then(|| panel(&device_and_model(&devices.join(", "), rows[0]), &kernels, &roofs))
}

impl Kernel {
    /// The kernel of a row, with the name of its device if others are in the same picture.
    fn of(row: &Row, names_device: bool) -> Option<Self> {
        // A kernel that leaves work out is no fast one.
        let measurement = row.measurement.as_ref().filter(|_| !row.status.is_bad())?;
        let (flops, bytes) = (measurement.cost.flops?, measurement.cost.bytes?);
        let rate = measurement.gflops_per_s()?;
        let is_drawable = flops > 0.0 && bytes > 0.0 && rate > 0.0 && rate.is_finite();
        is_drawable.then(|| Self {
            name: match names_device {
                true => format!("{} · {}", row.kernel.name, row.device),
                false => row.kernel.name.clone(),
            },
            intensity: flops / bytes,
            gflops_per_s: rate,
            share: row.roofline.as_ref().map(|roofline| format!("{:.0}%", 100.0 * roofline.share)),
        })
    }
}

impl Roofs {
    /// The levels that kernels can be in, and the element types that the rows use, or all if that is unknown.
    fn of_peak(peak: &Peak, rows: &[&Row]) -> Self {
        let used: Vec<&str> = rows.iter().filter_map(|row| row.dtype.as_deref()).collect();
        let compute =
            peak.compute.iter().filter(|compute| used.contains(&&*compute.dtype) || used.is_empty());
        let levels = peak.memory.iter().filter(|level| level.keeps_bytes != Some(0));
        Self {
            compute: compute.map(|it| (label(&it.dtype, it.unit), it.gflops_per_s.best)).collect(),
            memory: levels.map(|it| (it.name.clone(), peak.bandwidth_gbytes_per_s(&it.name))).collect(),
        }
    }

    /// The limits that the rows were compared with.
    fn of_rows(rows: &[&Row]) -> Self {
        let mut roofs = Self::default();
        for roofline in rows.iter().filter_map(|row| row.roofline.as_ref()) {
            let compute = roofline.compute.iter().map(|it| (label(&it.dtype, it.unit), it.gflops_per_s));
            let memory = roofline.memory.iter().map(|it| (it.level.clone(), it.gbytes_per_s));
            compute.for_each(|roof| push_new(&mut roofs.compute, roof));
            memory.for_each(|roof| push_new(&mut roofs.memory, roof));
        }
        roofs
    }
}

fn push_new(roofs: &mut Vec<(String, f64)>, roof: (String, f64)) {
    if roofs.iter().all(|known| known.0 != roof.0) {
        roofs.push(roof);
    }
}

fn label(dtype: &str, unit: Unit) -> String {
    if unit == Unit::Matrix { format!("{dtype} matrix") } else { dtype.to_owned() }
}

fn panel(devices: &str, all: &[Kernel], roofs: &Roofs) -> Panel {
    let kernels = &all[..all.len().min(MAX_ROWS)];
    let lines = kernels.len() + roofs.memory.len() + roofs.compute.len() + 2;
    let bottom = BOTTOM.max(TOP + LINE * i32::try_from(lines).unwrap_or(0));
    let devices = shortened(devices, 80);
    let title = match all.len() > kernels.len() {
        true => format!("Roofline of {devices}: the first {} of {} kernels", kernels.len(), all.len()),
        false => format!("Roofline of {devices}"),
    };
    canvas::panel(&title, u32::try_from(bottom + 56).unwrap_or(0), |canvas| {
        let (x, y) = scales(kernels, roofs);
        canvas.x_axis(&x, (TOP, BOTTOM), ("operations per byte", number));
        canvas.y_axis(&y, (LEFT, RIGHT), ("GFLOP/s", number));
        draw_roofs(canvas, roofs, (&x, &y));
        let below = legend_of_roofs(canvas, roofs) + 3 * LINE / 2;
        canvas.text((LEGEND, below), "kernel", (12, GREY), Align::Left);
        canvas.text((EDGE, below), "share of its limit", (12, GREY), Align::Right);
        let heights = (below + LINE..).step_by(LINE.cast_unsigned() as usize);
        for (index, (kernel, height)) in kernels.iter().zip(heights).enumerate() {
            let at = (x.pixel(kernel.intensity), y.pixel(kernel.gflops_per_s));
            canvas.mark(at, mark(index), colour(index));
            canvas.mark((LEGEND + 6, height), mark(index), colour(index));
            canvas.text((LEGEND + 18, height), &shortened(&kernel.name, 34), (12, INK), Align::Left);
            let share = kernel.share.as_deref().unwrap_or("—");
            canvas.text((EDGE, height), share, (12, INK), Align::Right);
        }
    })
}

/// Names and figures of the roofs; returns the height below them.
fn legend_of_roofs(canvas: &Canvas<'_>, roofs: &Roofs) -> i32 {
    let memory =
        roofs.memory.iter().enumerate().map(|(index, roof)| (roof, "GB/s", colour(index), dash(index)));
    let compute = roofs.compute.iter().enumerate().map(|(index, roof)| (roof, "GFLOP/s", INK, dash(index)));
    let mut height = TOP - 18;
    canvas.text((LEGEND, height), "limit", (12, GREY), Align::Left);
    for ((name, value), unit, colour, dash) in compute.chain(memory) {
        height += LINE;
        canvas.dashed([(LEGEND, height), (LEGEND + 40, height)], colour, dash);
        canvas.text((LEGEND + 50, height), name, (12, INK), Align::Left);
        canvas.text((EDGE, height), &format!("{} {unit}", number(*value)), (12, INK), Align::Right);
    }
    height
}

/// Axes that show every kernel, every roof, and the ridges where memory and arithmetic meet.
fn scales(kernels: &[Kernel], roofs: &Roofs) -> (Scale, Scale) {
    let compute = || roofs.compute.iter().map(|roof| roof.1);
    let ridges = roofs.memory.iter().flat_map(|memory| compute().map(move |compute| compute / memory.1));
    let x = Scale::log(kernels.iter().map(|kernel| kernel.intensity).chain(ridges), (LEFT, RIGHT));
    let rates = kernels.iter().map(|kernel| kernel.gflops_per_s).chain(compute());
    (x, Scale::log(rates, (BOTTOM, TOP)))
}

fn draw_roofs(canvas: &Canvas<'_>, roofs: &Roofs, (x, y): (&Scale, &Scale)) {
    let highest = roofs.compute.iter().map(|roof| roof.1).fold(0.0, f64::max);
    let fastest = roofs.memory.iter().map(|roof| roof.1).fold(0.0, f64::max);
    let ((left, right), (bottom, _)) = (x.range(), y.range());
    for (index, (_, gflops_per_s)) in roofs.compute.iter().enumerate() {
        let from = (gflops_per_s / fastest).clamp(left, right);
        let height = y.pixel(*gflops_per_s);
        canvas.dashed([(x.pixel(from), height), (RIGHT, height)], INK, dash(index));
    }
    for (index, (_, gbytes_per_s)) in roofs.memory.iter().enumerate() {
        // From where the line enters the picture to the highest roof.
        let from = (bottom / gbytes_per_s).clamp(left, right);
        let to = (highest / gbytes_per_s).clamp(from, right);
        let point = |intensity: f64| (x.pixel(intensity), y.pixel(intensity * gbytes_per_s));
        canvas.dashed([point(from), point(to)], colour(index), dash(index));
    }
}
