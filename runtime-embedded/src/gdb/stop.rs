//! Why the target stopped.

use super::error::{GdbError, Result};
use super::hex;

/// Why the target stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReply {
    /// A signal, in GDB's numbering: 5 at a breakpoint, 2 after an interrupt.
    Signal(u8),
    /// The program ended with an exit code.
    Exited(u8),
    /// The program was ended by a signal.
    Killed(u8),
}

impl StopReply {
    /// Reads a stop reply; `None` for console output (`O…`), after which the target keeps running.
    pub(super) fn parse(reply: &[u8]) -> Result<Option<Self>> {
        let code = || {
            let digits = reply.get(1..3).unwrap_or_default();
            let mut code = [0];
            hex::decode(digits, &mut code).map(|()| code[0])
        };
        match reply.first() {
            Some(b'S' | b'T') => Ok(Some(Self::Signal(code()?))),
            Some(b'W') => Ok(Some(Self::Exited(code()?))),
            Some(b'X') => Ok(Some(Self::Killed(code()?))),
            Some(b'O') => Ok(None),
            _ => {
                Err(GdbError::protocol(format!("\"{}\" is not a stop reply", String::from_utf8_lossy(reply))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_replies_are_read() {
        assert_eq!(StopReply::parse(b"S05").unwrap(), Some(StopReply::Signal(5)));
        assert_eq!(StopReply::parse(b"T02thread:01;").unwrap(), Some(StopReply::Signal(2)));
        assert_eq!(StopReply::parse(b"W00").unwrap(), Some(StopReply::Exited(0)));
        assert_eq!(StopReply::parse(b"X0b").unwrap(), Some(StopReply::Killed(11)));
        assert_eq!(StopReply::parse(b"O6869").unwrap(), None);
        for wrong in [&b""[..], b"S", b"T5", b"Sxy", b"OK"] {
            assert!(StopReply::parse(wrong).map_or(true, |reply| reply.is_none()), "{wrong:?}");
        }
        assert!(StopReply::parse(b"E01").is_err() && StopReply::parse(b"S").is_err());
    }
}
