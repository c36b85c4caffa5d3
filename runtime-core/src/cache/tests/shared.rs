//! Shared stores: a folder, and a server on this machine that answers well or badly.

use std::fs;

use super::super::shared::SharedFolder;
use super::*;

#[test]
fn a_shared_folder_is_read_and_copied_but_not_written() {
    let (shared, fixture) = (Fixture::new(), Fixture::new());
    shared.get(&shared.cache(), 1);
    let store: Arc<dyn SharedStore> = Arc::new(SharedFolder::new(shared.path(), 1 << 20));
    let cache = CodeCache::with_options(CacheOptions { shared: Some(store), ..fixture.options() });
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::SharedHit);
    assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit, "it was copied");
    assert_eq!((fixture.get(&cache, 2), fixture.compiled()), (CacheOutcome::Miss, 1));
    assert!(!shared.file(&key(2)).exists());
    fs::write(shared.file(&key(1)), "damaged").unwrap();
    cache.clear().unwrap();
    assert_eq!(fixture.get(&cache, 1), CacheOutcome::Miss);
    assert_eq!(fs::read(shared.file(&key(1))).unwrap(), b"damaged", "it is not repaired");
}

#[cfg(feature = "http-cache")]
mod http {
    use std::collections::HashMap;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Mutex;
    use std::time::{Duration, Instant};

    use super::super::super::{entry, http::HttpStore};
    use super::*;

    /// How the server answers.
    #[derive(Clone, Copy, PartialEq)]
    enum Mode {
        Good,
        Status500,
        Hang,
        WrongBytes,
        OtherEntry,
        Redirect,
        Endless,
    }

    /// A server that keeps what is put.
    struct Server {
        address: String,
        files: Mutex<HashMap<String, Vec<u8>>>,
        requests: AtomicUsize,
        mode: Mode,
    }

    impl Server {
        fn start(mode: Mode) -> Arc<Self> {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}/cache", listener.local_addr().unwrap());
            let server =
                Arc::new(Self { address, files: Mutex::default(), requests: AtomicUsize::new(0), mode });
            let shared = server.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    let server = shared.clone();
                    std::thread::spawn(move || server.answer(stream));
                }
            });
            server
        }

        fn requests(&self) -> usize {
            self.requests.load(Ordering::SeqCst)
        }

        fn answer(&self, stream: TcpStream) -> Option<()> {
            let mut reader = BufReader::new(stream.try_clone().ok()?);
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).ok()?;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).ok()?;
                match line.trim().to_lowercase().split_once(':') {
                    Some(("content-length", value)) => length = value.trim().parse().ok()?,
                    None => break,
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            self.requests.fetch_add(1, Ordering::SeqCst);
            let mut words = first.split(' ');
            let (method, path) = (words.next()?, words.next()?.to_owned());
            self.reply(stream, method, path, body)
        }

        fn reply(&self, mut stream: TcpStream, method: &str, path: String, body: Vec<u8>) -> Option<()> {
            let mut send = |status: &str, body: &[u8]| {
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()
            };
            match (self.mode, method) {
                (Mode::Status500, _) => send("500 Broken", b"oops"),
                (Mode::Hang, _) => {
                    std::thread::sleep(Duration::from_secs(20));
                    None
                }
                (Mode::Redirect, _) => send(&format!("302 Elsewhere\r\nLocation: {}", self.address), b""),
                (Mode::WrongBytes, "GET") => send("200 OK", &[7; 5000]),
                (Mode::Endless, "GET") => {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").ok()?;
                    while stream.write_all(&[0; 1 << 12]).is_ok() {}
                    None
                }
                (Mode::OtherEntry, "GET") => {
                    let files = self.files.lock().unwrap();
                    send("200 OK", files.values().next()?)
                }
                (_, "PUT") => {
                    self.files.lock().unwrap().insert(path, body);
                    send("201 Created", b"")
                }
                _ => match self.files.lock().unwrap().get(&path) {
                    Some(bytes) => send("200 OK", bytes),
                    None => send("404 Not Found", b""),
                },
            }
        }
    }

    fn cache(server: &Server, fixture: &Fixture) -> CodeCache {
        let store = Arc::new(HttpStore::new(&server.address, 1 << 20));
        CodeCache::with_options(CacheOptions { shared: Some(store), ..fixture.options() })
    }

    #[test]
    fn what_one_machine_compiles_another_gets() {
        let (server, one, other) = (Server::start(Mode::Good), Fixture::new(), Fixture::new());
        assert_eq!(one.get(&cache(&server, &one), 1), CacheOutcome::Miss);
        assert_eq!(server.requests(), 2, "GET and PUT");
        let expected = format!("/cache/{}", key(1).name());
        assert_eq!(server.files.lock().unwrap().keys().collect::<Vec<_>>(), [&expected]);
        assert_eq!(other.get(&cache(&server, &other), 1), CacheOutcome::SharedHit);
        assert_eq!(other.get(&cache(&server, &other), 1), CacheOutcome::Hit, "it was copied");
        assert_eq!((server.requests(), other.compiled()), (3, 0));
    }

    #[test]
    fn a_read_only_cache_puts_nothing() {
        let (server, fixture) = (Server::start(Mode::Good), Fixture::new());
        let store = Arc::new(HttpStore::new(&server.address, 1 << 20));
        let options =
            CacheOptions { shared: Some(store), access: CacheAccess::ReadOnly, ..fixture.options() };
        assert_eq!(fixture.get(&CodeCache::with_options(options), 1), CacheOutcome::Uncached);
        assert_eq!((server.requests(), server.files.lock().unwrap().len()), (1, 0));
    }

    #[test]
    fn a_server_that_fails_is_asked_once() {
        for mode in [Mode::Status500, Mode::Redirect, Mode::Endless] {
            let (server, fixture) = (Server::start(mode), Fixture::new());
            let cache = cache(&server, &fixture);
            assert_eq!(
                [1, 2, 1].map(|number| fixture.get(&cache, number)),
                [CacheOutcome::Miss, CacheOutcome::Miss, CacheOutcome::Hit]
            );
            assert_eq!(server.requests(), 1);
        }
    }

    #[test]
    fn a_server_that_hangs_is_not_waited_for() {
        let (server, fixture) = (Server::start(Mode::Hang), Fixture::new());
        let (cache, begin) = (cache(&server, &fixture), Instant::now());
        assert_eq!([1, 2].map(|number| fixture.get(&cache, number)), [CacheOutcome::Miss; 2]);
        assert!(begin.elapsed() < Duration::from_secs(19), "the server answers after 20 s");
        assert_eq!(server.requests(), 1);
    }

    #[test]
    fn a_server_that_does_not_exist_is_no_error() {
        let fixture = Fixture::new();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let store = Arc::new(HttpStore::new(&format!("http://{closed}"), 1 << 20));
        let cache = CodeCache::with_options(CacheOptions { shared: Some(store), ..fixture.options() });
        assert_eq!([1, 2].map(|number| fixture.get(&cache, number)), [CacheOutcome::Miss; 2]);
    }

    #[test]
    fn wrong_bytes_are_a_miss() {
        for mode in [Mode::WrongBytes, Mode::OtherEntry] {
            let (server, fixture) = (Server::start(mode), Fixture::new());
            let other = [entry::encode_head(&key(9), &code(9)), code(9).code].concat();
            server.files.lock().unwrap().insert("other".to_owned(), other);
            assert_eq!(fixture.get(&cache(&server, &fixture), 1), CacheOutcome::Miss);
            assert_eq!(fixture.get(&fixture.cache(), 1), CacheOutcome::Hit);
        }
    }
}
