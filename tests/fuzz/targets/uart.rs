//! The client of the firmware's UART protocol against firmware that answers arbitrarily: every operation returns. Any payload survives
//! framing, and the parser takes any bytes.
#![no_main]

use std::io;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use runtime_embedded::gdb::Transport;
use runtime_embedded::uart::frame::{Frame, Item, MAX_PAYLOAD_BYTES, Parser};
use runtime_embedded::uart::{Client, Deadlines};

/// Answers each request with the next frame of the input, made valid in most of its fields, then with nothing.
struct Firmware<'a> {
    input: &'a [u8],
    parser: Parser,
    answer: Vec<u8>,
}

impl Firmware<'_> {
    fn take(&mut self, length: usize) -> Vec<u8> {
        let (piece, rest) = self.input.split_at(self.input.len().min(length));
        self.input = rest;
        piece.to_vec()
    }

    fn respond(&mut self, request: &Frame) {
        let [how, kind, length] = *self.take(3) else { return };
        let payload = self.take(usize::from(length));
        // The greeting is fixed, or no session would begin.
        let (kind, payload) = match (request.kind, how & 3) {
            (1, _) => (0x81, [&[1, 0, 64, 0][..], &0x100u64.to_le_bytes()].concat()),
            (asked, 0) => (asked | 0x80, payload),
            _ => (kind, payload),
        };
        let nonce = if how & 4 == 0 { request.nonce } else { 0 };
        let sequence = request.sequence.wrapping_add(u8::from(how & 8 != 0));
        let mut frame = Frame { kind, sequence, nonce, payload }.encode();
        if how & 16 != 0 {
            frame = self.take(usize::from(length));
        }
        self.answer.extend(frame);
    }
}

impl Transport for Firmware<'_> {
    fn send(&mut self, bytes: &[u8], _deadline: Instant) -> io::Result<()> {
        for &byte in bytes {
            if let Some(Item::Frame(request)) = self.parser.push(byte) {
                self.respond(&request);
            }
        }
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], _deadline: Instant) -> io::Result<usize> {
        if self.answer.is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = self.answer.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.answer[..length]);
        self.answer.drain(..length);
        Ok(length)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut parser = Parser::default();
    bytes.iter().for_each(|&byte| drop(parser.push(byte)));
    let payload = bytes[..bytes.len().min(MAX_PAYLOAD_BYTES)].to_vec();
    let frame = Frame { kind: 3, sequence: 1, nonce: 7, payload };
    let mut parser = Parser::default();
    let items: Vec<_> = frame.encode().into_iter().filter_map(|byte| parser.push(byte)).collect();
    assert_eq!(items, [Item::Frame(frame)]);

    let firmware = Firmware { input: bytes, parser: Parser::default(), answer: Vec::new() };
    // No time passes here: only greeting compares the clock, and it ends with its first answer.
    let deadlines = Deadlines {
        start: Duration::from_millis(1),
        reply: Duration::from_millis(1),
        ..Deadlines::default()
    };
    let mut client = Client::new(firmware, deadlines, Box::new(|text| assert!(text.len() < 1 << 20)));
    if client.greet().is_err() {
        return;
    }
    let mut memory = [0; 200];
    let _ = client.read_memory(0x1000, &mut memory);
    let _ = client.write_memory(0x1000, &memory);
    let _ = client.checksum(0x1000, 64);
    let _ = client.run(Instant::now());
    let _ = client.restart();
});
