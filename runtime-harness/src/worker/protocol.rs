//! The messages between a worker and its parent: one JSON object per line. `docs/serve.md` documents them.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::candidate::Candidate;
use crate::row::{Phase, Row};

/// The version of the protocol.
pub const VERSION: u32 = 2;
/// The versions whose requests are answered: those of version 1 are requests of version 2, too.
const SPOKEN: [u32; 2] = [1, VERSION];

/// The longest line of a client.
pub(crate) const MAX_REQUEST_BYTES: u64 = 64 << 20;
/// The longest line to a worker: numbers of a client's line may have become longer.
pub(crate) const MAX_FORWARDED_BYTES: u64 = 2 * MAX_REQUEST_BYTES;
/// Longer than any row.
const MAX_REPLY_BYTES: u64 = 256 << 20;

/// A candidate to evaluate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// A number of the caller's choice, which the replies repeat.
    pub id: u64,
    /// The candidate.
    pub candidate: Candidate,
}

/// A line to a worker or a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message {
    /// Evaluate this.
    Evaluate(Box<Request>),
    /// No row is wanted for the requests with this number.
    Cancel(u64),
}

/// All fields of messages.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    id: Option<u64>,
    candidate: Option<Candidate>,
    cancel: Option<u64>,
}

/// The number of a message whose other fields are wrong.
#[derive(Deserialize)]
struct Number {
    id: Option<u64>,
}

/// A line from a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// The worker is ready. Comes first.
    Hello {
        /// Who it is.
        hello: Hello,
    },
    /// A candidate has entered a phase.
    Phase {
        /// The number of the request.
        id: u64,
        /// The phase.
        phase: Phase,
        /// What runs, as in "while … ran on host:0".
        operation: String,
    },
    /// The device of a candidate was opened.
    Device {
        /// The number of the request.
        id: u64,
        /// The device string.
        device: String,
        /// The device, as in reports.
        device_info: Option<Value>,
    },
    /// A candidate was evaluated.
    Row {
        /// The number of the request.
        id: u64,
        /// The result.
        row: Box<Row>,
        /// Whether the worker ends now.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        last: bool,
    },
    /// A candidate gets no row, because its client wants none.
    Cancelled {
        /// The number of the request.
        id: u64,
        /// What it was doing.
        cancelled: Progress,
    },
    /// A request is invalid.
    Error {
        /// The number of the request, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// What is wrong with it.
        error: String,
    },
    /// A worker of a device is not used any more; others go on with its candidates.
    Retired {
        /// The device string.
        device: String,
        /// Why it is not used.
        retired: String,
    },
    /// The worker has ended. Comes last, from its supervisor.
    Ended {
        /// How it ended.
        ended: Ended,
    },
}

/// How far a candidate was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// It waited for its turn.
    Pending,
    /// It was evaluated.
    Running,
}

/// A worker that is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub protocol: u32,
    /// The versions whose requests are answered.
    #[serde(default)]
    pub protocols: Vec<u32>,
    /// The version of the program.
    pub version: String,
    /// The process that evaluates, which leads its own process group.
    pub pid: u32,
}

/// How a worker ended: by a code, by a signal, or by neither if it was told to end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Processes that could not be killed, for example because they wait in a driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<i32>,
}

impl Hello {
    /// This process.
    #[must_use]
    pub fn current() -> Self {
        Self {
            protocol: VERSION,
            protocols: SPOKEN.to_vec(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
        }
    }
}

impl Reply {
    /// What the user wants to know at once: which process a worker waits for, or why one is not used any more.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Phase { phase: Phase::Wait, operation, .. } => Some(format!("waiting {operation}")),
            Self::Retired { device, retired } => {
                Some(format!("warning: a worker of {device} is not used any more: {retired}"))
            }
            _ => None,
        }
    }

    /// The number of the request that it is about.
    #[must_use]
    pub const fn id(&self) -> Option<u64> {
        match self {
            Self::Hello { .. } | Self::Retired { .. } | Self::Ended { .. } => None,
            Self::Phase { id, .. }
            | Self::Device { id, .. }
            | Self::Row { id, .. }
            | Self::Cancelled { id, .. } => Some(*id),
            Self::Error { id, .. } => *id,
        }
    }

    /// The same reply to the request with another number.
    #[must_use]
    pub fn with_id(mut self, new: u64) -> Self {
        match &mut self {
            Self::Hello { .. } | Self::Retired { .. } | Self::Ended { .. } => {}
            Self::Phase { id, .. }
            | Self::Device { id, .. }
            | Self::Row { id, .. }
            | Self::Cancelled { id, .. } => *id = new,
            Self::Error { id, .. } => *id = Some(new),
        }
        self
    }

    /// Whether no further reply to the request follows.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Row { .. } | Self::Cancelled { .. } | Self::Error { .. })
    }
}

impl Message {
    /// Reads the next message of at most `most` bytes, with its length; `None` at the end of the input. A malformed line is answered by
    /// itself: the lines after it are read.
    ///
    /// # Errors
    /// Any I/O error; within it, the reply to a malformed message.
    pub(crate) fn read(
        input: &mut impl BufRead,
        most: u64,
    ) -> io::Result<Option<Result<(Self, usize), Reply>>> {
        Ok(read_line(input, most)?.map(|line| match line {
            Line::Whole(line) => Self::parse(&line).map(|message| (message, line.len())),
            Line::TooLong => Err(invalid(None, &format!("a line of more than {most} bytes"))),
        }))
    }

    pub(crate) fn parse(line: &[u8]) -> Result<Self, Reply> {
        Self::parse_fields(line).map_err(|error| {
            // An array could be read as the fields in their order.
            let object = std::str::from_utf8(line).ok().filter(|text| text.trim_start().starts_with('{'));
            let number = object.and_then(|text| serde_json::from_str::<Number>(text).ok());
            invalid(number.and_then(|number| number.id), &error)
        })
    }

    fn parse_fields(line: &[u8]) -> Result<Self, String> {
        let fields: Fields = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match fields {
            Fields { id: None, candidate: None, cancel: Some(id) } => Ok(Self::Cancel(id)),
            Fields { cancel: Some(_), .. } => Err("`cancel` cannot be combined with other fields".to_owned()),
            Fields { id: None, .. } => Err("missing field `id`".to_owned()),
            Fields { candidate: None, .. } => Err("missing field `candidate`".to_owned()),
            Fields { id: Some(id), candidate: Some(candidate), .. } => {
                candidate.settings.check()?;
                Ok(Self::Evaluate(Box::new(Request { id, candidate })))
            }
        }
    }
}

fn invalid(id: Option<u64>, error: &str) -> Reply {
    Reply::Error { id, error: format!("not a valid request: {error}") }
}

/// Writes one line.
///
/// # Errors
/// Any I/O error.
pub fn write_line(output: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

/// Reads the next reply; `None` at the end, or after a line that no worker writes.
pub(crate) fn read_reply(input: &mut impl BufRead) -> Option<Vec<u8>> {
    match read_line(input, MAX_REPLY_BYTES) {
        Ok(Some(Line::Whole(line))) => Some(line),
        _ => None,
    }
}

/// A line without its end.
#[derive(Debug, PartialEq)]
enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// Reads the next line that is not empty, which need not be text; `None` at the end. A line of more than `most` bytes is
/// skipped, and never held in memory.
fn read_line(input: &mut impl BufRead, most: u64) -> io::Result<Option<Line>> {
    loop {
        let mut bytes = Vec::new();
        input.by_ref().take(most + 1).read_until(b'\n', &mut bytes)?;
        match bytes.pop() {
            None => return Ok(None),
            Some(b'\n') => {}
            Some(_) if bytes.len() as u64 == most => {
                input.skip_until(b'\n')?;
                return Ok(Some(Line::TooLong));
            }
            Some(last) => bytes.push(last),
        }
        if !bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Some(Line::Whole(bytes)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_told_apart() {
        for (line, expected) in [
            (r#"{"hello":{"protocol":2,"protocols":[1,2],"version":"0","pid":4}}"#, "Hello"),
            (r#"{"id":7,"phase":"run","operation":"while x ran"}"#, "Phase"),
            (r#"{"id":7,"device":"host:0","device_info":null}"#, "Device"),
            (r#"{"id":7,"error":"why"}"#, "Error { id: Some(7)"),
            (r#"{"error":"why"}"#, "Error { id: None"),
            (r#"{"id":7,"cancelled":"running"}"#, "Cancelled"),
            (r#"{"device":"host:0","retired":"why"}"#, "Retired"),
            (r#"{"ended":{"signal":11}}"#, "Ended"),
        ] {
            let reply: Reply = serde_json::from_str(line).unwrap();
            assert!(format!("{reply:?}").starts_with(expected), "{reply:?}");
            assert_eq!(serde_json::to_string(&reply).unwrap(), line);
        }
    }

    #[test]
    fn a_malformed_request_is_answered_with_its_number() {
        let reply = |line: &[u8]| Message::parse(line).unwrap_err();
        assert!(matches!(reply(b"{"), Reply::Error { id: None, .. }));
        assert!(matches!(reply(b"{\"id\": 3, \"x\": \"\xff\"}"), Reply::Error { id: None, .. }), "not UTF-8");
        assert!(
            matches!(reply(br#"{"id": 3}"#), Reply::Error { id: Some(3), error } if error.contains("candidate"))
        );
        let endless =
            br#"{"id": 3, "candidate": {"spec": "a", "device": "b", "settings": {"budget_s": 1e308}}}"#;
        assert!(
            matches!(reply(endless), Reply::Error { id: Some(3), error } if error.contains("settings.budget_s"))
        );
    }

    #[test]
    fn a_message_evaluates_or_cancels() {
        assert_eq!(Message::parse(br#"{"cancel": 7}"#), Ok(Message::Cancel(7)));
        for (line, words) in [
            (&br#"{"cancel": 7, "id": 7}"#[..], "cannot be combined"),
            (br#"{"cancel": -7}"#, "invalid value"),
            (br#"{"candidate": {"spec": "a", "device": "b"}}"#, "missing field `id`"),
            (br#"{"id": 18446744073709551616, "candidate": {"spec": "a", "device": "b"}}"#, "invalid type"),
            (br#"{"id": 1, "candidate": {"spec": {"name": 1e400}, "device": "b"}}"#, "number out of range"),
            (
                &[&br#"{"id": 1, "candidate": {"spec": "#[..], &vec![b'['; 1 << 20]].concat(),
                "recursion limit",
            ),
        ] {
            let error = Message::parse(line).unwrap_err();
            assert!(matches!(&error, Reply::Error { error, .. } if error.contains(words)), "{error:?}");
        }
    }

    #[test]
    fn empty_lines_are_skipped_and_the_last_line_needs_no_end() {
        let mut input = &b"\n \na\n\xffb"[..];
        for line in [&b"a"[..], b"\xffb"] {
            assert_eq!(read_line(&mut input, 100).unwrap(), Some(Line::Whole(line.to_vec())));
        }
        assert_eq!(read_line(&mut input, 100).unwrap(), None);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let mut input = &b"1234\n12345\n123456789\n123\n12345"[..];
        let mut next = || read_line(&mut input, 4).unwrap();
        assert_eq!(next(), Some(Line::Whole(b"1234".to_vec())));
        assert_eq!([next(), next()], [Some(Line::TooLong), Some(Line::TooLong)]);
        assert_eq!(next(), Some(Line::Whole(b"123".to_vec())));
        assert_eq!([next(), next()], [Some(Line::TooLong), None]);
    }
}
