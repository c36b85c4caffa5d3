//! Arguments of a launch in the driver's form, without an allocation for up to 16 tensors.

use std::sync::Arc;

use runtime_core::backend::{ArgRef, Launch, TensorArg};
use runtime_core::{Access, Error, Result};
use smallvec::SmallVec;

use crate::driver::{Binding, Commands, Home, Memory};
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::spirv::{Block, Member};

/// Arguments in the driver's form.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bindings: SmallVec<[Binding; 16]>,
    constants: SmallVec<[u8; 128]>,
    detours: Vec<Detour>,
    groups: [u32; 3],
    /// It writes memory that the program may look at.
    pub(crate) seen: bool,
}

/// A view that begins where the device can bind none: the kernel works on a copy, which goes back afterwards.
#[derive(Debug)]
struct Detour {
    memory: Arc<Memory>,
    offset: u64,
    bytes: u64,
    access: Access,
    copy: Arc<Memory>,
}

impl Packed {
    /// Takes the arguments of a launch.
    ///
    /// # Errors
    /// `InvalidArgument` that says which argument does not fit; `OutOfMemory`.
    pub(crate) fn new(kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<Self> {
        let mut packed = Self::default();
        packed.fill(kernel, launch)?;
        Ok(packed)
    }

    /// Takes the arguments of a launch into an empty one in place, since moving it costs as much as filling it.
    ///
    /// # Errors
    /// As [`Packed::new`].
    #[inline]
    pub(crate) fn fill(&mut self, kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        self.groups = launch.groups();
        let interface = &kernel.interface;
        let mut scalars = Scalars::of(&interface.block);
        let mut tensors = 0;
        for (index, arg) in launch.args().enumerate() {
            match arg {
                ArgRef::Tensor(tensor) => {
                    if tensors < interface.used {
                        let binding = self.bind(kernel, index, &tensor)?;
                        self.bindings.push(binding);
                    }
                    self.seen |= tensor.access().writes() && tensor.buffer().is_seen();
                    tensors += 1;
                }
                ArgRef::Scalar { dtype, bits } => {
                    scalars.push(&mut self.constants, &bits.to_le_bytes()[..dtype.bytes().min(8)]);
                }
                ArgRef::Bytes(bytes) => scalars.push(&mut self.constants, bytes),
                ArgRef::Local(_) => return Err(local(kernel, index)),
                _ => return Err(unknown(index)),
            }
        }
        if !scalars.fit() {
            self.place_in_order(launch);
        }
        if tensors < interface.used || tensors > interface.slots.len() {
            return Err(miscount(kernel, tensors));
        }
        if launch.group_size() != interface.group_size {
            return Err(wrong_size(kernel, launch.group_size()));
        }
        if self.constants.len().next_multiple_of(4) != interface.block.bytes as usize {
            return Err(mismatch(kernel, self.constants.len()));
        }
        if self.constants.len() != interface.block.bytes as usize {
            self.constants.resize(interface.block.bytes as usize, 0);
        }
        if self.detours.is_empty() { Ok(()) } else { self.check_detours(kernel, launch) }
    }

    #[inline]
    fn bind(
        &mut self,
        kernel: &VulkanKernel,
        index: usize,
        tensor: &TensorArg<'_, VulkanBuffer>,
    ) -> Result<Binding> {
        let (buffer, offset, bytes) = (tensor.buffer(), tensor.byte_offset(), tensor.span_bytes());
        let facts = &kernel.context().logical.facts;
        if bytes > facts.binding_bytes {
            return Err(too_large(kernel, index, bytes));
        }
        if bytes == 0 {
            // There is always something to bind, and of one byte no element is in range. What is bound begins
            // where the driver's buffer does, since imported memory may begin anywhere in it.
            return Ok(Binding::of_buffer(&buffer.memory, 0, 1));
        }
        // It is a power of two: a division would take longer than all else here.
        if (buffer.memory.start + offset) & (facts.binding_alignment - 1) == 0 {
            return Ok(Binding::new(&buffer.memory, offset, bytes));
        }
        let copy = Memory::allocate(&kernel.context().logical, Home::Device, bytes, facts.binding_alignment)?;
        let copy = Arc::new(copy);
        let binding = Binding::new(&copy, 0, bytes);
        let memory = Arc::clone(&buffer.memory);
        self.detours.push(Detour { memory, offset, bytes, access: tensor.access(), copy });
        Ok(binding)
    }

    /// Places values by value behind each other, aligned to their size: they are not one for each member.
    #[cold]
    fn place_in_order(&mut self, launch: &Launch<'_, VulkanBuffer>) {
        self.constants.clear();
        for arg in launch.args() {
            let word;
            let bytes = match arg {
                ArgRef::Scalar { dtype, bits } => {
                    word = bits.to_le_bytes();
                    &word[..dtype.bytes().min(8)]
                }
                ArgRef::Bytes(bytes) => bytes,
                _ => continue,
            };
            let alignment = if bytes.len().is_power_of_two() { bytes.len().min(16) } else { 4 };
            self.constants.resize(self.constants.len().next_multiple_of(alignment), 0);
            self.constants.extend_from_slice(bytes);
        }
    }

    /// A kernel that works on a copy must not see the same bytes by another argument.
    fn check_detours(&self, kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        for detour in &self.detours {
            let tensors = launch.args().filter_map(ArgRef::tensor);
            let overlapping = tensors.filter(|tensor| {
                Arc::ptr_eq(&tensor.buffer().memory, &detour.memory)
                    && tensor.byte_offset() < detour.offset + detour.bytes
                    && detour.offset < tensor.byte_offset() + tensor.span_bytes()
            });
            let all: SmallVec<[Access; 4]> = overlapping.map(|tensor| tensor.access()).collect();
            if all.len() > 1 && all.iter().any(|access| access.writes()) {
                return Err(Error::invalid(format!(
                    "kernel \"{}\": two arguments share memory, one of them is written, and one begins at byte {}, \
                     where the device binds only multiples of {}; pass one tensor, or a copy",
                    kernel.name,
                    detour.offset,
                    kernel.context().logical.facts.binding_alignment
                )));
            }
        }
        Ok(())
    }

    /// Records the launch.
    #[inline]
    pub(crate) fn record(&self, kernel: &VulkanKernel, commands: &mut Commands) -> Result<()> {
        if self.detours.is_empty() {
            return commands.dispatch(&kernel.pipeline, &self.bindings, &self.constants, self.groups);
        }
        // A launch that is refused leaves no command behind.
        commands.reserve(&kernel.pipeline, 1)?;
        for detour in &self.detours {
            commands.copy((&detour.copy, 0), (&detour.memory, detour.offset), detour.bytes);
        }
        commands.barrier();
        commands.dispatch(&kernel.pipeline, &self.bindings, &self.constants, self.groups)?;
        commands.barrier();
        for detour in self.detours.iter().filter(|detour| detour.access.writes()) {
            commands.copy((&detour.memory, detour.offset), (&detour.copy, 0), detour.bytes);
        }
        Ok(())
    }

    /// Whether the kernel works on copies.
    #[inline]
    pub(crate) fn has_copies(&self) -> bool {
        !self.detours.is_empty()
    }

    /// Memory that must live until the launch has ended.
    pub(crate) fn copies(&self) -> impl Iterator<Item = Arc<Memory>> + use<'_> {
        self.detours.iter().map(|detour| Arc::clone(&detour.copy))
    }
}

/// Where values by value go: each to a member of its size.
struct Scalars<'k> {
    /// Members that no value was for yet.
    members: std::slice::Iter<'k, Member>,
    matched: bool,
}

impl<'k> Scalars<'k> {
    #[inline]
    fn of(block: &'k Block) -> Self {
        Self { members: block.members.iter(), matched: true }
    }

    #[inline]
    fn push(&mut self, constants: &mut SmallVec<[u8; 128]>, bytes: &[u8]) {
        match self.members.next() {
            Some(member) if member.bytes as usize == bytes.len() => {
                let offset = member.offset as usize;
                if offset == constants.len() {
                    return constants.extend_from_slice(bytes);
                }
                let end = offset + bytes.len();
                if constants.len() < end {
                    constants.resize(end, 0);
                }
                constants[offset..end].copy_from_slice(bytes);
            }
            _ => self.matched = false,
        }
    }

    /// Whether there was one value for each member.
    #[inline]
    fn fit(&self) -> bool {
        self.matched && self.members.as_slice().is_empty()
    }
}

#[cold]
fn unknown(index: usize) -> Error {
    Error::unsupported(format!("argument {index} is of a kind that this backend does not know"))
}

#[cold]
fn local(kernel: &VulkanKernel, index: usize) -> Error {
    Error::unsupported(format!(
        "argument {index} of kernel \"{}\" is a size of work-group memory, which is not supported; give it as a \
             specialisation constant",
        kernel.name
    ))
}

#[cold]
fn too_large(kernel: &VulkanKernel, index: usize, bytes: u64) -> Error {
    Error::invalid(format!(
        "argument {index} of kernel \"{}\" is of {bytes} bytes; the device binds at most {} (maxStorageBufferRange): \
         launch on smaller views",
        kernel.name,
        kernel.context().logical.facts.binding_bytes
    ))
}

#[cold]
fn miscount(kernel: &VulkanKernel, given: usize) -> Error {
    Error::invalid(format!(
        "kernel \"{}\" takes {} tensors, got {given}; pass one for each binding",
        kernel.name,
        kernel.interface.slots.len()
    ))
}

#[cold]
fn wrong_size(kernel: &VulkanKernel, given: [u32; 3]) -> Error {
    Error::invalid(format!(
        "kernel \"{}\" is compiled for groups of {:?}, got {given:?}; launch it with those",
        kernel.name, kernel.interface.group_size
    ))
}

#[cold]
fn mismatch(kernel: &VulkanKernel, given: usize) -> Error {
    let block = &kernel.interface.block;
    let members: Vec<u32> = block.members.iter().map(|member| member.bytes).collect();
    Error::invalid(format!(
        "kernel \"{}\" takes {} bytes of push constants, in members of {members:?}; the values given make {given}",
        kernel.name, block.bytes
    ))
}
