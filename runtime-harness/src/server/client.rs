//! What a client waits for, and the replies that it has not read yet.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use runtime_core::{Error, ErrorKind, Result};

use crate::worker::protocol::{self, Reply};

/// The most requests of a client without a last reply, and their bytes.
const MAX_REQUESTS: usize = 20_000;
const MAX_REQUEST_BYTES: usize = 256 << 20;
/// No further request of a client is read while so many bytes of replies to it are not: otherwise replies to malformed requests would fill
/// the memory.
const MAX_UNREAD_BYTES: usize = 16 << 20;
/// The longest error: it may quote what was sent.
const MAX_ERROR_BYTES: usize = 4096;

/// A client that is connected.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Replies that are to be written.
    lines: VecDeque<Vec<u8>>,
    unread_bytes: usize,
    /// Requests without a last reply.
    requests: usize,
    request_bytes: usize,
    /// Whether no further replies will come.
    is_finished: bool,
    /// Whether nobody wants the replies.
    is_closed: bool,
}

impl Client {
    pub(super) fn new(number: u64) -> Self {
        Self { number, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Accepts a request of this length.
    ///
    /// # Errors
    /// `OutOfResources` if the client has too many.
    pub(super) fn admit(&self, bytes: usize) -> Result<()> {
        let mut state = self.state();
        let is_too_much = state.request_bytes.saturating_add(bytes) > MAX_REQUEST_BYTES;
        if state.requests >= MAX_REQUESTS || is_too_much {
            return Err(Error::new(
                ErrorKind::OutOfResources,
                format!(
                    "{} requests of {} bytes have no row yet; at most {MAX_REQUESTS} of {MAX_REQUEST_BYTES} bytes may wait: send it \
                     again after some rows",
                    state.requests, state.request_bytes
                ),
            ));
        }
        state.requests += 1;
        state.request_bytes += bytes;
        Ok(())
    }

    /// Notes that a request of this length has its last reply.
    pub(super) fn answered(&self, bytes: usize) {
        let mut state = self.state();
        state.requests -= 1;
        state.request_bytes -= bytes;
    }

    /// Whether requests have no last reply.
    pub(super) fn is_waiting(&self) -> bool {
        self.state().requests > 0
    }

    /// Adds a reply to those that are to be written.
    pub(super) fn send(&self, reply: &Reply) {
        let mut line = Vec::new();
        let written = match reply {
            Reply::Error { id, error } if error.len() > MAX_ERROR_BYTES => {
                let end = (0..=MAX_ERROR_BYTES).rev().find(|at| error.is_char_boundary(*at)).unwrap_or(0);
                let error = format!("{}…", &error[..end]);
                protocol::write_line(&mut line, &Reply::Error { id: *id, error })
            }
            reply => protocol::write_line(&mut line, reply),
        };
        let mut state = self.state();
        if written.is_ok() && !state.is_closed {
            state.unread_bytes += line.len();
            state.lines.push_back(line);
            self.changed.notify_all();
        }
    }

    /// Waits until the client has read most of its replies; returns `false` if it reads none any more.
    pub(super) fn wait_for_room(&self) -> bool {
        let is_full = |state: &mut State| state.unread_bytes > MAX_UNREAD_BYTES && !state.is_closed;
        let state = self.changed.wait_while(self.state(), is_full);
        !state.unwrap_or_else(PoisonError::into_inner).is_closed
    }

    /// Writes all replies, until there will be no further ones or nobody reads them.
    pub(super) fn write_to(&self, output: &mut impl Write) {
        while let Some(line) = self.next_line() {
            if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                return self.close();
            }
        }
    }

    fn next_line(&self) -> Option<Vec<u8>> {
        let is_idle = |state: &mut State| state.lines.is_empty() && !state.is_finished && !state.is_closed;
        let state = self.changed.wait_while(self.state(), is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let line = state.lines.pop_front()?;
        state.unread_bytes -= line.len();
        self.changed.notify_all();
        Some(line)
    }

    /// Notes that no further replies will come.
    pub(super) fn finish(&self) {
        self.state().is_finished = true;
        self.changed.notify_all();
    }

    /// Drops all replies, also those to come.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.lines = VecDeque::new();
        state.unread_bytes = 0;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> Reply {
        Reply::Error { id: Some(1), error: text.to_owned() }
    }

    #[test]
    fn replies_are_written_in_order_and_errors_are_cut() {
        let client = Client::new(1);
        client.send(&error("first"));
        client.send(&error(&"ü".repeat(MAX_ERROR_BYTES)));
        client.finish();
        let mut written = Vec::new();
        client.write_to(&mut written);
        let text = String::from_utf8(written).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("first") && lines[1].ends_with("ü…\"}"), "{text}");
        assert!(lines[1].len() < MAX_ERROR_BYTES + 100);
    }

    #[test]
    fn whoever_reads_nothing_is_not_read() {
        let client = Client::new(1);
        let line = error(&"x".repeat(4000));
        while client.state().unread_bytes <= MAX_UNREAD_BYTES {
            client.send(&line);
        }
        std::thread::scope(|scope| {
            let reader = test_process::spawn_until_asleep(scope, || client.wait_for_room());
            assert!(!reader.is_finished() && client.state().unread_bytes > MAX_UNREAD_BYTES);
            client.next_line().unwrap();
            assert!(reader.join().unwrap(), "there is room again");
            client.send(&line);
            let reader = test_process::spawn_until_asleep(scope, || client.wait_for_room());
            client.close();
            assert!(!reader.join().unwrap(), "it is gone");
        });
        client.send(&line);
        assert_eq!(client.state().unread_bytes, 0);
    }

    #[test]
    fn requests_that_wait_are_bounded() {
        let client = Client::new(1);
        client.admit(MAX_REQUEST_BYTES).unwrap();
        assert!(client.admit(1).unwrap_err().message().contains("again after some rows"));
        client.answered(MAX_REQUEST_BYTES);
        (0..MAX_REQUESTS).for_each(|_| client.admit(1).unwrap());
        assert!(client.admit(1).is_err());
    }
}
