//! Builds images, and keeps them in this process and on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use runtime_core::backend::{Notes, Source, TemporaryFolder};
use runtime_core::{Error, ErrorKind, Result};

use super::compiler::{Compiler, io, write};
use super::elf::Image;
use super::entry::Parameter;
use super::key::{self, Key};
use super::uart;
use crate::boards::Board;

/// Images that are kept for kernels that are flashed again.
const KEPT_IMAGES: usize = 16;

/// Builds the images of a board, in a folder of its own.
#[derive(Debug)]
pub(crate) struct Builder {
    board: Board,
    folder: TemporaryFolder,
    /// Images and firmware of earlier processes.
    notes: Notes,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The compiled firmware, by everything that it is made from.
    firmware: Option<(Key, Vec<PathBuf>)>,
    /// Images by everything that they are made from.
    images: Vec<(Key, Arc<Image>)>,
    /// Number of the next image's files.
    next: u64,
    /// What identifies the compiler, once it was asked for; `None` inside if it is unknown.
    toolchain: Option<Option<String>>,
}

impl Builder {
    /// Prepares a folder.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(board: &Board) -> Result<Self> {
        let folder =
            TemporaryFolder::new("runtime-embedded-").map_err(|error| io("temporary folder", &error))?;
        let notes = Notes::from_environment();
        Ok(Self { board: board.clone(), folder, notes, state: Mutex::default() })
    }

    /// Whether it builds for this board, as its file is now.
    pub(crate) fn is_for(&self, board: &Board) -> bool {
        self.board == *board
    }

    /// The folder for the files of this board.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The image of a program: built from C, or checked as it is.
    ///
    /// # Errors
    /// `CompileFailed` with the log; `OutOfResources` for an image that is too large; `InvalidArgument`, as for
    /// [`Image::parse`]; `Unsupported` for another format.
    pub(crate) fn image(&self, source: &Source<'_>, parameters: &[Parameter]) -> Result<Arc<Image>> {
        let code = source.bytes()?;
        let mut state = self.state.lock();
        let key = key::of_image(&self.board, source, &code, parameters);
        if let Some((_, image)) = state.images.iter().find(|(known, _)| Some(*known) == key) {
            return Ok(Arc::clone(image));
        }
        state.next += 1;
        let folder = self.folder().join(format!("image-{}", state.next));
        fs::create_dir(&folder).map_err(|error| io("image", &error))?;
        let elf = folder.join("image.elf");
        let bytes = match source.format {
            "elf" => {
                write(&elf, &code)?;
                code
            }
            "c" => self.build(&mut state, (&folder, &elf), (source, &code), parameters, key)?.into(),
            other => return Err(Error::unsupported(format!("format \"{other}\" is not supported"))),
        };
        let image = Arc::new(Image::parse(&self.board, &bytes, &elf)?);
        if let Some(key) = key {
            state.keep(key, &image);
        }
        Ok(image)
    }

    /// Makes the file `elf` in `folder`: the one of an earlier process, or a new one. Returns its bytes.
    fn build(
        &self,
        state: &mut State,
        (folder, elf): (&Path, &Path),
        (source, code): (&Source<'_>, &[u8]),
        parameters: &[Parameter],
        key: Option<Key>,
    ) -> Result<Vec<u8>> {
        let note = key.and_then(|key| Some(key::on_disk(&key, self.toolchain(state)?, "image")));
        if let Some(kept) = note.and_then(|note| self.notes.read(&note)) {
            write(elf, &kept)?;
            return Ok(kept);
        }
        let firmware = self.firmware(state)?;
        self.compiler().build_kernel(folder, (source, code), parameters, &firmware)?;
        let bytes = fs::read(elf).map_err(|error| io("image", &error))?;
        self.keep(note, &bytes);
        Ok(bytes)
    }

    /// Keeps what has just been compiled from everything in its key.
    #[allow(unsafe_code, reason = "a note of what was compiled")]
    fn keep(&self, note: Option<[u8; 32]>, bytes: &[u8]) {
        // SAFETY: the compiler would make the same of it again.
        note.inspect(|note| unsafe { self.notes.write(note, bytes) });
    }

    /// The objects of the firmware: those of the last image, unless the user's driver has changed.
    fn firmware(&self, state: &mut State) -> Result<Vec<PathBuf>> {
        let key = key::of_firmware(&self.board);
        if let Some((_, objects)) = state.firmware.as_ref().filter(|(known, _)| Some(*known) == key) {
            return Ok(objects.clone());
        }
        state.firmware = None;
        let objects = self.compile_firmware(key, self.toolchain(state))?;
        state.firmware = key.map(|key| (key, objects.clone()));
        Ok(objects)
    }

    /// The objects of the firmware: those of an earlier process, or compiled, all at once.
    fn compile_firmware(&self, key: Option<Key>, toolchain: Option<&str>) -> Result<Vec<PathBuf>> {
        let compiler = self.compiler();
        compiler.write_firmware()?;
        let uart = uart::files(&self.board, self.folder())?;
        let object = &|source: &str| -> Result<PathBuf> {
            let object = self.folder().join(format!("{source}.o"));
            let note = key.zip(toolchain).map(|(key, toolchain)| key::on_disk(&key, toolchain, source));
            match note.and_then(|note| self.notes.read(&note)) {
                Some(kept) => write(&object, &kept)?,
                None => {
                    compiler.compile_firmware(source, &uart.flags, &object)?;
                    let bytes = fs::read(&object).map_err(|error| io(source, &error))?;
                    self.keep(note, &bytes);
                }
            }
            Ok(object)
        };
        thread::scope(|scope| {
            let sources = compiler.firmware_sources().iter().copied();
            let sources = sources.chain(uart.sources.iter().map(String::as_str));
            let objects: Vec<_> = sources.map(|source| scope.spawn(move || object(source))).collect();
            let joined = objects.into_iter().map(|object| {
                object.join().unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a thread panicked")))
            });
            joined.collect()
        })
    }

    /// What identifies the compiler and its library.
    fn toolchain<'s>(&self, state: &'s mut State) -> Option<&'s str> {
        let find = || key::toolchain(&self.board, self.folder());
        state.toolchain.get_or_insert_with(find).as_deref()
    }

    fn compiler(&self) -> Compiler<'_> {
        Compiler { board: &self.board, folder: self.folder() }
    }
}

impl State {
    /// Keeps an image in the place of the oldest one.
    fn keep(&mut self, key: Key, image: &Arc<Image>) {
        if self.images.len() == KEPT_IMAGES {
            let (_, oldest) = self.images.remove(0);
            // An image in use still needs its file, to locate faults.
            if Arc::strong_count(&oldest) == 1 {
                let _ = oldest.remove_files();
            }
        }
        self.images.push((key, Arc::clone(image)));
    }
}
