//! A pool for programs that are not written in Rust: requests and replies as lines of JSON, on standard input and output or on a socket.
//! `docs/serve.md` documents the protocol.

mod client;
mod routes;
mod socket;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runtime_core::{Error, ErrorKind, Result};

use crate::platform::{self, Watched};
use crate::pool::{Pool, PoolOptions, Stopper};
use crate::worker::protocol::{self, Hello, MAX_REQUEST_BYTES, Message, Reply, Request};
use client::Client;
use routes::Routes;

pub use socket::{SocketFile, SocketListener};

/// How often it is checked whether all candidates are done.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait after a connection could not be accepted: the system may lack descriptors for a while.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(100);
/// The most clients of a socket. Each has two threads, and may hold a line and what it waits for in memory.
const MAX_CLIENTS: usize = 64;

/// Answers requests from standard input on standard output, in any order, until the input ends and every candidate is done,
/// or nobody reads the output any more. `watch` gets what ends the workers when a signal ends the program.
///
/// # Errors
/// `Io` if the streams cannot be used.
pub fn serve_stdio(options: PoolOptions, watch: impl FnOnce(Stopper)) -> Result<()> {
    let server = Server::start(options, watch)?;
    let client = server.routes.connect();
    server.serve(&client, io::stdin().lock(), io::stdout()).map_err(|error| failed(&error))
}

/// Answers the requests of every program that connects to a socket, until a signal ends the program.
///
/// # Errors
/// `OutOfResources` if no thread can be started.
pub fn serve_socket(
    options: PoolOptions,
    listener: &SocketListener,
    watch: impl FnOnce(Stopper),
) -> Result<()> {
    let server = Arc::new(Server::start(options, watch)?);
    loop {
        let Ok(mut stream) = listener.accept() else {
            std::thread::sleep(ACCEPT_INTERVAL);
            continue;
        };
        if server.routes.clients() >= MAX_CLIENTS {
            let error = format!("{MAX_CLIENTS} clients are connected, which is the most; try again later");
            // The client may be gone already.
            let _ = protocol::write_line(&mut stream, &Reply::Error { id: None, error });
            continue;
        }
        let (its_server, client) = (Arc::clone(&server), server.routes.connect());
        let number = client.number;
        let spawned = std::thread::Builder::new().name("client".to_owned()).spawn(move || {
            // A stream that fails is that of a client that is gone.
            let _ = stream.try_clone().and_then(|output| its_server.serve(&client, stream, output));
            its_server.routes.disconnect(number);
        });
        if spawned.is_err() {
            server.routes.disconnect(number);
        }
    }
}

fn failed(error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the streams of the protocol: {error}"))
}

/// A pool, and who gets its replies.
struct Server {
    pool: Mutex<Pool>,
    routes: Arc<Routes>,
}

/// What a client has sent.
enum Received {
    Message(Message, usize),
    /// A malformed line, with its reply.
    Malformed(Reply),
    /// No further requests.
    End,
    /// Nobody reads the replies any more.
    Gone,
}

impl Server {
    fn start(options: PoolOptions, watch: impl FnOnce(Stopper)) -> Result<Self> {
        let (sender, replies) = mpsc::channel();
        let pool = Pool::new(options, sender);
        watch(pool.stopper());
        let routes = Arc::new(Routes::default());
        let router = Arc::clone(&routes);
        // It ends with the pool.
        let thread = std::thread::Builder::new().name("replies".to_owned());
        let spawned = thread.spawn(move || replies.into_iter().for_each(|reply| router.deliver(reply)));
        spawned.map_err(|error| {
            Error::new(ErrorKind::OutOfResources, format!("cannot start a thread: {error}"))
        })?;
        Ok(Self { pool: Mutex::new(pool), routes })
    }

    /// Serves a client until it has all replies to its last request, or is gone.
    fn serve(
        &self,
        client: &Arc<Client>,
        input: impl Read + AsRawFd,
        mut output: impl Write + AsRawFd + Send + 'static,
    ) -> io::Result<()> {
        let (source, sink) = (input.as_raw_fd(), Watched::Output(output.as_raw_fd()));
        client.send(&Reply::Hello { hello: Hello::current() });
        let written = Arc::clone(client);
        let writer = std::thread::Builder::new().name("client replies".to_owned());
        let writer = writer.spawn(move || written.write_to(&mut output));
        let answered = match &writer {
            Ok(_) => self.answer(client, &mut BufReader::new(input), (source, sink)),
            Err(_) => Ok(false),
        };
        if !matches!(answered, Ok(true)) {
            client.close();
            self.pool().cancel_client(client.number);
        }
        client.finish();
        let _ = writer?.join();
        answered.map(|_| ())
    }

    /// Answers requests until there are no further ones; `false` if the client is gone.
    fn answer(
        &self,
        client: &Arc<Client>,
        input: &mut BufReader<impl Read>,
        (source, sink): (RawFd, Watched),
    ) -> io::Result<bool> {
        while client.wait_for_room() {
            let reply = match next(input, source, sink)? {
                Received::Message(Message::Evaluate(request), bytes) => {
                    let id = request.id;
                    let submitted = self.submit(client, *request, bytes);
                    submitted.err().map(|error| Reply::Error { id: Some(id), error: error.to_string() })
                }
                Received::Message(Message::Cancel(id), _) => self.cancel(client, id),
                Received::Malformed(reply) => Some(reply),
                Received::End => return Ok(wait_until_answered(client, sink)),
                Received::Gone => return Ok(false),
            };
            reply.iter().for_each(|reply| client.send(reply));
        }
        Ok(false)
    }

    fn submit(&self, client: &Arc<Client>, request: Request, bytes: usize) -> Result<()> {
        let spec = request.candidate.load()?;
        client.admit(bytes)?;
        let id = self.routes.add(client, request.id, bytes);
        let submitted = self.pool().submit_loaded((client.number, id), request.candidate, spec);
        if submitted.is_err() {
            self.routes.remove(id);
        }
        submitted
    }

    /// Cancels a client's requests with this number; the reply if it has none.
    fn cancel(&self, client: &Client, id: u64) -> Option<Reply> {
        let requests = self.routes.find(client.number, id);
        // All of them, not only the first one.
        let is_cancelled = self.pool().cancel_numbers(&requests);
        let error = format!("there is no request {id} to cancel: it was never made, or has its last reply");
        (!is_cancelled).then_some(Reply::Error { id: None, error })
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the next message.
fn next(input: &mut BufReader<impl Read>, source: RawFd, sink: Watched) -> io::Result<Received> {
    // A socket may be input and output at once: the end of the input is not that of the output.
    if !input.buffer().contains(&b'\n') {
        if platform::wait(Some(source), Some(sink), None) {
            return Ok(Received::Gone);
        }
        if input.fill_buf()?.is_empty() {
            return Ok(Received::End);
        }
    }
    Ok(match Message::read(input, MAX_REQUEST_BYTES)? {
        Some(Ok((message, bytes))) => Received::Message(message, bytes),
        Some(Err(reply)) => Received::Malformed(reply),
        None => Received::End,
    })
}

/// Returns `false` if the client is gone before.
fn wait_until_answered(client: &Client, sink: Watched) -> bool {
    while client.is_waiting() {
        if platform::wait(None, Some(sink), Some(POLL_INTERVAL)) {
            return false;
        }
    }
    true
}
