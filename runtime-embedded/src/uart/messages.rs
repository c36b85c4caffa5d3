//! Kinds of frames, and what the firmware says in them.

use runtime_core::{Error, Result};

use super::frame::MAX_PAYLOAD_BYTES;

/// The version of the protocol.
const VERSION: u16 = 1;
/// The smallest payload that firmware may accept.
const MIN_PAYLOAD_BYTES: usize = 64;

pub(super) const HELLO: u8 = 1;
pub(super) const READ: u8 = 2;
pub(super) const WRITE: u8 = 3;
pub(super) const RUN: u8 = 4;
pub(super) const CHECKSUM: u8 = 5;
pub(super) const RESTART: u8 = 6;
/// Added to the kind of a request in its reply.
pub(super) const REPLY: u8 = 0x80;
pub(super) const LOG: u8 = 0xc0;
pub(super) const BOOT: u8 = 0xc1;
pub(super) const DONE: u8 = 0xc2;
pub(super) const REFUSED: u8 = 0xe0;

/// Codes of refusals.
pub(super) const OTHER_SESSION: u8 = 3;
pub(super) const DAMAGED: u8 = 5;

/// Why the firmware refuses a request.
pub(super) const fn reason(code: u8) -> &'static str {
    match code {
        1 => "it does not know the request",
        2 => "the address is outside the memory of the board",
        OTHER_SESSION => "the session is another one",
        4 => "the request has a wrong length",
        DAMAGED => "the request arrived damaged",
        _ => "for an unknown reason",
    }
}

/// What the firmware says when a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Largest payload of a frame.
    pub payload_bytes: usize,
    /// Address of the mailbox.
    pub mailbox: u64,
}

impl Greeting {
    pub(super) fn parse(payload: &[u8]) -> Result<Self> {
        let other =
            |what: &str| Error::invalid(format!("UART: the firmware follows another protocol: {what}"));
        let &[v0, v1, p0, p1, ref mailbox @ ..] = payload else {
            return Err(other("its greeting is too short"));
        };
        let mailbox = <[u8; 8]>::try_from(mailbox).map_err(|_| other("its greeting has another length"))?;
        let (version, bytes) = (u16::from_le_bytes([v0, v1]), usize::from(u16::from_le_bytes([p0, p1])));
        if version != VERSION || !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&bytes) {
            return Err(other(&format!("version {version}, payloads of {bytes} bytes")));
        }
        Ok(Self { payload_bytes: bytes, mailbox: u64::from_le_bytes(mailbox) })
    }
}
