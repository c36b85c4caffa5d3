//! Runs the system's compiler and linker, without a shell.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runtime_core::backend::{Level, Log, Source, TemporaryFolder, is_privileged};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result};

const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// The load options of all formats that are compiled or linked; `libraries` applies to every format.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "compiler",
            "",
            "C compiler, optionally with arguments, which also links; default: $CC, else cc, clang or gcc.",
        ),
        OptionSpec::module(
            "flags",
            "",
            "Compiler or linker flags, separated by spaces, after the default ones; a list.",
        ),
        OptionSpec::module(
            "libraries",
            "",
            "Library that the code needs: a path, relative to the source file's folder, or a name as after -l; a shared object's are opened first, with their symbols visible to the whole process; a list.",
        ),
    ]
}

/// A linked library.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) library: PathBuf,
    /// Its temporary folder, if it has one.
    #[expect(dead_code, reason = "kept for its drop")]
    pub(crate) folder: Option<TemporaryFolder>,
}

/// The base of relative paths in the options of a module.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) folder: PathBuf,
    /// Whether the code was loaded from a file; otherwise the folder is a private one.
    pub(crate) has_path: bool,
}

impl Origin {
    /// The folder of the source's file, else `private`.
    pub(crate) fn new(source: &Source<'_>, private: &Path) -> Self {
        let file = if source.path.is_empty() { None } else { std::path::absolute(source.path).ok() };
        let folder = file.and_then(|path| path.parent().map(Path::to_owned)).filter(|folder| folder.is_dir());
        match folder {
            Some(folder) => Self { folder, has_path: true },
            None => Self { folder: private.to_owned(), has_path: false },
        }
    }

    /// Resolves `path`, a value of `option`.
    ///
    /// # Errors
    /// `InvalidArgument` for a relative path if the code was not loaded from a file; `Io` if it does not exist.
    pub(crate) fn relative(&self, path: &str, option: &str) -> Result<PathBuf> {
        if !self.has_path && Path::new(path).is_relative() {
            return Err(Error::invalid(format!(
                "option \"{option}\" is the relative path \"{path}\", but the code was not loaded from a file; give an absolute path"
            )));
        }
        existing(&self.folder.join(path), &format!("option \"{option}\""))
    }

    /// The linker's arguments for the option `libraries`, with a run path for libraries given by path.
    ///
    /// # Errors
    /// As [`Origin::relative`].
    pub(crate) fn link_arguments(&self, options: &Options) -> Result<Vec<OsString>> {
        let mut arguments = Vec::new();
        for library in libraries(options) {
            if is_path(library) {
                let path = self.relative(library, "libraries")?;
                arguments.extend(path.parent().map(|folder| joined("-Wl,-rpath,", folder)));
                arguments.push(path.into());
            } else if library.contains(".so") {
                arguments.push(format!("-l:{library}").into());
            } else {
                arguments.push(format!("-l{library}").into());
            }
        }
        Ok(arguments)
    }

    /// The file names of the option `libraries`, for `dlopen`.
    ///
    /// # Errors
    /// As [`Origin::relative`].
    pub(crate) fn library_files(&self, options: &Options) -> Result<Vec<PathBuf>> {
        let file = |library| {
            if is_path(library) {
                self.relative(library, "libraries")
            } else if library.contains(std::env::consts::DLL_SUFFIX) {
                Ok(PathBuf::from(library))
            } else {
                Ok(PathBuf::from(format!("lib{library}{}", std::env::consts::DLL_SUFFIX)))
            }
        };
        libraries(options).map(file).collect()
    }
}

fn libraries(options: &Options) -> impl Iterator<Item = &str> {
    options.texts("libraries").filter(|library| !library.is_empty())
}

fn is_path(library: &str) -> bool {
    library.contains('/')
}

/// The absolute path of an existing file or folder; `what` names it in the message.
///
/// # Errors
/// `Io`, with the system's message.
pub(crate) fn existing(path: &Path, what: &str) -> Result<PathBuf> {
    if path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Err(Error::new(
            ErrorKind::Io,
            format!("{what}: \"{}\" is not a regular file", path.display()),
        ));
    }
    let found = std::path::absolute(path).and_then(|path| path.metadata().map(|_| path));
    found.map_err(|error| {
        Error::new(ErrorKind::Io, format!("{what}: \"{}\": {error}", path.display())).with_source(error)
    })
}

/// `flag` and `path` as one argument.
pub(crate) fn joined(flag: &str, path: &Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}

/// The flags of the option `flags`.
pub(crate) fn flags(options: &Options) -> impl Iterator<Item = OsString> {
    options.texts("flags").flat_map(str::split_whitespace).map(OsString::from)
}

/// Runs the compiler in `origin`'s folder; the library is written to `private`.
///
/// # Errors
/// `CompileFailed`, with the compiler's output and the command; `Unavailable` without a compiler.
pub(crate) fn build(
    options: &Options,
    arguments: &[OsString],
    origin: &Origin,
    private: TemporaryFolder,
    log: Log,
) -> Result<Built> {
    let library = library_in(private.path());
    let (compiler, output) = run(options, arguments, &origin.folder, private.path())?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let text = text.trim();
    let command = command_line(&compiler, arguments);
    if !output.status.success() || !library.is_file() {
        let error = Error::new(ErrorKind::CompileFailed, failure(text, &output, &command));
        let full = text.contains("No space left on device");
        return Err(if full { error.with_note("set TMPDIR to a folder with more space") } else { error });
    }
    if !text.is_empty() {
        log.write(Level::Warning, "host::compile", &format!("{command}\n{text}"));
    }
    Ok(Built { library, folder: Some(private) })
}

/// The message for a compiler that produced no library.
fn failure(text: &str, output: &Output, command: &str) -> String {
    match (text.is_empty(), output.status.success()) {
        (false, _) => format!("{text}\n{}: {command}", output.status),
        (true, true) => {
            format!("the compiler printed nothing and produced no library; is it a C compiler? {command}")
        }
        (true, false) => {
            format!("the compiler printed nothing; is it a C compiler? {}: {command}", output.status)
        }
    }
}

/// The remedy for an error about exhausted files, processes or memory.
pub(crate) fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("close files, or raise the limit (`ulimit -n`)"),
        libc::ENFILE => Some("the system-wide limit of open files is reached: raise fs.file-max"),
        libc::EAGAIN => Some("the limit of processes is reached: raise it (`ulimit -u`)"),
        libc::ENOMEM => Some("free memory"),
        _ => None,
    }
}

/// The path of the library in a private folder.
pub(crate) fn library_in(private: &Path) -> PathBuf {
    private.join("module.so")
}

/// Runs the first installed compiler.
fn run(
    options: &Options,
    arguments: &[OsString],
    folder: &Path,
    private: &Path,
) -> Result<(Vec<String>, Output)> {
    if is_privileged() {
        // PATH, CC and other variables would select a program to run with another user's privileges.
        let message = "a process with elevated privileges runs no compiler; load a shared object instead";
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    let (candidates, from) = candidates(options);
    let named = candidates.len() == 1;
    for compiler in candidates {
        let mut command = Command::new(&compiler[0]);
        command.args(&compiler[1..]).args(arguments).current_dir(folder).stdin(Stdio::null());
        // Messages in English, and the compiler's temporary files next to ours.
        command.env("LC_ALL", "C").env("TMPDIR", private);
        match command.output() {
            Ok(output) => return Ok((compiler, output)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {}
            Err(error) if exhausted(&error).is_some() => {
                let remedy = exhausted(&error).unwrap_or_default();
                let message = format!("cannot start \"{}\": {error}; {remedy}", compiler[0]);
                return Err(Error::new(ErrorKind::OutOfResources, message).with_source(error));
            }
            Err(error) => {
                let message = format!(
                    "{from}: cannot run \"{}\": {error}; name a C compiler that is installed",
                    compiler[0]
                );
                return Err(Error::new(ErrorKind::Unavailable, message).with_source(error));
            }
        }
    }
    let message = format!("no C compiler ({}): install gcc, or set CC", COMPILERS.join(", "));
    Err(Error::new(ErrorKind::Unavailable, message))
}

/// The compilers to try, each with its arguments, and the setting that they come from.
fn candidates(options: &Options) -> (Vec<Vec<String>>, &'static str) {
    let from_environment = std::env::var("CC").unwrap_or_default();
    let (wanted, from) = match options.text("compiler") {
        Some(compiler) if !compiler.trim().is_empty() => (compiler, "option \"compiler\""),
        _ => (from_environment.as_str(), "CC"),
    };
    match words(wanted) {
        wanted if wanted.is_empty() => (COMPILERS.iter().map(|name| words(name)).collect(), from),
        wanted => (vec![wanted], from),
    }
}

/// Identifies the compiler that would run, and its version; `None` if there is none.
pub(crate) fn identity(options: &Options) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| {
        let program = Path::new(program);
        // `join` keeps an absolute path as it is.
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
        if program.is_absolute() { places.next() } else { places.find(|place| place.is_file()) }
    };
    let (compilers, _) = candidates(options);
    compilers.iter().find_map(|compiler| {
        let file = found(&compiler[0])?.canonicalize().ok()?;
        let metadata = file.metadata().ok()?;
        let modified = metadata.modified().ok()?;
        Some(format!("{compiler:?} {} {} {modified:?}", file.display(), metadata.len()))
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The command as one line, for messages.
pub(crate) fn command_line(compiler: &[String], arguments: &[OsString]) -> String {
    let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
    compiler.iter().cloned().chain(arguments).collect::<Vec<_>>().join(" ")
}
