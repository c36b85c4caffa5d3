//! Reading and writing memory of the target.

use super::client::{Client, is_error, refused};
use super::error::{GdbError, GdbErrorKind, Result};
use super::hex;
use super::packet::{escape, escaped_bytes};
use super::transport::Transport;

/// Bytes of a packet around the data of a write: frame, letter or name, two numbers and their separators.
pub(super) const OVERHEAD_BYTES: usize = 48;

impl<T: Transport> Client<T> {
    /// Reads memory.
    ///
    /// # Errors
    /// As for [`Client::request`]; `Refused` for an address without memory.
    pub fn read_memory(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let piece = (self.features.packet_bytes - OVERHEAD_BYTES) / 2;
        for (index, bytes) in bytes.chunks_mut(piece).enumerate() {
            let address = address.wrapping_add((index * piece) as u64);
            self.read_piece(address, bytes).map_err(|error| at(error, address))?;
        }
        Ok(())
    }

    fn read_piece(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        let reply = self.request(format!("m{address:x},{:x}", bytes.len()).as_bytes())?;
        if is_error(&reply) {
            return Err(refused(&reply));
        }
        hex::decode(&reply, bytes)
    }

    /// Writes memory, in binary where the server supports it.
    ///
    /// # Errors
    /// As for [`Client::command`]; `Refused` for an address without memory.
    pub fn write_memory(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let room = self.features.packet_bytes - OVERHEAD_BYTES;
        let is_binary = self.accepts_binary(address)?;
        let (mut address, mut rest) = (address, bytes);
        while !rest.is_empty() {
            let length = if is_binary { fitting(rest, room) } else { rest.len().min(room / 2) };
            let (piece, later) = rest.split_at(length);
            let letter = if is_binary { 'X' } else { 'M' };
            let mut payload = format!("{letter}{address:x},{:x}:", piece.len()).into_bytes();
            match is_binary {
                true => escape(piece, &mut payload),
                false => hex::encode(piece, &mut payload),
            }
            self.command(&payload).map_err(|error| at(error, address))?;
            (address, rest) = (address.wrapping_add(length as u64), later);
        }
        Ok(())
    }

    /// Tries a binary write of nothing, once.
    fn accepts_binary(&mut self, address: u64) -> Result<bool> {
        if let Some(known) = self.binary_writes {
            return Ok(known);
        }
        let reply = self.request(format!("X{address:x},0:").as_bytes())?;
        let accepted = reply == b"OK";
        self.binary_writes = Some(accepted);
        Ok(accepted)
    }
}

/// How many of these bytes fit, escaped, into `room` bytes; at least one.
pub(super) fn fitting(bytes: &[u8], room: usize) -> usize {
    let mut used = 0;
    let fit = bytes.iter().take_while(|&&byte| {
        used += escaped_bytes(byte);
        used <= room
    });
    fit.count().max(1)
}

fn at(error: GdbError, address: u64) -> GdbError {
    match error.kind() {
        GdbErrorKind::Refused => error.during(&format!("memory at {address:#x}")),
        _ => error,
    }
}
