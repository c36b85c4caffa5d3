//! Names, descriptions and units of CUPTI's metrics.
//!
//! A name is that of a base metric with suffixes: `dram__bytes_read.sum`, and `.sum.per_second` of it. All of them can be
//! opened; one of each base metric is listed, because there are tens of thousands.

use std::ffi::CString;

use runtime_core::device::CounterInfo;
use runtime_core::{Error, ErrorKind, Result};

use super::cupti::{MetricProperties, MetricType, MetricsHost};

/// The types, each with the suffix that is listed.
const LISTED: [(MetricType, &str); 3] = [
    (MetricType::COUNTER, ".sum"),
    (MetricType::THROUGHPUT, ".avg.pct_of_peak_sustained_elapsed"),
    (MetricType::RATIO, ".ratio"),
];
/// Listed first: what most people look for.
const FIRST: [&str; 6] = [
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "sm__inst_executed.sum",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
];
/// Suggestions for an unknown name.
const MAX_SUGGESTIONS: usize = 5;

/// All names that are listed.
fn names(host: &MetricsHost) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (metric_type, suffix) in LISTED {
        let mut bases = host.base_names(metric_type)?;
        // Duplicates for sampling, such as `FE_A.TriageCompute.fe__cycles`.
        bases.retain(|base| !base.contains('.'));
        bases.sort_unstable();
        bases.dedup();
        names.extend(bases.into_iter().map(|base| base + suffix));
    }
    names.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    Ok(names)
}

/// The base metrics, each with a suffix.
///
/// # Errors
/// Any error of CUPTI.
pub(super) fn list(host: &MetricsHost) -> Result<Vec<CounterInfo>> {
    let info = |name: String| {
        let properties = host.properties(&c_name(&name)?)?;
        Ok(CounterInfo {
            unit: unit(&name, &properties),
            description: description(&name, &properties),
            name,
            unavailable_reason: None,
        })
    };
    names(host)?.into_iter().map(info).collect()
}

/// Adds counters to those that `host` collects. Returns their names, and whether their values are ratios.
///
/// # Errors
/// `NotFound` for an unknown name, with similar ones.
pub(super) fn add(host: &MetricsHost, given: &[&str]) -> Result<Vec<(CString, bool)>> {
    let add_one = |given: &&str| {
        let unknown = || match names(host) {
            Ok(known) => not_found(given, &known),
            Err(error) => error,
        };
        let name = c_name(given)?;
        let Some(suffix) = suffix(given) else { return Err(unknown()) };
        let properties = host.properties(&name).map_err(|_| unknown())?;
        host.add(&name).map_err(|_| unknown())?;
        Ok((name, is_ratio(suffix, properties.metric_type)))
    };
    given.iter().map(add_one).collect()
}

fn c_name(name: &str) -> Result<CString> {
    CString::new(name).map_err(|_| not_found(&name.replace('\0', "\\0"), &[]))
}

fn not_found(given: &str, known: &[String]) -> Error {
    let similar = similar(given, known).join(", ");
    let message = format!(
        "no counter \"{given}\"; similar: {similar}; `runtime counters` lists all, each with a suffix"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// The names that begin most like `given`.
fn similar<'a>(given: &str, known: &'a [String]) -> Vec<&'a str> {
    let common = |name: &str| given.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let mut known: Vec<_> = known.iter().map(String::as_str).collect();
    known.sort_by_key(|name| (std::cmp::Reverse(common(name)), name.len().abs_diff(given.len())));
    known.truncate(MAX_SUGGESTIONS);
    known
}

/// What follows the base metric, whose last word begins with two underscores.
fn suffix(name: &str) -> Option<&str> {
    let word = name.rsplit_once("__").map_or(name, |(_, word)| word);
    word.split_once('.').map(|(_, suffix)| suffix)
}

/// Whether a value does not grow with the work: only counts that are summed up over the units of the GPU, or of which the
/// units' mean, least or greatest is taken, do.
fn is_ratio(suffix: &str, metric_type: MetricType) -> bool {
    metric_type != MetricType::COUNTER || !matches!(suffix, "sum" | "avg" | "min" | "max")
}

fn unit(name: &str, properties: &MetricProperties) -> Option<String> {
    if name.contains(".pct") {
        return Some("%".to_owned());
    }
    if properties.metric_type != MetricType::COUNTER {
        return None;
    }
    match properties.dimension.trim() {
        "" => None,
        "byte" => Some("bytes".to_owned()),
        "nanosecond" => Some("ns".to_owned()),
        other => Some(other.to_owned()),
    }
}

/// One line.
fn description(name: &str, properties: &MetricProperties) -> String {
    let words: Vec<_> = properties.description.split_whitespace().collect();
    if words.is_empty() { format!("no description of {name}") } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(description: &str, dimension: &str, metric_type: MetricType) -> MetricProperties {
        MetricProperties { description: description.into(), dimension: dimension.into(), metric_type }
    }

    #[test]
    fn only_plain_counts_grow_with_the_work() {
        for suffix in ["sum", "avg", "min", "max"] {
            assert!(!is_ratio(suffix, MetricType::COUNTER));
            assert!(is_ratio(suffix, MetricType::THROUGHPUT));
        }
        for suffix in ["sum.per_second", "avg.pct_of_peak_sustained_elapsed", "sum.peak_sustained", ""] {
            assert!(is_ratio(suffix, MetricType::COUNTER), "{suffix}");
        }
        assert!(is_ratio("ratio", MetricType::RATIO));
    }

    #[test]
    fn a_suffix_follows_the_base_metric() {
        assert_eq!(suffix("dram__bytes_read.sum.per_second"), Some("sum.per_second"));
        assert_eq!(suffix("FE_A.TriageCompute.fe__cycles.sum"), Some("sum"));
        assert_eq!(suffix("dram__bytes_read"), None);
        assert_eq!(suffix("FE_A.TriageCompute.fe__cycles"), None);
    }

    #[test]
    fn units_are_those_of_the_whole_name() {
        let bytes = properties("", "byte", MetricType::COUNTER);
        assert_eq!(unit("dram__bytes.sum", &bytes).as_deref(), Some("bytes"));
        assert_eq!(unit("dram__bytes.sum.pct_of_peak_sustained_elapsed", &bytes).as_deref(), Some("%"));
        let nanoseconds = properties("", "nanosecond", MetricType::COUNTER);
        assert_eq!(unit("gpu__time_duration.sum", &nanoseconds).as_deref(), Some("ns"));
        let sectors = properties("", "l2_sector", MetricType::COUNTER);
        assert_eq!(unit("lts__t_sectors.sum", &sectors).as_deref(), Some("l2_sector"));
        assert_eq!(unit("a.sum", &properties("", "", MetricType::COUNTER)), None);
        assert_eq!(unit("a.ratio", &properties("", "byte", MetricType::RATIO)), None);
    }

    #[test]
    fn a_description_is_one_line_and_never_empty() {
        assert_eq!(description("a", &properties("# of\n  bytes ", "", MetricType::COUNTER)), "# of bytes");
        assert_eq!(description("a", &properties("\n", "", MetricType::COUNTER)), "no description of a");
    }

    #[test]
    fn an_unknown_name_gets_those_that_begin_like_it() {
        let known = ["sm__cycles.sum", "dram__bytes_write.sum", "dram__bytes_read.sum"].map(str::to_owned);
        let error = not_found("dram__bytes_raed.sum", &known);
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("similar: dram__bytes_read.sum, dram__bytes_write.sum"), "{error}");
        assert_eq!(c_name("a\0b").unwrap_err().kind(), ErrorKind::NotFound);
    }
}
