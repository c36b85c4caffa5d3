//! The mailbox of the firmware, as bytes: `firmware/protocol.h` defines it.

use std::ops::Range;

use runtime_core::{Error, Result};

use crate::image::MAILBOX_BYTES;

pub(crate) const MAX_TENSORS: usize = 32;
pub(crate) const MAX_ARGS: usize = 64;
/// Alignment of tensors.
pub(crate) const ALIGNMENT: u64 = 64;
/// What a tensor contains at first: data that the host has written to RAM, random numbers, poison, or data in flash.
pub(crate) const KEEP: u32 = 0;
pub(crate) const SEED: u32 = 1;
pub(crate) const POISON: u32 = 2;
pub(crate) const CONSTANT: u32 = 3;
/// Bytes that are checked before and behind each tensor.
pub(crate) const GUARD_BYTES: u64 = 32;

const MAGIC: u64 = 0x3144_4542_4d45_5452;
const VERSION: u32 = 1;

/// Offsets in the mailbox.
pub(super) const COMMAND: u64 = 16;
pub(super) const TENSORS: u64 = 136;
pub(super) const ARGS: u64 = TENSORS + (MAX_TENSORS * TENSOR_BYTES) as u64;
pub(super) const TENSOR_BYTES: usize = 48;
/// Offset in the record of a tensor: checksum, then damage.
const CHECKSUM: usize = 36;
const HEADER_BYTES: usize = 136;
const _: () = assert!(ARGS + 8 * MAX_ARGS as u64 == MAILBOX_BYTES);

pub(super) const PREPARE: u32 = 1;
pub(super) const RUN: u32 = 2;

/// What the firmware is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Starting,
    Ready,
    Done,
    Crashed,
    Invalid,
}

/// The registers of a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FaultRecord {
    pub(super) cause: u64,
    pub(super) status: u64,
    pub(super) pc: u64,
    pub(super) address: u64,
    pub(super) sp: u64,
    pub(super) lr: u64,
}

/// The fields that precede the tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) state: State,
    /// Command, number of tensors and calls, as the host has written them.
    pub(super) command: [u32; 3],
    pub(super) exit_code: i32,
    pub(super) count: u64,
    pub(super) overhead: u64,
    pub(super) stack_begin: u64,
    pub(super) stack_end: u64,
    pub(super) stack_used: u64,
    pub(super) heap_begin: u64,
    pub(super) heap_end: u64,
    pub(super) fault: FaultRecord,
}

/// The record of a tensor, as the firmware reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TensorRecord {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) seed: u64,
    pub(crate) content: u32,
    pub(crate) class: u32,
    pub(crate) element_bytes: u32,
}

impl Header {
    pub(super) const BYTES: usize = HEADER_BYTES;

    /// The stack, and the memory for tensors.
    pub(super) const fn memory(&self) -> [Range<u64>; 2] {
        [self.stack_begin..self.stack_end, self.heap_begin..self.heap_end]
    }

    /// Reads the header.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not one of our protocol.
    pub(super) fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self> {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        if (word(0), half(8)) != (MAGIC, VERSION) {
            return Err(Error::invalid(format!(
                "the image does not follow the protocol of docs/embedded.md: its mailbox begins with {:#x}, version {}",
                word(0),
                half(8)
            )));
        }
        let state = match half(12) {
            0 => State::Starting,
            1 => State::Ready,
            2 => State::Done,
            3 => State::Crashed,
            _ => State::Invalid,
        };
        let fault = FaultRecord {
            cause: word(88),
            status: word(96),
            pc: word(104),
            address: word(112),
            sp: word(120),
            lr: word(128),
        };
        let (stack, heap) = (word(48)..word(56), word(72)..word(80));
        if stack.start > stack.end || heap.start > heap.end {
            return Err(Error::invalid(format!(
                "the image does not follow the protocol of docs/embedded.md: its stack is {stack:#x?}, its memory {heap:#x?}"
            )));
        }
        Ok(Self {
            state,
            command: [16, 24, 28].map(half),
            exit_code: half(20).cast_signed(),
            count: word(32),
            overhead: word(40),
            stack_begin: stack.start,
            stack_end: stack.end,
            stack_used: word(64),
            heap_begin: heap.start,
            heap_end: heap.end,
            fault,
        })
    }
}

/// The fields that the host writes before a command: command, exit code, number of tensors, calls per run.
pub(super) fn command(command: u32, tensors: usize, calls: u32) -> Vec<u8> {
    let tensors = u32::try_from(tensors).unwrap_or(u32::MAX);
    [command, 0, tensors, calls].into_iter().flat_map(u32::to_le_bytes).collect()
}

impl TensorRecord {
    pub(super) fn to_bytes(self) -> [u8; TENSOR_BYTES] {
        let mut bytes = [0; TENSOR_BYTES];
        for (at, word) in [self.address, self.bytes, self.seed].into_iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, half) in [self.content, self.class, self.element_bytes].into_iter().enumerate() {
            bytes[24 + 4 * at..28 + 4 * at].copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }
}

/// The checksum of a tensor, and its damaged guards, from its record; `None` if the record is no longer that of the tensor.
pub(super) fn checksum_and_damage(tensor: TensorRecord, record: &[u8; TENSOR_BYTES]) -> Option<(u32, u32)> {
    let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| record[at + byte]));
    let is_whole = record[..CHECKSUM] == tensor.to_bytes()[..CHECKSUM];
    is_whole.then(|| (half(CHECKSUM), half(CHECKSUM + 4)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mailbox_of_another_protocol_is_rejected() {
        let mut bytes = [0; Header::BYTES];
        assert!(Header::parse(&bytes).unwrap_err().message().contains("version 0"));
        bytes[..8].copy_from_slice(b"RTEMBED1");
        bytes[8] = 1;
        bytes[12] = 3;
        bytes[20..24].copy_from_slice(&(-7i32).to_le_bytes());
        bytes[104] = 9;
        let header = Header::parse(&bytes).unwrap();
        assert_eq!((header.state, header.exit_code, header.fault.pc), (State::Crashed, -7, 9));
        for first in [48, 72] {
            let mut wrong = bytes;
            wrong[first] = 1;
            assert!(Header::parse(&wrong).unwrap_err().message().contains("0x1..0x0"));
        }
    }
}
