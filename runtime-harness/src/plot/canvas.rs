//! Drawing with `plotters`: lines, marks, text and axes of one picture.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, IntoDrawingArea, PathElement, Polygon, Rectangle, SVGBackend, ShapeStyle,
    Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, RGBColor, TextStyle};

use super::scale::Scale;
use super::style::{GREY, GRID, INK, Mark};
use super::{Panel, WIDTH};

pub(super) type Point = (i32, i32);

/// A picture that is being drawn. Drawing into text cannot fail, so results are ignored here, in one place.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// Where a text is, relative to its point.
#[derive(Clone, Copy)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// Draws a picture of this height.
pub(super) fn panel(title: &str, height: u32, draw: impl FnOnce(&Canvas<'_>)) -> Panel {
    let mut svg = String::new();
    let canvas = Canvas { area: SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area() };
    let _ = canvas.area.fill(&WHITE);
    canvas.title(title);
    draw(&canvas);
    let _ = canvas.area.present();
    drop(canvas);
    Panel { title: title.to_owned(), svg, height }
}

impl Canvas<'_> {
    fn title(&self, title: &str) {
        self.text((16, 22), title, (15, INK), Align::Left);
    }

    /// Text whose middle is at the height of `at`.
    pub(super) fn text(&self, at: Point, text: &str, (size, colour): (u32, RGBColor), align: Align) {
        let position = match align {
            Align::Left => HPos::Left,
            Align::Centre => HPos::Center,
            Align::Right => HPos::Right,
        };
        let font = FontDesc::new(FontFamily::SansSerif, f64::from(size), FontStyle::Normal);
        let style = TextStyle::from(font).color(&colour).pos(Pos::new(position, VPos::Center));
        let _ = self.area.draw(&Text::new(super::names::clean(text), at, style));
    }

    pub(super) fn line(&self, points: &[Point], colour: RGBColor, width: u32) {
        let _ = self.area.draw(&PathElement::new(points.to_vec(), colour.stroke_width(width)));
    }

    /// A straight line of dashes and gaps in turn; solid without dashes.
    pub(super) fn dashed(&self, [from, to]: [Point; 2], colour: RGBColor, dashes: &[i32]) {
        let (dx, dy) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
        let length = dx.hypot(dy);
        if dashes.is_empty() || length == 0.0 {
            return self.line(&[from, to], colour, 2);
        }
        #[expect(clippy::cast_possible_truncation, reason = "within the line")]
        let point = |at: f64| {
            let fraction = (at / length).min(1.0);
            (
                (f64::from(from.0) + fraction * dx).round() as i32,
                (f64::from(from.1) + fraction * dy).round() as i32,
            )
        };
        let mut at = 0.0;
        for (index, part) in dashes.iter().cycle().enumerate() {
            if at >= length {
                break;
            }
            // An odd number of lengths takes turns in both roles.
            if index % 2 == 0 {
                self.line(&[point(at), point(at + f64::from(*part))], colour, 2);
            }
            at += f64::from(*part);
        }
    }

    pub(super) fn rectangle(&self, corners: [Point; 2], style: impl Into<ShapeStyle>) {
        let _ = self.area.draw(&Rectangle::new(corners, style));
    }

    pub(super) fn dot(&self, at: Point, radius: i32, colour: RGBColor) {
        let _ = self.area.draw(&Circle::new(at, radius, colour.mix(0.55).filled()));
    }

    pub(super) fn mark(&self, (x, y): Point, mark: Mark, colour: RGBColor) {
        let polygon = |points: &[Point]| {
            let points: Vec<Point> = points.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
            let _ = self.area.draw(&Polygon::new(points, colour.filled()));
        };
        let strokes = |strokes: [[Point; 2]; 2]| {
            for stroke in strokes {
                self.line(&stroke.map(|(dx, dy)| (x + dx, y + dy)), colour, 2);
            }
        };
        match mark {
            Mark::Circle => {
                let _ = self.area.draw(&Circle::new((x, y), 5, colour.filled()));
            }
            Mark::Square => polygon(&[(-4, -4), (4, -4), (4, 4), (-4, 4)]),
            Mark::Triangle => polygon(&[(0, -6), (6, 5), (-6, 5)]),
            Mark::Diamond => polygon(&[(0, -6), (6, 0), (0, 6), (-6, 0)]),
            Mark::Cross => strokes([[(-4, -4), (4, 4)], [(-4, 4), (4, -4)]]),
            Mark::Plus => strokes([[(-5, 0), (5, 0)], [(0, -5), (0, 5)]]),
        }
    }

    /// The axis at the bottom of a plot, with the lines of its grid up to `top`.
    pub(super) fn x_axis(&self, scale: &Scale, (top, bottom): (i32, i32), label: (&str, fn(f64) -> String)) {
        let ticks = scale.ticks(7);
        for tick in &ticks {
            let x = scale.pixel(*tick);
            self.line(&[(x, top), (x, bottom)], GRID, 1);
            self.text((x, bottom + 13), &label.1(*tick), (11, GREY), Align::Centre);
        }
        let (low, high) = scale.range();
        self.line(&[(scale.pixel(low), bottom), (scale.pixel(high), bottom)], INK, 1);
        let middle = i32::midpoint(scale.pixel(low), scale.pixel(high));
        self.text((middle, bottom + 31), label.0, (12, INK), Align::Centre);
    }

    /// The axis at the left of a plot, with the lines of its grid up to `right`. Its label is above it.
    pub(super) fn y_axis(&self, scale: &Scale, (left, right): (i32, i32), label: (&str, fn(f64) -> String)) {
        for tick in scale.ticks(6) {
            let y = scale.pixel(tick);
            self.line(&[(left, y), (right, y)], GRID, 1);
            self.text((left - 6, y), &label.1(tick), (11, GREY), Align::Right);
        }
        let (low, high) = scale.range();
        self.line(&[(left, scale.pixel(low)), (left, scale.pixel(high))], INK, 1);
        self.text((left - 40, scale.pixel(high) - 14), label.0, (12, INK), Align::Left);
    }
}
