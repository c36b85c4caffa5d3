//! What is traced of a run for the counts of its functions.

use runtime_core::{Error, Result};

use super::trace::{Counts, Window};
use crate::boards::{Board, LinkKind};
use crate::image::{Functions, Image};

/// The functions of an image, and the part of its runs that is traced.
#[derive(Debug)]
pub(crate) struct FunctionTrace {
    functions: Functions,
    pub(super) window: Window,
}

impl FunctionTrace {
    /// Finds the functions of an image.
    ///
    /// # Errors
    /// `Unsupported` if the link or the image does not allow it; `Io` if its file cannot be read.
    pub(crate) fn new(board: &Board, image: &Image) -> Result<Self> {
        check_link(board)?;
        let functions = Functions::of(image, board.processor)?;
        let window = Window {
            begin: functions.address("runtime_counter_start")?,
            end: functions.address("runtime_counted")?,
            reading: functions.address("runtime_counter_read")?,
        };
        Ok(Self { functions, window })
    }

    /// The instructions of each function, the largest count first.
    pub(super) fn sum(&self, counts: Counts) -> Vec<(String, u64)> {
        self.functions.sum(counts)
    }
}

fn check_link(board: &Board) -> Result<()> {
    let reason = match (board.link, &board.emulator) {
        (LinkKind::Debugger, Some(_)) => return Ok(()),
        (LinkKind::Debugger, None) => {
            "counts of executed instructions need an emulator; debug probes do not report them"
        }
        (LinkKind::Uart, _) => {
            "counts of executed instructions need the debugger of an emulator; this board is reached over a UART"
        }
    };
    Err(Error::unsupported(reason))
}

#[cfg(test)]
mod tests {
    use runtime_core::ErrorKind;

    use super::*;

    #[test]
    fn only_the_debugger_of_an_emulator_counts() {
        let mut board = crate::boards::all(None).unwrap().remove(0);
        check_link(&board).unwrap();
        let uart = board.with_link(LinkKind::Uart).unwrap();
        board.emulator = None;
        for (board, word) in [(&uart, "UART"), (&board, "debug probes")] {
            let error = check_link(board).unwrap_err();
            assert!(error.kind() == ErrorKind::Unsupported && error.message().contains(word), "{error}");
        }
    }
}
