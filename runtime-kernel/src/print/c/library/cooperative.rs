//! Cooperative matrices in CUDA C++: registers of a warp, in the layout of `mma.sync.m16n8k16` (PTX ISA, "Matrix
//! Fragments for mma.m16n8k16").
//!
//! A lane has pairs of neighbours: of a left factor in a row, of a right factor in a column, of a sum in a row. A right
//! factor and a sum are two fragments of eight columns.

use std::fmt::Write as _;

use naga::{CooperativeRole, Scalar, Span, TypeInner};
use runtime_core::Result;

use super::vector_moves::Direction;
use crate::ir::cooperative::{EXTENT, MAX_STRIDE, Matrix, Rows};
use crate::print::c::form::Form;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

impl Matrix {
    const fn name(self) -> &'static str {
        match (self.role, self.scalar.width) {
            (CooperativeRole::A, _) => "coop16h_a",
            (CooperativeRole::B, _) => "coop16h_b",
            (CooperativeRole::C, 2) => "coop16h_c",
            (CooperativeRole::C, _) => "coop16f_c",
        }
    }

    const fn is_wide(self) -> bool {
        self.scalar.width == 4
    }

    /// The row and column of element `half` of register pair `pair`, with the lane's `g` and `t`.
    fn position(self, pair: u32, half: u32) -> [String; 2] {
        let (low, high) = (8 * (pair & 1), 8 * (pair >> 1));
        let along = |offset: u32| format!("2u * t + {}u", offset + half);
        match self.role {
            CooperativeRole::A | CooperativeRole::C => [format!("g + {low}u"), along(high)],
            CooperativeRole::B => [along(low), format!("g + {high}u")],
        }
    }
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileAccess {
    pub(crate) rows: Rows,
    pub(crate) row_major: bool,
    pub(crate) is_shared: bool,
    /// Whether it may be out of range.
    pub(crate) is_checked: bool,
}

impl TileAccess {
    /// The name of a function that loads or stores such a matrix.
    fn function(self, direction: Direction, fragment: Matrix) -> String {
        let order = if self.row_major { "rows" } else { "columns" };
        let place = if self.is_shared { "_shared" } else { "" };
        let check = if self.is_checked { "_checked" } else { "" };
        let element_bytes = self.numbers() * u32::from(fragment.scalar.width);
        format!("{}_{}_{order}_{element_bytes}{place}{check}", fragment.name(), direction.word())
    }

    /// The numbers in an element of the array.
    const fn numbers(self) -> u32 {
        EXTENT / self.rows.width
    }
}

/// Pairs of elements that a lane has.
const PAIRS: u32 = 4;

/// `fits` is the check of `transform::bounds_checks::tiles`; all lanes of a warp agree on it.
fn lanes() -> String {
    format!(
        "u32 coop_lane() {{ u32 a; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(a)); return a; }}
__device__ __forceinline__ bool coop_fits(u32 index, u32 stride, u32 length, u32 width, u32 mask)
{{
    const bool fits = index < length && stride <= {MAX_STRIDE}u && ((index | stride) & mask) == 0u && {rows}u * stride + width - 1u < length - index;
    return __all_sync(0xffffffffu, fits);
}}
__device__ __forceinline__ u32 coop_shared(const void *at) {{ return (u32)__cvta_generic_to_shared(at); }}",
        rows = EXTENT - 1
    )
}

impl Writer<'_> {
    /// A matrix type.
    ///
    /// # Errors
    /// `Unsupported` for matrices that CUDA's matrix units lack, and in other languages.
    pub(crate) fn cooperative_type(&mut self, inner: &TypeInner, span: Span) -> Result<String> {
        self.fragment(inner, span).map(|fragment| fragment.name().to_owned())
    }

    /// Defines a matrix type.
    fn fragment(&mut self, inner: &TypeInner, span: Span) -> Result<Matrix> {
        if self.dialect != Dialect::Cuda {
            return Err(self.unsupported("a cooperative matrix", span));
        }
        let Some(fragment) = Matrix::of(inner) else {
            let what =
                "a cooperative matrix other than coop_mat16x16 with factors of f16 and sums of f16 or f32";
            return Err(self.unsupported(what, span));
        };
        self.scalar(Scalar::U32)?;
        self.scalar(fragment.scalar)?;
        let name = fragment.name();
        if self.first(name) {
            let (register, count) = if fragment.is_wide() { ("float", 8) } else { ("u32", 4) };
            let _ = writeln!(self.types, "typedef struct {name} {{ {register} r[{count}]; }} {name};");
        }
        self.library("coop_lane".to_owned(), |_, _| Ok(lanes()))?;
        Ok(fragment)
    }

    /// The function that loads a matrix.
    pub(crate) fn cooperative_load(
        &mut self,
        inner: &TypeInner,
        access: TileAccess,
        span: Span,
    ) -> Result<String> {
        let fragment = self.fragment(inner, span)?;
        let body = match access.is_shared && !fragment.is_wide() && fragment.role != CooperativeRole::C {
            true => matrices(fragment, access.row_major),
            false => elements(fragment, access.row_major, Direction::Load),
        };
        self.library(access.function(Direction::Load, fragment), |_, name| {
            Ok(format!(
                "{own} {name}(const void *from, u32 index, u32 stride, u32 length)\n{{\n    {own} m = {{}};\n    {begin}    return m;\n}}",
                own = fragment.name(),
                begin = within(fragment, access, Direction::Load, &body),
            ))
        })
    }

    /// The function that stores a matrix.
    pub(crate) fn cooperative_store(
        &mut self,
        inner: &TypeInner,
        access: TileAccess,
        span: Span,
    ) -> Result<String> {
        let fragment = self.fragment(inner, span)?;
        let body = elements(fragment, access.row_major, Direction::Store);
        self.library(access.function(Direction::Store, fragment), |_, name| {
            Ok(format!(
                "void {name}({own} m, void *to, u32 index, u32 stride, u32 length)\n{{\n    {begin}}}",
                own = fragment.name(),
                begin = within(fragment, access, Direction::Store, &body),
            ))
        })
    }

    /// The function `a * b + c`.
    pub(crate) fn cooperative_multiply_add(
        &mut self,
        [a, b, c]: [&TypeInner; 3],
        span: Span,
    ) -> Result<String> {
        let [a, b, c] = [self.fragment(a, span)?, self.fragment(b, span)?, self.fragment(c, span)?];
        let name = format!("{}_multiply_add", c.name());
        self.library(name, |_, name| {
            let mut text = format!(
                "{own} {name}({} a, {} b, {own} c)\n{{\n    {own} d;\n",
                a.name(),
                b.name(),
                own = c.name()
            );
            for half in 0..2 {
                text.push_str(&multiply_add(c, half));
            }
            text.push_str("    return d;\n}");
            Ok(text)
        })
    }

    /// The sum or difference of two matrices, or the product of a matrix and a number: an operation on each element.
    pub(crate) fn cooperative_operator(&mut self, sign: &str, operands: [&TypeInner; 2]) -> Result<Form> {
        let matrix = operands.into_iter().find(|inner| matches!(inner, TypeInner::CooperativeMatrix { .. }));
        let fragment = self.fragment(matrix.unwrap_or(operands[0]), Span::UNDEFINED)?;
        let own = fragment.name();
        let scalar = self.scalar(fragment.scalar)?;
        let is_matrix = operands.map(|inner| matches!(inner, TypeInner::CooperativeMatrix { .. }));
        let parameter = |is_matrix| if is_matrix { own } else { scalar };
        let word = match sign {
            "+" => "add",
            "-" => "sub",
            _ => "mul",
        };
        let order = format!("{}{}", u8::from(is_matrix[0]), u8::from(is_matrix[1]));
        let form = self.library(format!("{own}_{word}_{order}"), |_, name| {
            let mut text =
                format!("{own} {name}({} a, {} b)\n{{\n    {own} c;\n", parameter(is_matrix[0]), parameter(is_matrix[1]));
            let element = |name: &str, is_matrix: bool, index: usize| match (is_matrix, fragment.is_wide()) {
                (true, _) => format!("{name}.r[{index}]"),
                (false, true) => name.to_owned(),
                (false, false) => format!("({name}.bits * 0x10001u)"),
            };
            for index in 0..if fragment.is_wide() { 8 } else { 4 } {
                let (a, b) = (element("a", is_matrix[0], index), element("b", is_matrix[1], index));
                let _ = match fragment.is_wide() {
                    true => writeln!(text, "    c.r[{index}] = {a} {sign} {b};"),
                    false => writeln!(
                        text,
                        "    asm(\"{word}.f16x2 %0, %1, %2;\" : \"=r\"(c.r[{index}]) : \"r\"({a}), \"r\"({b}));"
                    ),
                };
            }
            text.push_str("    return c;\n}");
            Ok(text)
        })?;
        Ok(Form::Call(form))
    }
}

/// The check, the place of the first element as `p`, the stride in numbers, and `body`.
fn within(fragment: Matrix, access: TileAccess, direction: Direction, body: &str) -> String {
    let (leave, pointer, constant) = match direction {
        Direction::Load => ("return m", "from", "const "),
        Direction::Store => ("return", "to", ""),
    };
    let check = match access.is_checked {
        true => format!(
            "if (!coop_fits(index, stride, length, {}u, {}u)) {leave};\n    ",
            access.rows.width, access.rows.alignment_mask
        ),
        false => String::new(),
    };
    let number = if fragment.is_wide() { "float" } else { "unsigned short" };
    let unit = access.numbers();
    format!(
        "{check}{constant}{number} *p = ({constant}{number} *){pointer} + (unsigned long long)index * {unit}u;
    const u32 row = stride * {unit}u, g = coop_lane() >> 2, t = coop_lane() & 3u;
{body}"
    )
}

/// A lane's elements, two at a time where neighbours are adjacent: rows are aligned.
fn elements(fragment: Matrix, row_major: bool, direction: Direction) -> String {
    let offset = |[row, column]: [String; 2]| match row_major {
        true => format!("({row}) * row + {column}"),
        false => format!("({column}) * row + {row}"),
    };
    let along_rows = fragment.role != CooperativeRole::B;
    let is_load = direction == Direction::Load;
    let mut single = String::new();
    let mut pairs = String::new();
    for pair in 0..PAIRS {
        let at = [0, 1].map(|half| offset(fragment.position(pair, half)));
        let (first, second) = (2 * pair, 2 * pair + 1);
        let _ = match (fragment.is_wide(), is_load) {
            (true, true) => {
                writeln!(single, "    m.r[{first}] = p[{}]; m.r[{second}] = p[{}];", at[0], at[1])
            }
            (true, false) => {
                writeln!(single, "    p[{}] = m.r[{first}]; p[{}] = m.r[{second}];", at[0], at[1])
            }
            (false, true) => {
                let _ = writeln!(pairs, "    m.r[{pair}] = *(const u32 *)(p + ({}));", at[0]);
                writeln!(single, "    m.r[{pair}] = p[{}] | (u32)p[{}] << 16;", at[0], at[1])
            }
            (false, false) => {
                let _ = writeln!(pairs, "    *(u32 *)(p + ({})) = m.r[{pair}];", at[0]);
                writeln!(
                    single,
                    "    p[{}] = (unsigned short)m.r[{pair}]; p[{}] = (unsigned short)(m.r[{pair}] >> 16);",
                    at[0], at[1]
                )
            }
        };
    }
    if pairs.is_empty() || along_rows != row_major {
        return single;
    }
    pairs
}

/// Four matrices of 8 × 8 from shared memory (PTX ISA, `ldmatrix`): each lane names a row of one of them.
fn matrices(fragment: Matrix, row_major: bool) -> String {
    let place = match row_major {
        true => "(lane & 15u) * row + (lane >> 4) * 8u",
        false => "((lane & 7u) + (lane >> 4) * 8u) * row + ((lane >> 3) & 1u) * 8u",
    };
    let transposed = if (fragment.role == CooperativeRole::A) == row_major { "" } else { ".trans" };
    format!(
        "    const u32 lane = coop_lane();
    asm volatile(\"ldmatrix.sync.aligned.m8n8.x4{transposed}.shared.b16 {{%0, %1, %2, %3}}, [%4];\"
        : \"=r\"(m.r[0]), \"=r\"(m.r[1]), \"=r\"(m.r[2]), \"=r\"(m.r[3]) : \"r\"(coop_shared(p + {place})) : \"memory\");
"
    )
}

/// Eight columns of the product.
fn multiply_add(sum: Matrix, half: usize) -> String {
    let (kind, registers) = if sum.is_wide() { ("f32", 4) } else { ("f16", 2) };
    let constraint = if sum.is_wide() { "f" } else { "r" };
    let numbers = |from: usize, count: usize| {
        (from..from + count).map(|number| format!("%{number}")).collect::<Vec<_>>().join(", ")
    };
    let list = |form: &dyn Fn(usize) -> String, from: usize, count: usize| {
        (from..from + count).map(form).collect::<Vec<_>>().join(", ")
    };
    let own = half * registers;
    format!(
        "    asm(\"mma.sync.aligned.m16n8k16.row.col.{kind}.f16.f16.{kind} {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};\"\n        : {outputs}\n        : {left}, {right}, {sums});\n",
        d = numbers(0, registers),
        a = numbers(registers, 4),
        b = numbers(registers + 4, 2),
        c = numbers(registers + 6, registers),
        outputs = list(&|index| format!("\"={constraint}\"(d.r[{index}])"), own, registers),
        left = list(&|index| format!("\"r\"(a.r[{index}])"), 0, 4),
        right = list(&|index| format!("\"r\"(b.r[{index}])"), 2 * half, 2),
        sums = list(&|index| format!("\"{constraint}\"(c.r[{index}])"), own, registers),
    )
}
