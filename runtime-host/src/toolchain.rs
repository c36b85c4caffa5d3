//! The system's compiler and linker, run without a shell.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use runtime_core::backend::{Level, Log, Source, TemporaryFolder, is_privileged};
use runtime_core::{Error, ErrorKind, OptionSpec, Options, Result};

const COMPILERS: [&str; 3] = ["cc", "clang", "gcc"];

/// The load options of every format that is compiled or linked, and `libraries`, which all formats take.
pub(crate) fn options() -> Vec<OptionSpec> {
    vec![
        OptionSpec::module(
            "compiler",
            "",
            "C compiler, with arguments if need be, which also links; default: $CC, else cc, clang or gcc.",
        ),
        OptionSpec::module(
            "flags",
            "",
            "Compiler or linker flags, separated by blanks, after the default ones; a list.",
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
    /// Where it stands, if that goes with it.
    #[expect(dead_code, reason = "kept for its drop")]
    pub(crate) folder: Option<TemporaryFolder>,
}

/// What relative paths in the options of a module mean.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) folder: PathBuf,
    /// The code came with a path; otherwise the folder is a private one.
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

    /// The file or folder that `path`, a value of `option`, means.
    ///
    /// # Errors
    /// `InvalidArgument` for a relative path without a place; `Io` if it is not there.
    pub(crate) fn relative(&self, path: &str, option: &str) -> Result<PathBuf> {
        if !self.has_path && Path::new(path).is_relative() {
            return Err(Error::invalid(format!(
                "option \"{option}\" is \"{path}\", but the code came without a file to which that is relative; give an absolute path"
            )));
        }
        existing(&self.folder.join(path), &format!("option \"{option}\""))
    }

    /// The linker's arguments for the option `libraries`; a library with a path is found again when it is loaded.
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

    /// The files of the option `libraries`, as the system's loader wants them.
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

/// The absolute path of a file or folder that is there; `what` names it in the message.
///
/// # Errors
/// `Io` with the system's own words.
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

/// Runs the compiler in `origin`'s folder, and keeps `private`, where `library` appears.
///
/// # Errors
/// `CompileFailed` with the whole message and the command; `Unavailable` without a compiler.
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

/// What became of a compiler that made no library.
fn failure(text: &str, output: &Output, command: &str) -> String {
    match (text.is_empty(), output.status.success()) {
        (false, _) => format!("{text}\n{}: {command}", output.status),
        (true, true) => {
            format!("the compiler printed nothing and made no library; is it a C compiler? {command}")
        }
        (true, false) => {
            format!("the compiler printed nothing; is it a C compiler? {}: {command}", output.status)
        }
    }
}

/// The remedy for an error that says that the process or the system has no more files, processes or memory.
pub(crate) fn exhausted(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("close files, or raise the limit (`ulimit -n`)"),
        libc::ENFILE => Some("the system has no more files: raise fs.file-max"),
        libc::EAGAIN => Some("the system starts no more processes: raise the limit (`ulimit -u`)"),
        libc::ENOMEM => Some("free memory"),
        _ => None,
    }
}

/// Where the library of a private folder stands.
pub(crate) fn library_in(private: &Path) -> PathBuf {
    private.join("module.so")
}

/// Runs the first compiler that is there.
fn run(
    options: &Options,
    arguments: &[OsString],
    folder: &Path,
    private: &Path,
) -> Result<(Vec<String>, Output)> {
    if is_privileged() {
        // PATH, CC and what compilers read besides would choose what runs with the rights of another user.
        let message = "a program with raised rights runs no compiler; load a shared object instead";
        return Err(Error::new(ErrorKind::Unavailable, message));
    }
    let (candidates, from) = candidates(options);
    let named = candidates.len() == 1;
    for compiler in candidates {
        let mut command = Command::new(&compiler[0]);
        command.args(&compiler[1..]).args(arguments).current_dir(folder).stdin(Stdio::null());
        // Plain English messages, and the compiler's own temporary files where ours are.
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

/// The compilers to try, each with its arguments, and who named them.
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

/// What tells the compiler that would run from any other, and from its next version; `None` if there is none.
pub(crate) fn identity(options: &Options) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| {
        let program = Path::new(program);
        // A name with a slash is one path, which `join` keeps if it is absolute.
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
