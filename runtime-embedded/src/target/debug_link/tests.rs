//! What a link asks of a server that answers everything.

use std::io::{Read as _, Write as _};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::*;
use crate::boards::{self, Server};
use crate::gdb::packet::{Item, Parser, frame};
use crate::image::Symbols;

const SYMBOLS: Symbols = Symbols { start: 0x10, park: 0x20, resume: 0x30, mailbox: 0x8000 };

/// Serves a target that stops at `runtime_park`, and describes the requests.
fn serve(refuses: &'static [u8]) -> (Connection, Receiver<String>) {
    let (client, mut server) = UnixStream::pair().unwrap();
    let (sender, requests) = channel();
    thread::spawn(move || {
        let (mut parser, mut byte) = (Parser::default(), [0]);
        while matches!(server.read(&mut byte), Ok(1)) {
            let Some(Item::Packet(request)) = parser.push(byte[0]) else { continue };
            let answer: &[u8] = match request.as_slice() {
                request if request.starts_with(refuses) => b"E01",
                b"c" => b"T05",
                b"pf" => b"20000000",
                b"p20" => b"2000000000000000",
                b"qXfer:features:read:target.xml:0,100" => b"l<reg name=\"xPSR\" regnum=\"16\"/>",
                request if request.starts_with(b"qSupported") => b"PacketSize=1000;qXfer:features:read+",
                _ => b"OK",
            };
            let _ = sender.send(String::from_utf8_lossy(&request).into_owned());
            if server.write_all(&[b"+", &*frame(answer)].concat()).is_err() {
                return;
            }
        }
    });
    (Connection::Stub(client), requests)
}

fn board(name: &str) -> Board {
    boards::all(None).unwrap().into_iter().find(|board| board.name == name).unwrap()
}

/// The first letters of some requests, without those that depend on nothing here.
fn steps(requests: &Receiver<String>) -> Vec<String> {
    let all = requests.try_iter().map(|request| request.split([':', '=']).next().unwrap().to_owned());
    all.filter(|request| request.starts_with(['Z', 'z', 'X', 'P', 'c'])).collect()
}

#[test]
fn the_breakpoint_is_set_in_the_new_image() {
    let (connection, requests) = serve(b"none");
    let board = board("riscv64-virt");
    let image = |park| {
        let symbols = Symbols { park, ..SYMBOLS };
        Arc::new(Image::with(&board, symbols, &[(0x1000, &[1, 2])]))
    };
    let mut link = DebugLink::begin(&board, (&image(0x20), &[]), connection, None).unwrap();
    let start = ["P20", "c"];
    let mailbox = format!("X8000,{:x}", Header::BYTES);
    let written = ["X1000,0", "X1000,2", "Z0,20,2", &mailbox];
    assert_eq!(steps(&requests), [&written[..], &start].concat());
    // The server of this test stops at the first image's breakpoint only.
    assert!(link.flash(&image(0x24), &[]).unwrap_err().message().contains("stopped in"));
    let written = ["z0,20,2", "X1000,2", "Z0,24,2", &mailbox];
    assert_eq!(steps(&requests), [&written[..], &start].concat());
    link.flash(&image(0x20), &[]).unwrap();
    assert_eq!(steps(&requests)[0], "z0,24,2");
}

#[test]
fn only_a_program_that_runs_crashes() {
    let (connection, _requests) = serve(b"none");
    let board = board("riscv64-virt");
    let image = |park| Arc::new(Image::with(&board, Symbols { park, ..SYMBOLS }, &[]));
    let mut link = DebugLink::begin(&board, (&image(0x20), &[]), connection, None).unwrap();
    // The server of this test stops elsewhere.
    assert_eq!(link.flash(&image(0x24), &[]).unwrap_err().kind(), ErrorKind::Io);
    let until = Instant::now() + PREPARE_DEADLINE;
    assert_eq!(link.execute(until).unwrap_err().kind(), ErrorKind::Crashed);
}

#[test]
fn the_status_register_has_the_number_of_the_description() {
    let (connection, requests) = serve(b"none");
    let board = board("mps2-an385");
    let image = Arc::new(Image::with(&board, SYMBOLS, &[]));
    drop(DebugLink::begin(&board, (&image, &[]), connection, None).unwrap());
    let steps = steps(&requests);
    assert!(steps.contains(&"P10".to_owned()) && !steps.contains(&"P19".to_owned()), "{steps:?}");
}

#[test]
fn what_the_server_says_is_part_of_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (address, reset) = ("localhost:1".to_owned(), "halt".to_owned());
    let server = Server { address, reset, command: Vec::new() };
    let board = Board { server: Some(server), ..board("riscv64-virt") };
    let image = Arc::new(Image::with(&board, SYMBOLS, &[(0x1000, &[1, 2])]));
    for step in [&b"qRcmd"[..], b"Z", b"X1000,2", b"P20"] {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no target answers; exit 3"]);
        let mut program = Program::start("server", command, None, folder.path()).unwrap();
        while !program.has_ended() {
            thread::yield_now();
        }
        let (connection, _requests) = serve(step);
        let error = DebugLink::begin(&board, (&image, &[]), connection, Some(program)).unwrap_err();
        let step = String::from_utf8_lossy(step);
        assert!(error.to_string().contains("no target answers"), "{step}: {error}");
    }
}

#[test]
fn the_first_error_of_a_traced_run_is_reported() {
    // Refuses `log none`, which follows the run, and opens no log.
    let (connection, _requests) = serve(b"qRcmd,6c6f67206e6f6e65");
    let board = board("riscv64-virt");
    let image = Arc::new(Image::with(&board, SYMBOLS, &[]));
    let mut link = DebugLink::begin(&board, (&image, &[]), connection, None).unwrap();
    let window = Window { begin: SYMBOLS.park, end: 0x24, reading: 0x28 };
    let error = link.trace(window, Instant::now() + PREPARE_DEADLINE).unwrap_err();
    assert!(error.message().contains("did not open"), "{error}");
}
