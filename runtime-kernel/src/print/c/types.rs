//! Types, defined on first use.
//!
//! A vector is a structure aligned like its scalars, so that a tensor may begin at any element; explicit padding
//! produces WGSL's offsets and strides. CUDA's structures are aligned as in WGSL, to 16 bytes at most, so that their vectors
//! move as one word. A vector of three has twelve bytes, as in WGSL: where it is an array element or a matrix column, a
//! wrapper with a member `value` pads it to the stride.

use std::fmt::Write as _;

use naga::proc::{IndexableLength, TypeResolution};
use naga::{ArraySize, Handle, Scalar, Span, StructMember, Type, TypeInner, VectorSize};
use runtime_core::Result;

use super::type_names::{matrix_name, vector_name};
use super::writer::Writer;
use crate::ir::cooperative::ROW_ALIGNMENT;
use crate::program::Dialect;

/// The members of a vector.
pub(crate) const COMPONENTS: [&str; 4] = ["x", "y", "z", "w"];

/// A member of a C structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    Member(usize),
    /// Bytes of padding.
    Padding(u32),
}

impl Writer<'_> {
    /// The C type for a type of the module.
    ///
    /// # Errors
    /// `Unsupported` for types that do not occur in compute kernels.
    pub(crate) fn type_name(&mut self, ty: Handle<Type>) -> Result<String> {
        match &self.module().types[ty].inner {
            TypeInner::Struct { members, span } => self.structure(ty, members, *span),
            TypeInner::Array { base, size, stride } => self.array(ty, *base, *size, *stride),
            inner => self.inner_name(inner, self.module().types.get_span(ty)),
        }
    }

    /// The C type of an expression.
    pub(crate) fn resolved_name(&mut self, ty: &TypeResolution, span: Span) -> Result<String> {
        match ty {
            TypeResolution::Handle(ty) => self.type_name(*ty),
            TypeResolution::Value(inner) => self.inner_name(inner, span),
        }
    }

    /// The C type of a scalar, vector, matrix or pointer.
    pub(crate) fn inner_name(&mut self, inner: &TypeInner, span: Span) -> Result<String> {
        match *inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => Ok(self.scalar(scalar)?.to_owned()),
            TypeInner::Vector { size, scalar } => self.vector(size, scalar),
            TypeInner::Matrix { columns, rows, scalar } => self.matrix(columns, rows, scalar),
            TypeInner::CooperativeMatrix { .. } => self.cooperative_type(inner, span),
            TypeInner::Pointer { base, space } => {
                let base = self.type_name(base)?;
                Ok([self.dialect.space(space), &base, " *"].concat())
            }
            _ => Err(self.unsupported("a type outside compute kernels", span)),
        }
    }

    /// Defines a vector type.
    pub(crate) fn vector(&mut self, size: VectorSize, scalar: Scalar) -> Result<String> {
        let name = vector_name(size, scalar);
        if self.first(&name) {
            let element = self.scalar(scalar)?;
            let members = COMPONENTS[..size as usize].join(", ");
            let _ = writeln!(self.types, "typedef struct {name} {{ {element} {members}; }} {name};");
        }
        Ok(name)
    }

    /// Defines a matrix type: a structure with an array `c` of columns.
    pub(crate) fn matrix(&mut self, columns: VectorSize, rows: VectorSize, scalar: Scalar) -> Result<String> {
        let name = matrix_name(columns, rows, scalar);
        if self.first(&name) {
            let column = self.vector(rows, scalar)?;
            let column = if rows == VectorSize::Tri {
                self.padded(&column, u32::from(scalar.width) * 3, u32::from(scalar.width) * 4)
            } else {
                column
            };
            let columns = columns as u8;
            let _ = writeln!(self.types, "typedef struct {name} {{ {column} c[{columns}]; }} {name};");
        }
        Ok(name)
    }

    /// Pads a type to `stride` bytes.
    fn padded(&mut self, element: &str, size: u32, stride: u32) -> String {
        let name = format!("{element}_padded");
        if self.first(&name) {
            let bytes = stride - size;
            let _ = writeln!(
                self.types,
                "typedef struct {name} {{ {element} value; unsigned char padding[{bytes}]; }} {name};"
            );
        }
        name
    }

    /// The C type of array elements, wrapped if they have less than `stride` bytes.
    pub(crate) fn element_name(&mut self, base: Handle<Type>, stride: u32) -> Result<String> {
        let element = self.type_name(base)?;
        let (size, _) = self.layout(base);
        Ok(if size < stride { self.padded(&element, size, stride) } else { element })
    }

    /// Whether an array's elements are wrapped.
    pub(crate) fn is_padded(&self, base: Handle<Type>, stride: u32) -> bool {
        self.layout(base).0 < stride
    }

    fn array(
        &mut self,
        ty: Handle<Type>,
        base: Handle<Type>,
        size: ArraySize,
        stride: u32,
    ) -> Result<String> {
        let element = self.element_name(base, stride)?;
        let Ok(IndexableLength::Known(length)) = size.resolve(self.module().to_ctx()) else {
            return Ok(element);
        };
        let name = self.names.of(ty).to_owned();
        if self.first(&name) {
            let _ = writeln!(self.types, "typedef struct {name} {{ {element} at[{length}]; }} {name};");
        }
        Ok(name)
    }

    fn structure(&mut self, ty: Handle<Type>, members: &[StructMember], span: u32) -> Result<String> {
        let name = self.names.of(ty).to_owned();
        if !self.first(&name) {
            return Ok(name);
        }
        let mut body = String::new();
        let mut pads = 0;
        for slot in self.slots(members, span) {
            match slot {
                Slot::Member(index) => {
                    let member = &members[index];
                    let type_name = self.type_name(member.ty)?;
                    let dimension = match self.module().types[member.ty].inner {
                        // C++ has no flexible arrays, and C none without another member; the last member of a
                        // structure may be indexed past its end.
                        TypeInner::Array { size: ArraySize::Dynamic, .. }
                            if self.dialect == Dialect::Cuda || members.len() == 1 =>
                        {
                            "[1]"
                        }
                        TypeInner::Array { size: ArraySize::Dynamic, .. } => "[]",
                        _ => "",
                    };
                    let member = self.names.member(ty, u32::try_from(index).unwrap_or_default());
                    let _ = writeln!(body, "    {type_name} {member}{dimension};");
                }
                Slot::Padding(bytes) => {
                    let _ = writeln!(body, "    unsigned char padding_{pads}[{bytes}];");
                    pads += 1;
                }
            }
        }
        let alignment = match self.dialect {
            Dialect::Cuda => format!("__align__({}) ", self.alignments[ty.index()]),
            _ => String::new(),
        };
        let _ = writeln!(self.types, "typedef struct {alignment}{name} {{\n{body}}} {name};");
        self.assert_layout(ty, members, span);
        Ok(name)
    }

    /// Emits static assertions that a structure has WGSL's layout; in CUDA its size, as NVRTC has no `offsetof`.
    fn assert_layout(&mut self, ty: Handle<Type>, members: &[StructMember], span: u32) {
        // The results of `frexp` and others are never in tensors, and naga gives no layout to their vectors of three.
        if self.module().special_types.predeclared_types.values().any(|predeclared| *predeclared == ty) {
            return;
        }
        let assertion = match self.dialect {
            Dialect::Host => "_Static_assert",
            Dialect::Cuda => "static_assert",
            _ => return,
        };
        let name = self.names.of(ty);
        for (index, member) in members.iter().enumerate().filter(|_| self.dialect == Dialect::Host) {
            let field = self.names.member(ty, u32::try_from(index).unwrap_or_default());
            let offset = member.offset;
            let _ = writeln!(
                self.types,
                "{assertion}(__builtin_offsetof({name}, {field}) == {offset}, \"{name}.{field}\");"
            );
        }
        let last = members.last().map(|last| &self.module().types[last.ty].inner);
        if !matches!(last, Some(TypeInner::Array { size: ArraySize::Dynamic, .. })) {
            let _ = writeln!(self.types, "{assertion}(sizeof({name}) == {span}, \"{name}\");");
        }
    }

    /// The members of a structure, with padding that produces WGSL's offsets.
    pub(crate) fn slots(&self, members: &[StructMember], span: u32) -> Vec<Slot> {
        let mut slots = Vec::with_capacity(members.len());
        let (mut end, mut aligned) = (0_u32, 1);
        for (index, member) in members.iter().enumerate() {
            let (size, align) = self.layout(member.ty);
            if end.next_multiple_of(align) < member.offset {
                slots.push(Slot::Padding(member.offset - end));
            }
            slots.push(Slot::Member(index));
            end = member.offset + size;
            aligned = aligned.max(align);
        }
        let runtime_sized = members.last().is_some_and(|last| {
            matches!(self.module().types[last.ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. })
        });
        if !runtime_sized && end.next_multiple_of(aligned) < span {
            slots.push(Slot::Padding(span - end));
        }
        slots
    }

    /// Whether a structure has bytes between its members or behind them.
    pub(super) fn has_gaps(&self, members: &[StructMember], span: u32) -> bool {
        let mut end = 0;
        members.iter().any(|member| {
            let is_gap = end < member.offset;
            end = member.offset + self.layout(member.ty).0;
            is_gap
        }) || end < span
    }

    /// The C alignment of each type, memoised since a structure may contain another many times.
    pub(super) fn find_alignments(&mut self) {
        for (ty, _) in self.module().types.iter() {
            let align = self.layout(ty).1;
            self.alignments.push(align);
        }
    }

    /// Size and alignment in C.
    fn layout(&self, ty: Handle<Type>) -> (u32, u32) {
        let align_of = |ty: Handle<Type>| self.alignments[ty.index()];
        match self.module().types[ty].inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                (u32::from(scalar.width), u32::from(scalar.width))
            }
            TypeInner::Vector { size, scalar } => {
                (u32::from(scalar.width) * size as u32, u32::from(scalar.width))
            }
            TypeInner::Matrix { columns, rows, scalar } => {
                let stride = if rows == VectorSize::Tri { 4 } else { rows as u32 };
                (u32::from(scalar.width) * stride * columns as u32, u32::from(scalar.width))
            }
            TypeInner::CooperativeMatrix { columns, rows, scalar, .. } => {
                (u32::from(scalar.width) * columns as u32 * rows as u32, u32::from(scalar.width))
            }
            TypeInner::Array { base, size, stride } => {
                let align = align_of(base);
                match size.resolve(self.module().to_ctx()) {
                    Ok(IndexableLength::Known(length)) => (stride * length, align),
                    _ => (0, align),
                }
            }
            TypeInner::Struct { ref members, span } => {
                let align = match self.dialect {
                    // As in WGSL, up to the largest that a launch demands of tensors.
                    Dialect::Cuda => self.layouts[ty].alignment.round_up(1).min(ROW_ALIGNMENT),
                    _ => members.iter().map(|member| align_of(member.ty)).max().unwrap_or(1),
                };
                (span, align)
            }
            _ => (0, 1),
        }
    }
}
