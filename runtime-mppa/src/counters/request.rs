//! What is asked of an event: its reductions over processing elements and clusters.

use std::fmt;

use runtime_core::{Error, ErrorKind, Result};

use super::{CLUSTERS, ELEMENTS, Event, RawValues};
use crate::config::Arch;

/// The form of a name.
const FORM: &str = "mppa.<EVENT>.cluster.<id|avg|min|max|sum>.pe.<id|avg|min|max|sum>";

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The value of this index alone.
    Of(u8),
    /// Their average.
    Avg,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// Their sum.
    Sum,
}

impl Reduction {
    const NAMES: [(&'static str, Self); 4] =
        [("avg", Self::Avg), ("min", Self::Min), ("max", Self::Max), ("sum", Self::Sum)];

    /// A name, or an index below `count` as it is printed.
    fn parse(text: &str, count: usize) -> Option<Self> {
        let named = Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, reduction)| *reduction);
        let index = || (0u8..).take(count).find(|index| index.to_string() == text).map(Self::Of);
        named.or_else(index)
    }

    /// The reduced value; 0 without values.
    #[must_use]
    pub fn apply(self, values: &[f64]) -> f64 {
        let sum = || values.iter().sum::<f64>();
        #[expect(clippy::cast_precision_loss, reason = "few values")]
        let count = values.len().max(1) as f64;
        match self {
            Self::Of(index) => values.get(usize::from(index)).copied().unwrap_or_default(),
            Self::Avg => sum() / count,
            Self::Sum => sum(),
            Self::Min => values.iter().copied().reduce(f64::min).unwrap_or_default(),
            Self::Max => values.iter().copied().reduce(f64::max).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(index) => write!(f, "{index}"),
            Self::Avg => f.write_str("avg"),
            Self::Min => f.write_str("min"),
            Self::Max => f.write_str("max"),
            Self::Sum => f.write_str("sum"),
        }
    }
}

/// A counter: an event with its reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// What is counted.
    pub event: Event,
    /// The reduction over clusters, which comes second.
    pub clusters: Reduction,
    /// The reduction over the processing elements of a cluster, which comes first.
    pub elements: Reduction,
}

impl Request {
    /// Parses the name of a counter.
    ///
    /// # Errors
    /// `NotFound`, with the form of names, or the valid values of the part that is wrong.
    pub fn parse(name: &str, arch: Arch) -> Result<Self> {
        let not_found = |message: String| Error::new(ErrorKind::NotFound, message);
        let parts: Vec<_> = name.split('.').collect();
        let ["mppa", event, "cluster", clusters, "pe", elements] = parts[..] else {
            return Err(not_found(format!("no counter \"{name}\"; the form is {FORM}")));
        };
        let reduction = |what: &str, text: &str, count: usize| {
            Reduction::parse(text, count).ok_or_else(|| {
                not_found(format!(
                    "no {what} \"{text}\" in \"{name}\"; valid: 0 to {}, avg, min, max, sum",
                    count - 1
                ))
            })
        };
        Ok(Self {
            event: Event::find(event, arch)?,
            clusters: reduction("cluster", clusters, CLUSTERS)?,
            elements: reduction("processing element", elements, ELEMENTS)?,
        })
    }

    /// The value per repeat: reduced over processing elements, then over clusters, and divided.
    #[must_use]
    pub fn reduce(&self, raw: &RawValues, repeats: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2⁵³")]
        let clusters = raw.map(|cluster| self.elements.apply(&cluster.map(|value| value as f64)));
        #[expect(clippy::cast_precision_loss, reason = "few repeats")]
        let repeats = repeats.max(1) as f64;
        self.clusters.apply(&clusters) / repeats
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mppa.{}.cluster.{}.pe.{}", self.event.name(), self.clusters, self.elements)
    }
}
