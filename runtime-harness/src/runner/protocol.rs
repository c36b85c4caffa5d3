//! The messages between judge and runner: lines of JSON. Nothing that a runner says is believed: `done` has no result and no time.

use std::io::{self, BufRead, Read as _, Write};
use std::path::PathBuf;

use runtime_core::code::ParallelRange;
use runtime_core::{DType, Geometry, LaunchConfig, Options};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::describe::options_json;

/// Longer than any message of a judge.
const MAX_LOAD_BYTES: u64 = 16 << 20;
/// Longer than any message of a runner.
const MAX_ANSWER_BYTES: u64 = 16 << 10;

/// What the judge says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Load the code.
    Load(Box<Load>),
    /// The word for a window: so many calls, with the tensors of a set; of an empty function if there is no set.
    Call { window: u64, set: Option<usize>, number: u64 },
}

/// A candidate.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Load {
    /// The library of the host's backend.
    pub(super) backend: PathBuf,
    /// The shared object.
    pub(super) code: PathBuf,
    pub(super) entry: String,
    /// Load options that the shared object needs.
    #[serde(with = "options_json")]
    pub(super) options: Options,
    pub(super) launch: Launch,
    /// The arguments, by set of tensors.
    pub(super) sets: Vec<Vec<Parameter>>,
    /// Whether it is a reference, which may start processes.
    pub(super) is_trusted: bool,
}

/// What a call runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Launch {
    Groups { groups: [u32; 3], group_size: [u32; 3] },
    Range { begin: i64, end: i64, grain: Option<u32> },
}

impl From<LaunchConfig> for Launch {
    fn from(config: LaunchConfig) -> Self {
        match config {
            LaunchConfig::Groups(Geometry { groups, group_size, .. }) => Self::Groups { groups, group_size },
            LaunchConfig::Range(ParallelRange { begin, end, grain }) => Self::Range { begin, end, grain },
        }
    }
}

impl From<Launch> for LaunchConfig {
    fn from(launch: Launch) -> Self {
        match launch {
            Launch::Groups { groups, group_size } => {
                Geometry { groups, group_size, ..Geometry::default() }.into()
            }
            Launch::Range { begin, end, grain } => ParallelRange { begin, end, grain }.into(),
        }
    }
}

/// An argument.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Parameter {
    /// A tensor in the shared memory.
    Tensor { dtype: DType, shape: Vec<usize>, region: Region, reads: bool, writes: bool },
    /// A type, and the bits of its value.
    Scalar(DType, u64),
    /// The fields of a structure.
    Record(Vec<(DType, u64)>),
    /// A structure as it lies in memory.
    Bytes(Vec<u8>),
    /// A size of work-group memory in bytes.
    Local(u64),
}

/// Where a tensor lies in the shared memory.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Region {
    /// The byte at which its buffer begins.
    pub(super) at: usize,
    /// The elements of that.
    pub(super) elements: usize,
    /// The distances between its neighbours, in elements; `None` if it is the whole buffer.
    pub(super) strides: Option<Vec<usize>>,
    /// Its first element in the buffer.
    pub(super) offset: usize,
}

/// What the runner says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is ready. Said before any foreign code is loaded.
    Hello,
    /// The code is loaded.
    Loaded,
    /// It cannot be loaded, or a call has failed; shown in the row of a candidate that failed.
    Failed(String),
    /// The calls of a window have returned.
    Done(u64),
}

/// Writes a message.
///
/// # Errors
/// Any I/O error.
pub(super) fn write(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)
}

/// Reads the judge's next order; `None` at the end.
///
/// # Errors
/// Any I/O error; `InvalidData` for anything else than an order.
pub(super) fn read_order(input: &mut impl BufRead) -> io::Result<Option<Order>> {
    read(input, MAX_LOAD_BYTES)
}

/// Reads a runner's next answer; `None` at the end.
///
/// # Errors
/// Any I/O error; `InvalidData` for anything else than an answer.
pub(super) fn read_answer(input: &mut impl BufRead) -> io::Result<Option<Answer>> {
    read(input, MAX_ANSWER_BYTES)
}

fn read<T: DeserializeOwned>(input: &mut impl BufRead, most: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.by_ref().take(most).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_and_anything_else_is_an_error() {
        let mut bytes = Vec::new();
        for answer in [Answer::Hello, Answer::Failed("why".to_owned()), Answer::Done(7)] {
            write(&mut bytes, &answer).unwrap();
        }
        let mut input = &bytes[..];
        assert_eq!(read_answer(&mut input).unwrap(), Some(Answer::Hello));
        assert_eq!(read_answer(&mut input).unwrap(), Some(Answer::Failed("why".to_owned())));
        assert_eq!(read_answer(&mut input).unwrap(), Some(Answer::Done(7)));
        assert_eq!(read_answer(&mut input).unwrap(), None);
        let endless = vec![b'['; 1 << 15];
        for bad in [&b"{}\n"[..], b"\"Done\"\n", b"{\"Done\":-1}\n", b"\xff\n", b"\n", &endless] {
            assert!(read_answer(&mut &bad[..]).is_err(), "{bad:?}");
        }
    }
}
