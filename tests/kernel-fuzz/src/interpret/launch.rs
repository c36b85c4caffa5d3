//! Sets up a launch, and runs its groups.

use naga::{AddressSpace, ArraySize, Expression, GlobalVariable, Handle, StorageAccess, TypeInner};
use runtime_kernel::naga;

use super::expression::{Frame, Types};
use super::memory::Memory;
use super::scalar::{float_bits, truncate};
use super::{Argument, Expected, Interpreter, Invalid, Parsed, Rules, Slot, Tensor};
use crate::case::Launch;

/// Runs a launch; `contents` are the bytes of the tensors, if they are not random.
pub(super) fn interpret(
    parsed: &Parsed,
    launch: &Launch,
    (rules, contents): (Rules, Option<&[Vec<u8>]>),
) -> Result<Expected, Invalid> {
    let (module, info) = (&parsed.module, &parsed.info);
    let entry = module.entry_points.iter().position(|entry| entry.name == launch.entry);
    let entry = entry.ok_or_else(|| Invalid::unknown(&format!("entry point {}", launch.entry)))?;
    let mut run = Interpreter {
        module,
        info,
        overrides: std::collections::HashMap::new(),
        memories: Vec::new(),
        globals: std::collections::HashMap::new(),
        is_workgroup: Vec::new(),
        lanes: 1,
        size: module.entry_points[entry].workgroup_size,
        groups: launch.groups,
        group: 0,
        epochs: [0; 2],
        steps: 0,
        rules,
    };
    run.overrides(launch)?;
    run.group_size(entry)?;
    let used = |handle: Handle<GlobalVariable>| !info.get_entry_point(entry)[handle].is_empty();
    let mut tensors = run.tensors((launch, contents), used)?;
    let scalars = run.immediates(parsed, launch, used)?;
    let shared: Vec<_> = module.global_variables.iter().filter(|(handle, _)| used(*handle)).collect();
    for group in 0..launch.groups.iter().product() {
        run.group = group;
        run.epochs = [0; 2];
        let kept = run.memories.len();
        for (handle, global) in &shared {
            if !run.is_fixed(*handle) {
                run.group_variable(*handle, global)?;
            }
        }
        run.entry(entry)?;
        run.memories.truncate(kept);
        run.is_workgroup.truncate(kept);
        run.globals.retain(|_, memory| *memory < kept);
    }
    for (index, tensor) in tensors.iter_mut().enumerate() {
        let words = &run.memories[index].words;
        for (slot, word) in tensor.slots.iter().zip(words) {
            let bytes = usize::from(slot.scalar.width);
            tensor.after[slot.offset..slot.offset + bytes].copy_from_slice(&word.to_le_bytes()[..bytes]);
        }
    }
    Ok(Expected { tensors, scalars, group: run.size, steps: run.steps })
}

impl Interpreter<'_> {
    fn overrides(&mut self, launch: &Launch) -> Result<(), Invalid> {
        for (handle, constant) in self.module.overrides.iter() {
            let scalar = match self.inner(constant.ty) {
                TypeInner::Scalar(scalar) => *scalar,
                _ => return Err(Invalid::unknown("an override of this type")),
            };
            let name = constant.name.as_deref().unwrap_or_default();
            let id = constant.id.map(|id| format!("@{id}"));
            let given = launch.constants.iter().find(|(key, _)| key == name || Some(key) == id.as_ref());
            let words = match (given, constant.init) {
                (Some((_, value)), _) => vec![number(scalar, value)?],
                (None, Some(init)) => self.constant(init)?,
                (None, None) => return Err(Invalid::unknown("an override without a value")),
            };
            self.overrides.insert(handle, words);
        }
        Ok(())
    }

    fn group_size(&mut self, entry: usize) -> Result<(), Invalid> {
        if let Some(sizes) = self.module.entry_points[entry].workgroup_size_overrides {
            for (at, size) in sizes.iter().enumerate() {
                if let Some(size) = size {
                    self.size[at] = self.constant(*size)?[0] as u32;
                }
            }
        }
        self.lanes = self.size.iter().map(|size| *size as usize).product();
        Ok(())
    }

    /// Allocates the tensors; they are the first memories.
    fn tensors(
        &mut self,
        (launch, contents): (&Launch, Option<&[Vec<u8>]>),
        used: impl Fn(Handle<GlobalVariable>) -> bool,
    ) -> Result<Vec<Tensor>, Invalid> {
        let is_tensor = |global: &GlobalVariable| matches!(global.space, AddressSpace::Storage { .. });
        let globals = self.module.global_variables.iter();
        let mut globals: Vec<_> =
            globals.filter(|(handle, global)| is_tensor(global) && used(*handle)).collect();
        let binding = |global: &GlobalVariable| global.binding.map_or(0, |binding| binding.binding);
        globals.sort_by_key(|(_, global)| binding(global));
        let mut tensors = Vec::new();
        for (handle, global) in globals {
            let binding = binding(global) as usize;
            if binding != tensors.len() && !self.rules.is_transformed {
                return Err(Invalid::Bindings);
            }
            let length = launch.lengths.get(binding).copied().unwrap_or(0);
            let mut slots = Vec::new();
            self.slots(global.ty, 0, length, &mut slots)?;
            let bytes = self.bytes(global.ty, length)?;
            // Also for empty arrays.
            let mut one = Vec::new();
            self.slots(global.ty, 0, 1, &mut one)?;
            let mut before = vec![0xa5; bytes];
            let words = match contents.and_then(|contents| contents.get(binding)) {
                Some(bytes) => slots.iter().map(|slot| word(bytes, *slot)).collect(),
                None => launch.content(binding, &slots),
            };
            for (slot, word) in slots.iter().zip(&words) {
                let width = usize::from(slot.scalar.width);
                before[slot.offset..slot.offset + width].copy_from_slice(&word.to_le_bytes()[..width]);
            }
            self.globals.insert(handle, self.memories.len());
            self.memories.push(Memory::shared(words));
            self.is_workgroup.push(false);
            let AddressSpace::Storage { access } = global.space else { continue };
            let tensor = Tensor {
                binding,
                written: access.contains(StorageAccess::STORE),
                after: before.clone(),
                before,
                slots,
                scalar: one.first().map(|slot| slot.scalar).filter(|_| !self.has_struct(global.ty)),
            };
            tensors.push(tensor);
        }
        Ok(tensors)
    }

    fn has_struct(&self, ty: Handle<naga::Type>) -> bool {
        match self.inner(ty) {
            TypeInner::Struct { .. } => true,
            TypeInner::Array { base, .. } => self.has_struct(*base),
            _ => false,
        }
    }

    /// Allocates the immediates that are used.
    fn immediates(
        &mut self,
        parsed: &Parsed,
        launch: &Launch,
        used: impl Fn(Handle<GlobalVariable>) -> bool,
    ) -> Result<Vec<Argument>, Invalid> {
        let mut scalars = Vec::new();
        for handle in parsed.immediates.iter().filter(|handle| used(**handle)) {
            let mut slots = Vec::new();
            self.slots(self.module.global_variables[*handle].ty, 0, 0, &mut slots)?;
            for (index, slot) in slots.iter().enumerate() {
                let value = launch.scalars.get(index).map_or("0", String::as_str);
                scalars.push((slot.scalar, number(slot.scalar, value)?));
            }
            self.globals.insert(*handle, self.memories.len());
            self.is_workgroup.push(false);
            self.memories.push(Memory::private(scalars.iter().map(|(_, bits)| *bits).collect(), 0));
        }
        Ok(scalars)
    }

    fn is_fixed(&self, handle: Handle<GlobalVariable>) -> bool {
        self.globals.contains_key(&handle)
    }

    /// Allocates a private or work-group variable of a group.
    fn group_variable(
        &mut self,
        handle: Handle<GlobalVariable>,
        global: &GlobalVariable,
    ) -> Result<(), Invalid> {
        let width = self.width(self.inner(global.ty))?;
        let start = match global.init {
            Some(init) => self.constant(init)?,
            None if self.rules.zeroes_memory && global.space == AddressSpace::WorkGroup => {
                let mut slots = Vec::new();
                self.slots(global.ty, 0, 0, &mut slots)?;
                slots.iter().map(|slot| poison(slot.scalar)).collect()
            }
            None => vec![0; width],
        };
        let (memory, shared) = match global.space {
            AddressSpace::WorkGroup => (Memory::shared(start), true),
            AddressSpace::Private => (Memory::private(start.repeat(self.lanes), width), false),
            _ => return Err(Invalid::unknown("this address space")),
        };
        self.globals.insert(handle, self.memories.len());
        self.memories.push(memory);
        self.is_workgroup.push(shared);
        Ok(())
    }

    /// Evaluates a constant expression of the module.
    pub(super) fn constant(&mut self, handle: Handle<Expression>) -> Result<Vec<u64>, Invalid> {
        let lanes = std::mem::replace(&mut self.lanes, 1);
        let module = self.module;
        let mut frame = Frame::new(&module.global_expressions, Types::Module(self.info), Vec::new());
        let result = (|| {
            for (other, _) in module.global_expressions.iter() {
                if other.index() <= handle.index() && !self.needs_override(other) {
                    self.evaluate(&mut frame, other, &[0])?;
                }
            }
            Ok(frame.words(handle, 0)?.to_vec())
        })();
        self.lanes = lanes;
        result
    }

    /// Whether an expression depends on an override without a value.
    fn needs_override(&self, handle: Handle<Expression>) -> bool {
        match &self.module.global_expressions[handle] {
            Expression::Override(constant) => !self.overrides.contains_key(constant),
            Expression::Unary { expr, .. } | Expression::As { expr, .. } => self.needs_override(*expr),
            Expression::Binary { left, right, .. } => {
                self.needs_override(*left) || self.needs_override(*right)
            }
            Expression::ZeroValue(ty) => match self.inner(*ty) {
                TypeInner::Array { size: ArraySize::Pending(constant), .. } => {
                    !self.overrides.contains_key(constant)
                }
                _ => false,
            },
            Expression::Select { condition, accept, reject } => {
                [condition, accept, reject].iter().any(|handle| self.needs_override(**handle))
            }
            Expression::Math { arg, arg1, arg2, .. } => {
                [Some(*arg), *arg1, *arg2].iter().flatten().any(|handle| self.needs_override(*handle))
            }
            _ => false,
        }
    }
}

/// Parses a number as the bits of a scalar.
fn number(scalar: naga::Scalar, text: &str) -> Result<u64, Invalid> {
    let unknown = || Invalid::unknown(&format!("number {text}"));
    match scalar.kind {
        naga::ScalarKind::Float => float_bits(scalar, text.parse().map_err(|_| unknown())?),
        naga::ScalarKind::Bool => Ok(u64::from(text == "true" || text == "1")),
        _ => Ok(truncate(scalar, text.parse::<i128>().map_err(|_| unknown())? as u64)),
    }
}

/// The content of memory before it is written: any value but zero that all operations accept.
fn poison(scalar: naga::Scalar) -> u64 {
    match scalar.kind {
        naga::ScalarKind::Float => float_bits(scalar, 1234.0).unwrap_or(1),
        naga::ScalarKind::Bool => 1,
        _ => truncate(scalar, 0xa5a5_a5a5_a5a5_a5a5),
    }
}

/// The scalar at a place in a tensor; 0 beyond its end.
fn word(bytes: &[u8], slot: Slot) -> u64 {
    let mut word = [0; 8];
    let width = usize::from(slot.scalar.width);
    if let Some(own) = bytes.get(slot.offset..slot.offset + width) {
        word[..width].copy_from_slice(own);
    }
    u64::from_le_bytes(word)
}
