//! Requests and replies.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::error::{GdbError, GdbErrorKind, Result};
use super::features::Features;
use super::flash::FlashRegion;
use super::hex;
use super::packet::{Item, Parser, frame};
use super::stop::StopReply;
use super::transport::Transport;

/// A packet that arrives damaged is sent this many times.
const ATTEMPTS: usize = 3;
/// Byte that interrupts a running target.
const INTERRUPT: u8 = 0x03;
/// Bytes received at once.
const CHUNK_BYTES: usize = 16 << 10;

/// How long the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// For the first reply, while the server starts.
    pub connect: Duration,
    /// For the reply to any other request.
    pub reply: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), reply: Duration::from_secs(5) }
    }
}

/// A connection to a stub or a server of the GDB remote serial protocol.
#[derive(Debug)]
pub struct Client<T> {
    transport: T,
    parser: Parser,
    received: VecDeque<Item>,
    deadlines: Deadlines,
    pub(super) features: Features,
    acknowledges: bool,
    is_broken: bool,
    /// Flash memory, by the server's memory map.
    pub(super) flash: Vec<FlashRegion>,
    /// Whether the server accepts binary writes; `None` until one was tried.
    pub(super) binary_writes: Option<bool>,
}

impl<T: Transport> Client<T> {
    /// Connects: negotiates features, and turns acknowledgements off where the server offers it.
    ///
    /// # Errors
    /// `Timeout` if the server does not answer; `Closed`, `Protocol` or `Io`.
    pub fn connect(transport: T, deadlines: Deadlines) -> Result<Self> {
        let mut client = Self {
            transport,
            parser: Parser::default(),
            received: VecDeque::new(),
            deadlines,
            features: Features::parse(b""),
            acknowledges: true,
            is_broken: false,
            flash: Vec::new(),
            binary_writes: None,
        };
        client.deadlines.reply = deadlines.connect;
        let reply = client.request(b"qSupported:swbreak+;hwbreak+")?;
        client.deadlines.reply = deadlines.reply;
        client.features = Features::parse(&reply);
        if client.features.no_ack_mode && client.request(b"QStartNoAckMode")? == b"OK" {
            client.acknowledges = false;
        }
        if client.features.describes_target {
            // QEMU allows access to single registers only after this request; the reply is ignored.
            client.request(b"qXfer:features:read:target.xml:0,100")?;
        }
        if client.features.describes_memory {
            client.flash = client.read_memory_map()?;
        }
        Ok(client)
    }

    /// What the server supports.
    #[must_use]
    pub const fn features(&self) -> Features {
        self.features
    }

    /// Whether an error has left requests and replies out of step.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Sends a request and returns its reply. The payload must be escaped already.
    ///
    /// # Errors
    /// `Timeout`, `Closed`, `Protocol` or `Io`, after which the client is broken; `Broken` if it was already.
    pub fn request(&mut self, payload: &[u8]) -> Result<Vec<u8>> {
        self.request_within(payload, self.deadlines.reply)
    }

    fn request_within(&mut self, payload: &[u8], within: Duration) -> Result<Vec<u8>> {
        self.check_in_step()?;
        let deadline = Instant::now() + within;
        let reply = self.send(payload, deadline).and_then(|()| self.receive(deadline));
        self.is_broken = reply.is_err();
        reply.map_err(|error| error.during(&name(payload)))
    }

    /// As [`Client::request`], for requests whose only good reply is `OK`.
    ///
    /// # Errors
    /// As for [`Client::request`]; `Refused` for any other reply.
    pub fn command(&mut self, payload: &[u8]) -> Result<()> {
        self.command_within(payload, self.deadlines.reply)
    }

    pub(super) fn command_within(&mut self, payload: &[u8], within: Duration) -> Result<()> {
        match self.request_within(payload, within)?.as_slice() {
            b"OK" => Ok(()),
            reply => Err(refused(reply).during(&name(payload))),
        }
    }

    /// Runs a command of the server's monitor, such as `reset halt` of `OpenOCD`.
    ///
    /// # Errors
    /// As for [`Client::command`].
    pub fn monitor(&mut self, command: &str) -> Result<()> {
        let mut payload = b"qRcmd,".to_vec();
        hex::encode(command.as_bytes(), &mut payload);
        let mut reply = self.request(&payload)?;
        let deadline = Instant::now() + self.deadlines.reply;
        while reply.first() == Some(&b'O') && reply != b"OK" {
            let next = self.receive(deadline);
            self.is_broken = next.is_err();
            reply = next?;
        }
        if reply == b"OK" { Ok(()) } else { Err(refused(&reply).during("qRcmd")) }
    }

    /// Stops the target at `address` before it executes the instruction there. `kind` is the length of the instruction.
    ///
    /// # Errors
    /// As for [`Client::command`].
    pub fn insert_breakpoint(&mut self, address: u64, kind: u8) -> Result<()> {
        self.set_breakpoint('Z', address, kind)
    }

    /// Removes a breakpoint.
    ///
    /// # Errors
    /// As for [`Client::command`].
    pub fn remove_breakpoint(&mut self, address: u64, kind: u8) -> Result<()> {
        self.set_breakpoint('z', address, kind)
    }

    fn set_breakpoint(&mut self, letter: char, address: u64, kind: u8) -> Result<()> {
        let is_flash = self.flash.iter().any(|region| region.contains(address));
        let software = match is_flash {
            // Code in flash takes hardware breakpoints only. A server may accept software ones all the same.
            true => Err(refused(b"")),
            false => self.command(format!("{letter}0,{address:x},{kind}").as_bytes()),
        };
        match software {
            Err(error) if error.kind() == GdbErrorKind::Refused => {
                self.command(format!("{letter}1,{address:x},{kind}").as_bytes())
            }
            done => done,
        }
    }

    /// Lets the target run until it stops, or returns `None` at the deadline: it is still running then, and must be
    /// [interrupted](Client::interrupt) before the next request.
    ///
    /// # Errors
    /// `Closed`, `Protocol` or `Io`, after which the client is broken; `Broken` if it was already.
    pub fn resume(&mut self, deadline: Instant) -> Result<Option<StopReply>> {
        self.check_in_step()?;
        let sent = self.send(b"c", Instant::now() + self.deadlines.reply);
        self.is_broken = sent.is_err();
        sent.map_err(|error| error.during("c"))?;
        self.wait_for_stop(deadline)
    }

    /// Stops a running target. Returns `None` if it does not stop, after which the client is broken.
    ///
    /// # Errors
    /// `Closed`, `Protocol` or `Io`, after which the client is broken; `Broken` if it was already.
    pub fn interrupt(&mut self) -> Result<Option<StopReply>> {
        self.check_in_step()?;
        let deadline = Instant::now() + self.deadlines.reply;
        let sent = self.transport.send(&[INTERRUPT], deadline).map_err(|error| from_io(&error));
        self.is_broken = sent.is_err();
        sent?;
        let stopped = self.wait_for_stop(deadline)?;
        self.is_broken = stopped.is_none();
        Ok(stopped)
    }

    fn wait_for_stop(&mut self, deadline: Instant) -> Result<Option<StopReply>> {
        loop {
            let reply = match self.receive(deadline) {
                Err(error) if error.kind() == GdbErrorKind::Timeout => return Ok(None),
                reply => reply.and_then(|reply| StopReply::parse(&reply)),
            };
            self.is_broken = reply.is_err();
            if let Some(stop) = reply? {
                return Ok(Some(stop));
            }
        }
    }

    fn check_in_step(&self) -> Result<()> {
        match self.is_broken {
            true => Err(GdbError::new(GdbErrorKind::Broken, "an earlier request failed; connect again")),
            false => Ok(()),
        }
    }

    /// Sends a packet until it is acknowledged.
    fn send(&mut self, payload: &[u8], deadline: Instant) -> Result<()> {
        let packet = frame(payload);
        for _ in 0..ATTEMPTS {
            self.transport.send(&packet, deadline).map_err(|error| from_io(&error))?;
            if !self.acknowledges || self.is_acknowledged(deadline)? {
                return Ok(());
            }
        }
        Err(GdbError::protocol(format!("the server refused the packet {ATTEMPTS} times")))
    }

    fn is_acknowledged(&mut self, deadline: Instant) -> Result<bool> {
        loop {
            match self.next(deadline)? {
                Item::Ack => return Ok(true),
                Item::Nack => return Ok(false),
                // It answers an earlier request.
                Item::Packet(_) | Item::Notification(_) | Item::Damaged(_) => {}
            }
        }
    }

    /// Receives a packet, and acknowledges it.
    fn receive(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        let mut attempts = ATTEMPTS;
        loop {
            match self.next(deadline)? {
                Item::Packet(payload) => {
                    self.acknowledge(b"+", deadline)?;
                    return Ok(payload);
                }
                Item::Damaged(reason) => {
                    attempts -= 1;
                    if attempts == 0 || !self.acknowledges {
                        return Err(GdbError::protocol(format!("a packet is damaged: {reason}")));
                    }
                    self.acknowledge(b"-", deadline)?;
                }
                Item::Ack | Item::Nack | Item::Notification(_) => {}
            }
        }
    }

    fn acknowledge(&mut self, sign: &[u8], deadline: Instant) -> Result<()> {
        match self.acknowledges {
            true => self.transport.send(sign, deadline).map_err(|error| from_io(&error)),
            false => Ok(()),
        }
    }

    fn next(&mut self, deadline: Instant) -> Result<Item> {
        let mut buffer = [0; CHUNK_BYTES];
        loop {
            if let Some(item) = self.received.pop_front() {
                return Ok(item);
            }
            match self.transport.receive(&mut buffer, deadline).map_err(|error| from_io(&error))? {
                0 => return Err(GdbError::new(GdbErrorKind::Closed, "the server closed the connection")),
                count => {
                    for &byte in &buffer[..count] {
                        self.received.extend(self.parser.push(byte));
                    }
                }
            }
        }
    }
}

/// Whether the reply to a request for data in hexadecimal is an error: empty, or `E` and two digits. The length is odd, so it
/// cannot be data.
pub(super) fn is_error(reply: &[u8]) -> bool {
    reply.is_empty() || (reply[0] == b'E' && reply.len() == 3)
}

/// The error for an unexpected reply.
pub(super) fn refused(reply: &[u8]) -> GdbError {
    let message = match reply {
        b"" => "the server does not support it".to_owned(),
        _ => format!("the server answered \"{}\"", String::from_utf8_lossy(reply)),
    };
    GdbError::new(GdbErrorKind::Refused, message)
}

/// The beginning of a request, for messages.
fn name(payload: &[u8]) -> String {
    let letters = payload.iter().take(32).take_while(|byte| !b":,;=".contains(byte));
    letters.map(|&byte| char::from(byte)).collect()
}

fn from_io(error: &io::Error) -> GdbError {
    match error.kind() {
        io::ErrorKind::TimedOut => GdbError::new(GdbErrorKind::Timeout, "the server did not answer in time"),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            GdbError::new(GdbErrorKind::Closed, "the server closed the connection")
        }
        _ => GdbError::new(GdbErrorKind::Io, error.to_string()),
    }
}
