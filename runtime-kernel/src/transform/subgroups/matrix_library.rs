//! The functions for operations on cooperative matrices, as WGSL text.
//!
//! An invocation holds the same number of adjacent elements of each matrix, in the order of rows. Products, and stores that
//! would write single components of vectors, exchange elements through work-group memory, as `f32`.

use naga::{CooperativeRole, Scalar, Span};

use super::arrays::{Array, name_of};
use super::library::{ITEM, Library};
use crate::ir::cooperative::{EXTENT, MAX_STRIDE, Matrix};
use crate::ir::declare::scalar_name;

/// The vectors of a matrix in work-group memory.
const VECTORS: u32 = EXTENT * EXTENT / 4;

/// How a matrix lies in an array.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub(super) matrix: Matrix,
    pub(super) row_major: bool,
    /// The place of the array in the library.
    pub(super) array: usize,
}

impl Library {
    /// The vectors of four elements that an invocation holds of a matrix.
    pub(super) const fn vectors(&self) -> u32 {
        VECTORS / self.size
    }

    /// The function that loads a matrix.
    pub(super) fn matrix_load(&mut self, tile: Tile, span: Span) -> usize {
        let own = self.matrix_name(tile.matrix.scalar);
        let array = &self.arrays[tile.array];
        let loaded =
            (0..self.vectors()).map(|vector| array.vector(tile, vector)).collect::<Vec<_>>().join(", ");
        let begin = self.tile(tile, &format!("return {own}();"));
        self.add(format!("(index: u32, stride: u32) -> {own} {{ {begin} return {own}({loaded}); }}"), span)
    }

    /// The function that stores a matrix.
    pub(super) fn matrix_store(&mut self, tile: Tile, span: Span) -> usize {
        let own = self.matrix_name(tile.matrix.scalar);
        let array = &self.arrays[tile.array];
        let is_transposed = !tile.row_major && array.numbers > 1;
        let from = |vector: u32| match is_transposed {
            true => transposed(vector),
            false => self.vector("m", vector),
        };
        let stored: String =
            (0..self.vectors()).map(|vector| array.store(tile, vector, &from(vector))).collect();
        let begin = self.tile(tile, "return;");
        // Another invocation may still have to load from the same elements.
        let exchange = match is_transposed {
            true => self.exchanged(&[("a", "m")]),
            false => "workgroupBarrier();".to_owned(),
        };
        self.add(format!("(m: {own}, index: u32, stride: u32) {{ {exchange} {begin} {stored} }}"), span)
    }

    /// The function `a * b + c`, whose sums are of a type.
    pub(super) fn matrix_multiply_add(&mut self, [a, b, c]: [Matrix; 3], span: Span) -> usize {
        let [of_a, of_b, own] = [a, b, c].map(|matrix| self.matrix_name(matrix.scalar));
        let exchange = self.exchanged(&[("a", "a"), ("b", "b")]);
        let (vectors, per_row) = (self.vectors(), self.per_row());
        let each = |form: &dyn Fn(u32) -> String| (0..vectors).map(form).collect::<String>();
        let start = each(&|vector| format!("var d{vector} = vec4<f32>({}); ", self.vector("c", vector)));
        let products: String = (0..4)
            .map(|k| each(&|vector| format!("d{vector} += r[{k}] * matrix_b[at + {}u]; ", 4 * k + vector)))
            .collect();
        let scalar = scalar_name(c.scalar);
        let sums: Vec<_> = (0..vectors).map(|vector| format!("vec4<{scalar}>(d{vector})")).collect();
        self.add(
            format!(
                "(a: {of_a}, b: {of_b}, c: {own}) -> {own} {{ {exchange} {start} \
                 for (var k = 0u; k < 4u; k++) {{ let r = matrix_a[first + lane / {per_row}u * 4u + k]; \
                 let at = first + lane % {per_row}u * {vectors}u + k * 16u; {products} }} \
                 return {own}({}); }}",
                sums.join(", ")
            ),
            span,
        )
    }

    /// WGSL's name of the type that holds an invocation's part of a matrix.
    fn matrix_name(&self, scalar: Scalar) -> String {
        let scalar = scalar_name(scalar);
        match self.vectors() {
            1 => format!("vec4<{scalar}>"),
            columns => format!("mat{columns}x4<{scalar}>"),
        }
    }

    /// A vector of an invocation's part of a matrix.
    fn vector(&self, matrix: &str, vector: u32) -> String {
        if self.vectors() == 1 { matrix.to_owned() } else { format!("{matrix}[{vector}]") }
    }

    /// The invocations that hold a row.
    const fn per_row(&self) -> u32 {
        EXTENT / 4 / self.vectors()
    }

    /// Writes matrices to work-group memory, where the subgroup's begin at `first`.
    fn exchanged(&mut self, matrices: &[(&'static str, &str)]) -> String {
        let (size, vectors, last) = (self.size, self.vectors(), self.items.div_ceil(self.size) - 1);
        let mut text = format!(
            "workgroupBarrier(); let first = min({ITEM} / {size}u, {last}u) * {VECTORS}u; let lane = {ITEM} % {size}u; "
        );
        for &(to, from) in matrices {
            self.exchanged.insert(to);
            for vector in 0..vectors {
                let value = self.vector(from, vector);
                text += &format!("matrix_{to}[first + lane * {vectors}u + {vector}u] = vec4<f32>({value}); ");
            }
        }
        text + "workgroupBarrier(); "
    }

    /// Declares the work-group memory of `exchanged`.
    pub(super) fn exchanged_variables(&self) -> String {
        let length = self.items.div_ceil(self.size) * VECTORS;
        let variable = |name| format!("var<workgroup> matrix_{name}: array<vec4<f32>, {length}>;\n");
        self.exchanged.iter().map(variable).collect()
    }

    /// The check of a matrix, and the place of an invocation's part: `row` and `column`, both by rows of memory.
    fn tile(&self, tile: Tile, leave: &str) -> String {
        let array = &self.arrays[tile.array];
        let (size, per_row, held) = (self.size, self.per_row(), 4 * self.vectors());
        let rows = array.rows();
        let aligned = match rows.alignment_mask {
            0 => String::new(),
            mask => format!(" & (((index | stride) & {mask}u) == 0u)"),
        };
        format!(
            "let x = &{name}; let length = {length}; \
             if !((index < length) & (stride <= {MAX_STRIDE}u) & ({last}u * stride + {end}u < length - index){aligned}) {{ {leave} }} \
             let item = {ITEM} % {size}u; let row = item / {per_row}u; let column = item % {per_row}u * {held}u;",
            name = name_of(tile.array),
            length = array.length_text(),
            last = EXTENT - 1,
            end = rows.width - 1,
        )
    }
}

/// A vector of the transposed matrix that has been exchanged.
fn transposed(vector: u32) -> String {
    let element = |number: u32| {
        format!("matrix_a[first + (column + {}u) * 4u + row / 4u][row % 4u]", 4 * vector + number)
    };
    format!("vec4<f32>({})", (0..4).map(element).collect::<Vec<_>>().join(", "))
}

impl Array {
    /// Four elements of a matrix that are adjacent in a row of it.
    fn vector(&self, tile: Tile, vector: u32) -> String {
        let scalar = scalar_name(tile.matrix.scalar);
        let first = 4 * vector;
        let parts: Vec<_> = match (tile.row_major, self.numbers) {
            (true, numbers) => {
                (0..4 / numbers).map(|part| self.element(&self.along(first / numbers + part))).collect()
            }
            (false, 1) => (0..4).map(|number| self.element(&across(first + number, "row"))).collect(),
            (false, numbers) => (0..4)
                .map(|number| {
                    let element = self.element(&across(first + number, &format!("row / {numbers}u")));
                    format!("{element}[row % {numbers}u]")
                })
                .collect(),
        };
        format!("vec4<{scalar}>({})", parts.join(", "))
    }

    /// Stores four elements.
    fn store(&self, tile: Tile, vector: u32, value: &str) -> String {
        let (numbers, first) = (self.numbers, 4 * vector);
        let scalar = scalar_name(tile.matrix.scalar);
        let is_along = tile.row_major || numbers > 1;
        let stores = (0..4 / numbers).map(|part| {
            let place = match is_along {
                true => self.along(first / numbers + part),
                false => across(first + part, "row"),
            };
            let components = match numbers {
                1 => format!(".{}", ["x", "y", "z", "w"][part as usize]),
                2 => format!(".{}", ["xy", "zw"][part as usize]),
                _ => String::new(),
            };
            format!("{} = v{vector}{components}; ", self.element(&place))
        });
        let stores: String = stores.collect();
        format!("let v{vector} = vec4<{scalar}>({value}); {stores}")
    }

    /// The index of an element of the array in the invocation's row.
    fn along(&self, element: u32) -> String {
        format!("index + row * stride + column / {}u + {element}u", self.numbers)
    }

    /// An element of the array.
    fn element(&self, index: &str) -> String {
        match self.length {
            // The proofs do not see that the check above implies it.
            Some(length) => format!("(*x)[min({index}, {}u)]", length.saturating_sub(1)),
            None => format!("(*x)[{index}]"),
        }
    }
}

/// The index of an element of the array in another row of memory than its neighbours.
fn across(number: u32, within: &str) -> String {
    format!("index + (column + {number}u) * stride + {within}")
}

/// The type that replaces a matrix: what an invocation of `vectors` vectors of four elements holds.
pub(super) fn part_type(matrix: Matrix, vectors: u32) -> naga::TypeInner {
    use naga::{TypeInner as T, VectorSize as V};
    let (rows, scalar) = (V::Quad, matrix.scalar);
    match vectors {
        1 => T::Vector { size: rows, scalar },
        2 => T::Matrix { columns: V::Bi, rows, scalar },
        _ => T::Matrix { columns: V::Quad, rows, scalar },
    }
}

/// The name of a matrix type, which no other type has.
pub(super) fn type_name(matrix: Matrix) -> String {
    let role = match matrix.role {
        CooperativeRole::A => "a",
        CooperativeRole::B => "b",
        CooperativeRole::C => "c",
    };
    format!("matrix {role} of {}", scalar_name(matrix.scalar))
}
