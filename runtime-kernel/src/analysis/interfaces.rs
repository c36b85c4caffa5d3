//! Derives the interface of each entry point from its bindings. Errors name the broken rule of the convention and
//! its line.

use naga::proc::Layouter;
use naga::valid::{FunctionInfo, GlobalUse};
use naga::{
    AddressSpace, ArraySize, Binding, EntryPoint, GlobalVariable, Handle, ResourceBinding, Scalar,
    ShaderStage, Span, StorageAccess, StructMember, Type, TypeInner,
};
use runtime_core::{Access, DType, Error, ErrorKind, Result};

use crate::interface::{self, Interface, Layout, Tensor};
use crate::ir::Global;
use crate::ir::cooperative::ROW_ALIGNMENT;
use crate::ir::declare::dtype_of;
use crate::parse::diagnostics::failed;
use crate::parse::textures;
use crate::parse::tokens::tokens;
use crate::program::{Feature, Program};

const ARGUMENTS: &str = "a portable kernel takes its tensors from storage and uniform buffers and its scalars from one \
                         var<immediate> struct";
const SCALARS: &str =
    "the var<immediate> must be a struct of scalars (i32, u32, f16, f32, i64, u64, f64) without gaps";

const SAMPLERS: &str =
    "a portable kernel does not sample textures: read texels with textureLoad, and interpolate between them";

const TEXTURES: &str = "a portable kernel accesses textures only through textureLoad, textureStore, textureDimensions, textureNumLayers \
                        and textureNumLevels, and does not pass them to functions; textures have one sample and 1, 2 or 3 dimensions, \
                        and texels have 4, 8 or 16 bytes";

const LAYOUTS: &str = "the layout of a tensor `x` is a member `x_layout` of type \
                       `struct Layout { shape: array<u32, R>, strides: array<i32, R> }` with R from 1 to 8";

/// The type of members that receive the layout of a tensor.
const LAYOUT: &str = "Layout";
/// What follows the name of a tensor in the name of the member that receives its layout.
const LAYOUT_SUFFIX: &str = "_layout";
const MAX_RANK: u32 = 8;

/// Derives the interfaces of all entry points.
///
/// # Errors
/// `CompileFailed`, naming the rule and the line.
pub(crate) fn of_program(program: &Program) -> Result<Vec<Interface>> {
    let mut layouts = Layouter::default();
    layouts.update(program.module.to_ctx()).map_err(|error| failed(error.to_string()))?;
    let reflect = Reflect { program, layouts };
    let entries = program.module.entry_points.iter().enumerate();
    let (mut list, mut messages) = (Vec::new(), Vec::<String>::new());
    for (index, entry) in entries {
        match reflect.entry(index, entry) {
            Ok(interface) => list.push(interface),
            Err(error) if messages.iter().any(|known| known == error.message()) => {}
            Err(error) => messages.push(error.message().to_owned()),
        }
    }
    if !messages.is_empty() {
        return Err(failed(messages.join("\n")));
    }
    if list.is_empty() {
        let place = program.location(Span::new(0, 0));
        return Err(failed(format!(
            "{place}: there is no entry point; mark one with @compute @workgroup_size(…)"
        )));
    }
    Ok(list)
}

/// The declared access, except that a `read_write` buffer which is never read is `Write`, so its contents may be
/// undefined at launch.
fn access_of(declared: StorageAccess, uses: GlobalUse) -> Access {
    match (declared.contains(StorageAccess::STORE), uses.contains(GlobalUse::READ)) {
        (false, _) => Access::Read,
        (true, false) if uses.contains(GlobalUse::WRITE) => Access::Write,
        (true, _) => Access::ReadWrite,
    }
}

/// More items than any device has in a work-group.
const MAX_GROUP_ITEMS: u64 = 1 << 24;

struct Reflect<'a> {
    program: &'a Program,
    layouts: Layouter,
}

impl Reflect<'_> {
    fn entry(&self, index: usize, entry: &EntryPoint) -> Result<Interface> {
        let place = || self.program.location(declaration(&self.program.source, &entry.name));
        if entry.stage != ShaderStage::Compute {
            let stage = format!("{:?}", entry.stage).to_lowercase();
            return Err(failed(format!(
                "{}: there is no compute shader: entry point \"{}\" is a {stage} shader; a portable kernel is @compute",
                place(),
                entry.name
            )));
        }
        let items: u64 = entry.workgroup_size.iter().map(|&size| u64::from(size)).product();
        if items > MAX_GROUP_ITEMS {
            let message = format!(
                "{}: entry point \"{}\" has work-groups of {items} items; no device has more than {MAX_GROUP_ITEMS}",
                place(),
                entry.name
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        if let Some(name) = self.input_of_stage(entry) {
            let what = format!("\"{name}\" has a @location, which compute shaders do not have; {ARGUMENTS}");
            return Err(failed(format!("{}: {what}", place())));
        }
        let uses = self.program.info.get_entry_point(index);
        // Checked first: textures that a sampler uses stay textures, and would be reported instead.
        if let Some((handle, _)) = self.used(uses).find(|(_, variable)| self.is_sampler(variable)) {
            return Err(self.broken(handle, "is a sampler", SAMPLERS));
        }
        let mut interface = Interface {
            name: entry.name.clone(),
            tensors: Vec::new(),
            scalars: Vec::new(),
            layouts: Vec::new(),
            immediate: None,
            group_size: entry.workgroup_size,
            shared_bytes: 0,
            items_per_thread: 1,
        };
        for (handle, variable) in self.used(uses) {
            match variable.space {
                AddressSpace::Storage { .. } | AddressSpace::Private => {}
                AddressSpace::WorkGroup => {
                    let layout = self.layouts[variable.ty];
                    let offset = layout.alignment.round_up(interface.shared_bytes);
                    interface.shared_bytes = offset.saturating_add(layout.size);
                }
                AddressSpace::Immediate => {
                    interface.immediate = Some(handle);
                    interface.scalars = self.scalars(handle, variable)?;
                }
                _ => {
                    let (what, rule) = self.kind(variable);
                    return Err(self.broken(handle, what, rule));
                }
            }
        }
        interface.tensors = self.tensors(uses);
        if let Some(handle) = interface.immediate {
            interface.layouts = self.layouts(handle, &interface.tensors)?;
        }
        Ok(interface)
    }

    /// The name of an argument, or of a member of one, that is an input of another stage.
    fn input_of_stage<'a>(&'a self, entry: &'a EntryPoint) -> Option<&'a str> {
        let is_location = |binding: &Option<Binding>| matches!(binding, Some(Binding::Location { .. }));
        entry.function.arguments.iter().find_map(|argument| {
            let members: &[StructMember] = match &self.program.module.types[argument.ty].inner {
                TypeInner::Struct { members, .. } => members,
                _ => &[],
            };
            let member = members.iter().find(|member| is_location(&member.binding));
            let name = member.map_or(&argument.name, |member| &member.name);
            (member.is_some() || is_location(&argument.binding)).then(|| name.as_deref().unwrap_or_default())
        })
    }

    fn used(&self, uses: &FunctionInfo) -> impl Iterator<Item = (Global, &GlobalVariable)> {
        let all = self.program.module.global_variables.iter();
        all.filter(|(handle, _)| uses[*handle] != GlobalUse::empty())
    }

    /// The alignment of a tensor: those of numbers and vectors may begin at any number. Matrix units move rows of 16 bytes,
    /// and CUDA moves vectors in structures as one word.
    fn alignment(&self, ty: Handle<Type>) -> u64 {
        if self.program.features.contains(&Feature::MatrixUnits) {
            return u64::from(ROW_ALIGNMENT);
        }
        match self.program.module.types[ty].inner {
            TypeInner::Array { base, .. } => self.alignment(base),
            TypeInner::Struct { .. } => u64::from(self.layouts[ty].alignment.round_up(1).min(ROW_ALIGNMENT)),
            _ => self.element(ty).map_or(1, |dtype| dtype.bytes() as u64),
        }
    }

    /// The storage buffers, sorted by binding: 0, 1, 2, ….
    fn tensors(&self, uses: &FunctionInfo) -> Vec<Tensor> {
        let mut list = Vec::new();
        for (handle, variable) in self.used(uses) {
            let AddressSpace::Storage { access } = variable.space else { continue };
            let Some(ResourceBinding { binding, .. }) = variable.binding else { continue };
            list.push(Tensor {
                name: variable.name.clone().unwrap_or_default(),
                binding,
                access: access_of(access, uses[handle]),
                dtype: self.packed(variable.ty).or_else(|| self.element(variable.ty)),
                min_bytes: self.fixed_bytes(variable.ty),
                alignment_bytes: self.alignment(variable.ty),
                variable: handle,
            });
        }
        list.sort_by_key(|tensor| tensor.binding);
        list
    }

    /// The members of a struct of scalars, those of layouts one by one.
    fn scalars(&self, handle: Global, variable: &GlobalVariable) -> Result<Vec<interface::Scalar>> {
        let TypeInner::Struct { members, .. } = &self.program.module.types[variable.ty].inner else {
            return Err(self.broken(handle, "is not a struct", SCALARS));
        };
        let mut list = Vec::with_capacity(members.len());
        for member in members {
            match self.layout_rank(handle, member)? {
                Some(rank) => push_layout(&mut list, member, rank),
                None => list.push(self.scalar(handle, member)?),
            }
        }
        let mut end = 0u32;
        for scalar in &list {
            let bytes = u32::try_from(scalar.dtype.bytes()).unwrap_or(u32::MAX);
            if scalar.offset_bytes != end.next_multiple_of(bytes) {
                return Err(self.broken(handle, &format!("has a gap before \"{}\"", scalar.name), SCALARS));
            }
            end = scalar.offset_bytes + bytes;
        }
        Ok(list)
    }

    fn scalar(&self, handle: Global, member: &StructMember) -> Result<interface::Scalar> {
        let name = member.name.clone().unwrap_or_default();
        let dtype = match self.program.module.types[member.ty].inner {
            TypeInner::Scalar(scalar) => dtype_of(scalar),
            _ => None,
        };
        let dtype = dtype.ok_or_else(|| {
            self.broken(handle, &format!("has a member \"{name}\" that is not a scalar"), SCALARS)
        })?;
        Ok(interface::Scalar { name, dtype, offset_bytes: member.offset })
    }

    /// The dimensions that a member of type `Layout` holds; `None` for a member of another type.
    fn layout_rank(&self, handle: Global, member: &StructMember) -> Result<Option<u32>> {
        let module = &self.program.module;
        let Type { name, inner: TypeInner::Struct { members, .. } } = &module.types[member.ty] else {
            return Ok(None);
        };
        let name = name.as_deref().unwrap_or_default();
        if name != LAYOUT && !name.starts_with(textures::LAYOUT) {
            return Ok(None);
        }
        let array = |member: &StructMember, name: &str, element: Scalar| {
            let TypeInner::Array { base, size: ArraySize::Constant(length), .. } =
                module.types[member.ty].inner
            else {
                return None;
            };
            let is_right = module.types[base].inner == TypeInner::Scalar(element);
            (is_right && member.name.as_deref() == Some(name)).then_some(length.get())
        };
        let rank = match &members[..] {
            [shape, strides] => {
                let rank = array(shape, "shape", Scalar::U32);
                rank.filter(|_| rank == array(strides, "strides", Scalar::I32))
            }
            _ => None,
        };
        match rank.filter(|rank| *rank <= MAX_RANK) {
            Some(rank) => Ok(Some(rank)),
            None => {
                let name = member.name.as_deref().unwrap_or_default();
                Err(self.broken(handle, &format!("has a member \"{name}\" of another form"), LAYOUTS))
            }
        }
    }

    /// Finds the tensors of the layouts.
    fn layouts(&self, handle: Global, tensors: &[Tensor]) -> Result<Vec<Layout>> {
        let module = &self.program.module;
        let TypeInner::Struct { members, .. } = &module.types[module.global_variables[handle].ty].inner
        else {
            return Ok(Vec::new());
        };
        let (mut list, mut first_scalar) = (Vec::new(), 0);
        for member in members {
            let Some(rank) = self.layout_rank(handle, member)? else {
                first_scalar += 1;
                continue;
            };
            let name = member.name.as_deref().unwrap_or_default();
            let tensor = name
                .strip_suffix(LAYOUT_SUFFIX)
                .and_then(|name| tensors.iter().position(|tensor| tensor.name == name));
            let rank = rank as usize;
            let is_strided = module.types[member.ty].name.as_deref() == Some(LAYOUT);
            match tensor {
                Some(tensor) => list.push(Layout { tensor, rank, first_scalar, is_strided }),
                // A texture of another entry point.
                None if !is_strided => {}
                None => {
                    let what = format!("has a member \"{name}\" that names no tensor of the entry point");
                    return Err(self.broken(handle, &what, LAYOUTS));
                }
            }
            first_scalar += 2 * rank;
        }
        Ok(list)
    }

    /// The type of elements that a texture packs into words.
    fn packed(&self, ty: Handle<Type>) -> Option<DType> {
        textures::packed_dtype(self.program.module.types[ty].name.as_deref()?)
    }

    /// The scalar type inside arrays, vectors, matrices and atomics.
    fn element(&self, ty: Handle<Type>) -> Option<DType> {
        match self.program.module.types[ty].inner {
            TypeInner::Array { base, .. } => self.element(base),
            TypeInner::Scalar(scalar)
            | TypeInner::Vector { scalar, .. }
            | TypeInner::Matrix { scalar, .. }
            | TypeInner::Atomic(scalar) => dtype_of(scalar),
            _ => None,
        }
    }

    /// Size in bytes without a trailing runtime-sized array.
    fn fixed_bytes(&self, ty: Handle<Type>) -> u64 {
        let types = &self.program.module.types;
        let dynamic = |ty| matches!(types[ty].inner, TypeInner::Array { size: ArraySize::Dynamic, .. });
        match &types[ty].inner {
            TypeInner::Struct { members, .. } => match members.last() {
                Some(last) if dynamic(last.ty) => last.offset.into(),
                _ => self.layouts[ty].size.into(),
            },
            _ if dynamic(ty) => 0,
            _ => self.layouts[ty].size.into(),
        }
    }

    fn is_sampler(&self, variable: &GlobalVariable) -> bool {
        matches!(self.program.module.types[variable.ty].inner, TypeInner::Sampler { .. })
    }

    /// What a variable is that cannot be an argument, and what to write instead.
    fn kind(&self, variable: &GlobalVariable) -> (&'static str, &'static str) {
        match self.program.module.types[variable.ty].inner {
            TypeInner::Image { .. } => ("is a texture that is no tensor", TEXTURES),
            _ => ("is a variable of a kind that compute shaders do not have", ARGUMENTS),
        }
    }

    fn broken(&self, handle: Global, what: &str, rule: &str) -> Error {
        let variables = &self.program.module.global_variables;
        let name = variables[handle].name.as_deref().unwrap_or_default();
        let place = self.program.location(variables.get_span(handle));
        Error::new(ErrorKind::CompileFailed, format!("{place}: \"{name}\" {what}; {rule}"))
    }
}

/// The place of a function's name in its declaration; naga keeps none for entry points.
fn declaration(source: &str, function: &str) -> Span {
    let mut last = "";
    let mut all = tokens(source);
    let found = all.find(|token| std::mem::replace(&mut last, token.text) == "fn" && token.text == function);
    found.map_or(Span::UNDEFINED, |token| token.span())
}

/// Adds the scalars of a layout.
fn push_layout(list: &mut Vec<interface::Scalar>, member: &StructMember, rank: u32) {
    let name = member.name.as_deref().unwrap_or_default();
    for (part, dtype, first) in [("shape", DType::U32, 0), ("strides", DType::I32, rank)] {
        list.extend((0..rank).map(|at| interface::Scalar {
            name: format!("{name}.{part}[{at}]"),
            dtype,
            offset_bytes: member.offset + 4 * (first + at),
        }));
    }
}
