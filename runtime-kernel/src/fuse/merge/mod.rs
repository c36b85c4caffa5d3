//! Makes one module of several: each entry point becomes a function, and a new entry point calls them in order.

mod copy;
mod entry;

use naga::{
    AddressSpace, ArraySize, BuiltIn, FastHashMap, Function, GlobalVariable, Handle, Literal, Module,
    ResourceBinding, Scalar, Span, StorageAccess, Type, TypeInner,
};
use runtime_core::lowering::{FusedArg, FusionArg, FusionRequest};
use runtime_core::{DType, Error, Result};

use self::copy::{Copier, PromotedVariable, ScalarSource};
use super::kernel::Body;
use super::linear::{Linear, Scalars};
use crate::ir::blocks::note_all_calls;
use crate::ir::declare::{self, variable};
use crate::ir::{Global, Local, Value};

/// Where a body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    /// In all groups.
    None,
    /// In the groups of its own launch: there are fewer along some axes.
    Groups([bool; 3]),
    /// In the items of its own launch, which are in groups of this size there.
    Items(u32),
}

/// A launch that becomes a part of the merged module.
pub(super) struct MergedLaunch<'a> {
    pub(super) body: Body<'a>,
    pub(super) launch: usize,
    pub(super) guard: Guard,
    /// Whether the number of groups is that of the fused kernel.
    pub(super) has_all_groups: bool,
    /// Whether there is a barrier before it.
    pub(super) barrier: bool,
}

/// A tensor whose elements are kept in a variable.
#[derive(Clone, Debug)]
pub(super) struct Promoted {
    /// The tensor of the request.
    pub(super) tensor: usize,
    /// Bytes from one element to the next.
    pub(super) stride: u32,
    /// Whether indices may be out of range.
    pub(super) is_checked: bool,
    /// The array that keeps them; `None` if it is a single element of each item.
    pub(super) array: Option<Array>,
}

/// An array that keeps those elements of a tensor that an item, or a group, uses.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// Whether the items of a group share it.
    pub(super) is_shared: bool,
    /// Its elements.
    pub(super) len: u32,
    /// Elements of the tensor from one of its elements to the next.
    pub(super) step: u32,
    /// The index in the tensor of its first element: a function of the position of the item.
    pub(super) first: Linear,
    /// Of an array of an item: the accesses whose index in the array is the number of an iteration. Once such a loop is unrolled, the
    /// elements are in registers.
    pub(super) counted: Vec<CountedIndex>,
    /// The scalars of launches that bound these loops: constants, so that they can be unrolled.
    pub(super) bounds: Vec<(usize, Scalars)>,
}

/// An access whose index is the number of an iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedIndex {
    pub(super) launch: usize,
    /// The element, in the body of the launch.
    pub(super) pointer: Value,
    /// The counter of the loop, and what the loop adds to it.
    pub(super) counter: Local,
    pub(super) step: u32,
}

/// The merged module and its arguments.
pub(super) struct Merged {
    pub(super) module: Module,
    pub(super) args: Vec<FusedArg>,
}

/// Merges launches into one module.
///
/// # Errors
/// `Unsupported` for what cannot be merged.
pub(super) fn merge(
    request: &FusionRequest<'_>,
    parts: &[MergedLaunch<'_>],
    promoted: &[Promoted],
    (group_size, constants): ([u32; 3], bool),
) -> Result<Merged> {
    let mut merge = Merge {
        request,
        module: Module::default(),
        members: Vec::new(),
        immediates: None,
        tensors: Vec::new(),
        promoted,
        variables: FastHashMap::default(),
    };
    let lengths: Vec<_> = promoted
        .iter()
        .map(|each| {
            merge.member("length", Scalar::U32, FusedArg::Length { tensor: each.tensor, stride: each.stride })
        })
        .collect();
    let scalars: Vec<_> = parts.iter().map(|part| merge.scalars(part, constants)).collect::<Result<_>>()?;
    let groups: Vec<_> = parts.iter().map(|part| merge.groups(part)).collect();
    merge.declare_immediates();
    let mut bodies = Vec::with_capacity(parts.len());
    for (part, scalars) in parts.iter().zip(scalars) {
        bodies.push(merge.part(part, scalars, &lengths)?);
    }
    let point = entry::entry_point(&mut merge, parts, &bodies, (&groups, group_size))?;
    merge.module.entry_points.push(point);
    let tensors = merge.tensors.iter().map(|tensor| tensor.arg);
    let args = tensors.chain(merge.members.iter().map(|member| member.arg)).collect();
    Ok(Merged { module: merge.module, args })
}

struct Member {
    name: String,
    scalar: Scalar,
    arg: FusedArg,
}

struct BoundTensor {
    tensor: usize,
    variable: Global,
    arg: FusedArg,
}

struct Merge<'a> {
    request: &'a FusionRequest<'a>,
    module: Module,
    members: Vec<Member>,
    immediates: Option<Global>,
    /// By binding.
    tensors: Vec<BoundTensor>,
    promoted: &'a [Promoted],
    /// By tensor: the variable of a promoted one, and the one with the index of its first element.
    variables: FastHashMap<usize, [Global; 2]>,
}

impl Merge<'_> {
    fn member(&mut self, name: &str, scalar: Scalar, arg: FusedArg) -> u32 {
        let at = self.members.iter().position(|member| member.arg == arg).unwrap_or(self.members.len());
        if at == self.members.len() {
            self.members.push(Member { name: format!("{name}_{at}"), scalar, arg });
        }
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    /// Whether a scalar bounds the loops over an array of an item.
    fn bounds(&self, launch: usize, arg: usize) -> bool {
        let arrays = self.promoted.iter().filter_map(|each| each.array.as_ref());
        let mut bounds = arrays.flat_map(|array| &array.bounds);
        arg < 64 && bounds.any(|(of, scalars)| *of == launch && scalars >> arg & 1 == 1)
    }

    /// What the scalars of a launch become.
    fn scalars(&mut self, part: &MergedLaunch<'_>, constants: bool) -> Result<Vec<ScalarSource>> {
        let interface = part.body.interface();
        let first = interface.tensors.len();
        let mut list = Vec::with_capacity(interface.scalars.len());
        for (place, scalar) in interface.scalars.iter().enumerate() {
            let arg = first + place;
            let value = match self.request.launches[part.launch].args[arg] {
                FusionArg::Scalar { dtype, bits } if constants || self.bounds(part.launch, arg) => {
                    literal(dtype, bits)
                }
                _ => None,
            };
            list.push(match value {
                Some(value) => ScalarSource::Value(value),
                None => {
                    let ty = declare::scalar_of(scalar.dtype).ok_or_else(|| {
                        Error::unsupported(format!("a scalar of type {} is not supported", scalar.dtype))
                    })?;
                    ScalarSource::Member(self.member(
                        &scalar.name,
                        ty,
                        FusedArg::Of { launch: part.launch, arg },
                    ))
                }
            });
        }
        Ok(list)
    }

    /// The members with the groups of a launch along each axis, where they are needed.
    fn groups(&mut self, part: &MergedLaunch<'_>) -> [Option<u32>; 3] {
        let counts = !part.has_all_groups && part.body.built_ins().contains(&BuiltIn::NumWorkGroups);
        let needed = match part.guard {
            _ if counts => [true; 3],
            Guard::None => [false; 3],
            Guard::Groups(axes) => axes,
            Guard::Items(_) => [true, false, false],
        };
        [0, 1, 2].map(|axis| {
            let arg = FusedArg::Groups { launch: part.launch, axis };
            needed[axis].then(|| self.member("groups", Scalar::U32, arg))
        })
    }

    fn declare_immediates(&mut self) {
        let members = self.members.iter().map(|member| (member.name.clone(), member.scalar));
        if !self.members.is_empty() {
            self.immediates = Some(declare::immediate(&mut self.module, ["scalars", "Scalars"], members));
        }
    }

    fn declare(&mut self, variable: GlobalVariable) -> Global {
        self.module.global_variables.append(variable, Span::UNDEFINED)
    }

    /// Copies a launch's functions; returns the one that was its entry point, and how its types were copied.
    fn part(
        &mut self,
        part: &MergedLaunch<'_>,
        scalars: Vec<ScalarSource>,
        lengths: &[u32],
    ) -> Result<(Handle<Function>, Vec<Handle<Type>>)> {
        let program = part.body.program;
        let mut copier = Copier::new(&program.module, &mut self.module)?;
        copier.scalars = scalars;
        copier.immediates = [part.body.interface().immediate, self.immediates];
        self.variables(part, &mut copier, lengths)?;
        let called = note_all_calls(&program.module, &part.body.function().body);
        for (handle, function) in program.module.functions.iter() {
            if called[handle.index()] {
                let function = copier.function(function, &mut self.module)?;
                let new = self.module.functions.append(function, Span::UNDEFINED);
                copier.functions.insert(handle, new);
            }
        }
        let arrays = self.promoted.iter().filter_map(|each| each.array.as_ref());
        let counted = arrays.flat_map(|array| &array.counted).filter(|index| index.launch == part.launch);
        copier.counted = counted.map(|index| (index.pointer, (index.counter, index.step))).collect();
        let mut function = copier.function(part.body.function(), &mut self.module)?;
        function.name = Some(part.body.point().name.clone());
        let body = self.module.functions.append(function, Span::UNDEFINED);
        Ok((body, copier.types))
    }

    /// Declares the variables that a launch uses.
    fn variables(&mut self, part: &MergedLaunch<'_>, copier: &mut Copier<'_>, lengths: &[u32]) -> Result<()> {
        for (old, source) in part.body.program.module.global_variables.iter() {
            if part.body.info()[old].is_empty() {
                continue;
            }
            let new = match source.space {
                AddressSpace::Storage { access } => {
                    match self.tensor(part, old, (copier, access), lengths)? {
                        Some(new) => new,
                        None => continue,
                    }
                }
                AddressSpace::Immediate => continue,
                _ => {
                    let mut copy = source.clone();
                    copy.ty = copier.types[source.ty.index()];
                    copy.init = source.init.map(|init| copier.global_expression(init));
                    self.declare(copy)
                }
            };
            copier.globals.insert(old, new);
        }
        Ok(())
    }

    /// The binding of a tensor; `None` if its elements are kept in a variable.
    fn tensor(
        &mut self,
        part: &MergedLaunch<'_>,
        old: Global,
        (copier, access): (&mut Copier<'_>, StorageAccess),
        lengths: &[u32],
    ) -> Result<Option<Global>> {
        let source = &part.body.program.module.global_variables[old];
        let arg = part.body.interface().tensors.iter().position(|tensor| tensor.variable == old);
        let arg = arg.ok_or_else(|| Error::unsupported("a tensor without an argument is not supported"))?;
        let FusionArg::Tensor(tensor) = self.request.launches[part.launch].args[arg] else {
            return Err(Error::invalid(format!("argument {arg} is not a tensor")));
        };
        let ty = copier.types[source.ty.index()];
        if let Some(at) = self.promoted.iter().position(|promoted| promoted.tensor == tensor) {
            let TypeInner::Array { base, .. } = self.module.types[ty].inner else {
                return Err(Error::unsupported("a promoted tensor that is not an array is not supported"));
            };
            let [variable, first] = self.variables_of(&self.promoted[at], (source.name.as_deref(), base))?;
            let Promoted { is_checked, ref array, .. } = self.promoted[at];
            let array = array.as_ref().map(|array| (first, array.step));
            copier.promoted.insert(
                old,
                PromotedVariable { variable, array, element: base, length: lengths[at], is_checked },
            );
            return Ok(None);
        }
        let known = self
            .tensors
            .iter()
            .find(|bound| bound.tensor == tensor && self.module.global_variables[bound.variable].ty == ty);
        if let Some(bound) = known {
            let (bound, space) =
                (bound.variable, &mut self.module.global_variables.get_mut(bound.variable).space);
            if let AddressSpace::Storage { access: all } = space {
                *all |= access;
            }
            return Ok(Some(bound));
        }
        let binding = u32::try_from(self.tensors.len()).unwrap_or(u32::MAX);
        let mut copy = variable("", AddressSpace::Storage { access }, ty);
        copy.name.clone_from(&source.name);
        copy.binding = Some(ResourceBinding { group: 0, binding });
        let variable = self.declare(copy);
        self.tensors.push(BoundTensor { tensor, variable, arg: FusedArg::Of { launch: part.launch, arg } });
        Ok(Some(variable))
    }
}

impl Merge<'_> {
    /// The variables of a promoted tensor with elements of a type.
    fn variables_of(
        &mut self,
        promoted: &Promoted,
        (name, element): (Option<&str>, Handle<Type>),
    ) -> Result<[Global; 2]> {
        if let Some(&variables) = self.variables.get(&promoted.tensor) {
            return Ok(variables);
        }
        let name = name.unwrap_or("kept");
        let variables = match &promoted.array {
            None => [self.declare(variable(name, AddressSpace::Private, element)); 2],
            Some(array) => {
                let len = array.len.try_into().map_err(|_| Error::unsupported("an empty array"))?;
                let inner = TypeInner::Array {
                    base: element,
                    size: ArraySize::Constant(len),
                    stride: promoted.stride,
                };
                let ty = declare::ty(&mut self.module.types, inner);
                let space = if array.is_shared { AddressSpace::WorkGroup } else { AddressSpace::Private };
                let word = declare::word(&mut self.module.types);
                let first = variable(&format!("first_of_{name}"), AddressSpace::Private, word);
                [self.declare(variable(name, space, ty)), self.declare(first)]
            }
        };
        self.variables.insert(promoted.tensor, variables);
        Ok(variables)
    }
}

/// A scalar argument as a literal; `None` for values that have none.
#[allow(clippy::cast_possible_truncation, reason = "the low bits hold the value")]
fn literal(dtype: DType, bits: u64) -> Option<Literal> {
    Some(match dtype {
        DType::I32 => Literal::I32(bits as u32 as i32),
        DType::U32 => Literal::U32(bits as u32),
        DType::I64 => Literal::I64(bits as i64),
        DType::U64 => Literal::U64(bits),
        DType::F32 => Literal::F32(Some(f32::from_bits(bits as u32)).filter(|value| value.is_finite())?),
        DType::F64 => Literal::F64(Some(f64::from_bits(bits)).filter(|value| value.is_finite())?),
        _ => return None,
    })
}
