//! Library functions on matrices.

use naga::{Scalar, Span, TypeInner, VectorSize};
use runtime_core::Result;

use super::vector::components;
use crate::ir::declare::scalar_name;
use crate::print::c::form::Form;
use crate::print::c::type_names::matrix_name;
use crate::print::c::types::COMPONENTS;
use crate::print::c::writer::Writer;

/// Columns, rows and scalar type of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) columns: VectorSize,
    pub(crate) rows: VectorSize,
    pub(crate) scalar: Scalar,
}

impl Matrix {
    /// The matrix type behind `inner`, if it is one.
    pub(crate) const fn of(inner: &TypeInner) -> Option<Self> {
        match *inner {
            TypeInner::Matrix { columns, rows, scalar } => Some(Self { columns, rows, scalar }),
            _ => None,
        }
    }

    /// One element of the matrix called `name`.
    fn element(self, name: &str, column: usize, row: usize) -> String {
        let wrapped = if self.rows == VectorSize::Tri { ".value" } else { "" };
        format!("{name}.c[{column}]{wrapped}.{}", COMPONENTS[row])
    }

    fn name(self) -> String {
        matrix_name(self.columns, self.rows, self.scalar)
    }

    fn indices(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.columns as usize)
            .flat_map(move |column| (0..self.rows as usize).map(move |row| (column, row)))
    }
}

impl Writer<'_> {
    /// Defines the type.
    fn matrix_type(&mut self, matrix: Matrix) -> Result<String> {
        self.matrix(matrix.columns, matrix.rows, matrix.scalar)
    }

    /// A function whose result is a matrix with such an element in each column and row.
    fn by_elements(
        &mut self,
        name: String,
        (result, parameters): (Matrix, &str),
        element: impl Fn(&mut Self, (usize, usize)) -> Result<String>,
    ) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let elements = result.indices().map(|at| element(writer, at)).collect::<Result<Vec<_>>>()?;
            let own = writer.matrix_type(result)?;
            let (open, close) = if result.rows == VectorSize::Tri { ("{{", "}}") } else { ("{", "}") };
            let columns = elements.chunks(result.rows as usize);
            let columns: Vec<_> =
                columns.map(|column| format!("{open}{}{close}", column.join(", "))).collect();
            let value = writer.dialect.compound(&own, &format!("{{{{{}}}}}", columns.join(", ")));
            Ok(format!("{own} {name}({parameters})\n{{\n    return {value};\n}}"))
        };
        self.library(name, define).map(Form::call)
    }

    /// The product of two types of which at least one is a matrix.
    pub(crate) fn product(&mut self, left: &TypeInner, right: &TypeInner) -> Result<Form> {
        match (Matrix::of(left), Matrix::of(right)) {
            (Some(a), Some(b)) => self.matrix_product(a, b),
            (Some(a), None) if matches!(right, TypeInner::Scalar(_)) => self.scaled(a, false),
            (None, Some(b)) if matches!(left, TypeInner::Scalar(_)) => self.scaled(b, true),
            (Some(a), None) => self.vector_product(a, true),
            (None, Some(b)) => self.vector_product(b, false),
            (None, None) => Err(self.unsupported("this product", Span::UNDEFINED)),
        }
    }

    fn matrix_product(&mut self, a: Matrix, b: Matrix) -> Result<Form> {
        let result = Matrix { columns: b.columns, rows: a.rows, scalar: a.scalar };
        let parameters = format!("{} a, {} b", self.matrix_type(a)?, self.matrix_type(b)?);
        let name = format!("{}_mul_{}", a.name(), b.name());
        self.by_elements(name, (result, &parameters), |writer, (column, row)| {
            let inner = 0..a.columns as usize;
            let products: Vec<_> =
                inner.map(|k| (a.element("a", k, row), b.element("b", column, k))).collect();
            writer.sum_of_products(a.scalar, &products)
        })
    }

    fn vector_product(&mut self, matrix: Matrix, matrix_first: bool) -> Result<Form> {
        let Matrix { columns, rows, scalar } = matrix;
        let (taken, made) = if matrix_first { (columns, rows) } else { (rows, columns) };
        let define = |writer: &mut Self, name: &str| {
            let own = writer.matrix_type(matrix)?;
            let (vector, result) = (writer.vector(taken, scalar)?, writer.vector(made, scalar)?);
            let mut values = Vec::new();
            for at in 0..made as usize {
                let products: Vec<_> = match matrix_first {
                    true => (0..)
                        .zip(components("b", taken))
                        .map(|(k, b)| (matrix.element("a", k, at), b))
                        .collect(),
                    false => (0..)
                        .zip(components("a", taken))
                        .map(|(k, a)| (a, matrix.element("b", at, k)))
                        .collect(),
                };
                values.push(writer.sum_of_products(scalar, &products)?);
            }
            let value = writer.dialect.made_of(&result, &values);
            let (a, b) = if matrix_first { (own, vector) } else { (vector, own) };
            Ok(format!("{result} {name}({a} a, {b} b)\n{{\n    return {value};\n}}"))
        };
        let operation = if matrix_first { "mul" } else { "rmul" };
        self.library(format!("{}_{operation}_vec", matrix.name()), define).map(Form::call)
    }

    fn scaled(&mut self, matrix: Matrix, scalar_first: bool) -> Result<Form> {
        let (own, element) = (self.matrix_type(matrix)?, scalar_name(matrix.scalar));
        let (operation, parameters) = match scalar_first {
            true => ("rscale", format!("{element} s, {own} a")),
            false => ("scale", format!("{own} a, {element} s")),
        };
        let name = format!("{}_{operation}", matrix.name());
        self.by_elements(name, (matrix, &parameters), |_, (column, row)| {
            Ok(format!("{} * s", matrix.element("a", column, row)))
        })
    }

    /// The sum or difference of two matrices.
    pub(crate) fn matrix_sum(&mut self, matrix: Matrix, operation: &str) -> Result<Form> {
        let sign = if operation == "add" { "+" } else { "-" };
        let own = self.matrix_type(matrix)?;
        let (name, parameters) = (format!("{}_{operation}", matrix.name()), format!("{own} a, {own} b"));
        self.by_elements(name, (matrix, &parameters), |_, (column, row)| {
            let [a, b] = ["a", "b"].map(|name| matrix.element(name, column, row));
            Ok(format!("{a} {sign} {b}"))
        })
    }

    /// The transpose.
    pub(crate) fn transpose(&mut self, matrix: Matrix) -> Result<Form> {
        let result = Matrix { columns: matrix.rows, rows: matrix.columns, scalar: matrix.scalar };
        let parameters = format!("{} a", self.matrix_type(matrix)?);
        let name = format!("{}_transpose", matrix.name());
        self.by_elements(name, (result, &parameters), |_, (column, row)| Ok(matrix.element("a", row, column)))
    }

    /// The determinant, by cofactors.
    pub(crate) fn determinant(&mut self, matrix: Matrix) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let own = writer.matrix_type(matrix)?;
            let all: Vec<_> = (0..matrix.columns as usize).collect();
            let value = minor(matrix, &all, 0);
            Ok(format!("{} {name}({own} a)\n{{\n    return {value};\n}}", scalar_name(matrix.scalar)))
        };
        self.library(format!("{}_determinant", matrix.name()), define).map(Form::call)
    }
}

/// The determinant of the rows from `row` on, in `columns`.
fn minor(matrix: Matrix, columns: &[usize], row: usize) -> String {
    if let [only] = columns {
        return matrix.element("a", *only, row);
    }
    let mut sum = String::new();
    for (place, column) in columns.iter().enumerate() {
        let others: Vec<_> = columns.iter().copied().filter(|other| other != column).collect();
        let sign = match (place, place % 2) {
            (0, _) => "",
            (_, 0) => " + ",
            _ => " - ",
        };
        let cofactor = minor(matrix, &others, row + 1);
        let cofactor = if others.len() > 1 { format!("({cofactor})") } else { cofactor };
        sum.extend([sign, &matrix.element("a", *column, row), " * ", &cofactor]);
    }
    sum
}

impl Writer<'_> {
    /// A matrix converted to another scalar type.
    pub(crate) fn converted_matrix(&mut self, matrix: Matrix, scalar: Scalar) -> Result<Form> {
        let result = Matrix { scalar, ..matrix };
        let parameters = format!("{} a", self.matrix_type(matrix)?);
        let name = format!("{}_to_{}", matrix.name(), result.name());
        self.by_elements(name, (result, &parameters), |writer, (column, row)| {
            Ok(writer.conversion(matrix.scalar, scalar)?.join(&[matrix.element("a", column, row)]))
        })
    }
}
