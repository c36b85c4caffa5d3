//! What the counter of an embedded device has counted, as plain data. A count is never a time.

use runtime_core::DeviceInfo;
use runtime_core::code::{ImageSizes, RunReport};
use serde::{Deserialize, Serialize};

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
