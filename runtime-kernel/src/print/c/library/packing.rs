//! Library functions that pack vectors into words and back, and those that return structures.

use naga::{Handle, MathFunction, Scalar, Type, VectorSize};
use runtime_core::Result;

use super::vector::{Shape, components};
use crate::ir::declare::scalar_name;
use crate::ir::half_bits::Direction;
use crate::print::c::form::Form;
use crate::print::c::types::COMPONENTS;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

const VEC4: VectorSize = VectorSize::Quad;
const VEC2: VectorSize = VectorSize::Bi;

/// To half precision in C. Before version 15, clang has `_Float16` on few processors: elsewhere integers are computed with, and the sum
/// with 0.5 rounds what becomes subnormal.
const HALF_BITS: &str = "
#ifdef __FLT16_MAX__
    _Float16 b = (_Float16)a; unsigned short c; __builtin_memcpy(&c, &b, sizeof c); return c;
#else
    u32 b; __builtin_memcpy(&b, &a, sizeof b);
    u32 sign = b >> 16 & 0x8000u;
    b &= 0x7fffffffu;
    if (b > 0x7f800000u) return sign | 0x7e00u | (b >> 13 & 0x3ffu);
    if (b >= 0x47800000u) return sign | 0x7c00u;
    if (b >= 0x38800000u) return sign | (b + 0xc8000fffu + (b >> 13 & 1u)) >> 13;
    __builtin_memcpy(&a, &b, sizeof a); a += 0.5f; __builtin_memcpy(&b, &a, sizeof b);
    return sign | (b - 0x3f000000u);
#endif
";
/// The reverse.
const OF_HALF_BITS: &str = "
#ifdef __FLT16_MAX__
    unsigned short b = (unsigned short)a; _Float16 c; __builtin_memcpy(&c, &b, sizeof c); return (f32)c;
#else
    u32 b = (a & 0x7fffu) << 13, exponent = b & 0x0f800000u; f32 c;
    b += exponent == 0x0f800000u ? 0x70000000u : exponent == 0u ? 0x38800000u : 0x38000000u;
    __builtin_memcpy(&c, &b, sizeof c);
    if (exponent == 0u) { c -= 0x1p-14f; __builtin_memcpy(&b, &c, sizeof b); }
    if (b > 0x7f800000u) b |= 0x400000u;
    b |= (a & 0x8000u) << 16; __builtin_memcpy(&c, &b, sizeof c); return c;
#endif
";

impl Writer<'_> {
    /// A packing function, if `function` is one.
    pub(crate) fn packing(&mut self, function: MathFunction) -> Result<Option<Form>> {
        use MathFunction as F;
        Ok(Some(Form::Call(match function {
            F::Pack4x8snorm => self.pack_norm("vec4f_pack4x8snorm", VEC4, "-1.0f", "127.0f")?,
            F::Pack4x8unorm => self.pack_norm("vec4f_pack4x8unorm", VEC4, "0.0f", "255.0f")?,
            F::Pack2x16snorm => self.pack_norm("vec2f_pack2x16snorm", VEC2, "-1.0f", "32767.0f")?,
            F::Pack2x16unorm => self.pack_norm("vec2f_pack2x16unorm", VEC2, "0.0f", "65535.0f")?,
            F::Unpack4x8snorm => self.unpack_norm("u32_unpack4x8snorm", VEC4, true, "127.0f")?,
            F::Unpack4x8unorm => self.unpack_norm("u32_unpack4x8unorm", VEC4, false, "255.0f")?,
            F::Unpack2x16snorm => self.unpack_norm("u32_unpack2x16snorm", VEC2, true, "32767.0f")?,
            F::Unpack2x16unorm => self.unpack_norm("u32_unpack2x16unorm", VEC2, false, "65535.0f")?,
            F::Pack2x16float => self.pack_float()?,
            F::Unpack2x16float => self.unpack_float()?,
            F::Pack4xI8 => self.pack_integer("vec4i_pack4xI8", Scalar::I32, "a.$")?,
            F::Pack4xU8 => self.pack_integer("vec4u_pack4xU8", Scalar::U32, "a.$")?,
            F::Pack4xI8Clamp => {
                let value = "(a.$ < -128 ? -128 : a.$ > 127 ? 127 : a.$)";
                self.pack_integer("vec4i_pack4xI8Clamp", Scalar::I32, value)?
            }
            F::Pack4xU8Clamp => {
                self.pack_integer("vec4u_pack4xU8Clamp", Scalar::U32, "(a.$ > 255 ? 255 : a.$)")?
            }
            F::Unpack4xI8 => self.unpack_integer("u32_unpack4xI8", Scalar::I32)?,
            F::Unpack4xU8 => self.unpack_integer("u32_unpack4xU8", Scalar::U32)?,
            F::Dot4I8Packed => self.packed_dot("u32_dot4I8Packed", Scalar::I32)?,
            F::Dot4U8Packed => self.packed_dot("u32_dot4U8Packed", Scalar::U32)?,
            F::QuantizeToF16 => self.quantize()?,
            _ => return Ok(None),
        })))
    }

    /// The parts of a word, lowest first.
    fn word(parts: impl Iterator<Item = String>, bits: usize) -> String {
        let parts = parts.enumerate().map(|(index, part)| match index {
            0 => part,
            _ => format!("{part} << {}", index * bits),
        });
        parts.collect::<Vec<_>>().join(" | ")
    }

    fn pack_norm(&mut self, name: &str, size: VectorSize, least: &str, scale: &str) -> Result<String> {
        let vector = self.vector(size, Scalar::F32)?;
        self.scalar(Scalar::U32)?;
        self.library(name.to_owned(), |writer, name| {
            let (floor, clamp) = (writer.float("floor", Scalar::F32)?, writer.float("clamp", Scalar::F32)?);
            let integer = writer.conversion(Scalar::F32, Scalar::I32)?;
            let bits = 32 / size as usize;
            let mask = if bits == 8 { "0xffu" } else { "0xffffu" };
            let part = |component: String| {
                let value = format!("{floor}(0.5f + {scale} * {clamp}({component}, {least}, 1.0f))");
                format!("((u32){} & {mask})", integer.join(&[value]))
            };
            let word = Self::word(components("a", size).map(part), bits);
            Ok(format!("u32 {name}({vector} a)\n{{\n    return {word};\n}}"))
        })
    }

    fn unpack_norm(&mut self, name: &str, size: VectorSize, signed: bool, scale: &str) -> Result<String> {
        let vector = self.vector(size, Scalar::F32)?;
        self.scalar(Scalar::U32)?;
        self.library(name.to_owned(), |writer, name| {
            let max = writer.float("max", Scalar::F32)?;
            let bits = 32 / size as usize;
            let mut parts = Vec::new();
            for index in 0..size as usize {
                let part = part(writer, bits, index, signed)?;
                let value = format!("(f32){part} / {scale}");
                parts.push(if signed { format!("{max}({value}, -1.0f)") } else { value });
            }
            let value = writer.dialect.made_of(&vector, &parts);
            Ok(format!("{vector} {name}(u32 a)\n{{\n    return {value};\n}}"))
        })
    }

    fn pack_integer(&mut self, name: &str, scalar: Scalar, part: &str) -> Result<String> {
        let vector = self.vector(VEC4, scalar)?;
        self.scalar(Scalar::U32)?;
        let parts =
            COMPONENTS.iter().map(|component| format!("((u32){} & 0xffu)", part.replace('$', component)));
        let word = Self::word(parts, 8);
        self.library(name.to_owned(), |_, name| {
            Ok(format!("u32 {name}({vector} a)\n{{\n    return {word};\n}}"))
        })
    }

    fn unpack_integer(&mut self, name: &str, scalar: Scalar) -> Result<String> {
        let vector = self.vector(VEC4, scalar)?;
        self.library(name.to_owned(), |writer, name| {
            let mut parts = Vec::new();
            for index in 0..4 {
                parts.push(part(writer, 8, index, scalar == Scalar::I32)?);
            }
            let value = writer.dialect.made_of(&vector, &parts);
            writer.scalar(Scalar::U32)?;
            Ok(format!("{vector} {name}(u32 a)\n{{\n    return {value};\n}}"))
        })
    }

    fn packed_dot(&mut self, name: &str, scalar: Scalar) -> Result<String> {
        let unpack = if scalar == Scalar::I32 { "u32_unpack4xI8" } else { "u32_unpack4xU8" };
        let unpack = self.unpack_integer(unpack, scalar)?;
        let (dot, result) = (self.dot(VEC4, scalar)?, scalar_name(scalar));
        self.library(name.to_owned(), |writer, name| {
            let sum = format!("return {dot}({unpack}(a), {unpack}(b));");
            if writer.dialect != Dialect::Cuda {
                return Ok(format!("{result} {name}(u32 a, u32 b) {{ {sum} }}"));
            }
            // A single instruction since Pascal's second generation (`sm_61`).
            Ok(format!(
                "{result} {name}(u32 a, u32 b)\n{{\n#if __CUDA_ARCH__ >= 610\n    \
                 return __dp4a(({result})a, ({result})b, ({result})0);\n#else\n    {sum}\n#endif\n}}"
            ))
        })
    }

    /// The sum of the dot products of packed bytes in two rows of words, `(a, b, words)`.
    pub(crate) fn packed_dot_of_rows(&mut self, function: MathFunction) -> Result<String> {
        self.scalar(Scalar::U32)?;
        let (name, byte, product, offset) = match function {
            MathFunction::Dot4I8Packed => (
                "u32_dot4I8Packed_rows",
                "signed char",
                "(unsigned char)(left[i] ^ 128) * right[i]",
                "-(u32)right[i]",
            ),
            _ => (
                "u32_dot4U8Packed_rows",
                "unsigned char",
                "left[i] * (signed char)(right[i] ^ 128)",
                "(u32)left[i]",
            ),
        };
        // The instruction multiplies unsigned bytes by signed ones: 128 is added to a signed operand, or
        // subtracted from an unsigned one. GCC uses it for a loop of this form; clang does not use it for any.
        self.library(name.to_owned(), |_, name| {
            Ok(format!(
                "u32 {name}(const u32 *a, const u32 *b, long long words)\n{{\n    \
                 const {byte} *left = (const {byte} *)a, *right = (const {byte} *)b;\n    \
                 u32 sum = 0, offset = 0;\n\
                 #if !defined(__clang__) && (defined(__AVX512VNNI__) || defined(__AVXVNNI__))\n    \
                 for (long long i = 0; i < 4 * words; i++) {{\n        \
                 sum += (u32)({product});\n        \
                 offset += {offset};\n    \
                 }}\n\
                 #else\n    \
                 for (long long i = 0; i < 4 * words; i++) sum += (u32)(left[i] * right[i]);\n\
                 #endif\n    \
                 return sum + 128u * offset;\n}}"
            ))
        })
    }

    /// The bits of the half-precision number nearest to an `f32`.
    fn half_bits(&mut self) -> Result<String> {
        self.half_function(
            ["u32_half_bits", "u32", "f32"],
            [
                "ushort b; vstore_half_rte(a, 0, (half *)&b); return b;",
                "unsigned short b; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(b) : \"f\"(a)); return b;",
                HALF_BITS,
            ],
        )
    }

    /// The `f32` value of half-precision bits.
    fn of_half_bits(&mut self) -> Result<String> {
        self.half_function(
            ["f32_of_half_bits", "f32", "u32"],
            [
                "ushort b = (ushort)a; return vload_half(0, (const half *)&b);",
                "f32 b; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(b) : \"h\"((unsigned short)a)); return b;",
                OF_HALF_BITS,
            ],
        )
    }

    /// A function with a name, a result and an operand, and its body by dialect.
    fn half_function(&mut self, [name, result, operand]: [&str; 3], bodies: [&str; 3]) -> Result<String> {
        self.scalar(Scalar::F32)?;
        self.scalar(Scalar::U32)?;
        self.library(name.to_owned(), |writer, name| {
            Ok(format!("{result} {name}({operand} a) {{ {} }}", bodies[writer.dialect as usize]))
        })
    }

    fn pack_float(&mut self) -> Result<String> {
        let (vector, bits) = (self.vector(VEC2, Scalar::F32)?, self.half_bits()?);
        self.library("vec2f_pack2x16float".to_owned(), |_, name| {
            Ok(format!("u32 {name}({vector} a) {{ return {bits}(a.x) | {bits}(a.y) << 16; }}"))
        })
    }

    fn unpack_float(&mut self) -> Result<String> {
        let (vector, of_bits) = (self.vector(VEC2, Scalar::F32)?, self.of_half_bits()?);
        self.library("u32_unpack2x16float".to_owned(), |writer, name| {
            let parts = [format!("{of_bits}(a & 0xffffu)"), format!("{of_bits}(a >> 16)")];
            let value = writer.dialect.made_of(&vector, &parts);
            Ok(format!("{vector} {name}(u32 a) {{ return {value}; }}"))
        })
    }

    /// The cast of a word to two `f16`, or back.
    pub(crate) fn half_bits_cast(&mut self, direction: Direction) -> Result<Form> {
        let pair = self.vector(VEC2, Scalar::F16)?;
        self.scalar(Scalar::U32)?;
        let (name, from, to) = match direction {
            Direction::FromWord => (format!("{pair}_of_bits"), "u32", &pair[..]),
            Direction::ToWord => (format!("{pair}_bits"), &pair[..], "u32"),
        };
        self.library(name, |_, name| {
            Ok(format!(
                "{to} {name}({from} a) {{ union {{ {from} a; {to} b; }} bits; bits.a = a; return bits.b; }}"
            ))
        })
        .map(Form::Call)
    }

    fn quantize(&mut self) -> Result<String> {
        let (bits, of_bits) = (self.half_bits()?, self.of_half_bits()?);
        self.library("f32_quantizeToF16".to_owned(), |_, name| {
            Ok(format!("f32 {name}(f32 a) {{ return {of_bits}({bits}(a)); }}"))
        })
    }

    /// `modf` and `frexp`, which return the structure `result`.
    pub(crate) fn parted(&mut self, operation: &str, shape: Shape, result: Handle<Type>) -> Result<Form> {
        let (type_name, result) = (self.shape(shape)?, self.type_name(result)?);
        let define = |writer: &mut Self, name: &str| {
            let scalar = shape.scalar;
            let values: Vec<String> = match shape.size {
                Some(size) => components("a", size).collect(),
                None => vec!["a".to_owned()],
            };
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for value in values {
                if operation == "modf" {
                    let trunc = writer.float("trunc", scalar)?;
                    first.push(format!("{value} - {trunc}({value})"));
                    second.push(format!("{trunc}({value})"));
                } else {
                    first.push(format!("{}({value})", writer.fraction(scalar)?));
                    second.push(format!("{}({value})", writer.exponent(scalar)?));
                }
            }
            let (open, close) = if shape.size.is_some() { ("{", "}") } else { ("", "") };
            let parts = [first, second].map(|parts| [open, &parts.join(", "), close].concat());
            let value = writer.dialect.made_of(&result, &parts);
            Ok(format!("{result} {name}({type_name} a)\n{{\n    return {value};\n}}"))
        };
        self.library(format!("{type_name}_{operation}"), define).map(Form::call)
    }

    fn frexp(&mut self, scalar: Scalar) -> Result<(String, Form, Form)> {
        self.scalar(Scalar::I32)?;
        let wide = if scalar.width == 2 { Scalar::F32 } else { scalar };
        let call = self.dialect.float_function("frexp", wide);
        let (widen, narrow) = (self.conversion(scalar, wide)?, self.conversion(wide, scalar)?);
        Ok((format!("{call}({}, &b)", widen.join(&["a".to_owned()])), widen, narrow))
    }

    fn fraction(&mut self, scalar: Scalar) -> Result<String> {
        let (call, _, narrow) = self.frexp(scalar)?;
        let type_name = scalar_name(scalar);
        self.library(format!("{type_name}_fraction"), |_, name| {
            Ok(format!("{type_name} {name}({type_name} a) {{ int b = 0; return {}; }}", narrow.join(&[call])))
        })
    }

    fn exponent(&mut self, scalar: Scalar) -> Result<String> {
        let (call, ..) = self.frexp(scalar)?;
        let type_name = scalar_name(scalar);
        self.library(format!("{type_name}_exponent"), |_, name| {
            Ok(format!("i32 {name}({type_name} a) {{ int b = 0; (void){call}; return b; }}"))
        })
    }

    /// `ldexp`.
    pub(crate) fn scaled_by_power(&mut self, scalar: Scalar) -> Result<Form> {
        self.scalar(Scalar::I32)?;
        let type_name = self.scalar(scalar)?;
        let wide = if scalar.width == 2 { Scalar::F32 } else { scalar };
        let (widen, narrow) = (self.conversion(scalar, wide)?, self.conversion(wide, scalar)?);
        let define = |writer: &mut Self, name: &str| {
            let call = writer.dialect.float_function("ldexp", wide);
            let value = narrow.join(&[format!("{call}({}, b)", widen.join(&["a".to_owned()]))]);
            Ok(format!("{type_name} {name}({type_name} a, i32 b) {{ return {value}; }}"))
        };
        self.library(format!("{type_name}_ldexp"), define).map(Form::call)
    }
}

/// Part `index` of the word `a`, as an integer of `bits` bits.
fn part(writer: &mut Writer<'_>, bits: usize, index: usize, signed: bool) -> Result<String> {
    let above = 32 - bits * (index + 1);
    if signed {
        writer.scalar(Scalar::I32)?;
        return Ok(format!("((i32)(a << {above}) >> {})", 32 - bits));
    }
    Ok(format!("((a >> {}) & {})", bits * index, if bits == 8 { "0xffu" } else { "0xffffu" }))
}
