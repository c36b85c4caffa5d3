//! The samples of each row: every sample as a dot, with the box of the quartiles, and the median with its interval.

use plotters::style::{Color, RGBColor};
use runtime_core::evaluate::Measurement;

use super::canvas::{self, Align, Canvas};
use super::names::{duration, shortened};
use super::scale::Scale;
use super::style::{GREY, INK, PALETTE};
use super::{MAX_ROWS, Panel, WIDTH};
use crate::row::Row;

/// Height of a row.
const LANE: i32 = 22;
const TOP: i32 = 44;
const LEFT: i32 = 300;
const RIGHT: i32 = WIDTH.cast_signed() - 130;
/// Characters of a name that fit to the left of the plot.
const NAME: usize = 40;

/// The picture, unless nothing was timed.
pub(super) fn panel_of(rows: &[&Row], total: usize) -> Panel {
    let lanes = i32::try_from(rows.len()).unwrap_or(i32::MAX);
    let bottom = TOP + LANE * lanes;
    let title = match total > rows.len() {
        true => format!("Samples: the first {} of {total} timed rows", rows.len()),
        false => "Samples".to_owned(),
    };
    canvas::panel(&title, u32::try_from(bottom + 62).unwrap_or(0), |canvas| {
        let samples = rows
            .iter()
            .filter_map(|row| row.measurement.as_ref())
            .flat_map(|it| it.samples_ns.iter().copied());
        let scale = Scale::fitting(samples, (LEFT, RIGHT));
        let axis = if scale.is_log() { "time per call (logarithmic)" } else { "time per call" };
        canvas.x_axis(&scale, (TOP, bottom), (axis, duration));
        canvas.text(
            (RIGHT, bottom + 50),
            "dot: sample · box: quartiles · bar: median with 95% interval",
            (11, GREY),
            Align::Right,
        );
        for (row, y) in rows.iter().zip((TOP + LANE / 2..).step_by(LANE.cast_unsigned() as usize)) {
            if let Some(measurement) = &row.measurement {
                lane(canvas, (row, measurement), (&scale, y));
            }
        }
    })
}

pub(super) fn panel(rows: &[Row]) -> Option<Panel> {
    let timed: Vec<&Row> = rows.iter().filter(|row| row.measurement.is_some()).collect();
    let shown = &timed[..timed.len().min(MAX_ROWS)];
    (!shown.is_empty()).then(|| panel_of(shown, timed.len()))
}

/// The picture of a report without times.
pub(super) fn nothing() -> Panel {
    canvas::panel("No row was timed", 60, |canvas| {
        canvas.text((16, 44), "there is nothing to draw", (12, GREY), Align::Left);
    })
}

fn lane(canvas: &Canvas<'_>, (row, measurement): (&Row, &Measurement), (scale, y): (&Scale, i32)) {
    let is_wrong = row.status.is_bad();
    let mark: RGBColor = if is_wrong { PALETTE[1] } else { PALETTE[0] };
    let name = format!("{} · {}", row.kernel.name, row.device);
    let name =
        if is_wrong { format!("{} (wrong)", shortened(&name, NAME - 8)) } else { shortened(&name, NAME) };
    canvas.text((LEFT - 10, y), &name, (12, INK), Align::Right);
    let mut sorted = measurement.samples_ns.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    if !sorted.is_empty() {
        let quartiles =
            [25.0, 75.0].map(|percent| scale.pixel(runtime_core::evaluate::percentile(&sorted, percent)));
        canvas.rectangle([(quartiles[0], y - 6), (quartiles[1], y + 6)], mark.mix(0.12).filled());
        canvas.rectangle([(quartiles[0], y - 6), (quartiles[1], y + 6)], mark.mix(0.6));
    }
    for (index, sample) in (0i32..).zip(&measurement.samples_ns) {
        // Spread over the height, so that equal samples are seen.
        canvas.dot((scale.pixel(*sample), y - 4 + (index * 3) % 9), 2, mark);
    }
    let median = measurement.statistics.median_ns;
    if let Some([low, high]) = measurement.statistics.median_ci95_ns {
        canvas.line(&[(scale.pixel(low), y), (scale.pixel(high), y)], INK, 2);
    }
    canvas.line(&[(scale.pixel(median), y - 8), (scale.pixel(median), y + 8)], INK, 2);
    canvas.text((RIGHT + 12, y), &duration(median), (12, INK), Align::Left);
}
