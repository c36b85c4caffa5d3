//! What a program prints: its beginning and its end, however much it is.

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use parking_lot::Mutex;

/// The beginning and the end of a text that may be of any length.
#[derive(Debug, Default)]
pub(super) struct Printed {
    head: Vec<u8>,
    /// The end, with up to as much again in front of it.
    tail: Vec<u8>,
    /// Bytes between the two.
    dropped: u64,
    /// The most bytes of each.
    half: usize,
    wanted: Vec<u8>,
    has_wanted: bool,
}

impl Printed {
    /// Keeps at most `bytes`.
    pub(super) fn new(bytes: usize) -> Self {
        Self { half: bytes.div_ceil(2), ..Self::default() }
    }

    /// Reads a pipe to its end on a thread, which drops `open` then.
    ///
    /// # Errors
    /// Those of starting a thread.
    pub(super) fn read(
        mut pipe: impl Read + Send + 'static,
        bytes: usize,
        open: Sender<()>,
    ) -> std::io::Result<Arc<Mutex<Self>>> {
        let printed = Arc::new(Mutex::new(Self::new(bytes)));
        let shared = Arc::clone(&printed);
        let read = move || {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match pipe.read(&mut buffer) {
                    Ok(count @ 1..) => shared.lock().add(&buffer[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // What was read until then is kept.
                    _ => break,
                }
            }
            drop(shared);
            drop(open);
        };
        std::thread::Builder::new().name("runtime-output".to_owned()).spawn(read)?;
        Ok(printed)
    }

    /// Whether `text` has been printed, which is looked for from now on.
    pub(super) fn finds(&mut self, text: &str) -> bool {
        if self.wanted != text.as_bytes() {
            text.as_bytes().clone_into(&mut self.wanted);
            self.has_wanted = self.has(&[&self.head[..], &self.tail].concat());
        }
        self.has_wanted || text.is_empty()
    }

    fn has(&self, bytes: &[u8]) -> bool {
        !self.wanted.is_empty() && bytes.windows(self.wanted.len()).any(|window| window == self.wanted)
    }

    fn add(&mut self, bytes: &[u8]) {
        if !self.wanted.is_empty() && !self.has_wanted {
            // The text may have begun in what came before.
            let before = self.head.iter().chain(&self.tail).rev().take(self.wanted.len() - 1).copied();
            let mut joint: Vec<u8> = before.collect();
            joint.reverse();
            joint.extend(bytes);
            self.has_wanted = self.has(&joint);
        }
        let (first, rest) = bytes.split_at((self.half - self.head.len()).min(bytes.len()));
        self.head.extend(first);
        self.tail.extend(rest);
        if self.tail.len() > 2 * self.half {
            self.drop_front();
        }
    }

    fn drop_front(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..surplus);
        self.dropped += surplus as u64;
    }

    /// The text, with a note in place of what is left out, and whether it is the whole of it.
    pub(super) fn text(&mut self) -> (Vec<u8>, bool) {
        self.drop_front();
        let note = match self.dropped {
            0 => String::new(),
            bytes => format!("\n[… {bytes} bytes are left out …]\n"),
        };
        ([&self.head[..], note.as_bytes(), &self.tail].concat(), self.dropped == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(bytes: usize, parts: &[&str]) -> Printed {
        let mut printed = Printed::new(bytes);
        parts.iter().for_each(|part| printed.add(part.as_bytes()));
        printed
    }

    #[test]
    fn the_beginning_and_the_end_are_kept_in_whatever_pieces_they_come() {
        let note = "abcd\n[… 18 bytes are left out …]\nwxyz";
        for parts in [&["abcdefghijklmnopqrstuvwxyz"][..], &["abcdefghijkl", "m", "nopqrstuvw", "xyz"]] {
            assert_eq!(printed(8, parts).text(), (note.as_bytes().to_vec(), false));
        }
        assert_eq!(printed(8, &["abc", "defgh"]).text(), (b"abcdefgh".to_vec(), true));
        let mut long = printed(8, &["a"; 1000]);
        assert!(
            long.tail.len() <= 8 && long.text().0.ends_with(b" 992 bytes are left out \xe2\x80\xa6]\naaaa")
        );
    }

    #[test]
    fn a_text_is_found_that_comes_in_pieces_and_is_left_out_later() {
        let mut printed = printed(4, &["a long line, re"]);
        assert!(printed.finds("") && !printed.finds("ready"));
        printed.add(b"ad");
        assert!(!printed.finds("ready"));
        printed.add(b"y! and much more, so that it is left out");
        assert!(printed.finds("ready") && !printed.finds("other"));
    }
}
