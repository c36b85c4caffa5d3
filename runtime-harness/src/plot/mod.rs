//! Pictures of a report as SVG: the roofline of each device model, the samples of each row, and rows over a swept parameter.
//!
//! Drawn to be read in print and by the colour-blind: colours are those of Okabe and Ito (2008, "Color Universal Design"), and
//! markers and dashes differ as well. Text stays text, so no font is needed to draw.

mod canvas;
mod device_model;
mod names;
mod roofline;
mod samples;
mod scale;
mod style;
mod sweep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::peak::{Peak, Subject};
use crate::row::Row;
pub use sweep::Sweep;

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// An SVG element.
    pub svg: String,
    /// Its height in pixels; all are [`WIDTH`] wide.
    pub height: u32,
}

/// Width of all pictures in pixels.
pub const WIDTH: u32 = 960;
/// The most rows that a picture has a name for. Sweeps name none, and show all.
pub const MAX_ROWS: usize = 40;

/// All pictures of these rows. `peaks` are those of the devices: without one, a device's roofs are those that its rows were compared
/// with.
#[must_use]
pub fn panels(rows: &[Row], peaks: &BTreeMap<Subject, Peak>) -> Vec<Panel> {
    let rooflines = roofline::panels(rows, peaks);
    let sweeps = Sweep::all(rows).iter().map(Sweep::panel).collect::<Vec<_>>();
    rooflines.into_iter().chain(sweeps).chain(samples::panel(rows)).collect()
}

/// One SVG document with all pictures of these rows, below each other.
#[must_use]
pub fn document(rows: &[Row], peaks: &BTreeMap<Subject, Peak>) -> String {
    let mut panels = panels(rows, peaks);
    if panels.is_empty() {
        panels.push(samples::nothing());
    }
    let height: u32 = panels.iter().map(|panel| panel.height).sum();
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n"
    );
    let mut y = 0;
    for panel in panels {
        let _ = writeln!(text, "<g transform=\"translate(0 {y})\">\n{}</g>", panel.svg);
        y += panel.height;
    }
    text + "</svg>\n"
}
