//! Library functions on integers: wrapping arithmetic and bit operations.

use std::borrow::Cow;

use naga::{Scalar, ScalarKind, Span};
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

/// The unsigned type of the same width.
pub(crate) const fn unsigned(scalar: Scalar) -> Scalar {
    Scalar { kind: ScalarKind::Uint, width: scalar.width }
}

/// Name, the library functions that it calls, definition. `$T` is the type, `$U` the unsigned type of its width,
/// `$N` the function's name, `$W` the number of bits, `$M` one less, `$L` the least value.
type Template = (&'static str, &'static [&'static str], &'static str);

const SIGNED: &[Template] = &[
    ("add", &[], "$T $N($T a, $T b) { return ($T)(($U)a + ($U)b); }"),
    ("sub", &[], "$T $N($T a, $T b) { return ($T)(($U)a - ($U)b); }"),
    ("mul", &[], "$T $N($T a, $T b) { return ($T)(($U)a * ($U)b); }"),
    ("neg", &[], "$T $N($T a) { return ($T)(0 - ($U)a); }"),
    ("div", &[], "$T $N($T a, $T b) { return a / (b == 0 || (a == $L && b == -1) ? 1 : b); }"),
    ("rem", &[], "$T $N($T a, $T b) { return a % (b == 0 || (a == $L && b == -1) ? 1 : b); }"),
    ("abs", &[], "$T $N($T a) { return a < 0 ? ($T)(0 - ($U)a) : a; }"),
    ("sign", &[], "$T $N($T a) { return (a > 0) - (a < 0); }"),
    (
        "firstLeadingBit",
        &["countLeadingZeros"],
        "$T $N($T a) { return $M - $T_countLeadingZeros(a ^ (a >> $M)); }",
    ),
];

const UNSIGNED: &[Template] = &[
    ("div", &[], "$T $N($T a, $T b) { return a / (b == 0 ? 1 : b); }"),
    ("rem", &[], "$T $N($T a, $T b) { return a % (b == 0 ? 1 : b); }"),
    ("sign", &[], "$T $N($T a) { return a > 0; }"),
    ("firstLeadingBit", &["countLeadingZeros"], "$T $N($T a) { return $M - $T_countLeadingZeros(a); }"),
];

const BOTH: &[Template] = &[
    ("shl", &[], "$T $N($T a, u32 b) { return ($T)(($U)a << (b & $M)); }"),
    ("shr", &[], "$T $N($T a, u32 b) { return a >> (b & $M); }"),
    ("min", &[], "$T $N($T a, $T b) { return b < a ? b : a; }"),
    ("max", &[], "$T $N($T a, $T b) { return a < b ? b : a; }"),
    ("clamp", &["min", "max"], "$T $N($T a, $T low, $T high) { return $T_min($T_max(a, low), high); }"),
    (
        "firstTrailingBit",
        &["countTrailingZeros"],
        "$T $N($T a) { return a == 0 ? ($T)-1 : $T_countTrailingZeros(a); }",
    ),
    (
        "extractBits",
        &[],
        "$T $N($T a, u32 offset, u32 count)\n{\n    offset = offset < $W ? offset : $W;\n    \
         count = count < $W - offset ? count : $W - offset;\n    \
         return count == 0 ? 0 : ($T)(($U)a << ($W - offset - count)) >> ($W - count);\n}",
    ),
    (
        "insertBits",
        &[],
        "$T $N($T a, $T b, u32 offset, u32 count)\n{\n    offset = offset < $W ? offset : $W;\n    \
         count = count < $W - offset ? count : $W - offset;\n    \
         $U mask = count == 0 ? 0 : (~($U)0 >> ($W - count)) << offset;\n    \
         return ($T)((($U)a & ~mask) | ((($U)b << (offset & $M)) & mask));\n}",
    ),
];

/// Replacements on `i32` for NVIDIA's compilers. On `sm_90`, ptxas 13.0 and driver 580.159 fuse `min(a, min(b,
/// -c))`, and likewise `max`, into one instruction and lose the negation; these forms are not recognised.
const NVIDIA: &[(&str, &str)] = &[
    ("neg", r#"$T b = ~a; asm("" : "+r"(b)); return ($T)(($U)b + 1u);"#),
    (
        "min",
        r#"$T c; asm("{ .reg .pred p; setp.lt.s32 p, %2, %1; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c;"#,
    ),
    (
        "max",
        r#"$T c; asm("{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, %2, %1, p; }" : "=r"(c) : "r"(a), "r"(b)); return c;"#,
    ),
];

/// Functions that the languages spell differently: OpenCL C, CUDA C++, host C.
const NATIVE: &[(&str, [&str; 3])] = &[
    (
        "countOneBits",
        [
            "$T $N($T a) { return popcount(a); }",
            "$T $N($T a) { return ($T)__popc$l(($U)a); }",
            "$T $N($T a) { return ($T)__builtin_popcount$l(($U)a); }",
        ],
    ),
    (
        "countLeadingZeros",
        [
            "$T $N($T a) { return clz(a); }",
            "$T $N($T a) { return ($T)__clz$l(($U)a); }",
            "$T $N($T a) { return a == 0 ? $W : ($T)__builtin_clz$l(($U)a); }",
        ],
    ),
    (
        "countTrailingZeros",
        [
            "$T $N($T a) { return a == 0 ? $W : ($T)($M - clz(($U)a & (0 - ($U)a))); }",
            "$T $N($T a) { return a == 0 ? $W : ($T)(__ffs$l(($U)a) - 1); }",
            "$T $N($T a) { return a == 0 ? $W : ($T)__builtin_ctz$l(($U)a); }",
        ],
    ),
];

/// `all / 3` is a mask of every other bit, `all / 5` of every other pair, and so on.
const REVERSE: &str = "$T $N($T a)\n{\n    const $U all = ~($U)0;\n    $U b = ($U)a;\n    \
     b = (b >> 1 & all / 3) | (b & all / 3) << 1;\n    b = (b >> 2 & all / 5) | (b & all / 5) << 2;\n    \
     b = (b >> 4 & all / 17) | (b & all / 17) << 4;\n    b = (b >> 8 & all / 257) | (b & all / 257) << 8;\n";
const REVERSE_32: &str = "    return ($T)(b >> 16 | b << 16);\n}";
const REVERSE_64: &str =
    "    b = (b >> 16 & all / 65537) | (b & all / 65537) << 16;\n    return ($T)(b >> 32 | b << 32);\n}";

impl Writer<'_> {
    /// The library function `operation` on an integer type, such as `i32_div`.
    pub(crate) fn integer(&mut self, operation: &str, scalar: Scalar) -> Result<String> {
        self.library(format!("{}_{operation}", scalar_name(scalar)), |writer, name| {
            writer.scalar(scalar)?;
            writer.scalar(unsigned(scalar))?;
            writer.scalar(Scalar::U32)?;
            let own = if scalar.kind == ScalarKind::Sint { SIGNED } else { UNSIGNED };
            if let Some((_, needs, text)) = own.iter().chain(BOTH).find(|template| template.0 == operation) {
                for need in *needs {
                    writer.integer(need, scalar)?;
                }
                return Ok(writer.expand(&writer.for_nvidia(operation, scalar, text), name, scalar));
            }
            if let Some((_, texts)) = NATIVE.iter().find(|native| native.0 == operation) {
                return Ok(writer.expand(texts[writer.dialect as usize], name, scalar));
            }
            writer.reverse_bits(operation, name, scalar)
        })
    }

    /// A template, with NVIDIA's replacement of its body if there is one.
    fn for_nvidia(&self, operation: &str, scalar: Scalar, template: &'static str) -> Cow<'static, str> {
        let form = NVIDIA.iter().find(|(name, _)| *name == operation && scalar == Scalar::I32);
        let (Some((_, nvidia)), Some((head, rest))) = (form, template.split_once(" { ")) else {
            return template.into();
        };
        match self.dialect {
            Dialect::Host => template.into(),
            Dialect::Cuda => format!("{head} {{ {nvidia} }}").into(),
            Dialect::OpenCl => {
                let others = rest.trim_end_matches(" }");
                format!("{head}\n{{\n#ifdef __NV_CL_C_VERSION\n    {nvidia}\n#else\n    {others}\n#endif\n}}")
                    .into()
            }
        }
    }

    fn reverse_bits(&self, operation: &str, name: &str, scalar: Scalar) -> Result<String> {
        if operation != "reverseBits" {
            return Err(self.unsupported(&format!("{operation} of {}", scalar_name(scalar)), Span::UNDEFINED));
        }
        if self.dialect == Dialect::Cuda {
            return Ok(self.expand("$T $N($T a) { return ($T)__brev$l(($U)a); }", name, scalar));
        }
        let end = if scalar.width == 8 { REVERSE_64 } else { REVERSE_32 };
        Ok(self.expand(&format!("{REVERSE}{end}"), name, scalar))
    }

    /// Instantiates a template.
    pub(crate) fn expand(&self, template: &str, name: &str, scalar: Scalar) -> String {
        let mut text = String::with_capacity(template.len() + 64);
        let mut rest = template;
        while let Some(at) = rest.find('$') {
            text.push_str(&rest[..at]);
            match rest.as_bytes().get(at + 1) {
                Some(b'T') => text.push_str(scalar_name(scalar)),
                Some(b'U') => text.push_str(scalar_name(unsigned(scalar))),
                Some(b'N') => text.push_str(name),
                Some(b'W') => text.push_str(if scalar.width == 8 { "64" } else { "32" }),
                Some(b'M') => text.push_str(if scalar.width == 8 { "63" } else { "31" }),
                Some(b'L') => text.push_str(&self.least(scalar)),
                Some(b'l') => text.push_str(if scalar.width == 8 { "ll" } else { "" }),
                Some(b'S') => text.push_str(if scalar.width == 8 { "" } else { "f" }),
                _ => {}
            }
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        text.push_str(rest);
        text
    }

    /// The least value of a signed type, for which C has no literal.
    pub(crate) fn least(&self, scalar: Scalar) -> String {
        match scalar.width {
            8 => format!("(-9223372036854775807{} - 1)", self.dialect.long_suffix()),
            _ => "(-2147483647 - 1)".to_owned(),
        }
    }
}
