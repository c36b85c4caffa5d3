//! The client of the GDB remote protocol against a server that answers arbitrarily: every operation returns. Any payload survives framing.
#![no_main]

use std::io;
use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use runtime_embedded::gdb::packet::{Item, Parser, escape, frame};
use runtime_embedded::gdb::{Client, Deadlines, Transport};

/// Sends the input in pieces, then nothing.
struct Server<'a>(&'a [u8]);

impl Transport for Server<'_> {
    fn send(&mut self, _bytes: &[u8], _deadline: Instant) -> io::Result<()> {
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], _deadline: Instant) -> io::Result<usize> {
        let Some((&length, rest)) = self.0.split_first() else { return Err(io::ErrorKind::TimedOut.into()) };
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(length)));
        buffer[..piece.len()].copy_from_slice(piece);
        self.0 = rest;
        Ok(piece.len())
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut payload = Vec::new();
    escape(bytes, &mut payload);
    let mut parser = Parser::default();
    let items: Vec<_> = frame(&payload).into_iter().filter_map(|byte| parser.push(byte)).collect();
    assert_eq!(items, [Item::Packet(bytes.to_vec())]);

    let deadlines = Deadlines { connect: Duration::from_secs(1), reply: Duration::from_secs(1) };
    let Ok(mut client) = Client::connect(Server(bytes), deadlines) else { return };
    let mut memory = [0; 1000];
    let _ = client.read_memory(0x1000, &mut memory);
    let _ = client.write_memory(0x1000, &memory);
    let _ = client.read_register(3);
    let _ = client.program(&[(0x1000, &memory), (0x8000_0000, &memory)]);
    let _ = client.insert_breakpoint(0x10, 2);
    let _ = client.monitor("reset");
    let _ = client.resume(Instant::now());
    let _ = client.interrupt();
    let _ = client.remove_breakpoint(0x10, 2);
});
