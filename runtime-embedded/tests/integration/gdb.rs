//! The client of the GDB remote protocol against a server that answers slowly, in pieces, wrongly or never.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use runtime_embedded::gdb::packet::{Item, Parser, frame};
use runtime_embedded::gdb::{Client, Deadlines, GdbErrorKind, StopReply};

/// Longer than any answer here takes.
const PATIENT: Deadlines = Deadlines { connect: Duration::from_secs(20), reply: Duration::from_secs(20) };
/// For answers that do not come.
const IMPATIENT: Deadlines =
    Deadlines { connect: Duration::from_millis(200), reply: Duration::from_millis(200) };
const FEATURES: &[u8] = b"PacketSize=100;QStartNoAckMode+";

/// What a server does with a request: sends these bytes as they are, or closes the connection.
enum Answer {
    Raw(Vec<u8>),
    Close,
}

fn reply(payload: &[u8]) -> Answer {
    Answer::Raw(frame(payload))
}

/// The answers that lead to no-ack mode; then those of `rest`.
fn after_handshake(
    mut rest: impl FnMut(&[u8]) -> Answer + Send + 'static,
) -> impl FnMut(&Item) -> Answer + Send {
    let mut acknowledges = true;
    move |item| {
        let sign: &[u8] = if acknowledges { b"+" } else { b"" };
        let answer = match item {
            Item::Packet(request) if request.starts_with(b"qSupported") => reply(FEATURES),
            Item::Packet(request) if request == b"QStartNoAckMode" => {
                acknowledges = false;
                reply(b"OK")
            }
            Item::Packet(request) => rest(request),
            _ => return Answer::Raw(Vec::new()),
        };
        match answer {
            Answer::Raw(bytes) => Answer::Raw([sign, &bytes].concat()),
            Answer::Close => Answer::Close,
        }
    }
}

/// Serves one connection; sends `piece` bytes at once.
fn serve(piece: usize, mut answer: impl FnMut(&Item) -> Answer + Send + 'static) -> UnixStream {
    let (client, mut server) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let (mut parser, mut byte, mut in_packet) = (Parser::default(), [0], false);
        while matches!(server.read(&mut byte), Ok(1)) {
            let interrupt = (byte == [3] && !in_packet).then(|| Item::Packet(vec![3]));
            in_packet |= byte == *b"$";
            let Some(item) = interrupt.or_else(|| parser.push(byte[0])) else { continue };
            in_packet = false;
            let Answer::Raw(bytes) = answer(&item) else { return };
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

#[test]
fn answers_may_come_slowly_and_in_pieces() {
    let stream = serve(1, after_handshake(|_| reply(b"0* ")));
    let mut client = Client::connect(stream, PATIENT).unwrap();
    assert!(client.features().no_ack_mode && client.features().packet_bytes == 400);
    let mut memory = [1; 2];
    client.read_memory(0x1000, &mut memory).unwrap();
    assert_eq!(memory, [0, 0], "the run is expanded");
}

#[test]
fn a_silent_server_is_a_timeout_and_breaks_the_client() {
    let stream = serve(100, |_| Answer::Raw(Vec::new()));
    assert_eq!(Client::connect(stream, IMPATIENT).unwrap_err().kind(), GdbErrorKind::Timeout);

    let stream = serve(100, after_handshake(|_| Answer::Raw(b"$half a packet".to_vec())));
    let mut client = Client::connect(stream, IMPATIENT).unwrap();
    assert_eq!(client.read_register(1).unwrap_err().kind(), GdbErrorKind::Timeout);
    assert!(client.is_broken());
    assert_eq!(client.read_register(1).unwrap_err().kind(), GdbErrorKind::Broken);
}

#[test]
fn damaged_packets_are_sent_again() {
    let mut nacks = 0;
    let stream = serve(100, move |item| match item {
        Item::Packet(_) => Answer::Raw(b"+$PacketSize=200#00".to_vec()),
        Item::Nack => {
            nacks += 1;
            if nacks == 1 { Answer::Raw(b"$PacketSize=2zz#00".to_vec()) } else { reply(b"PacketSize=200") }
        }
        _ => Answer::Raw(Vec::new()),
    });
    let client = Client::connect(stream, PATIENT).unwrap();
    assert_eq!(client.features().packet_bytes, 0x200);
}

#[test]
fn a_request_that_arrives_damaged_is_sent_again() {
    let mut requests = 0;
    let stream = serve(100, move |item| match item {
        Item::Packet(_) => {
            requests += 1;
            if requests == 1 { Answer::Raw(b"-".to_vec()) } else { Answer::Raw(b"+$#00".to_vec()) }
        }
        _ => Answer::Raw(Vec::new()),
    });
    assert!(!Client::connect(stream, PATIENT).unwrap().features().no_ack_mode);

    let stream = serve(100, |_| Answer::Raw(b"-".to_vec()));
    assert_eq!(Client::connect(stream, PATIENT).unwrap_err().kind(), GdbErrorKind::Protocol);
}

#[test]
fn without_acknowledgements_a_damaged_packet_is_an_error() {
    let stream = serve(100, after_handshake(|_| Answer::Raw(b"$00#61".to_vec())));
    let mut client = Client::connect(stream, PATIENT).unwrap();
    let error = client.read_memory(0, &mut [0]).unwrap_err();
    assert_eq!(error.kind(), GdbErrorKind::Protocol);
    assert!(error.to_string().contains("checksum") && client.is_broken(), "{error}");
}

#[test]
fn a_closed_connection_is_no_slow_one() {
    let stream = serve(100, after_handshake(|_| Answer::Close));
    let mut client = Client::connect(stream, PATIENT).unwrap();
    assert_eq!(client.read_register(1).unwrap_err().kind(), GdbErrorKind::Closed);
}

#[test]
fn refusals_leave_the_client_usable() {
    let stream = serve(
        100,
        after_handshake(|request| match request {
            b"m0,1" => reply(b"E14"),
            b"m0,2" => reply(b"123"),
            b"p0" => reply(b""),
            _ => reply(b"OK"),
        }),
    );
    let mut client = Client::connect(stream, PATIENT).unwrap();
    let refused = client.read_memory(0, &mut [0]).unwrap_err();
    assert!(refused.kind() == GdbErrorKind::Refused && refused.to_string().contains("E14"), "{refused}");
    assert_eq!(client.read_memory(0, &mut [0; 2]).unwrap_err().kind(), GdbErrorKind::Protocol);
    assert_eq!(client.read_register(0).unwrap_err().kind(), GdbErrorKind::Refused);
    client.insert_breakpoint(0x10, 2).unwrap();
}

#[test]
fn hardware_breakpoints_replace_refused_software_ones() {
    let stream =
        serve(100, after_handshake(|request| reply(if request.starts_with(b"Z1") { b"OK" } else { b"" })));
    let mut client = Client::connect(stream, PATIENT).unwrap();
    client.insert_breakpoint(0x10, 2).unwrap();
    assert_eq!(client.remove_breakpoint(0x10, 2).unwrap_err().kind(), GdbErrorKind::Refused);
}

#[test]
fn a_running_target_is_no_stopped_one() {
    let stream = serve(
        100,
        after_handshake(|request| match request {
            b"c" => Answer::Raw(Vec::new()),
            [3] => reply(b"T02thread:01;"),
            _ => reply(b"0000000000000080"),
        }),
    );
    let mut client = Client::connect(stream, PATIENT).unwrap();
    let soon = Instant::now() + Duration::from_millis(50);
    assert_eq!(client.resume(soon).unwrap(), None);
    assert_eq!(client.interrupt().unwrap(), Some(StopReply::Signal(2)));
    assert_eq!(client.read_register(32).unwrap(), 0x8000_0000_0000_0000);

    let stream = serve(100, after_handshake(|_| Answer::Raw(Vec::new())));
    let mut client = Client::connect(stream, IMPATIENT).unwrap();
    assert_eq!(client.resume(Instant::now()).unwrap(), None);
    assert_eq!(client.interrupt().unwrap(), None, "it does not even stop");
    assert!(client.is_broken());
}

/// A target with memory, and the largest packet that it was sent.
struct Memory {
    bytes: Vec<u8>,
    binary: bool,
    largest: usize,
}

impl Memory {
    fn answer(&mut self, request: &[u8]) -> Vec<u8> {
        self.largest = self.largest.max(request.len());
        let text = String::from_utf8_lossy(request).into_owned();
        let numbers: Vec<usize> = text[1..]
            .split([',', ':'])
            .take(2)
            .map(|number| usize::from_str_radix(number, 16).unwrap())
            .collect();
        let (address, length) = (numbers[0], numbers[1]);
        let data = request.iter().position(|&byte| byte == b':').map(|at| &request[at + 1..]);
        match request[0] {
            b'X' if !self.binary => return Vec::new(),
            b'X' => self.bytes[address..address + length].copy_from_slice(data.unwrap()),
            b'M' => {
                let text = std::str::from_utf8(data.unwrap()).unwrap();
                for (at, byte) in self.bytes[address..address + length].iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
                }
            }
            _ => {
                let bytes = &self.bytes[address..address + length];
                return bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
            }
        }
        b"OK".to_vec()
    }
}

#[test]
fn any_data_is_written_and_read_back_in_packets_that_the_server_accepts() {
    for binary in [false, true] {
        let mut memory = Memory { bytes: vec![0; 1 << 16], binary, largest: 0 };
        let stream = serve(
            1 << 16,
            after_handshake(move |request| match request {
                b"largest" => reply(format!("{}", memory.largest).as_bytes()),
                _ => reply(&memory.answer(request)),
            }),
        );
        let mut client = Client::connect(stream, PATIENT).unwrap();
        let mut state = 7u64;
        for length in [0, 1, 100, 175, 176, 177, 400, 5000] {
            let data: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if state >> 63 == 0 {
                        b"$#}*"[(state >> 33) as usize % 4]
                    } else {
                        state.to_be_bytes()[2]
                    }
                })
                .collect();
            let mut back = vec![0; length];
            client.write_memory(0x321, &data).unwrap();
            client.read_memory(0x321, &mut back).unwrap();
            assert_eq!(back, data, "{length} bytes, binary: {binary}");
        }
        let largest: usize = String::from_utf8(client.request(b"largest").unwrap()).unwrap().parse().unwrap();
        assert!(largest <= 400, "a payload of {largest} bytes, decoded");
    }
}

#[test]
fn flash_is_erased_in_blocks_and_written() {
    // The second region follows the first one, with larger blocks.
    const MAP: &str = "l<memory-map><memory type=\"flash\" start=\"0x1000\" length=\"0x1000\">\
        <property name=\"blocksize\">0x100</property></memory>\
        <memory type=\"flash\" start=\"0x2000\" length=\"0x1000\">\
        <property name=\"blocksize\">0x800</property></memory></memory-map>";
    let requests = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = std::sync::Arc::clone(&requests);
    let stream = serve(1000, move |item| match item {
        Item::Packet(request) => {
            let answer = match request.as_slice() {
                b"qXfer:memory-map:read::0,100" => MAP,
                b"vFlashErase:1800,100" => "E01",
                request if request.starts_with(b"qSupported") => "PacketSize=100;qXfer:memory-map:read+",
                _ => "OK",
            };
            seen.lock().unwrap().push(String::from_utf8_lossy(request).into_owned());
            Answer::Raw([b"+", &*frame(answer.as_bytes())].concat())
        }
        _ => Answer::Raw(Vec::new()),
    });
    let mut client = Client::connect(stream, PATIENT).unwrap();
    assert_eq!(client.flash_regions()[0].block, 0x100);
    client.program(&[(0x1080, &[1; 4]), (0x10f0, &[2; 0x20]), (0x5000, &[3; 2])]).unwrap();
    client.insert_breakpoint(0x1004, 2).unwrap();
    assert_eq!(
        std::mem::take(&mut *requests.lock().unwrap())[2..],
        [
            "vFlashErase:1000,100",
            "vFlashErase:1100,100",
            "vFlashWrite:1080:\u{1}\u{1}\u{1}\u{1}",
            &format!("vFlashWrite:10f0:{}", "\u{2}".repeat(0x20)),
            "X5000,0:",
            "X5000,2:\u{3}\u{3}",
            "vFlashDone",
            "Z1,1004,2",
        ]
    );
    client.program(&[(0x1ffe, &[1; 4]), (0x2fff, &[2; 2])]).unwrap();
    assert_eq!(
        std::mem::take(&mut *requests.lock().unwrap())[..],
        [
            "vFlashErase:1f00,100",
            "vFlashErase:2000,800",
            "vFlashErase:2800,800",
            "vFlashWrite:1ffe:\u{1}\u{1}",
            "vFlashWrite:2000:\u{1}\u{1}",
            "vFlashWrite:2fff:\u{2}",
            "X3000,1:\u{2}",
            "vFlashDone",
        ]
    );
    let error = client.program(&[(0x1800, &[1])]).unwrap_err();
    assert!(error.kind() == GdbErrorKind::Refused && error.to_string().contains("vFlashErase"), "{error}");
}

#[test]
fn a_broken_client_sends_nothing_more() {
    let stream = serve(100, after_handshake(|_| Answer::Raw(Vec::new())));
    let mut client = Client::connect(stream, IMPATIENT).unwrap();
    assert_eq!(client.read_register(1).unwrap_err().kind(), GdbErrorKind::Timeout);
    assert_eq!(client.interrupt().unwrap_err().kind(), GdbErrorKind::Broken);
}

/// Every kind of request, by its beginning; 3 is the interrupt of a running target.
const STEPS: [&[u8]; 12] = [
    b"qSupported",
    b"QStart",
    b"qRcmd",
    b"Z0",
    b"X1000,0",
    b"X1000,4",
    b"P20",
    b"c",
    b"\x03",
    b"p20",
    b"m1000",
    b"z0",
];

/// A session with every kind of request. Returns why it ended, if it did.
fn session(stream: UnixStream, deadlines: Deadlines) -> Result<(), GdbErrorKind> {
    let mut client = Client::connect(stream, deadlines).map_err(|error| error.kind())?;
    let mut all = || {
        client.monitor("reset halt")?;
        client.insert_breakpoint(0x10, 2)?;
        client.write_memory(0x1000, &[1, 2, 3, 4])?;
        client.write_register(32, 0x10, 4)?;
        let stopped = client.resume(Instant::now() + Duration::from_millis(20))?;
        let stopped = if stopped.is_none() { client.interrupt()? } else { stopped };
        if stopped.is_some() {
            client.read_register(32)?;
            client.read_memory(0x1000, &mut [0; 4])?;
            client.remove_breakpoint(0x10, 2)?;
        }
        Ok(stopped)
    };
    match all().map_err(|error: runtime_embedded::gdb::GdbError| error.kind())? {
        Some(_) => Ok(()),
        // Neither the end of the run nor the interrupt was answered.
        None => {
            assert!(client.is_broken());
            Err(GdbErrorKind::Timeout)
        }
    }
}

/// A server that does `at_step` instead of answering requests that begin so.
fn stops_at(step: &'static [u8], mut at_step: impl FnMut() -> Answer + Send + 'static) -> UnixStream {
    let mut usual = after_handshake(|request| match request {
        b"c" => Answer::Raw(Vec::new()),
        [3] => reply(b"T02thread:01;"),
        [b'p' | b'm', ..] => reply(b"01020304"),
        _ => reply(b"OK"),
    });
    serve(1000, move |item| match item {
        Item::Packet(request) if request.starts_with(step) => at_step(),
        item => usual(item),
    })
}

#[test]
fn a_server_that_stops_answering_is_a_timeout_at_each_step() {
    assert_eq!(session(stops_at(b"none", || Answer::Close), PATIENT), Ok(()));
    for step in STEPS {
        let name = String::from_utf8_lossy(step);
        // The run of a target has no answer until it stops.
        if step != b"c" {
            let silent = stops_at(step, || Answer::Raw(Vec::new()));
            assert_eq!(session(silent, IMPATIENT), Err(GdbErrorKind::Timeout), "{name}");
        }
        let half = stops_at(step, || Answer::Raw(b"+$T0".to_vec()));
        let (deadlines, expected) = match step {
            b"c" => (PATIENT, GdbErrorKind::Protocol),
            _ => (IMPATIENT, GdbErrorKind::Timeout),
        };
        assert_eq!(session(half, deadlines), Err(expected), "{name}: half an answer");
        let closed = stops_at(step, || Answer::Close);
        assert_eq!(session(closed, PATIENT), Err(GdbErrorKind::Closed), "{name}: closed");
    }
}

#[test]
fn a_register_has_the_number_of_the_description() {
    let stream = serve(1000, |item| {
        let Item::Packet(request) = item else { return Answer::Raw(Vec::new()) };
        let answer: &[u8] = match request.as_slice() {
            b"qSupported:swbreak+;hwbreak+" => b"PacketSize=100;qXfer:features:read+",
            b"qXfer:features:read:target.xml:0,100" => b"m<target><xi:include href=\"core.xml\"/>",
            b"qXfer:features:read:target.xml:25,100" => b"l<reg name=\"msp\"/></target>",
            b"qXfer:features:read:core.xml:0,100" => b"l<reg name=\"xPSR\" regnum=\"16\"/>",
            _ => b"E01",
        };
        Answer::Raw([b"+", &*frame(answer)].concat())
    });
    let mut client = Client::connect(stream, PATIENT).unwrap();
    assert_eq!(client.register_number("xpsr").unwrap(), Some(16));
    assert_eq!(client.register_number("MSP").unwrap(), Some(17));
    assert_eq!(client.register_number("sp").unwrap(), None);

    let stream = serve(1000, after_handshake(|_| reply(b"E01")));
    let mut client = Client::connect(stream, PATIENT).unwrap();
    assert_eq!(client.register_number("xpsr").unwrap(), None, "a server without descriptions");
}
