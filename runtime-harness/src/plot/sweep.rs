//! Time and throughput over a swept parameter.

use std::collections::BTreeSet;

use runtime_core::evaluate::Measurement;

use super::canvas::{self, Align, Canvas};
use super::device_model::{device_and_model, is_same_model};
use super::names::{duration, number, shortened};
use super::scale::Scale;
use super::style::{INK, colour, dash, mark};
use super::{Panel, WIDTH};
use crate::row::Row;

const TOP: i32 = 62;
const BOTTOM: i32 = 340;
const LEFT: i32 = 70;
/// Width of each of both plots.
const PLOT: i32 = 360;

/// Rows of one spec that differ in exactly one numeric parameter.
#[derive(Debug)]
pub struct Sweep<'a> {
    /// The spec.
    pub spec: &'a str,
    /// Name of the parameter.
    pub parameter: String,
    /// The rows of each device, by the value of the parameter. Unlike devices of several machines may have the same device string.
    pub devices: Vec<(&'a str, Vec<(f64, &'a Row)>)>,
}

impl<'a> Sweep<'a> {
    /// The sweeps in a report.
    #[must_use]
    pub fn all(rows: &'a [Row]) -> Vec<Self> {
        let specs: BTreeSet<&str> = rows.iter().map(|row| &*row.spec).collect();
        specs.into_iter().filter_map(|spec| Self::of(spec, rows)).collect()
    }

    fn of(spec: &'a str, rows: &'a [Row]) -> Option<Self> {
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|row| row.spec == spec && row.measurement.is_some() && !row.status.is_bad())
            .collect();
        let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.parameters.keys()).collect();
        let mut varied = names.into_iter().filter(|name| {
            let first = rows[0].parameters.get(*name);
            rows.iter().any(|row| row.parameters.get(*name) != first)
        });
        let (parameter, None) = (varied.next()?.clone(), varied.next()) else { return None };
        let mut devices: Vec<(&str, Vec<(f64, &Row)>)> = Vec::new();
        for row in rows {
            let value = row.parameters.get(&parameter).and_then(serde_json::Value::as_f64)?;
            let is_its = |(device, points): &&mut (&str, Vec<(f64, &Row)>)| {
                *device == row.device && is_same_model(points[0].1, row)
            };
            match devices.iter_mut().find(is_its) {
                Some((_, points)) => points.push((value, row)),
                None => devices.push((&row.device, vec![(value, row)])),
            }
        }
        for (_, points) in &mut devices {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        devices.iter().any(|(_, points)| points.len() > 1).then_some(Self { spec, parameter, devices })
    }

    /// The picture.
    pub(super) fn panel(&self) -> Panel {
        let legend = BOTTOM + 56;
        let lines = i32::try_from(self.devices.len().div_ceil(3)).unwrap_or(0);
        let title = format!("{} over {}", shortened(self.spec, 70), shortened(&self.parameter, 30));
        canvas::panel(&title, u32::try_from(legend + 18 * lines).unwrap_or(0), |canvas| {
            self.plot(canvas, LEFT, ("time per call", duration), |it| Some(it.statistics.median_ns));
            let has_flops = self.measurements().any(|it| it.gflops_per_s().is_some_and(|rate| rate > 0.0));
            let right = WIDTH.cast_signed() - 30 - PLOT;
            match has_flops {
                true => self.plot(canvas, right, ("GFLOP/s", number), Measurement::gflops_per_s),
                false => self.plot(canvas, right, ("GB/s", number), Measurement::gbytes_per_s),
            }
            for index in 0..self.devices.len() {
                let (column, line) =
                    (i32::try_from(index % 3).unwrap_or(0), i32::try_from(index / 3).unwrap_or(0));
                let (x, y) = (LEFT + 290 * column, legend - 8 + 18 * line);
                canvas.dashed([(x, y), (x + 28, y)], colour(index), dash(index));
                canvas.mark((x + 14, y), mark(index), colour(index));
                canvas.text((x + 36, y), &shortened(&self.label(index), 34), (12, INK), Align::Left);
            }
        })
    }

    /// The device string, with the model if that alone tells two devices apart.
    fn label(&self, index: usize) -> String {
        let (device, points) = &self.devices[index];
        let is_unique = self.devices.iter().filter(|(other, _)| other == device).count() == 1;
        if is_unique { (*device).to_owned() } else { device_and_model(device, points[0].1) }
    }

    fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        self.devices
            .iter()
            .flat_map(|(_, points)| points.iter().filter_map(|(_, row)| row.measurement.as_ref()))
    }

    fn plot(
        &self,
        canvas: &Canvas<'_>,
        left: i32,
        label: (&str, fn(f64) -> String),
        value: fn(&Measurement) -> Option<f64>,
    ) {
        let values = self.measurements().filter_map(value);
        let y = Scale::fitting(values, (BOTTOM, TOP));
        let sizes = self.devices.iter().flat_map(|(_, points)| points.iter().map(|(size, _)| *size));
        let x = Scale::fitting(sizes, (left, left + PLOT));
        canvas.x_axis(&x, (TOP, BOTTOM), (&self.parameter, number));
        canvas.y_axis(&y, (left, left + PLOT), label);
        for (index, (_, points)) in self.devices.iter().enumerate() {
            let pixel = |(size, row): &(f64, &Row)| {
                Some((x.pixel(*size), y.pixel(row.measurement.as_ref().and_then(value)?)))
            };
            let pixels: Vec<_> = points.iter().filter_map(pixel).collect();
            for pair in pixels.windows(2) {
                canvas.dashed([pair[0], pair[1]], colour(index), dash(index));
            }
            pixels.iter().for_each(|at| canvas.mark(*at, mark(index), colour(index)));
        }
    }
}
