//! Packs a launch's arguments into bindings and push constants, without an allocation for up to 16 tensors.

use std::sync::Arc;

use runtime_core::backend::{ArgRef, Launch, TensorArg, counted, unsupported_argument};
use runtime_core::{Access, Error, Result};
use smallvec::SmallVec;

use crate::driver::{Binding, CommandBuffer, Memory, MemoryLocation};
use crate::memory::VulkanBuffer;
use crate::module::VulkanKernel;
use crate::spirv::{PushConstantBlock, PushConstantMember};

/// The bindings and push constants of a launch.
#[derive(Debug, Default)]
pub(crate) struct PackedArgs {
    bindings: SmallVec<[Binding; 16]>,
    constants: SmallVec<[u8; 128]>,
    unaligned_copies: Vec<UnalignedCopy>,
    groups: [u32; 3],
    /// It writes memory that the host may read.
    pub(crate) host_visible_write: bool,
}

/// A view whose offset the device cannot bind: the kernel works on a scratch copy, which is copied back afterwards.
#[derive(Debug)]
struct UnalignedCopy {
    memory: Arc<Memory>,
    offset: u64,
    bytes: u64,
    access: Access,
    scratch: Arc<Memory>,
}

impl PackedArgs {
    /// Packs the arguments of a launch.
    ///
    /// # Errors
    /// `InvalidArgument` with the argument that does not fit; `OutOfMemory`.
    pub(crate) fn new(kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<Self> {
        let mut args = Self::default();
        args.pack(kernel, launch)?;
        Ok(args)
    }

    /// Packs the arguments of a launch in place, into a default value: moving it would cost as much as packing.
    ///
    /// # Errors
    /// As [`PackedArgs::new`].
    #[inline]
    pub(crate) fn pack(&mut self, kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        self.groups = launch.groups();
        let interface = &kernel.interface;
        let mut scalars = ScalarPacker::new(&interface.push_constants);
        let mut tensors = 0;
        for (index, arg) in launch.args().enumerate() {
            match arg {
                ArgRef::Tensor(tensor) => {
                    if tensors < interface.required_tensors {
                        let binding = self.bind(kernel, index, &tensor)?;
                        self.bindings.push(binding);
                    }
                    self.host_visible_write |= tensor.access().writes() && tensor.buffer().is_host_visible();
                    tensors += 1;
                }
                ArgRef::Scalar { dtype, bits } => {
                    scalars.push(&mut self.constants, &bits.to_le_bytes()[..dtype.bytes().min(8)]);
                }
                ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. } => {
                    scalars.push(&mut self.constants, bytes);
                }
                ArgRef::Local(_) => return Err(local_memory_argument(kernel, index)),
                _ => return Err(unsupported_argument(index)),
            }
        }
        if !scalars.matched_members() {
            self.pack_scalars_in_order(launch);
        }
        if tensors < interface.required_tensors || tensors > interface.tensors.len() {
            return Err(wrong_tensor_count(kernel, tensors));
        }
        if launch.group_size() != interface.group_size {
            return Err(wrong_group_size(kernel, launch.group_size()));
        }
        if self.constants.len().next_multiple_of(4) != interface.push_constants.bytes as usize {
            return Err(wrong_push_constants(kernel, self.constants.len()));
        }
        if self.constants.len() != interface.push_constants.bytes as usize {
            self.constants.resize(interface.push_constants.bytes as usize, 0);
        }
        if self.unaligned_copies.is_empty() { Ok(()) } else { self.check_aliasing(kernel, launch) }
    }

    #[inline]
    fn bind(
        &mut self,
        kernel: &VulkanKernel,
        index: usize,
        tensor: &TensorArg<'_, VulkanBuffer>,
    ) -> Result<Binding> {
        let (buffer, offset, bytes) = (tensor.buffer(), tensor.byte_offset(), tensor.span_bytes());
        let caps = &kernel.shared().logical.caps;
        if bytes > caps.binding_bytes {
            return Err(too_large(kernel, index, bytes));
        }
        if bytes == 0 {
            // A binding cannot be empty, and one byte holds no element. It is the `VkBuffer`'s first byte, since the tensor
            // may begin anywhere in imported memory.
            return Ok(Binding::of_buffer(&buffer.memory, 0, 1));
        }
        // A power of two: a division would take longer than everything else here.
        if (buffer.memory.base_offset + offset) & (caps.binding_alignment - 1) == 0 {
            return Ok(Binding::new(&buffer.memory, offset, bytes));
        }
        let scratch = Memory::allocate(
            &kernel.shared().logical,
            MemoryLocation::Device,
            bytes,
            caps.binding_alignment,
        )?;
        let scratch = Arc::new(scratch);
        let binding = Binding::new(&scratch, 0, bytes);
        let memory = Arc::clone(&buffer.memory);
        self.unaligned_copies.push(UnalignedCopy { memory, offset, bytes, access: tensor.access(), scratch });
        Ok(binding)
    }

    /// Packs scalars and bytes one after the other, aligned to their size: for values that do not match the members.
    #[cold]
    fn pack_scalars_in_order(&mut self, launch: &Launch<'_, VulkanBuffer>) {
        self.constants.clear();
        for arg in launch.args() {
            let word;
            let bytes = match arg {
                ArgRef::Scalar { dtype, bits } => {
                    word = bits.to_le_bytes();
                    &word[..dtype.bytes().min(8)]
                }
                ArgRef::Bytes(bytes) | ArgRef::Record { bytes, .. } => bytes,
                _ => continue,
            };
            let alignment = if bytes.len().is_power_of_two() { bytes.len().min(16) } else { 4 };
            self.constants.resize(self.constants.len().next_multiple_of(alignment), 0);
            self.constants.extend_from_slice(bytes);
        }
    }

    /// A kernel that works on a scratch copy must not access the same bytes through another argument.
    fn check_aliasing(&self, kernel: &VulkanKernel, launch: &Launch<'_, VulkanBuffer>) -> Result<()> {
        for copy in &self.unaligned_copies {
            let tensors = launch.args().filter_map(ArgRef::tensor);
            let overlapping = tensors.filter(|tensor| {
                Arc::ptr_eq(&tensor.buffer().memory, &copy.memory)
                    && tensor.byte_offset() < copy.offset + copy.bytes
                    && copy.offset < tensor.byte_offset() + tensor.span_bytes()
            });
            let all: SmallVec<[Access; 4]> = overlapping.map(|tensor| tensor.access()).collect();
            if all.len() > 1 && all.iter().any(|access| access.writes()) {
                return Err(Error::invalid(format!(
                    "kernel \"{}\": two arguments share memory, one is written, and one begins at byte {}, but the device binds \
                     only multiples of {}; pass one tensor, or a copy",
                    kernel.name,
                    copy.offset,
                    kernel.shared().logical.caps.binding_alignment
                )));
            }
        }
        Ok(())
    }

    /// Records the launch.
    #[inline]
    pub(crate) fn record(&self, kernel: &VulkanKernel, commands: &mut CommandBuffer) -> Result<()> {
        if self.unaligned_copies.is_empty() {
            return commands.dispatch(&kernel.pipeline, &self.bindings, &self.constants, self.groups);
        }
        // On an error, no command is recorded.
        commands.reserve(&kernel.pipeline, 1)?;
        for copy in &self.unaligned_copies {
            commands.copy((&copy.scratch, 0), (&copy.memory, copy.offset), copy.bytes);
        }
        commands.barrier();
        commands.dispatch(&kernel.pipeline, &self.bindings, &self.constants, self.groups)?;
        commands.barrier();
        for copy in self.unaligned_copies.iter().filter(|copy| copy.access.writes()) {
            commands.copy((&copy.memory, copy.offset), (&copy.scratch, 0), copy.bytes);
        }
        Ok(())
    }

    /// Whether the kernel works on scratch copies.
    #[inline]
    pub(crate) fn has_copies(&self) -> bool {
        !self.unaligned_copies.is_empty()
    }

    /// The scratch copies, which must live until the launch has completed.
    pub(crate) fn scratch_copies(&self) -> impl Iterator<Item = Arc<Memory>> + use<'_> {
        self.unaligned_copies.iter().map(|copy| Arc::clone(&copy.scratch))
    }
}

/// Packs scalars and bytes into the members of the push constants, one each, as long as their sizes match.
struct ScalarPacker<'k> {
    /// Members without a value yet.
    remaining: std::slice::Iter<'k, PushConstantMember>,
    sizes_match: bool,
}

impl<'k> ScalarPacker<'k> {
    #[inline]
    fn new(block: &'k PushConstantBlock) -> Self {
        Self { remaining: block.members.iter(), sizes_match: true }
    }

    #[inline]
    fn push(&mut self, constants: &mut SmallVec<[u8; 128]>, bytes: &[u8]) {
        match self.remaining.next() {
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
            _ => self.sizes_match = false,
        }
    }

    /// Whether there was one value of the right size for each member.
    #[inline]
    fn matched_members(&self) -> bool {
        self.sizes_match && self.remaining.as_slice().is_empty()
    }
}

#[cold]
fn local_memory_argument(kernel: &VulkanKernel, index: usize) -> Error {
    Error::unsupported(format!(
        "argument {index} of kernel \"{}\": sizes of work-group memory are not supported; pass a specialisation constant \
         instead",
        kernel.name
    ))
}

#[cold]
fn too_large(kernel: &VulkanKernel, index: usize, bytes: u64) -> Error {
    Error::invalid(format!(
        "argument {index} of kernel \"{}\" has {bytes} bytes, but the device binds at most {} (maxStorageBufferRange); \
         launch on smaller views",
        kernel.name,
        kernel.shared().logical.caps.binding_bytes
    ))
}

#[cold]
fn wrong_tensor_count(kernel: &VulkanKernel, given: usize) -> Error {
    Error::invalid(format!(
        "kernel \"{}\" takes {}, got {given}; pass one for each binding",
        kernel.name,
        counted(kernel.interface.tensors.len(), "tensor")
    ))
}

#[cold]
fn wrong_group_size(kernel: &VulkanKernel, given: [u32; 3]) -> Error {
    Error::invalid(format!(
        "kernel \"{}\" is compiled for groups of {:?}, got {given:?}; use the compiled size",
        kernel.name, kernel.interface.group_size
    ))
}

#[cold]
fn wrong_push_constants(kernel: &VulkanKernel, given: usize) -> Error {
    let block = &kernel.interface.push_constants;
    let members: Vec<u32> = block.members.iter().map(|member| member.bytes).collect();
    Error::invalid(format!(
        "kernel \"{}\" takes {} bytes of push constants, in members of {members:?} bytes; got {given} bytes",
        kernel.name, block.bytes
    ))
}
