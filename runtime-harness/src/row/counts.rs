//! What the counter of an embedded device has counted, as plain data. A count is never a time.

use runtime_core::DeviceInfo;
use runtime_core::code::{ImageSizes, RunReport};
use serde::{Deserialize, Serialize};

use crate::number_format::duration;

/// The counted calls of a kernel on an embedded device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// What is counted: `target-instructions` of an emulator, or `target-cycles`.
    pub clock: String,
    /// Number of samples requested.
    pub repeat: usize,
    /// Calls per sample.
    pub number: u64,
    /// Total number of calls.
    pub calls: u64,
    /// Every sample in the order taken: the count per call.
    pub samples: Vec<f64>,
    /// The smallest sample.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The largest sample.
    pub max: f64,
    /// The count between two readings of the counter, which is part of every sample before it is divided by `number`.
    pub overhead: u64,
    /// Elements that a call writes.
    pub elements: u64,
    /// The median divided by `elements`; `None` if the kernel writes nothing.
    pub per_element: Option<f64>,
    /// The size of the image; `None` if the device does not report it.
    pub image: Option<ImageUsage>,
    /// The stack; `None` if the device does not report it.
    pub stack: Option<StackUsage>,
    /// The median of what a run takes by the host's clock, with its start, in nanoseconds; `None` in older reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_ns: Option<f64>,
    /// Whether the count is the candidate's word: its code could write the counter and the memory that the count is read from, and
    /// nothing else bounds it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_candidates: bool,
}

/// The bytes of an image, and those of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageUsage {
    /// Those of the image.
    #[serde(flatten)]
    pub sizes: ImageSizes,
    /// The flash of the board.
    pub flash_bytes: Option<u64>,
    /// The RAM of the board.
    pub ram_bytes: Option<u64>,
}

/// The most bytes of stack that a sample has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackUsage {
    /// The high-water mark.
    pub used_bytes: u64,
    /// The stack of the board.
    pub bytes: Option<u64>,
}

impl Counts {
    /// Whether all samples are the same, as an emulator's are.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.min == self.max
    }

    /// What is counted, in a word.
    #[must_use]
    pub fn unit(&self) -> &str {
        self.clock.strip_prefix("target-").unwrap_or(&self.clock)
    }

    /// The count per element, what measuring costs, the image and the stack, in words.
    #[must_use]
    pub fn note(&self) -> String {
        let of = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| format!(" of {bytes}"));
        let mut notes = Vec::new();
        if let Some(per_element) = self.per_element {
            notes.push(format!("{per_element:.2} {} per element", self.unit()));
        }
        notes.push(format!("{} {} of a sample for measuring", self.overhead, self.unit()));
        if let Some(ImageUsage { sizes, flash_bytes, ram_bytes }) = self.image {
            let ImageSizes { code_bytes, constant_bytes, data_bytes, zeroed_bytes } = sizes;
            notes.push(format!(
                "flash {}{} bytes ({code_bytes} code, {constant_bytes} constants, {data_bytes} data), RAM {}{} bytes \
                 before tensors",
                code_bytes + constant_bytes + data_bytes,
                of(flash_bytes),
                data_bytes + zeroed_bytes,
                of(ram_bytes)
            ));
        }
        if let Some(stack) = &self.stack {
            notes.push(format!("stack {}{} bytes", stack.used_bytes, of(stack.bytes)));
        }
        if self.is_candidates {
            let run = self
                .run_ns
                .map_or_else(String::new, |run| format!(", a run takes {} of the host's", duration(run)));
            notes.push(format!("clock: the candidate's{run}"));
        }
        notes.join("; ")
    }
}

impl ImageUsage {
    /// The image of a run on a device.
    pub(crate) fn of(report: &RunReport, info: &DeviceInfo) -> Option<Self> {
        Some(Self {
            sizes: report.image?,
            flash_bytes: property(info, "flash_bytes"),
            ram_bytes: info.spaces.first().and_then(|space| space.total_bytes),
        })
    }
}

impl StackUsage {
    /// The stack of a run on a device.
    pub(crate) fn of(report: &RunReport, info: &DeviceInfo) -> Option<Self> {
        let used_bytes = report.stack_bytes?;
        Some(Self { used_bytes, bytes: property(info, "stack_bytes") })
    }
}

fn property(info: &DeviceInfo, key: &str) -> Option<u64> {
    info.properties.integer(key).and_then(|value| value.try_into().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_nothing_bounds_is_told_to_be_the_candidates() {
        let mut counts = Counts {
            clock: "target-cycles".to_owned(),
            repeat: 1,
            number: 1,
            calls: 2,
            samples: vec![7.0],
            min: 7.0,
            median: 7.0,
            max: 7.0,
            overhead: 2,
            elements: 0,
            per_element: None,
            image: None,
            stack: None,
            run_ns: Some(2.5e6),
            is_candidates: false,
        };
        let json = serde_json::to_string(&counts).unwrap();
        assert!(!counts.note().contains("clock") && !json.contains("is_candidates"), "{json}");
        assert_eq!(serde_json::from_str::<Counts>(&json).unwrap(), counts);
        counts.is_candidates = true;
        let note = counts.note();
        assert!(note.ends_with("; clock: the candidate's, a run takes 2.500 ms of the host's"), "{note}");
    }
}
