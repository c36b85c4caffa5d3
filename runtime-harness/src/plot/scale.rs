//! From values to pixels, linear or logarithmic, and the ticks of axes.

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_log: bool,
    from: f64,
    to: f64,
}

/// The ratio from which a logarithmic axis shows more.
const LOG_FROM: f64 = 20.0;

impl Scale {
    /// A logarithmic axis over these positive values with a margin, drawn between the pixels `from` and `to`.
    pub(super) fn log(values: impl Iterator<Item = f64>, (from, to): (i32, i32)) -> Self {
        let (low, high) = bounds(values.filter(|value| *value > 0.0));
        // A decade in all at least, so that equal values are in the middle.
        let margin = if high / low < 10.0 { (10.0 * low / high).sqrt() } else { 1.3 };
        Self {
            low: low / margin,
            high: (high * margin).min(f64::MAX),
            is_log: true,
            from: f64::from(from),
            to: f64::from(to),
        }
    }

    /// An axis that fits the range of the values.
    pub(super) fn fitting(values: impl Iterator<Item = f64>, pixels: (i32, i32)) -> Self {
        let (low, high) = bounds(values);
        if low > 0.0 && high / low >= LOG_FROM {
            return Self::log([low, high].into_iter(), pixels);
        }
        let margin = if high > low { 0.05 * (high - low) } else { 0.05 * high.abs().max(f64::MIN_POSITIVE) };
        let (from, to) = (f64::from(pixels.0), f64::from(pixels.1));
        Self { low: (low - margin).max(0.0), high: high + margin, is_log: false, from, to }
    }

    pub(super) const fn is_log(&self) -> bool {
        self.is_log
    }

    pub(super) const fn range(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The pixel of a value, within the axis.
    pub(super) fn pixel(&self, value: f64) -> i32 {
        let fraction = match self.is_log {
            // Differences of logarithms, because a quotient could overflow.
            true => (value.max(self.low).ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
            false => (value - self.low) / (self.high - self.low),
        };
        #[expect(clippy::cast_possible_truncation, reason = "within the pixels of the axis")]
        let pixel = (self.from + fraction.clamp(0.0, 1.0) * (self.to - self.from)).round() as i32;
        pixel
    }

    /// The values with a label, at most about `count`.
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        match self.is_log {
            true => self.log_ticks(count),
            false => self.linear_ticks(count),
        }
    }

    fn log_ticks(&self, count: usize) -> Vec<f64> {
        let decades = self.high.log10() - self.low.log10();
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let step = (decades / count.max(1) as f64).ceil().max(1.0);
        let steps: &[f64] = if decades < 1.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let mut ticks = Vec::new();
        let mut exponent = (first / step).floor() * step;
        while exponent <= last {
            ticks.extend(steps.iter().map(|digit| digit * 10f64.powf(exponent)));
            exponent += step;
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }

    fn linear_ticks(&self, count: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / count.max(1) as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (self.low / step).ceil();
        let ticks = (0..=2 * count).map(|index| (first + index as f64) * step);
        ticks.take_while(|tick| *tick <= self.high).collect()
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (low, high) = finite
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (1.0, 10.0) } else { (low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_axis() {
        let linear = Scale::fitting([10.2, 14.9].into_iter(), (0, 100));
        assert_eq!(linear.ticks(6), [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
        let log = Scale::fitting([1.0, 1e6].into_iter(), (0, 100));
        assert!(log.is_log());
        assert_eq!(log.ticks(3), [1.0, 1e3, 1e6]);
        assert_eq!(Scale::log([100.0].into_iter(), (0, 100)).pixel(100.0), 50);
    }

    #[test]
    fn hostile_values_stay_on_the_axis() {
        for values in [vec![], vec![0.0, 0.0], vec![f64::NAN, 5.0], vec![1e-300, 1e300], vec![7.0; 9]] {
            let scale = Scale::fitting(values.iter().copied(), (10, 90));
            for value in values.iter().chain(&[0.0, -1.0, f64::MAX]) {
                assert!(value.is_nan() || (10..=90).contains(&scale.pixel(*value)), "{values:?} {value}");
            }
            assert!(scale.ticks(6).len() <= 13, "{values:?}: {:?}", scale.ticks(6));
        }
    }
}
