//! Two figures of one run, side by side.

/// Nanoseconds of one call, as samples of a benchmark.
#[derive(Clone, Debug, Default)]
pub struct Figure(Vec<f64>);

impl Figure {
    /// Adds a sample: `calls` calls in `elapsed_ns`.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn add(&mut self, elapsed_ns: u128, calls: u64) {
        self.0.push(elapsed_ns as f64 / calls.max(1) as f64);
    }

    /// The median in nanoseconds, not a number without samples.
    #[must_use]
    pub fn median_ns(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// One line: our call, the plain one, the difference, the ratio, and the difference that is aimed at.
#[must_use]
pub fn compare(name: &str, ours: &Figure, plain: &Figure, aim_ns: f64) -> String {
    let (ours, plain) = (ours.median_ns(), plain.median_ns());
    let difference = ours - plain;
    let verdict = if difference <= aim_ns { "kept" } else { "MISSED" };
    format!(
        "{name:<42} {ours:>11.1} ns, plain {plain:>11.1} ns: {difference:>+11.1} ns, ×{:.2} (aim {aim_ns:+.0} ns: {verdict})",
        ours / plain
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_that_of_the_medians() {
        let (mut ours, mut plain) = (Figure::default(), Figure::default());
        for elapsed in [100, 9000, 120, 110, 130] {
            ours.add(elapsed * 10, 10);
            plain.add(20, 1);
        }
        let line = compare("call", &ours, &plain, 100.0);
        assert!(line.contains("+100.0 ns") && line.contains("×6.00") && line.contains("kept"), "{line}");
        assert!(compare("call", &ours, &plain, 99.0).contains("MISSED"));
    }
}
