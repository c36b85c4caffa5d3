//! Library functions on vectors.

use naga::{BinaryOperator, Scalar, SwizzleComponent, TypeInner, VectorSize};
use runtime_core::Result;

use crate::ir::declare::scalar_name;
use crate::print::c::form::Form;
use crate::print::c::type_names::vector_name;
use crate::print::c::types::COMPONENTS;
use crate::print::c::writer::Writer;

/// A scalar, or a vector of scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) scalar: Scalar,
    pub(crate) size: Option<VectorSize>,
}

impl Shape {
    /// The shape of a scalar or vector type.
    pub(crate) const fn of(inner: &TypeInner) -> Option<Self> {
        match *inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => Some(Self { scalar, size: None }),
            TypeInner::Vector { size, scalar } => Some(Self { scalar, size: Some(size) }),
            TypeInner::ValuePointer { size, scalar, .. } => Some(Self { scalar, size }),
            _ => None,
        }
    }

    /// WGSL's name of the type.
    pub(crate) fn name(self) -> String {
        match self.size {
            Some(size) => vector_name(size, self.scalar),
            None => scalar_name(self.scalar).to_owned(),
        }
    }

    /// The same shape with another scalar type.
    pub(crate) const fn with(self, scalar: Scalar) -> Self {
        Self { scalar, size: self.size }
    }
}

/// Names of parameters.
const PARAMETERS: [&str; 4] = ["a", "b", "c", "d"];

/// `a.x`, `a.y`, …
pub(crate) fn components(vector: &str, size: VectorSize) -> impl Iterator<Item = String> {
    COMPONENTS[..size as usize].iter().map(move |component| [vector, ".", component].concat())
}

impl Writer<'_> {
    /// The C type of a shape.
    pub(crate) fn shape(&mut self, shape: Shape) -> Result<String> {
        match shape.size {
            Some(size) => self.vector(size, shape.scalar),
            None => self.scalar(shape.scalar).map(str::to_owned),
        }
    }

    /// Applies the scalar `form` component by component; operands may be vectors or scalars, and `scalar` is the
    /// type of its result.
    pub(crate) fn mapped(
        &mut self,
        operation: &str,
        shapes: &[Shape],
        scalar: Scalar,
        form: Form,
    ) -> Result<Form> {
        let Some(size) = shapes.iter().find_map(|shape| shape.size) else { return Ok(form) };
        if form == Form::Same {
            return Ok(form);
        }
        let mut name = [&shapes[0].name(), "_", operation].concat();
        for other in shapes.iter().filter(|shape| **shape != shapes[0]) {
            name.extend(["_", &other.name()]);
        }
        let define = |writer: &mut Self, name: &str| {
            let result = writer.vector(size, scalar)?;
            let mut parameters = Vec::with_capacity(shapes.len());
            for (shape, parameter) in shapes.iter().zip(PARAMETERS) {
                parameters.push([&writer.shape(*shape)?, " ", parameter].concat());
            }
            let values = COMPONENTS[..size as usize].iter().map(|component| {
                let operands = shapes.iter().zip(PARAMETERS).map(|(shape, parameter)| match shape.size {
                    Some(_) => [parameter, ".", component].concat(),
                    None => parameter.to_owned(),
                });
                form.join(&operands.collect::<Vec<_>>())
            });
            let value = writer.dialect.made_of(&result, &values.collect::<Vec<_>>());
            Ok([&result, " ", name, "(", &parameters.join(", "), ") { return ", &value, "; }"].concat())
        };
        self.library(name, define).map(Form::call)
    }

    /// A vector with equal components.
    pub(crate) fn splat(&mut self, size: VectorSize, scalar: Scalar) -> Result<Form> {
        let vector = self.vector(size, scalar)?;
        let define = |writer: &mut Self, name: &str| {
            let value = writer.dialect.made_of(&vector, &vec!["a".to_owned(); size as usize]);
            Ok(format!("{vector} {name}({} a) {{ return {value}; }}", scalar_name(scalar)))
        };
        self.library(format!("{vector}_splat"), define).map(Form::call)
    }

    /// A swizzle.
    pub(crate) fn swizzle(&mut self, of: (VectorSize, Scalar), pattern: &[SwizzleComponent]) -> Result<Form> {
        let size = match pattern.len() {
            2 => VectorSize::Bi,
            3 => VectorSize::Tri,
            _ => VectorSize::Quad,
        };
        let (vector, result) = (self.vector(of.0, of.1)?, self.vector(size, of.1)?);
        let letters: String = pattern.iter().map(|component| COMPONENTS[*component as usize]).collect();
        let define = |writer: &mut Self, name: &str| {
            let values: Vec<_> =
                pattern.iter().map(|component| format!("a.{}", COMPONENTS[*component as usize])).collect();
            let value = writer.dialect.made_of(&result, &values);
            Ok(format!("{result} {name}({vector} a) {{ return {value}; }}"))
        };
        self.library(format!("{vector}_{letters}"), define).map(Form::call)
    }

    /// The component at a run-time index; zero if it is out of range.
    pub(crate) fn component(&mut self, size: VectorSize, scalar: Scalar) -> Result<Form> {
        let (vector, zero) = (self.vector(size, scalar)?, self.literal_of(scalar, 0)?.0);
        self.scalar(Scalar::U32)?;
        let define = |_: &mut Self, name: &str| {
            let mut value = String::new();
            for (index, component) in components("a", size).enumerate() {
                value.push_str(&format!("i == {index} ? {component} : "));
            }
            Ok(format!("{} {name}({vector} a, u32 i) {{ return {value}{zero}; }}", scalar_name(scalar)))
        };
        self.library(format!("{vector}_at"), define).map(Form::call)
    }

    /// A vector with the component at a run-time index replaced.
    pub(crate) fn replacement(&mut self, size: VectorSize, scalar: Scalar) -> Result<Form> {
        let vector = self.vector(size, scalar)?;
        self.scalar(Scalar::U32)?;
        let define = |writer: &mut Self, name: &str| {
            let values = components("a", size).enumerate();
            let values: Vec<_> = values.map(|(index, old)| format!("i == {index} ? b : {old}")).collect();
            let value = writer.dialect.made_of(&vector, &values);
            Ok(format!("{vector} {name}({vector} a, u32 i, {} b) {{ return {value}; }}", scalar_name(scalar)))
        };
        self.library(format!("{vector}_with"), define).map(Form::call)
    }

    /// `&&` or `||` over the components.
    pub(crate) fn folded(&mut self, operation: &str, size: VectorSize) -> Result<Form> {
        let vector = self.vector(size, Scalar::BOOL)?;
        let sign = if operation == "all" { " && " } else { " || " };
        let value = components("a", size).collect::<Vec<_>>().join(sign);
        let define = |_: &mut Self, name: &str| Ok(format!("bool {name}({vector} a) {{ return {value}; }}"));
        self.library(format!("{vector}_{operation}"), define).map(Form::call)
    }

    /// The sum of products of scalars, as text.
    pub(crate) fn sum_of_products(
        &mut self,
        scalar: Scalar,
        products: &[(String, String)],
    ) -> Result<String> {
        let multiply = self.binary(BinaryOperator::Multiply, scalar)?;
        let add = self.binary(BinaryOperator::Add, scalar)?;
        let terms = products.iter().map(|(left, right)| multiply.join(&[left.clone(), right.clone()]));
        Ok(terms.reduce(|sum, term| add.join(&[sum, term])).unwrap_or_default())
    }

    /// The dot product.
    pub(crate) fn dot(&mut self, size: VectorSize, scalar: Scalar) -> Result<String> {
        let vector = self.vector(size, scalar)?;
        self.library(format!("{vector}_dot"), |writer, name| {
            let products: Vec<_> = components("a", size).zip(components("b", size)).collect();
            let sum = writer.sum_of_products(scalar, &products)?;
            Ok(format!("{} {name}({vector} a, {vector} b) {{ return {sum}; }}", scalar_name(scalar)))
        })
    }

    /// The length of a vector.
    pub(crate) fn length(&mut self, size: VectorSize, scalar: Scalar) -> Result<String> {
        let vector = self.vector(size, scalar)?;
        self.library(format!("{vector}_length"), |writer, name| {
            let (dot, sqrt) = (writer.dot(size, scalar)?, writer.float("sqrt", scalar)?);
            Ok(format!("{} {name}({vector} a) {{ return {sqrt}({dot}(a, a)); }}", scalar_name(scalar)))
        })
    }

    /// `distance`, `normalize`, `cross`, `reflect`, `refract`, `faceForward`.
    pub(crate) fn geometric(&mut self, operation: &str, size: VectorSize, scalar: Scalar) -> Result<Form> {
        let vector = self.vector(size, scalar)?;
        let define = |writer: &mut Self, name: &str| {
            let (dot, length) = (writer.dot(size, scalar)?, writer.length(size, scalar)?);
            let element = scalar_name(scalar);
            let (one, two) = (writer.literal_of(scalar, 1)?.0, writer.literal_of(scalar, 2)?.0);
            let zero = writer.literal_of(scalar, 0)?.0;
            let each = |of: &dyn Fn(&str) -> String| {
                let values: Vec<_> =
                    COMPONENTS[..size as usize].iter().map(|component| of(component)).collect();
                writer.dialect.made_of(&vector, &values)
            };
            Ok(match operation {
                "distance" => {
                    let difference = each(&|c| format!("a.{c} - b.{c}"));
                    format!("{element} {name}({vector} a, {vector} b) {{ return {length}({difference}); }}")
                }
                "normalize" => {
                    let value = each(&|c| format!("a.{c} / l"));
                    format!(
                        "{vector} {name}({vector} a) {{ const {element} l = {length}(a); return {value}; }}"
                    )
                }
                "cross" => {
                    let value = each(&|c| match c {
                        "x" => "a.y * b.z - a.z * b.y".to_owned(),
                        "y" => "a.z * b.x - a.x * b.z".to_owned(),
                        _ => "a.x * b.y - a.y * b.x".to_owned(),
                    });
                    format!("{vector} {name}({vector} a, {vector} b) {{ return {value}; }}")
                }
                "reflect" => {
                    let value = each(&|c| format!("a.{c} - k * b.{c}"));
                    let factor = format!("const {element} k = {two} * {dot}(b, a);");
                    format!("{vector} {name}({vector} a, {vector} b) {{ {factor} return {value}; }}")
                }
                "refract" => {
                    // The length of a vector has defined it.
                    let sqrt = format!("{element}_sqrt");
                    let value = each(&|c| format!("r * a.{c} - s * b.{c}"));
                    let nothing = writer.dialect.zero(&vector);
                    format!(
                        "{vector} {name}({vector} a, {vector} b, {element} r)\n{{\n    \
                         const {element} d = {dot}(b, a);\n    const {element} k = {one} - r * r * ({one} - d * d);\n    \
                         if (k < {zero}) return {nothing};\n    const {element} s = r * d + {sqrt}(k);\n    \
                         return {value};\n}}"
                    )
                }
                _ => {
                    let value = each(&|c| format!("-a.{c}"));
                    format!(
                        "{vector} {name}({vector} a, {vector} b, {vector} c) \
                         {{ return {dot}(b, c) < {zero} ? a : {value}; }}"
                    )
                }
            })
        };
        self.library(format!("{vector}_{operation}"), define).map(Form::call)
    }
}
