//! The command that starts a kernel, with its arguments, in the memory of a chip.

#![allow(unsafe_code, reason = "calls the shim")]

use std::sync::Arc;

use runtime_core::{ErrorKind, Result};

use super::chip::Chip;
use super::memory::{MIN_ALIGNMENT_BYTES, Memory, Space};

/// Room for arguments in a new command.
const MIN_ARGUMENT_BYTES: u64 = 256;
/// The kernel itself starts further threads.
const TEAMS: u32 = 1;

/// A command and its arguments, in one block of memory that is used again.
#[derive(Debug)]
pub struct Command {
    chip: Arc<Chip>,
    memory: Option<Memory>,
}

impl Command {
    /// A command without memory.
    #[must_use]
    pub fn new(chip: &Arc<Chip>) -> Self {
        Self { chip: Arc::clone(chip), memory: None }
    }

    /// Runs a kernel on a cluster, with one team, and waits for it. The kernel gets the address of a copy of `arguments`.
    ///
    /// # Errors
    /// `OutOfMemory`; `Driver`; `Failed` if the library cannot run it.
    ///
    /// # Safety
    /// `function` is the address of a kernel on this chip ([`Module::symbol`](super::Module::symbol)), and its arguments are what it
    /// expects: it may access all memory of the chip.
    pub unsafe fn run(&mut self, function: u64, arguments: &[u8], cluster: u32) -> Result<()> {
        let chip = Arc::clone(&self.chip);
        let (memory, offset) = self.memory(arguments.len() as u64)?;
        let mut block = chip.command(function, memory.kernel_address() + offset);
        block.resize(usize::try_from(offset).unwrap_or(block.len()), 0);
        block.extend_from_slice(arguments);
        memory.write(0, block)?;
        let command = memory.kernel_address();
        chip.call_unlimited(ErrorKind::Failed, "mppa_offload_buffer_exec", move |functions, handle| {
            // SAFETY: the chip is open, and the command is in its memory; the rest is the caller's promise.
            unsafe { (functions.execute)(handle, cluster, command, TEAMS) }
        })
    }

    /// Memory for a command with arguments of this size, and the offset of the arguments.
    fn memory(&mut self, bytes: u64) -> Result<(&Memory, u64)> {
        let offset = self.chip.command_bytes().next_multiple_of(MIN_ALIGNMENT_BYTES);
        let kept = self.memory.take().filter(|memory| memory.bytes() >= offset + bytes);
        let memory = match kept {
            Some(memory) => memory,
            None => {
                let room = bytes.max(MIN_ARGUMENT_BYTES).next_power_of_two();
                Memory::allocate(&self.chip, Space::Chip, offset + room)?
            }
        };
        Ok((self.memory.insert(memory), offset))
    }
}
