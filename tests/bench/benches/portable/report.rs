//! The table, as Markdown.

use runtime_bench::median;
use runtime_core::evaluate::Cost;

use crate::interleave::Samples;

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    ours_ns: f64,
    other_ns: f64,
    /// The other's time divided by ours: the median of the ratios of all rounds.
    ratio: f64,
    /// The same for the shortest turns, which are disturbed least.
    least: f64,
    rate: String,
}

impl Row {
    pub(crate) fn new(name: &str, samples: &Samples, cost: Cost) -> Self {
        let ours_ns = median(samples.ours.clone());
        let ratios = samples.ours.iter().zip(&samples.other).map(|(ours, other)| other / ours);
        let rate = match (cost.flops, cost.bytes) {
            (Some(flops), Some(bytes)) if flops > 10.0 * bytes => format!("{:.1} GFLOP/s", flops / ours_ns),
            (_, Some(bytes)) => format!("{:.1} GB/s", bytes / ours_ns),
            _ => String::new(),
        };
        Self {
            name: name.to_owned(),
            ours_ns,
            other_ns: median(samples.other.clone()),
            ratio: median(ratios.collect()),
            least: least(&samples.other) / least(&samples.ours),
            rate,
        }
    }

    fn line(&self) -> String {
        let Self { name, ratio, least, rate, .. } = self;
        let (ours, other) = (time(self.ours_ns), time(self.other_ns));
        if ratio.is_nan() {
            return format!("| `{name}` | {ours} | {rate} | | | |");
        }
        format!("| `{name}` | {ours} | {rate} | {other} | {ratio:.2} | {least:.2} |")
    }
}

fn least(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::NAN, f64::min)
}

fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        short if short < 1e6 => format!("{:.2} µs", short / 1e3),
        long => format!("{:.2} ms", long / 1e6),
    }
}

/// Prints a table.
#[allow(clippy::print_stdout, reason = "a report on the terminal")]
pub(crate) fn print(title: &str, other: &str, rows: &[Row]) {
    println!("\n{title}\n\n| | ours | rate | {other} | {other} / ours | of the shortest |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for row in rows {
        println!("{}", row.line());
    }
}
