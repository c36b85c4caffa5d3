//! Requests and replies.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Result};

use super::frame::{Frame, Item, Parser};
use super::messages::{
    self, BOOT, CHECKSUM, DAMAGED, DONE, Greeting, HELLO, LOG, OTHER_SESSION, READ, REFUSED, REPLY, RESTART,
    RUN, WRITE,
};
use crate::gdb::Transport;

/// A request that is not answered is sent this many times.
const ATTEMPTS: usize = 3;
/// The first request is sent again after this time, because a target that starts does not listen yet.
const GREETING_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of a frame around its payload, and of the payload's encoding.
const FRAME_BYTES: usize = 128;
/// Bytes per second that the slowest target checks.
const CHECKED_PER_SECOND: u64 = 100_000;
/// Bytes received at once.
const CHUNK_BYTES: usize = 4 << 10;
/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;

/// Takes the messages of the program.
pub type Log = Box<dyn FnMut(&str) + Send>;

/// How long the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the firmware to start and to answer for the first time.
    pub start: Duration,
    /// For the reply to any other request. A request without a reply is repeated.
    pub reply: Duration,
    /// For an answer after the deadline of a run, if the report of its end was lost.
    pub last_question: Duration,
    /// Transfer time of a byte. The time of the largest request and reply is added to `reply`.
    pub byte: Duration,
}

impl Deadlines {
    /// For a reply of firmware with frames of `payload_bytes`.
    fn for_reply(&self, payload_bytes: usize) -> Duration {
        let bytes = 2 * (payload_bytes + FRAME_BYTES);
        self.reply + self.byte.saturating_mul(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(10),
            reply: Duration::from_secs(1),
            last_question: Duration::from_secs(1),
            byte: Duration::ZERO,
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// The firmware has executed the command.
    Done,
    /// The deadline has passed, and the target does not answer: the program is still running.
    Running,
}

/// A connection to the firmware.
pub struct Client<T> {
    transport: T,
    log: Log,
    parser: Parser,
    received: VecDeque<Item>,
    deadlines: Deadlines,
    /// Number of the session; 0 while there is none.
    nonce: u32,
    sequence: u8,
    payload_bytes: usize,
    is_broken: bool,
}

/// What came before a deadline.
enum Arrival {
    Frame(Frame),
    /// A frame was damaged here, or the request was damaged on its way.
    Damaged,
    Nothing,
}

impl<T: Transport> Client<T> {
    /// Creates a client. [`greet`](Client::greet) comes next.
    pub fn new(transport: T, deadlines: Deadlines, log: Log) -> Self {
        Self {
            transport,
            log,
            parser: Parser::default(),
            received: VecDeque::new(),
            deadlines,
            nonce: 0,
            sequence: 0,
            payload_bytes: 0,
            is_broken: false,
        }
    }

    /// The way to the firmware.
    pub(crate) const fn transport(&mut self) -> &mut T {
        &mut self.transport
    }

    /// Whether an error has ended the session.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Begins a session, and repeats the request until the firmware has started.
    ///
    /// # Errors
    /// `Timeout` after [`Deadlines::start`]; `InvalidArgument` for another protocol; `Io`.
    pub fn greet(&mut self) -> Result<Greeting> {
        let until = Instant::now() + self.deadlines.start;
        self.nonce = 0;
        self.is_broken = true;
        let [a, b, c, d, ..] = RandomState::new().hash_one(until).to_le_bytes();
        let nonce = u32::from_le_bytes([a, b, c, d]).max(1);
        let sequence = self.next_sequence();
        self.await_boot(until.min(Instant::now() + GREETING_INTERVAL))?;
        while Instant::now() < until {
            self.send(&Frame { kind: HELLO, sequence, nonce, payload: Vec::new() }, until)?;
            let again = until.min(Instant::now() + GREETING_INTERVAL);
            if let Some(greeting) = self.greeting(again, (sequence, nonce))? {
                (self.nonce, self.payload_bytes, self.is_broken) = (nonce, greeting.payload_bytes, false);
                return Ok(greeting);
            }
        }
        let message = format!("the firmware has not answered within {:?}", self.deadlines.start);
        Err(Error::new(ErrorKind::Timeout, message))
    }

    /// Waits for the message that the firmware has started: a request that arrives before it has set up its port is lost.
    fn await_boot(&mut self, until: Instant) -> Result<()> {
        loop {
            match self.next(until)? {
                Arrival::Frame(frame) if frame.kind == BOOT => return Ok(()),
                Arrival::Nothing => return Ok(()),
                Arrival::Frame(_) | Arrival::Damaged => {}
            }
        }
    }

    /// Waits for the reply to the first request of a session; `None` if it does not come.
    fn greeting(&mut self, until: Instant, (sequence, nonce): (u8, u32)) -> Result<Option<Greeting>> {
        let expected = (HELLO | REPLY, sequence, nonce);
        loop {
            match self.next(until)? {
                Arrival::Frame(frame) if (frame.kind, frame.sequence, frame.nonce) == expected => {
                    return Greeting::parse(&frame.payload).map(Some);
                }
                Arrival::Nothing => return Ok(None),
                // What an earlier session has left on the line.
                Arrival::Frame(_) | Arrival::Damaged => {}
            }
        }
    }

    /// Reads memory.
    ///
    /// # Errors
    /// `Driver` for an address that the firmware refuses; `Timeout`; `Io`, also if the target was reset.
    pub fn read_memory(&mut self, mut address: u64, bytes: &mut [u8]) -> Result<()> {
        for piece in bytes.chunks_mut(self.payload_bytes.max(1)) {
            let payload = [address, piece.len() as u64].map(u64::to_le_bytes).concat();
            let reply = self.request(READ, payload, Duration::ZERO)?;
            if reply.len() != piece.len() {
                return Err(self.out_of_step(&format!(
                    "{} bytes came instead of {}",
                    reply.len(),
                    piece.len()
                )));
            }
            piece.copy_from_slice(&reply);
            address = address.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes memory.
    ///
    /// # Errors
    /// As for [`Client::read_memory`].
    pub fn write_memory(&mut self, mut address: u64, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(self.payload_bytes.saturating_sub(ADDRESS_BYTES).max(1)) {
            let payload = [&address.to_le_bytes()[..], piece].concat();
            self.request(WRITE, payload, Duration::ZERO)?;
            address = address.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// The CRC-32 that the target computes of its memory.
    ///
    /// # Errors
    /// As for [`Client::read_memory`].
    pub fn checksum(&mut self, address: u64, bytes: u64) -> Result<u32> {
        let payload = [address, bytes].map(u64::to_le_bytes).concat();
        let reply = self.request(CHECKSUM, payload, Duration::from_secs(bytes / CHECKED_PER_SECOND))?;
        let checksum = <[u8; 4]>::try_from(reply.as_slice()).map(u32::from_le_bytes);
        checksum.map_err(|_| self.out_of_step(&format!("a checksum of {} bytes came", reply.len())))
    }

    /// Starts the firmware again, as after a reset, which ends the session.
    ///
    /// # Errors
    /// As for [`Client::read_memory`].
    pub fn restart(&mut self) -> Result<()> {
        self.request(RESTART, Vec::new(), Duration::ZERO)?;
        (self.nonce, self.is_broken) = (0, true);
        Ok(())
    }

    /// Lets the firmware execute the command in its mailbox. After [`RunState::Running`], the target must be reset.
    ///
    /// # Errors
    /// `Timeout` if the firmware does not begin; `Io`, also if the target was reset.
    pub fn run(&mut self, until: Instant) -> Result<RunState> {
        self.request(RUN, Vec::new(), Duration::ZERO)?;
        let mut is_asked = false;
        let mut until = until;
        loop {
            match self.next(until)? {
                Arrival::Frame(frame) if (frame.kind, frame.sequence) == (DONE, self.sequence) => {
                    return Ok(RunState::Done);
                }
                Arrival::Frame(_) => {}
                // The damaged frame may have been the end of the run. The firmware does not run twice.
                Arrival::Damaged => self.repeat_run()?,
                Arrival::Nothing if is_asked => {
                    self.is_broken = true;
                    return Ok(RunState::Running);
                }
                Arrival::Nothing => {
                    is_asked = true;
                    self.repeat_run()?;
                    until = Instant::now() + self.deadlines.last_question;
                }
            }
        }
    }

    fn repeat_run(&mut self) -> Result<()> {
        let frame = self.frame(RUN, Vec::new());
        self.send(&frame, Instant::now() + self.deadlines.reply)
    }

    /// Sends a request until it is answered, and returns the payload of the reply. The firmware may take `extra` time.
    fn request(&mut self, kind: u8, payload: Vec<u8>, extra: Duration) -> Result<Vec<u8>> {
        if self.is_broken || self.nonce == 0 {
            return Err(Error::new(ErrorKind::Io, "UART: the session has ended; flash again"));
        }
        self.next_sequence();
        let frame = self.frame(kind, payload);
        let deadline = self.deadlines.for_reply(self.payload_bytes) + extra;
        for attempt in 1..=ATTEMPTS {
            let until = Instant::now() + deadline;
            self.send(&frame, until)?;
            if let Some(reply) = self.reply(kind, until, attempt == ATTEMPTS)? {
                return Ok(reply);
            }
        }
        self.is_broken = true;
        let message = format!("UART: the firmware does not answer; request {kind} was sent {ATTEMPTS} times");
        Err(Error::new(ErrorKind::Timeout, message))
    }

    /// Waits for a reply; `None` if the request must be sent again.
    fn reply(&mut self, kind: u8, until: Instant, is_last: bool) -> Result<Option<Vec<u8>>> {
        loop {
            let frame = match self.next(until)? {
                Arrival::Frame(frame) => frame,
                // The damaged frame may be an older one.
                Arrival::Damaged if is_last => continue,
                Arrival::Damaged | Arrival::Nothing => return Ok(None),
            };
            if frame.sequence != self.sequence {
                continue;
            }
            match frame.kind {
                REFUSED => return Err(self.refused(kind, &frame)),
                answered if answered == kind | REPLY => return Ok(Some(frame.payload)),
                _ => {}
            }
        }
    }

    fn refused(&mut self, kind: u8, frame: &Frame) -> Error {
        let code = frame.payload.first().copied().unwrap_or_default();
        if code == OTHER_SESSION {
            return self.was_reset();
        }
        let reason = messages::reason(code);
        Error::new(ErrorKind::Driver, format!("UART: the firmware refuses request {kind}: {reason}"))
    }

    fn was_reset(&mut self) -> Error {
        self.is_broken = true;
        Error::new(ErrorKind::Io, "UART: the target was reset during the session; flash again")
    }

    fn out_of_step(&mut self, what: &str) -> Error {
        self.is_broken = true;
        Error::new(ErrorKind::Io, format!("UART: {what}"))
    }

    fn next_sequence(&mut self) -> u8 {
        self.sequence = self.sequence.checked_add(1).unwrap_or(1);
        self.sequence
    }

    fn frame(&self, kind: u8, payload: Vec<u8>) -> Frame {
        Frame { kind, sequence: self.sequence, nonce: self.nonce, payload }
    }

    fn send(&mut self, frame: &Frame, until: Instant) -> Result<()> {
        let sent = self.transport.send(&frame.encode(), until);
        sent.map_err(|error| self.failed(&error))
    }

    /// The next frame of this session. Messages go to the log on the way.
    fn next(&mut self, until: Instant) -> Result<Arrival> {
        let mut buffer = [0; CHUNK_BYTES];
        loop {
            while let Some(item) = self.received.pop_front() {
                let Item::Frame(frame) = item else { return Ok(Arrival::Damaged) };
                match frame.kind {
                    LOG => (self.log)(&String::from_utf8_lossy(&frame.payload)),
                    BOOT if self.nonce != 0 => return Err(self.was_reset()),
                    REFUSED if frame.payload == [DAMAGED] => return Ok(Arrival::Damaged),
                    _ => return Ok(Arrival::Frame(frame)),
                }
            }
            match self.transport.receive(&mut buffer, until) {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(Arrival::Nothing),
                Err(error) => return Err(self.failed(&error)),
                Ok(0) => return Err(self.failed(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => {
                    for &byte in &buffer[..count] {
                        self.received.extend(self.parser.push(byte));
                    }
                }
            }
        }
    }

    fn failed(&mut self, error: &io::Error) -> Error {
        self.is_broken = true;
        let (kind, what) = match error.kind() {
            io::ErrorKind::TimedOut => (ErrorKind::Timeout, "nothing could be sent in time".to_owned()),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                (ErrorKind::Io, "the connection was closed".to_owned())
            }
            _ => (ErrorKind::Io, error.to_string()),
        };
        Error::new(kind, format!("UART: {what}"))
    }
}

impl<T: fmt::Debug> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("transport", &self.transport)
            .field("nonce", &self.nonce)
            .field("is_broken", &self.is_broken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_allows_for_the_largest_frames_of_both_directions() {
        let second = Duration::from_secs(1);
        // 1000 bytes per second.
        let slow = Deadlines { byte: Duration::from_millis(1), reply: second, ..Deadlines::default() };
        assert!(slow.for_reply(64) > second);
        assert!(slow.for_reply(16 << 10) > second * 2 * 16);
        assert_eq!(Deadlines::default().for_reply(16 << 10), Deadlines::default().reply);
    }
}
