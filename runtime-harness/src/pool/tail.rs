//! The end of a worker's output.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// How much of the output is tail.
const CAPACITY: usize = 16 << 10;

/// The last bytes of an output, which is read to its end whatever its length.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads all of `input`.
    pub(super) fn read(&self, mut input: impl Read) {
        let mut piece = vec![0; CAPACITY];
        loop {
            match input.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => self.push(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn push(&self, bytes: &[u8]) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(bytes);
        let surplus = tail.len().saturating_sub(CAPACITY);
        tail.drain(..surplus);
    }

    /// Forgets what was read so far.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The retained output as text.
    pub(super) fn text(&self) -> String {
        let tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::default();
        tail.read(&b"a".repeat(100_000)[..]);
        tail.read(&b"end\n"[..]);
        let text = tail.text();
        assert_eq!(text.len(), CAPACITY);
        assert!(text.ends_with("aaend\n"));
        tail.clear();
        assert_eq!(tail.text(), "");
    }
}
