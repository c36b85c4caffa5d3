//! Registers of the target.

use super::client::{Client, is_error, refused};
use super::error::Result;
use super::hex;
use super::transport::Transport;

impl<T: Transport> Client<T> {
    /// Reads register `number`, in the server's numbering, of 4 or 8 bytes in little-endian order.
    ///
    /// # Errors
    /// As for [`Client::request`]; `Refused` for a register that the target lacks; `Protocol` for one of another size.
    pub fn read_register(&mut self, number: u32) -> Result<u64> {
        let reply = self.request(format!("p{number:x}").as_bytes())?;
        if is_error(&reply) {
            return Err(refused(&reply));
        }
        let mut bytes = [0; 8];
        let length = if reply.len() == 8 { 4 } else { 8 };
        hex::decode(&reply, &mut bytes[..length])?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes the `bytes` low bytes of `value` to register `number`.
    ///
    /// # Errors
    /// As for [`Client::command`].
    pub fn write_register(&mut self, number: u32, value: u64, bytes: usize) -> Result<()> {
        let mut payload = format!("P{number:x}=").into_bytes();
        hex::encode(&value.to_le_bytes()[..bytes.min(8)], &mut payload);
        self.command(&payload)
    }
}
