//! The interface of an entry point: its tensors, push constants and work-group size.

use ::spirv::StorageClass;
use runtime_core::{Access, DType, Error, ErrorKind, Result};

use super::access::VariableAccess;
use super::{Id, MemberDecorations, SpirvModule, Type, Variable, WorkGroupSize};

/// Most members of the push constants.
const MAX_PUSH_CONSTANT_MEMBERS: usize = 1024;
/// Bindings beyond this are refused.
const MAX_BINDINGS: u32 = 1024;

/// The interface of an entry point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// By binding. If the module has a single entry point, this includes buffers that it declares and never uses.
    pub(crate) tensors: Vec<TensorParam>,
    /// How many of them, from the first on, the entry point uses and a launch must pass.
    pub(crate) required_tensors: usize,
    pub(crate) push_constants: PushConstantBlock,
    pub(crate) group_size: [u32; 3],
    /// Bytes of work-group memory.
    pub(crate) shared_bytes: u32,
}

/// A storage buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorParam {
    pub(crate) access: Access,
    /// The element type, if the code has one. `None` for `u32` words too, which code uses for any type.
    pub(crate) dtype: Option<DType>,
}

impl TensorParam {
    /// Two buffers at one binding are one tensor, seen in two ways: their accesses are merged.
    fn merge(self, other: Self) -> Self {
        let access = if self.access == other.access { self.access } else { Access::ReadWrite };
        Self { access, dtype: self.dtype.filter(|_| self.dtype == other.dtype) }
    }
}

/// Push constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PushConstantBlock {
    pub(crate) bytes: u32,
    pub(crate) members: Vec<PushConstantMember>,
}

/// A member of the push constants; members of nested structures count one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PushConstantMember {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    /// Its type, if it is a scalar.
    pub(crate) dtype: Option<DType>,
}

/// Push constants with too many members, or beyond 4 GiB.
struct TooLarge;

/// The tensors of an entry point while they are collected; `None` where no buffer has the binding.
#[derive(Debug, Default)]
struct TensorTable {
    by_binding: Vec<Option<TensorParam>>,
    required: usize,
}

impl TensorTable {
    fn at(&mut self, binding: usize) -> &mut Option<TensorParam> {
        if self.by_binding.len() <= binding {
            self.by_binding.resize(binding + 1, None);
        }
        &mut self.by_binding[binding]
    }

    /// Adds a buffer that the entry point uses.
    fn add_used(&mut self, binding: usize, tensor: TensorParam) {
        self.required = self.required.max(binding + 1);
        let known = self.at(binding);
        *known = Some(known.map_or(tensor, |known| known.merge(tensor)));
    }

    /// Adds a buffer that the entry point does not use.
    fn add_unused(&mut self, binding: usize, tensor: TensorParam) {
        self.at(binding).get_or_insert(tensor);
    }

    /// All tensors. A binding that no buffer has takes an argument too, so that later bindings keep their places.
    fn into_tensors(self) -> Vec<TensorParam> {
        let unused = TensorParam { access: Access::Read, dtype: None };
        self.by_binding.into_iter().map(|tensor| tensor.unwrap_or(unused)).collect()
    }
}

fn unsupported(entry: &str, what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("entry point \"{entry}\": {what}"))
}

impl SpirvModule {
    /// The interface of an entry point, with these specialisations.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for arguments other than storage buffers of set 0 and push constants.
    pub(crate) fn interface(&self, name: &str, spec_values: &[(u32, Vec<u8>)]) -> Result<Interface> {
        let entry = self.entry_points.iter().find(|entry| entry.name == name);
        let entry =
            entry.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no entry point \"{name}\"")))?;
        let mut used: Vec<_> = self.accesses(entry.function).into_iter().collect();
        used.sort_by_key(|(id, _)| *id);
        let (mut tensors, mut push_constants) = (TensorTable::default(), PushConstantBlock::default());
        let mut shared_bytes = 0_u32;
        for &(id, access) in &used {
            let Some(&variable) = self.variables.get(&id) else { continue };
            match variable.storage_class {
                Some(StorageClass::PushConstant) => {
                    push_constants = self.push_constant_block(name, variable, spec_values)?;
                }
                Some(StorageClass::Workgroup) => {
                    let bytes = self.pointee(variable).map_or(0, |ty| self.size_bytes(ty, spec_values));
                    // On an overflow it is more than any device has.
                    shared_bytes = shared_bytes.saturating_add(bytes);
                }
                Some(StorageClass::UniformConstant) => {
                    return Err(unsupported(name, "images and samplers cannot be kernel arguments"));
                }
                Some(StorageClass::Uniform | StorageClass::StorageBuffer) => {
                    let (binding, tensor) = self.tensor_param(name, id, variable, access)?;
                    tensors.add_used(binding, tensor);
                }
                _ => {}
            }
        }
        for (id, variable) in self.unused_buffers(&used) {
            let (binding, tensor) = self.tensor_param(name, id, variable, VariableAccess::default())?;
            tensors.add_unused(binding, tensor);
        }
        Ok(Interface {
            required_tensors: tensors.required,
            tensors: tensors.into_tensors(),
            push_constants,
            group_size: self.group_size(name, entry.function, spec_values)?,
            shared_bytes,
        })
    }

    /// The storage buffers that the entry point does not use, by id, if it is the module's only one.
    fn unused_buffers(&self, used: &[(Id, VariableAccess)]) -> Vec<(Id, Variable)> {
        if self.entry_points.len() != 1 {
            return Vec::new();
        }
        let is_used = |id: &Id| used.iter().any(|(other, _)| other == id);
        let buffers = self.variables.iter().filter(|(id, variable)| {
            variable.storage_class == Some(StorageClass::StorageBuffer) && !is_used(id)
        });
        let mut unused: Vec<_> = buffers.map(|(id, variable)| (*id, *variable)).collect();
        unused.sort_by_key(|(id, _)| *id);
        unused
    }

    fn pointee(&self, variable: Variable) -> Option<Id> {
        match self.types.get(&variable.ty)? {
            Type::Pointer { to, storage_class } if *storage_class == variable.storage_class => Some(*to),
            _ => None,
        }
    }

    /// The binding of a buffer, and its parameter.
    fn tensor_param(
        &self,
        entry: &str,
        id: Id,
        variable: Variable,
        access: VariableAccess,
    ) -> Result<(usize, TensorParam)> {
        let ty = self.pointee(variable).ok_or_else(|| unsupported(entry, "a buffer has no type"))?;
        let name = self.names.get(&id).filter(|name| !name.is_empty()).or_else(|| self.names.get(&ty));
        let name = name.map_or("a buffer", String::as_str);
        let is_uniform = variable.storage_class == Some(StorageClass::Uniform);
        if is_uniform && !self.decorations_of(ty).buffer_block {
            return Err(unsupported(
                entry,
                format_args!("`{name}` is a uniform buffer; declare it `buffer`"),
            ));
        }
        let Some(Type::Struct { members }) = self.types.get(&ty) else {
            return Err(unsupported(
                entry,
                format_args!("`{name}` is an array of buffers, which cannot be a kernel argument"),
            ));
        };
        let decorations = self.decorations_of(id);
        let binding = match (decorations.set.unwrap_or(0), decorations.binding) {
            (0, Some(binding)) if binding < MAX_BINDINGS => binding as usize,
            (set, binding) => {
                let binding = binding.map_or_else(|| "none".to_owned(), |binding| binding.to_string());
                let location = format_args!(
                    "`{name}` is at set {set}, binding {binding}; arguments are bindings 0, 1, … of set 0"
                );
                return Err(unsupported(entry, location));
            }
        };
        let all_members = |flag: fn(&MemberDecorations) -> bool| {
            let mut indices = (0..).zip(members);
            !members.is_empty()
                && indices.all(|(index, _)| self.member_decorations.get(&(ty, index)).is_some_and(flag))
        };
        let read_only = decorations.read_only || all_members(|member| member.read_only);
        let write_only = decorations.write_only || all_members(|member| member.write_only);
        let access = match (access.reads && !write_only, access.writes && !read_only) {
            (true, true) => Access::ReadWrite,
            (false, true) => Access::Write,
            (_, false) => Access::Read,
        };
        Ok((binding, TensorParam { access, dtype: self.common_dtype(members) }))
    }

    /// The element type of a buffer, if all its members have it: a header of another type makes the buffer plain bytes.
    /// `None` for `u32`, which code uses for any type.
    fn common_dtype(&self, members: &[Id]) -> Option<DType> {
        let dtype = members.last().and_then(|member| self.element_dtype(*member));
        let dtype = dtype.filter(|_| members.iter().all(|member| self.element_dtype(*member) == dtype));
        dtype.filter(|dtype| *dtype != DType::U32)
    }

    /// The scalar type at the bottom of arrays, vectors and matrices.
    fn element_dtype(&self, ty: Id) -> Option<DType> {
        match self.types.get(&ty)? {
            Type::RuntimeArray { of }
            | Type::Array { of, .. }
            | Type::Vector { of, .. }
            | Type::Matrix { of, .. } => self.element_dtype(*of),
            scalar => scalar_dtype(scalar),
        }
    }

    fn push_constant_block(
        &self,
        entry: &str,
        variable: Variable,
        spec_values: &[(u32, Vec<u8>)],
    ) -> Result<PushConstantBlock> {
        let mut members = Vec::new();
        if let Some(ty) = self.pointee(variable) {
            self.flatten_members(ty, 0, spec_values, &mut members).map_err(|TooLarge| {
                unsupported(
                    entry,
                    format_args!(
                        "its push constants have more than {MAX_PUSH_CONSTANT_MEMBERS} members, or extend beyond \
                         4 GiB; use a buffer"
                    ),
                )
            })?;
        }
        let ends = members.iter().map(|member| member.offset + member.bytes);
        // The size of a push constant range is a multiple of 4.
        let bytes = ends.max().unwrap_or(0).next_multiple_of(4);
        Ok(PushConstantBlock { bytes, members })
    }

    /// Appends the members of a structure, and of structures in it.
    fn flatten_members(
        &self,
        ty: Id,
        base: u32,
        spec_values: &[(u32, Vec<u8>)],
        found: &mut Vec<PushConstantMember>,
    ) -> std::result::Result<(), TooLarge> {
        let Some(Type::Struct { members }) = self.types.get(&ty) else { return Ok(()) };
        for (index, member) in (0..).zip(members) {
            let layout = self.member_decorations.get(&(ty, index)).copied().unwrap_or_default();
            let offset = base.checked_add(layout.offset).ok_or(TooLarge)?;
            match self.types.get(member) {
                Some(Type::Struct { .. }) => self.flatten_members(*member, offset, spec_values, found)?,
                Some(Type::Matrix { columns, of }) if layout.matrix_stride > 0 => {
                    // The stride separates columns, or rows if it is row-major.
                    let strides = match self.types.get(of) {
                        Some(Type::Vector { count, .. }) if layout.row_major => count,
                        _ => columns,
                    };
                    let bytes = strides.checked_mul(layout.matrix_stride).ok_or(TooLarge)?;
                    found.push(PushConstantMember { offset, bytes, dtype: None });
                }
                Some(other) => {
                    let bytes = self.size_bytes(*member, spec_values);
                    found.push(PushConstantMember { offset, bytes, dtype: scalar_dtype(other) });
                }
                None => {}
            }
            let end = found.last().map_or(Some(0), |member| member.offset.checked_add(member.bytes));
            let fits = end.is_some_and(|end| end.checked_next_multiple_of(4).is_some());
            if found.len() > MAX_PUSH_CONSTANT_MEMBERS || !fits {
                return Err(TooLarge);
            }
        }
        Ok(())
    }

    /// The size of a type in bytes; 0 if it has none.
    fn size_bytes(&self, ty: Id, spec_values: &[(u32, Vec<u8>)]) -> u32 {
        match self.types.get(&ty) {
            Some(Type::Bool) => 4,
            Some(Type::Int { bits, .. } | Type::Float { bits }) => bits / 8,
            Some(Type::Vector { of, count }) => count.saturating_mul(self.size_bytes(*of, spec_values)),
            Some(Type::Matrix { of, columns }) => columns.saturating_mul(self.size_bytes(*of, spec_values)),
            Some(Type::Array { of, length }) => {
                let stride = self.decorations_of(ty).array_stride;
                let stride = stride.unwrap_or_else(|| self.size_bytes(*of, spec_values));
                stride.saturating_mul(self.integer_constant(*length, spec_values).unwrap_or(0))
            }
            Some(Type::Struct { members }) => members
                .iter()
                .fold(0, |sum: u32, member| sum.saturating_add(self.size_bytes(*member, spec_values))),
            _ => 0,
        }
    }

    /// The work-group size: a `WorkgroupSize` constant overrides the entry point's own.
    fn group_size(&self, name: &str, function: Id, spec_values: &[(u32, Vec<u8>)]) -> Result<[u32; 3]> {
        let builtin = self.decorations.iter().find(|(_, known)| known.is_work_group_size);
        let elements = builtin.and_then(|(id, _)| self.constant_elements(*id));
        let size = match elements.and_then(|elements| elements.first_chunk::<3>()) {
            Some(elements) => Some(WorkGroupSize::Constants(*elements)),
            None => self.work_group_sizes.get(&function).copied(),
        };
        let extent = |id: Id| {
            self.integer_constant(id, spec_values).ok_or_else(|| {
                unsupported(
                    name,
                    "its work-group size is computed from specialisation constants; make it plain constants",
                )
            })
        };
        match size {
            Some(WorkGroupSize::Literal(size)) => Ok(size),
            Some(WorkGroupSize::Constants([x, y, z])) => Ok([extent(x)?, extent(y)?, extent(z)?]),
            None => Err(unsupported(name, "it has no work-group size")),
        }
    }
}

fn scalar_dtype(ty: &Type) -> Option<DType> {
    Some(match ty {
        Type::Int { bits: 8, signed: true } => DType::I8,
        Type::Int { bits: 8, .. } => DType::U8,
        Type::Int { bits: 16, signed: true } => DType::I16,
        Type::Int { bits: 16, .. } => DType::U16,
        Type::Int { bits: 32, signed: true } => DType::I32,
        Type::Int { bits: 32, .. } => DType::U32,
        Type::Int { bits: 64, signed: true } => DType::I64,
        Type::Int { bits: 64, .. } => DType::U64,
        Type::Float { bits: 16 } => DType::F16,
        Type::Float { bits: 32 } => DType::F32,
        Type::Float { bits: 64 } => DType::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
