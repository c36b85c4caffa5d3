//! Library functions on matrices.

use naga::{Scalar, Span, TypeInner, VectorSize};
use runtime_core::Result;

use super::vector::components;
use crate::print::c::form::Form;
use crate::print::c::types::{COMPONENTS, matrix_name, scalar_name};
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

    /// A matrix whose elements, column by column, are `elements`.
    fn matrix_value(&mut self, matrix: Matrix, elements: &[String]) -> Result<String> {
        let name = self.matrix_type(matrix)?;
        let (open, close) = if matrix.rows == VectorSize::Tri { ("{{", "}}") } else { ("{", "}") };
        let columns = elements.chunks(matrix.rows as usize);
        let columns: Vec<_> = columns.map(|column| format!("{open}{}{close}", column.join(", "))).collect();
        Ok(format!("{}{{{}}}}}", self.dialect.construct(&name), columns.join(", ")))
    }

    /// The product of two types of which at least one is a matrix.
    pub(crate) fn product(&mut self, left: &TypeInner, right: &TypeInner) -> Result<Form> {
        match (Matrix::of(left), Matrix::of(right)) {
            (Some(a), Some(b)) => self.matrix_product(a, b),
            (Some(a), None) if matches!(right, TypeInner::Scalar(_)) => self.scaled(a, false),
            (None, Some(b)) if matches!(left, TypeInner::Scalar(_)) => self.scaled(b, true),
            (Some(a), None) => self.matrix_by_vector(a),
            (None, Some(b)) => self.vector_by_matrix(b),
            (None, None) => Err(self.unsupported("this product", Span::UNDEFINED)),
        }
    }

    fn matrix_product(&mut self, a: Matrix, b: Matrix) -> Result<Form> {
        let result = Matrix { columns: b.columns, rows: a.rows, scalar: a.scalar };
        let define = |writer: &mut Self, name: &str| {
            let (a_name, b_name) = (writer.matrix_type(a)?, writer.matrix_type(b)?);
            let mut elements = Vec::new();
            for (column, row) in result.indices() {
                let inner = 0..a.columns as usize;
                let products: Vec<_> =
                    inner.map(|k| (a.element("a", k, row), b.element("b", column, k))).collect();
                elements.push(writer.sum_of_products(a.scalar, &products)?);
            }
            let value = writer.matrix_value(result, &elements)?;
            Ok(format!("{} {name}({a_name} a, {b_name} b)\n{{\n    return {value};\n}}", result.name()))
        };
        self.library(format!("{}_mul_{}", a.name(), b.name()), define).map(Form::call)
    }

    fn matrix_by_vector(&mut self, a: Matrix) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let matrix = writer.matrix_type(a)?;
            let (vector, result) = (writer.vector(a.columns, a.scalar)?, writer.vector(a.rows, a.scalar)?);
            let mut values = Vec::new();
            for row in 0..a.rows as usize {
                let products: Vec<_> = components("b", a.columns)
                    .enumerate()
                    .map(|(column, of_b)| (a.element("a", column, row), of_b))
                    .collect();
                values.push(writer.sum_of_products(a.scalar, &products)?);
            }
            let value = format!("{}{}}}", writer.dialect.construct(&result), values.join(", "));
            Ok(format!("{result} {name}({matrix} a, {vector} b)\n{{\n    return {value};\n}}"))
        };
        self.library(format!("{}_mul_vec", a.name()), define).map(Form::call)
    }

    fn vector_by_matrix(&mut self, b: Matrix) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let matrix = writer.matrix_type(b)?;
            let (vector, result) = (writer.vector(b.rows, b.scalar)?, writer.vector(b.columns, b.scalar)?);
            let mut values = Vec::new();
            for column in 0..b.columns as usize {
                let products: Vec<_> = components("a", b.rows)
                    .enumerate()
                    .map(|(row, of_a)| (of_a, b.element("b", column, row)))
                    .collect();
                values.push(writer.sum_of_products(b.scalar, &products)?);
            }
            let value = format!("{}{}}}", writer.dialect.construct(&result), values.join(", "));
            Ok(format!("{result} {name}({vector} a, {matrix} b)\n{{\n    return {value};\n}}"))
        };
        self.library(format!("{}_rmul_vec", b.name()), define).map(Form::call)
    }

    fn scaled(&mut self, matrix: Matrix, scalar_first: bool) -> Result<Form> {
        let define = |writer: &mut Self, name: &str| {
            let (own, element) = (writer.matrix_type(matrix)?, scalar_name(matrix.scalar));
            let elements: Vec<_> = matrix
                .indices()
                .map(|(column, row)| format!("{} * s", matrix.element("a", column, row)))
                .collect();
            let value = writer.matrix_value(matrix, &elements)?;
            let parameters =
                if scalar_first { format!("{element} s, {own} a") } else { format!("{own} a, {element} s") };
            Ok(format!("{own} {name}({parameters})\n{{\n    return {value};\n}}"))
        };
        let operation = if scalar_first { "rscale" } else { "scale" };
        self.library(format!("{}_{operation}", matrix.name()), define).map(Form::call)
    }

    /// The sum or difference of two matrices.
    pub(crate) fn matrix_sum(&mut self, matrix: Matrix, operation: &str) -> Result<Form> {
        let sign = if operation == "add" { "+" } else { "-" };
        let define = |writer: &mut Self, name: &str| {
            let own = writer.matrix_type(matrix)?;
            let indices = matrix.indices();
            let element = |name, (column, row)| matrix.element(name, column, row);
            let elements: Vec<_> =
                indices.map(|at| format!("{} {sign} {}", element("a", at), element("b", at))).collect();
            let value = writer.matrix_value(matrix, &elements)?;
            Ok(format!("{own} {name}({own} a, {own} b)\n{{\n    return {value};\n}}"))
        };
        self.library(format!("{}_{operation}", matrix.name()), define).map(Form::call)
    }

    /// The transpose.
    pub(crate) fn transpose(&mut self, matrix: Matrix) -> Result<Form> {
        let result = Matrix { columns: matrix.rows, rows: matrix.columns, scalar: matrix.scalar };
        let define = |writer: &mut Self, name: &str| {
            let own = writer.matrix_type(matrix)?;
            let elements: Vec<_> =
                result.indices().map(|(column, row)| matrix.element("a", row, column)).collect();
            let value = writer.matrix_value(result, &elements)?;
            Ok(format!("{} {name}({own} a)\n{{\n    return {value};\n}}", result.name()))
        };
        self.library(format!("{}_transpose", matrix.name()), define).map(Form::call)
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
        let define = |writer: &mut Self, name: &str| {
            let own = writer.matrix_type(matrix)?;
            let form = writer.conversion(matrix.scalar, scalar)?;
            let indices = matrix.indices();
            let elements: Vec<_> =
                indices.map(|(column, row)| form.join(&[matrix.element("a", column, row)])).collect();
            let value = writer.matrix_value(result, &elements)?;
            Ok(format!("{} {name}({own} a)\n{{\n    return {value};\n}}", result.name()))
        };
        self.library(format!("{}_to_{}", matrix.name(), result.name()), define).map(Form::call)
    }
}
