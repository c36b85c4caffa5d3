//! Which client gets a reply of the pool. Numbers of requests are the clients' choice, so the pool has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::Client;
use crate::worker::protocol::Reply;

/// The clients, and the requests in the pool.
#[derive(Debug, Default)]
pub(super) struct Routes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The last number of a client or of a request.
    last: u64,
    clients: BTreeMap<u64, Arc<Client>>,
    requests: BTreeMap<u64, Route>,
}

#[derive(Clone, Debug)]
struct Route {
    client: Arc<Client>,
    id: u64,
    bytes: usize,
}

impl Routes {
    /// How many clients are connected.
    pub(super) fn clients(&self) -> usize {
        self.state().clients.len()
    }

    pub(super) fn connect(&self) -> Arc<Client> {
        let mut state = self.state();
        state.last += 1;
        let client = Arc::new(Client::new(state.last));
        state.clients.insert(client.number, Arc::clone(&client));
        client
    }

    pub(super) fn disconnect(&self, client: u64) {
        self.state().clients.remove(&client);
    }

    /// The pool's number for a request.
    pub(super) fn add(&self, client: &Arc<Client>, id: u64, bytes: usize) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.requests.insert(number, Route { client: Arc::clone(client), id, bytes });
        number
    }

    /// Forgets a request that is not in the pool.
    pub(super) fn remove(&self, number: u64) {
        if let Some(route) = self.state().requests.remove(&number) {
            route.client.answered(route.bytes);
        }
    }

    /// The pool's numbers for a client's requests with this number.
    pub(super) fn find(&self, client: u64, id: u64) -> BTreeSet<u64> {
        let state = self.state();
        let is_meant = |route: &Route| route.id == id && route.client.number == client;
        state.requests.iter().filter(|(_, route)| is_meant(route)).map(|(number, _)| *number).collect()
    }

    /// Passes a reply on to its client, or to all if it is about none.
    pub(super) fn deliver(&self, reply: Reply) {
        let Some(number) = reply.id() else {
            return self.state().clients.values().for_each(|client| client.send(&reply));
        };
        let Some(route) = self.state().requests.get(&number).cloned() else { return };
        let is_final = reply.is_final();
        route.client.send(&reply.with_id(route.id));
        if is_final {
            self.remove(number);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_its_replies_with_its_numbers() {
        let routes = Routes::default();
        let clients = [routes.connect(), routes.connect()];
        let numbers = clients.clone().map(|client| {
            client.admit(10).unwrap();
            routes.add(&client, 7, 10)
        });
        assert_eq!(routes.find(clients[1].number, 7), [numbers[1]].into());
        for (number, error) in numbers.into_iter().zip(["one", "two"]) {
            routes.deliver(Reply::Error { id: Some(number), error: error.to_owned() });
        }
        routes.deliver(Reply::Retired { device: "x:0".to_owned(), retired: "why".to_owned() });
        for (client, error) in clients.into_iter().zip(["one", "two"]) {
            assert!(!client.is_waiting());
            client.finish();
            let mut written = Vec::new();
            client.write_to(&mut written);
            let expected =
                format!("{{\"id\":7,\"error\":\"{error}\"}}\n{{\"device\":\"x:0\",\"retired\":\"why\"}}\n");
            assert_eq!(String::from_utf8(written).unwrap(), expected);
        }
        assert!(routes.state().requests.is_empty());
    }
}
