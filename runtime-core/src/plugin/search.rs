//! The search order for backend libraries:
//!
//! 1. the paths that the program specifies;
//! 2. `RUNTIME_BACKENDS`, which replaces the rest;
//! 3. `RUNTIME_BACKEND_PATH`;
//! 4. `../lib/runtime`, relative to the executable's directory; then that directory itself; then, if it is Cargo's
//!    `deps` or `examples`, its parent, where Cargo puts the libraries of the same profile;
//! 5. the user's and the system's library directories.
//!
//! The current directory and world-writable directories are never searched.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use crate::platform::{self, trust};
use crate::plugin::load_report::{LoadOutcome, LoadReport};

const HOST: &str = "given by the program";
const BACKENDS: &str = "RUNTIME_BACKENDS";
const BACKEND_PATH: &str = "RUNTIME_BACKEND_PATH";
const PREFIX: &str = "../lib/runtime beside the executable";
const EXECUTABLE: &str = "the executable's directory";
const CARGO: &str = "above the executable's directory, as Cargo lays it out";
const USER: &str = "the user's library directory";
const SYSTEM: &str = "the system's library directories";

/// The search paths that the program specifies.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) libraries: Vec<PathBuf>,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) discover: bool,
}

/// The search paths from the process environment; a parameter, so that tests need not change the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    backends: Option<OsString>,
    backend_path: Option<OsString>,
    executable: Option<PathBuf>,
    home: Option<PathBuf>,
    system: Vec<PathBuf>,
    privileged: bool,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self {
            backends: std::env::var_os(BACKENDS),
            backend_path: std::env::var_os(BACKEND_PATH),
            executable: std::env::current_exe().ok(),
            home: std::env::var_os("HOME").map(PathBuf::from),
            system: platform::system_directories(),
            privileged: platform::is_privileged(),
        }
    }
}

/// One result of the search, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A library to try, and where its path came from.
    Library(PathBuf, &'static str),
    /// A line for the load report about anything else.
    Report(LoadReport),
}

/// Lists all libraries to try. Reads directories only.
pub(crate) fn search(request: &Request, environment: &Environment) -> Vec<Found> {
    let mut search = Search::default();
    for path in &request.libraries {
        search.explicit(path, Search::library);
    }
    for path in &request.directories {
        search.explicit(path, Search::directory);
    }
    if request.discover {
        search.discover(environment);
    }
    search.found
}

#[derive(Default)]
struct Search {
    found: Vec<Found>,
    /// The directories that were searched.
    directories: Vec<PathBuf>,
}

impl Search {
    fn discover(&mut self, environment: &Environment) {
        if environment.privileged {
            if environment.backends.is_some() || environment.backend_path.is_some() {
                self.failed(
                    Path::new(BACKENDS),
                    BACKENDS,
                    "ignored: the program runs with elevated privileges",
                );
            }
            return self.default_directories(&environment.system, SYSTEM);
        }
        if let Some(backends) = non_empty(environment.backends.as_deref()) {
            return self.path_list(backends, BACKENDS);
        }
        if let Some(path) = non_empty(environment.backend_path.as_deref()) {
            self.path_list(path, BACKEND_PATH);
        }
        if let Some(directory) = environment.executable.as_deref().and_then(Path::parent) {
            self.default_directories(directory.parent().map(|up| up.join("lib/runtime")).as_slice(), PREFIX);
            self.default_directories(&[directory.to_owned()], EXECUTABLE);
            if directory.ends_with("deps") || directory.ends_with("examples") {
                self.default_directories(directory.parent().map(Path::to_owned).as_slice(), CARGO);
            }
        }
        if let Some(home) = environment.home.as_deref().filter(|home| home.is_absolute()) {
            self.default_directories(&[home.join(platform::USER_DIRECTORY)], USER);
        }
        self.default_directories(&environment.system, SYSTEM);
    }

    /// Paths from the program may be relative.
    fn explicit(&mut self, path: &Path, add: fn(&mut Self, &Path, &'static str)) {
        match std::path::absolute(path) {
            Ok(path) => add(self, &path, HOST),
            Err(error) => self.failed(path, HOST, error.to_string()),
        }
    }

    /// Adds the entries of an environment variable.
    fn path_list(&mut self, list: &OsStr, origin: &'static str) {
        for path in std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty()) {
            if !path.is_absolute() {
                self.failed(
                    &path,
                    origin,
                    "relative path rejected: the current directory is never searched; use an absolute path",
                );
            } else if origin == BACKENDS && !path.is_dir() {
                self.library(&path, origin);
            } else {
                self.directory(&path, origin);
            }
        }
    }

    fn default_directories(&mut self, directories: &[PathBuf], origin: &'static str) {
        for path in directories {
            if self.directories.contains(path) {
                // Of an installed program, `../lib/runtime` is one of the others.
                self.skipped(path, origin, "searched already");
            } else if path.exists() {
                self.directory(path, origin);
            } else {
                self.skipped(path, origin, "no such directory");
            }
        }
    }

    fn library(&mut self, path: &Path, origin: &'static str) {
        self.found.push(Found::Library(path.to_owned(), origin));
    }

    fn directory(&mut self, path: &Path, origin: &'static str) {
        self.directories.push(path.to_owned());
        match backends_in(path) {
            Ok(libraries) if libraries.is_empty() => {
                self.skipped(path, origin, format!("contains no {}", platform::LIBRARY_PATTERN));
            }
            Ok(libraries) => libraries.iter().for_each(|library| self.library(library, origin)),
            Err(reason) => self.failed(path, origin, reason),
        }
    }

    fn skipped(&mut self, path: &Path, origin: &'static str, reason: impl Into<String>) {
        self.found.push(Found::Report(LoadReport::search(path, origin, LoadOutcome::Skipped, reason)));
    }

    fn failed(&mut self, path: &Path, origin: &'static str, reason: impl Into<String>) {
        self.found.push(Found::Report(LoadReport::search(path, origin, LoadOutcome::Failed, reason)));
    }
}

/// Treats an empty variable as unset.
fn non_empty(variable: Option<&OsStr>) -> Option<&OsStr> {
    variable.filter(|text| !text.is_empty())
}

/// The backend libraries in a directory, sorted by name so that the order is the same on every machine.
fn backends_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    trust::check_installed(directory).map_err(|error| error.message().to_owned())?;
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut libraries: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    libraries.retain(|path| platform::backend_of_file(path).is_some());
    libraries.sort();
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A file tree with a library in each location.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for place in [
                "api",
                "env",
                "added",
                "prefix/lib/runtime",
                "prefix/bin",
                "home/.local/lib/runtime",
                "system",
            ] {
                fs::create_dir_all(machine.path(place)).unwrap();
                fs::write(machine.path(place).join("libruntime_x.so"), "").unwrap();
                fs::write(machine.path(place).join("libother.so"), "").unwrap();
            }
            machine
        }

        fn path(&self, place: &str) -> PathBuf {
            self.0.path().join(place)
        }

        fn environment(&self) -> Environment {
            Environment {
                backends: None,
                backend_path: Some(self.path("added").into()),
                executable: Some(self.path("prefix/bin/program")),
                home: Some(self.path("home")),
                system: vec![self.path("system")],
                privileged: false,
            }
        }

        fn request(&self) -> Request {
            Request { libraries: vec![], directories: vec![self.path("api")], discover: true }
        }
    }

    fn origins(found: &[Found]) -> Vec<&'static str> {
        found
            .iter()
            .filter_map(|found| match found {
                Found::Library(_, origin) => Some(*origin),
                Found::Report(_) => None,
            })
            .collect()
    }

    fn lines(found: &[Found]) -> Vec<String> {
        found
            .iter()
            .filter_map(|found| match found {
                Found::Library(..) => None,
                Found::Report(line) => Some(line.to_string()),
            })
            .collect()
    }

    #[test]
    fn locations_are_searched_in_the_documented_order() {
        let machine = Machine::new();
        let found = search(&machine.request(), &machine.environment());
        assert_eq!(origins(&found), [HOST, BACKEND_PATH, PREFIX, EXECUTABLE, USER, SYSTEM]);
        assert_eq!(lines(&found), Vec::<String>::new());
    }

    #[test]
    fn a_test_program_finds_the_libraries_of_its_profile() {
        let machine = Machine::new();
        let origins_of = |executable: &str| {
            let executable = Some(machine.path(executable));
            let environment = Environment { executable, backend_path: None, ..machine.environment() };
            origins(&search(&machine.request(), &environment))
        };
        assert_eq!(origins_of("prefix/bin/examples/program"), [HOST, CARGO, USER, SYSTEM]);
        assert_eq!(origins_of("prefix/bin/deps/program"), [HOST, CARGO, USER, SYSTEM]);
        assert_eq!(origins_of("prefix/bin/other/program"), [HOST, USER, SYSTEM]);
    }

    #[test]
    fn an_installed_program_searches_its_directory_once() {
        let machine = Machine::new();
        for (executable, home) in [("home/.local/bin/program", "home"), ("prefix/bin/program", "nowhere")] {
            let system = vec![machine.path("prefix/lib/runtime")];
            let (executable, home) = (Some(machine.path(executable)), Some(machine.path(home)));
            let environment = Environment { executable, home, system, ..machine.environment() };
            let found = search(&Request { directories: vec![], ..machine.request() }, &environment);
            let lines = lines(&found);
            assert_eq!(lines.iter().filter(|line| line.contains("searched already")).count(), 1, "{lines:?}");
        }
    }

    #[test]
    fn runtime_backends_replaces_the_other_locations() {
        let machine = Machine::new();
        let mut environment = machine.environment();
        let mut list = machine.path("env").into_os_string();
        list.push(":");
        list.push(machine.path("added/libruntime_x.so"));
        environment.backends = Some(list);
        let found = search(&machine.request(), &environment);
        assert_eq!(origins(&found), [HOST, BACKENDS, BACKENDS]);
        environment.backends = Some(OsString::new());
        assert_eq!(
            origins(&search(&machine.request(), &environment)).len(),
            6,
            "an empty variable counts as unset"
        );
    }

    #[test]
    fn without_discovery_only_explicit_paths_are_searched() {
        let machine = Machine::new();
        let request = Request { discover: false, ..machine.request() };
        assert_eq!(origins(&search(&request, &machine.environment())), [HOST]);
    }

    #[test]
    fn the_environment_of_a_privileged_program_is_ignored() {
        let machine = Machine::new();
        let environment = Environment { privileged: true, ..machine.environment() };
        let found = search(&machine.request(), &environment);
        assert_eq!(origins(&found), [HOST, SYSTEM]);
        assert!(lines(&found)[0].contains("privileges"));
    }

    #[test]
    fn the_current_directory_is_never_searched() {
        let machine = Machine::new();
        for entry in [".", "lib", "./libruntime_x.so"] {
            let mut environment = machine.environment();
            environment.backends = Some(entry.into());
            let found = search(&Request { directories: vec![], ..machine.request() }, &environment);
            assert_eq!(origins(&found), [""; 0]);
            assert!(lines(&found)[0].contains("relative"), "{entry}");
        }
        let empty_entries = Environment { backends: Some("::".into()), ..machine.environment() };
        assert_eq!(search(&Request { directories: vec![], ..machine.request() }, &empty_entries), []);
    }

    #[test]
    fn every_skipped_location_is_reported() {
        let machine = Machine::new();
        fs::set_permissions(machine.path("added"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::remove_file(machine.path("system/libruntime_x.so")).unwrap();
        let environment = Environment { home: Some(machine.path("nowhere")), ..machine.environment() };
        let lines = lines(&search(&machine.request(), &environment));
        assert!(lines[0].starts_with("failed") && lines[0].contains("world-writable"), "{lines:?}");
        assert!(lines[1].starts_with("skipped") && lines[1].contains("no such directory"), "{lines:?}");
        assert!(
            lines[2].starts_with("skipped") && lines[2].contains("contains no libruntime_<name>.so"),
            "{lines:?}"
        );
    }
}
