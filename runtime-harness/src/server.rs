//! A pool for programs that are not written in Rust: the protocol of workers on standard input and output.

use std::io::{self, BufRead, BufReader};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

use crate::platform::{self, Watched};
use crate::pool::{Pool, PoolOptions, Stopper};
use crate::worker::protocol::{self, Hello, Reply, Request};

/// How often it is checked whether all candidates are done.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A socket may be input and output at once: the end of the input is not that of the output.
const OUTPUT: Watched = Watched::Output(libc::STDOUT_FILENO);

/// Answers requests from standard input on standard output, in any order, until the input ends and every candidate is done,
/// or nobody reads the output any more. `watch` gets what ends the workers when a signal ends the program.
///
/// # Errors
/// `Io` if the streams cannot be used.
pub fn serve_stdio(options: PoolOptions, watch: impl FnOnce(Stopper)) -> Result<()> {
    let (sender, replies) = mpsc::channel();
    // The receiver lives in the writer.
    let _ = sender.send(Reply::Hello { hello: Hello::current() });
    let mut pool = Pool::new(options, sender.clone());
    watch(pool.stopper());
    let writer = std::thread::Builder::new().name("replies".to_owned()).spawn(move || write_all(&replies));
    let writer = writer.map_err(|error| failed(&error))?;
    let mut input = BufReader::new(io::stdin().lock());
    while let Some(request) = next_request(&mut input).map_err(|error| failed(&error))? {
        let error = match request {
            Ok(request) => {
                let id = request.id;
                let submitted = pool.submit(id, request.candidate);
                submitted.err().map(|error| Reply::Error { id: Some(id), error: error.to_string() })
            }
            Err(reply) => Some(reply),
        };
        // A writer that has ended is noticed with the next line.
        error.into_iter().for_each(|reply| drop(sender.send(reply)));
    }
    drop(sender);
    while pool.outstanding() > 0 && !platform::wait(None, Some(OUTPUT), Some(POLL_INTERVAL)) {}
    drop(pool);
    // It ends with the last sender.
    let _ = writer.join();
    Ok(())
}

fn failed(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the streams of the protocol: {error}"))
}

/// The next request; `None` at the end of the input, or if nobody reads the output any more.
fn next_request(input: &mut BufReader<impl io::Read>) -> io::Result<Option<Result<Request, Reply>>> {
    let is_buffered = input.buffer().contains(&b'\n');
    if !is_buffered {
        let gone = platform::wait(Some(libc::STDIN_FILENO), Some(OUTPUT), None);
        if gone || input.fill_buf()?.is_empty() {
            return Ok(None);
        }
    }
    Request::read(input)
}

fn write_all(replies: &Receiver<Reply>) {
    for reply in replies {
        if protocol::write_line(&mut io::stdout().lock(), &reply).is_err() {
            return;
        }
    }
}
