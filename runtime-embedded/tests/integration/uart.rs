//! The client of the firmware's UART protocol against firmware that answers slowly, in pieces, wrongly or never, or is reset, at
//! each step.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use runtime_core::{Error, ErrorKind, Result};
use runtime_embedded::uart::frame::{Frame, Item, Parser};
use runtime_embedded::uart::{Client, Deadlines, RunState};

/// Longer than any answer here takes.
const PATIENT: Deadlines = deadlines(20_000, 20_000);
/// For answers that do not come.
const IMPATIENT: Deadlines = deadlines(500, 60);
const MAILBOX: u64 = 0x100;

const HELLO: u8 = 1;
const READ: u8 = 2;
const WRITE: u8 = 3;
const RUN: u8 = 4;
const CHECKSUM: u8 = 5;
const RESTART: u8 = 6;
/// The end of a run, which the firmware reports unasked.
const DONE: u8 = 0xc2;
const STEPS: [u8; 7] = [HELLO, WRITE, READ, CHECKSUM, RUN, DONE, RESTART];

const fn deadlines(start: u64, reply: u64) -> Deadlines {
    let [start, reply] = [Duration::from_millis(start), Duration::from_millis(reply)];
    Deadlines { start, reply, last_question: reply, byte: Duration::ZERO }
}

/// What goes wrong at a step, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Requests are lost.
    Silent(u32),
    /// Replies are damaged.
    Damaged(u32),
    /// Requests arrive damaged, and are refused.
    Refused(u32),
    /// The target starts again instead of answering.
    Reset,
    /// The target has been reset unnoticed before the request.
    Forgotten,
    Closed,
    /// Damaged frames come first.
    Litter,
    /// Replies to other requests, damaged frames and messages come first.
    Noise,
}

/// Firmware with some memory.
struct Firmware {
    memory: Vec<u8>,
    nonce: u32,
    last_run: u8,
    runs: u8,
    step: u8,
    fault: Fault,
    version: u8,
}

impl Firmware {
    fn new(step: u8, fault: Fault) -> Self {
        Self { memory: vec![7; 4096], nonce: 0, last_run: 0, runs: 0, step, fault, version: 1 }
    }

    fn frame(&self, kind: u8, sequence: u8, payload: &[u8]) -> Vec<u8> {
        Frame { kind, sequence, nonce: self.nonce, payload: payload.to_vec() }.encode()
    }

    /// The answer to a request; `None` closes the connection.
    fn answer(&mut self, request: &Frame) -> Option<Vec<u8>> {
        if request.kind == HELLO {
            (self.nonce, self.last_run) = (request.nonce, 0);
        }
        if request.kind == self.step && self.fault == Fault::Forgotten && self.step != HELLO {
            (self.nonce, self.fault) = (0, Fault::None);
        }
        if request.nonce != self.nonce {
            return Some(self.frame(0xe0, request.sequence, &[3]));
        }
        let mut bytes = self.step(request.kind, request, |firmware| firmware.execute(request))?;
        if request.kind == RUN {
            bytes.extend(self.step(DONE, request, |firmware| firmware.frame(DONE, request.sequence, &[]))?);
        }
        Some(bytes)
    }

    /// Performs a step, with its fault.
    fn step(
        &mut self,
        step: u8,
        request: &Frame,
        perform: impl FnOnce(&mut Self) -> Vec<u8>,
    ) -> Option<Vec<u8>> {
        let fault = if step == self.step { self.fault } else { Fault::None };
        match fault {
            Fault::Silent(times) if times > 0 => {
                self.fault = Fault::Silent(times - 1);
                Some(Vec::new())
            }
            Fault::Damaged(times) if times > 0 => {
                self.fault = Fault::Damaged(times - 1);
                let mut reply = perform(self);
                reply[3] ^= 0x10;
                Some(reply)
            }
            Fault::Refused(times) if times > 0 => {
                self.fault = Fault::Refused(times - 1);
                Some(self.frame(0xe0, 0, &[5]))
            }
            Fault::Reset => {
                (self.nonce, self.fault) = (0, Fault::None);
                Some(self.frame(0xc1, 0, &[]))
            }
            Fault::Closed => None,
            Fault::Litter => {
                let mut damaged = self.frame(0xc0, 0, b"a message");
                damaged[3] ^= 0x10;
                Some([damaged.repeat(3), perform(self)].concat())
            }
            Fault::Noise => {
                let stale = self.frame(step | 0x80, request.sequence.wrapping_sub(1), &[1]);
                let message = self.frame(0xc0, 0, b"a message");
                Some([stale, message, perform(self)].concat())
            }
            _ => Some(perform(self)),
        }
    }

    fn execute(&mut self, request: &Frame) -> Vec<u8> {
        let word = |at: usize| {
            let bytes = request.payload.get(at..at + 8).unwrap();
            usize::try_from(u64::from_le_bytes(bytes.try_into().unwrap())).unwrap()
        };
        let reply = |payload: &[u8]| self.frame(request.kind | 0x80, request.sequence, payload);
        match request.kind {
            HELLO => {
                let mut payload = vec![self.version, 0, 100, 0];
                payload.extend(MAILBOX.to_le_bytes());
                reply(&payload)
            }
            READ => match self.memory.get(word(0)..word(0) + word(8)) {
                Some(bytes) => reply(bytes),
                None => self.frame(0xe0, request.sequence, &[2]),
            },
            WRITE => {
                let data = &request.payload[8..];
                self.memory[word(0)..word(0) + data.len()].copy_from_slice(data);
                self.frame(request.kind | 0x80, request.sequence, &[])
            }
            RUN => {
                let is_repeated = self.last_run == request.sequence;
                self.runs += u8::from(!is_repeated);
                self.last_run = request.sequence;
                self.frame(request.kind | 0x80, request.sequence, &[self.runs])
            }
            CHECKSUM => reply(&[1, 2, 3, 4]),
            _ => reply(&[]),
        }
    }
}

/// Serves one connection; sends `piece` bytes at once.
fn serve(piece: usize, firmware: Arc<Mutex<Firmware>>) -> UnixStream {
    let (client, mut server) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let (mut parser, mut byte) = (Parser::default(), [0]);
        while matches!(server.read(&mut byte), Ok(1)) {
            let Some(Item::Frame(request)) = parser.push(byte[0]) else { continue };
            let Some(bytes) = firmware.lock().unwrap().answer(&request) else { return };
            for piece in bytes.chunks(piece) {
                thread::sleep(Duration::from_millis(u64::from(bytes.len() > piece.len())));
                if server.write_all(piece).is_err() {
                    return;
                }
            }
        }
    });
    client
}

type Shared<T> = Arc<Mutex<T>>;

fn connect(
    deadlines: Deadlines,
    firmware: Firmware,
) -> (Client<UnixStream>, Shared<Firmware>, Shared<String>) {
    let (firmware, messages) = (Arc::new(Mutex::new(firmware)), Arc::new(Mutex::new(String::new())));
    let log = Arc::clone(&messages);
    let stream = serve(1000, Arc::clone(&firmware));
    let client = Client::new(stream, deadlines, Box::new(move |text| log.lock().unwrap().push_str(text)));
    (client, firmware, messages)
}

/// A session with every step.
fn session(client: &mut Client<UnixStream>, run: Duration) -> Result<()> {
    assert_eq!(client.greet()?.mailbox, MAILBOX);
    let data: Vec<u8> = (0..=255).collect();
    client.write_memory(0x200, &data)?;
    let mut back = [0; 256];
    client.read_memory(0x200, &mut back)?;
    assert_eq!(back[..], data);
    assert_eq!(client.checksum(0x200, 256)?, 0x0403_0201);
    match client.run(Instant::now() + run)? {
        RunState::Done => {}
        RunState::Running => return Err(Error::new(ErrorKind::Timeout, "it was still running")),
    }
    client.restart()
}

#[test]
fn a_session_survives_damage_loss_and_noise_at_each_step() {
    // A lost reply costs its deadline, which a busy machine needs.
    let lossy = Deadlines { reply: Duration::from_secs(3), ..PATIENT };
    let faults = [
        Fault::Silent(1),
        Fault::Damaged(1),
        Fault::Refused(1),
        Fault::Damaged(2),
        Fault::Litter,
        Fault::Noise,
    ];
    thread::scope(|scope| {
        for (step, fault) in STEPS.into_iter().flat_map(|step| faults.map(|fault| (step, fault))) {
            let (deadlines, run) = match fault {
                Fault::Silent(1) => (lossy, Duration::from_millis(500)),
                _ => (PATIENT, PATIENT.reply),
            };
            scope.spawn(move || {
                let (mut client, firmware, messages) = connect(deadlines, Firmware::new(step, fault));
                session(&mut client, run).unwrap_or_else(|error| panic!("step {step}, {fault:?}: {error}"));
                assert_eq!(firmware.lock().unwrap().runs, 1, "step {step}, {fault:?}: a run is not repeated");
                assert!(fault != Fault::Noise || messages.lock().unwrap().contains("a message"));
            });
        }
    });
}

#[test]
fn a_target_that_stops_answering_is_a_timeout_at_each_step() {
    for step in STEPS {
        for fault in [Fault::Silent(u32::MAX), Fault::Damaged(u32::MAX)] {
            let (mut client, ..) = connect(IMPATIENT, Firmware::new(step, fault));
            let error = session(&mut client, IMPATIENT.reply).expect_err("nothing answers");
            assert_eq!(error.kind(), ErrorKind::Timeout, "step {step}, {fault:?}: {error}");
            assert!(client.is_broken(), "step {step}, {fault:?}");
            let refused = client.write_memory(0, &[1]).unwrap_err();
            assert!(refused.to_string().contains("session has ended"), "{refused}");
        }
    }
}

#[test]
fn a_reset_is_detected_at_each_step() {
    for step in STEPS {
        for fault in [Fault::Reset, Fault::Forgotten] {
            // A target that is reset while it greets is greeted again; after a restart, there is no session.
            if step == HELLO || (fault, step) == (Fault::Forgotten, DONE) {
                continue;
            }
            let (mut client, ..) = connect(PATIENT, Firmware::new(step, fault));
            let error = session(&mut client, PATIENT.reply).expect_err("the target was reset");
            assert!(error.to_string().contains("was reset"), "step {step}, {fault:?}: {error}");
            assert!(error.kind() == ErrorKind::Io && client.is_broken());
            session(&mut client, PATIENT.reply).unwrap();
        }
    }
    let (mut client, ..) = connect(PATIENT, Firmware::new(HELLO, Fault::Reset));
    session(&mut client, PATIENT.reply).unwrap();
}

#[test]
fn a_closed_connection_is_no_slow_one() {
    for step in STEPS {
        let (mut client, ..) = connect(PATIENT, Firmware::new(step, Fault::Closed));
        let error = session(&mut client, PATIENT.reply).expect_err("the connection is closed");
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("closed"), "{step}: {error}");
    }
}

#[test]
fn answers_may_come_slowly_and_in_pieces() {
    let firmware = Arc::new(Mutex::new(Firmware::new(0, Fault::None)));
    let mut client = Client::new(serve(1, firmware), PATIENT, Box::new(|_| ()));
    client.greet().unwrap();
    let mut bytes = [0; 150];
    client.read_memory(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 150]);
}

#[test]
fn refusals_leave_the_session_usable() {
    let (mut client, ..) = connect(PATIENT, Firmware::new(0, Fault::None));
    client.greet().unwrap();
    let error = client.read_memory(1 << 20, &mut [0; 4]).unwrap_err();
    assert!(error.kind() == ErrorKind::Driver && error.to_string().contains("outside the memory"), "{error}");
    client.read_memory(0, &mut [0; 4]).unwrap();
}

#[test]
fn another_protocol_is_rejected() {
    let firmware = Firmware { version: 9, ..Firmware::new(0, Fault::None) };
    let (mut client, ..) = connect(PATIENT, firmware);
    let error = client.greet().unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("version 9"), "{error}");
}
