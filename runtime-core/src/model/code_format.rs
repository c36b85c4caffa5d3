//! Code formats.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The format of a module's code. An open set: backends may define their own formats.
///
/// | accepted by | formats |
/// | --- | --- |
/// | the host | `c`, `object`, `archive`, `shared-object` |
/// | CUDA | `cuda-c`, `ptx`, `cubin`, `fatbin` |
/// | OpenCL | `opencl-c`, `opencl-binary`, `spirv-kernel` |
/// | Vulkan | `spirv-shader`, `vulkan-binary` |
/// | embedded devices | `elf` |
/// | all, lowered to one of the above | `wgsl` |
///
/// [`DeviceInfo::formats`](crate::DeviceInfo::formats) lists the formats that a device accepts, in order of
/// preference.
///
/// ```
/// # use runtime_core::{CodeFormat, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// // The format that the device likes best, of those that the program can produce.
/// let ours = [CodeFormat::PTX, CodeFormat::SPIRV_SHADER, CodeFormat::from("null")];
/// let best = device.info().formats.iter().find(|format| ours.contains(format));
/// assert_eq!(best.map(CodeFormat::as_str), Some("null"));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CodeFormat(Cow<'static, str>);

#[expect(missing_docs, reason = "the names are self-explanatory")]
impl CodeFormat {
    pub const SHARED_OBJECT: Self = Self::named("shared-object");
    pub const ARCHIVE: Self = Self::named("archive");
    pub const OBJECT: Self = Self::named("object");
    pub const C: Self = Self::named("c");
    pub const PTX: Self = Self::named("ptx");
    pub const CUBIN: Self = Self::named("cubin");
    pub const FATBIN: Self = Self::named("fatbin");
    pub const CUDA_C: Self = Self::named("cuda-c");
    pub const OPENCL_C: Self = Self::named("opencl-c");
    pub const OPENCL_BINARY: Self = Self::named("opencl-binary");
    pub const SPIRV_KERNEL: Self = Self::named("spirv-kernel");
    pub const SPIRV_SHADER: Self = Self::named("spirv-shader");
    pub const VULKAN_BINARY: Self = Self::named("vulkan-binary");
    pub const ELF: Self = Self::named("elf");
    pub const WGSL: Self = Self::named("wgsl");
}

impl CodeFormat {
    const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// The name, as in `DeviceInfo::formats` and the ABI.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The extension of a file of this format; its name, if no other is usual.
    #[must_use]
    pub fn extension(&self) -> &str {
        let known = EXTENSIONS.iter().find(|(_, format)| self.as_str() == *format);
        known.map_or(self.as_str(), |(extension, _)| *extension)
    }

    /// The format for the extension of a file.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        let known = EXTENSIONS.iter().find(|(known, _)| *known == extension);
        Some(known.map_or(extension, |(_, format)| *format).into())
    }
}

/// The extensions that are not the name of a format. The first format of an extension is meant where a file has no other hint.
const EXTENSIONS: [(&str, &str); 7] = [
    ("so", "shared-object"),
    ("a", "archive"),
    ("o", "object"),
    ("cu", "cuda-c"),
    ("cl", "opencl-c"),
    ("spv", "spirv-shader"),
    ("spv", "spirv-kernel"),
];

impl From<&str> for CodeFormat {
    fn from(name: &str) -> Self {
        Self(Cow::Owned(name.to_owned()))
    }
}

impl From<String> for CodeFormat {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl PartialEq<str> for CodeFormat {
    fn eq(&self, name: &str) -> bool {
        self.0 == name
    }
}

impl fmt::Display for CodeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for CodeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
