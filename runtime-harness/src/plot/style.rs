//! Colours, markers and dashes.

use plotters::style::RGBColor;

/// The palette of Okabe and Ito without yellow, which is too light for marks on white.
pub(super) const PALETTE: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];
/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(33, 33, 33);
/// Secondary text.
pub(super) const GREY: RGBColor = RGBColor(102, 102, 102);
/// Lines of the grid.
pub(super) const GRID: RGBColor = RGBColor(224, 224, 224);

/// The colour of the `index`-th series.
pub(super) const fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Shapes of marks. With the colours there are 42 combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Plus,
}

/// The shape of the `index`-th series.
pub(super) const fn mark(index: usize) -> Mark {
    const MARKS: [Mark; 6] =
        [Mark::Circle, Mark::Square, Mark::Triangle, Mark::Diamond, Mark::Cross, Mark::Plus];
    MARKS[index % MARKS.len()]
}

/// Lengths of dashes and gaps of the `index`-th line, in pixels; empty: a solid line.
pub(super) const fn dash(index: usize) -> &'static [i32] {
    const DASHES: [&[i32]; 5] = [&[], &[9, 4], &[3, 3], &[12, 3, 3, 3], &[1, 3]];
    DASHES[index % DASHES.len()]
}
