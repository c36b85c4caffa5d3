//! A shared store behind HTTP: `GET` and `PUT` of `<address>/<name>`.

#![allow(unsafe_code, reason = "guarantees that a server is a store")]

use std::time::Duration;

use ureq::Agent;

use super::shared::SharedStore;
use crate::{Error, ErrorKind, Result};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A store on a server.
#[derive(Debug)]
pub(super) struct HttpStore {
    address: String,
    agent: Agent,
    /// The largest entry that is read.
    max_bytes: u64,
}

impl HttpStore {
    /// Connects to nothing yet. `address` begins with `http://`.
    pub(super) fn new(address: &str, max_bytes: u64) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // Only the host that the user named is trusted: no proxy, no redirection.
            .proxy(None)
            .max_redirects(0)
            .build();
        let address = address.trim_end_matches('/').to_owned();
        Self { address, agent: config.into(), max_bytes }
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }
}

// SAFETY: it is only made for the server in RUNTIME_CACHE_SHARED, which the user trusts with native code.
unsafe impl SharedStore for HttpStore {
    fn location(&self) -> String {
        self.address.clone()
    }

    fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut response = self.agent.get(self.url(name)).call().map_err(request_error)?;
        match response.status().as_u16() {
            200 => {
                let body = response.body_mut().with_config().limit(self.max_bytes);
                Ok(Some(body.read_to_vec().map_err(request_error)?))
            }
            404 | 410 => Ok(None),
            status => Err(status_error("GET", status)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let response = self.agent.put(self.url(name)).send(bytes).map_err(request_error)?;
        match response.status().as_u16() {
            200..=299 => Ok(()),
            status => Err(status_error("PUT", status)),
        }
    }
}

fn request_error(error: ureq::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string()).with_source(error)
}

fn status_error(method: &str, status: u16) -> Error {
    Error::new(ErrorKind::Io, format!("the answer to {method} has status {status}"))
}
