//! The formats of textures: the elements of the tensor, and how texels are made of them.

use runtime_core::DType;

/// How the texels of a texture lie in a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Numbers of 32 bits, of the scalar type with this name. `channels` is `None` if the tensor's shape gives their number.
    Plain { scalar: &'static str, channels: Option<usize> },
    /// A texture of depths, which are single numbers.
    Depth,
    /// Channels that are packed into words.
    Packed(Packed),
}

/// Channels that are packed into words of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) scalar: &'static str,
    pub(super) channels: usize,
    pub(super) dtype: DType,
    /// The vector that the word `$` holds.
    pub(super) unpack: &'static str,
    /// The word that holds the vector `$`.
    pub(super) pack: &'static str,
}

/// The format of a texture that is only read, with texels of this type.
pub(super) fn sampled(scalar: &str) -> Option<Format> {
    let scalar = ["f32", "i32", "u32"].into_iter().find(|known| *known == scalar)?;
    Some(Format::Plain { scalar, channels: None })
}

/// The storage format with this name; `None` if it does not exist, or its texels are smaller than 4 bytes or no tensor's
/// elements.
pub(super) fn storage(name: &str) -> Option<Format> {
    if let Some((layout @ ("r" | "rg" | "rgba"), kind)) = name.split_once("32") {
        let scalar = match kind {
            "float" => "f32",
            "sint" => "i32",
            "uint" => "u32",
            _ => return None,
        };
        return Some(Format::Plain { scalar, channels: Some(layout.len()) });
    }
    let (scalar, dtype, unpack, pack) = match name {
        "rgba8unorm" => ("f32", DType::U8, "unpack4x8unorm($)", "pack4x8unorm($)"),
        "bgra8unorm" => ("f32", DType::U8, "unpack4x8unorm($).zyxw", "pack4x8unorm(($).zyxw)"),
        "rgba8snorm" => ("f32", DType::I8, "unpack4x8snorm($)", "pack4x8snorm($)"),
        "rgba8uint" => ("u32", DType::U8, "unpack4xU8($)", "pack4xU8Clamp($)"),
        "rgba8sint" => ("i32", DType::I8, "unpack4xI8($)", "pack4xI8Clamp($)"),
        "rg16unorm" | "rgba16unorm" => ("f32", DType::U16, "unpack2x16unorm($)", "pack2x16unorm($)"),
        "rg16snorm" | "rgba16snorm" => ("f32", DType::I16, "unpack2x16snorm($)", "pack2x16snorm($)"),
        "rg16float" | "rgba16float" => ("f32", DType::F16, "unpack2x16float($)", "pack2x16float($)"),
        "rg16uint" | "rgba16uint" => (
            "u32",
            DType::U16,
            "vec2<u32>(($) & 0xffffu, ($) >> 16u)",
            "dot(min($, vec2<u32>(0xffffu)), vec2<u32>(1u, 0x10000u))",
        ),
        "rg16sint" | "rgba16sint" => (
            "i32",
            DType::I16,
            "vec2<i32>(bitcast<i32>(($) << 16u) >> 16u, bitcast<i32>($) >> 16u)",
            "dot(vec2<u32>(clamp($, vec2<i32>(-32768), vec2<i32>(32767))) & vec2<u32>(0xffffu), \
             vec2<u32>(1u, 0x10000u))",
        ),
        _ => return None,
    };
    let channels = if name.starts_with("rg16") { 2 } else { 4 };
    Some(Format::Packed(Packed { scalar, channels, dtype, unpack, pack }))
}

impl Format {
    /// The scalar type of a texel.
    pub(super) const fn scalar(self) -> &'static str {
        match self {
            Self::Plain { scalar, .. } | Self::Packed(Packed { scalar, .. }) => scalar,
            Self::Depth => "f32",
        }
    }

    /// Whether the tensor has a dimension of channels.
    pub(super) const fn has_channels(self) -> bool {
        !matches!(self, Self::Depth | Self::Plain { channels: Some(1), .. })
    }

    /// The length that the dimension of channels must have.
    pub(super) fn channels(self) -> Option<usize> {
        match self {
            Self::Plain { channels, .. } => channels.filter(|channels| *channels > 1),
            Self::Depth => None,
            Self::Packed(packed) => Some(packed.channels),
        }
    }

    /// The type of elements that are packed into words.
    pub(super) const fn packed_dtype(self) -> Option<DType> {
        match self {
            Self::Packed(packed) => Some(packed.dtype),
            _ => None,
        }
    }
}

impl Packed {
    /// Channels in a word.
    const fn per_word(self) -> usize {
        4 / self.dtype.bytes()
    }

    pub(super) const fn words(self) -> usize {
        self.channels / self.per_word()
    }

    /// The texel in the words of the buffer `name` from `i` on.
    pub(super) fn texel(self, name: &str) -> String {
        let word = |at: usize| self.unpack.replace('$', &format!("{name}[i + {at}u]"));
        match (self.per_word(), self.channels) {
            (2, 2) => format!("vec4<{0}>({1}, {0}(0), {0}(1))", self.scalar, word(0)),
            (2, _) => format!("vec4<{}>({}, {})", self.scalar, word(0), word(1)),
            _ => word(0),
        }
    }

    /// The words that hold the texel `v`.
    pub(super) fn packed(self) -> Vec<String> {
        let vectors: &[_] = match (self.per_word(), self.channels) {
            (2, 2) => &["v.xy"],
            (2, _) => &["v.xy", "v.zw"],
            _ => &["v"],
        };
        vectors.iter().map(|vector| self.pack.replace('$', vector)).collect()
    }
}
