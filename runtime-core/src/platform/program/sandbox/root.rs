//! The file system of a sandbox: a small `tmpfs` with the folders that the program may use mounted in it.

#![allow(unsafe_code, reason = "calls the C library")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::RawFd;

use super::{SCRATCH, checked};

/// Where the new root is mounted before it is the root. It is there, since the user name space needs it, and is no place that a
/// program is given: what is mounted on a place is mounted wherever that is.
const BASE: &CStr = c"/proc";
const OPTIONS: &CStr = c"mode=755,size=64k";
/// A program's own files.
const SCRATCH_OPTIONS: &CStr = c"mode=700,size=256m,nr_inodes=64k";
const HERE: &CStr = c".";
const NOTHING: &CStr = c"";

/// What a program may do with a file, or with all files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    Read,
    Device,
    Write,
}

/// What is made in the root, in order.
#[derive(Debug)]
enum Entry {
    Folder(CString),
    File(CString),
    Link {
        target: CString,
        path: CString,
    },
    /// The place with this index.
    Mount {
        place: usize,
        path: CString,
    },
}

/// A file or folder of the system that is mounted in the root.
#[derive(Debug)]
struct Place {
    path: CString,
    access: Access,
    /// In the child: a mount of it that is nowhere yet.
    tree: RawFd,
}

/// A file system to make.
#[derive(Debug, Default)]
pub(super) struct Root {
    entries: Vec<Entry>,
    places: Vec<Place>,
    /// Whether `/proc` tells of the machine, too.
    shows_machine: bool,
}

impl Root {
    /// An empty one.
    pub(super) fn new(shows_machine: bool) -> Self {
        Self { shows_machine, ..Self::default() }
    }

    pub(super) fn add_folder(&mut self, path: &CStr) {
        self.entries.push(Entry::Folder(path.to_owned()));
    }

    pub(super) fn add_link(&mut self, target: &CStr, path: &CStr) {
        self.entries.push(Entry::Link { target: target.to_owned(), path: path.to_owned() });
    }

    /// Adds a place of the system, at `path`. Where nothing is mounted around it, it needs a file or a folder to be mounted on.
    pub(super) fn add_place(
        &mut self,
        system: &CStr,
        path: &CStr,
        (is_folder, is_outermost): (bool, bool),
        access: Access,
    ) {
        match (is_outermost, is_folder) {
            (true, true) => self.entries.push(Entry::Folder(path.to_owned())),
            (true, false) => self.entries.push(Entry::File(path.to_owned())),
            (false, _) => {}
        }
        self.entries.push(Entry::Mount { place: self.places.len(), path: path.to_owned() });
        self.places.push(Place { path: system.to_owned(), access, tree: -1 });
    }

    /// In the child, which may mount: mounts the places that are not mounted yet. They are attached later, also by a user who cannot
    /// open them.
    pub(super) fn mount_places(&mut self) -> io::Result<()> {
        self.places.iter_mut().filter(|place| place.tree < 0).try_for_each(Place::mount)
    }

    /// In the child, in its own mount and PID name spaces: makes the file system, and makes it the root.
    pub(super) fn enter(&self) -> io::Result<()> {
        // Mounts of the system's arrive nowhere, and those made here do not leave.
        mount(c"none", c"/", NOTHING, libc::MS_REC | libc::MS_PRIVATE, None)?;
        let hardened = libc::MS_NOSUID | libc::MS_NODEV;
        mount(c"tmpfs", BASE, c"tmpfs", hardened, Some(OPTIONS))?;
        let root = open(libc::AT_FDCWD, BASE)?;
        // SAFETY: a descriptor of a folder.
        checked(unsafe { libc::fchdir(root) }.into())?;
        for entry in &self.entries {
            entry.make(&self.places, root)?;
        }
        mount(c"tmpfs", &SCRATCH_PATH[1..], c"tmpfs", hardened, Some(SCRATCH_OPTIONS))?;
        // Read-only, because of the system's settings, which the superuser's programs could change even without capabilities. Where
        // parts of `/proc` are hidden, as in containers, it may not be mounted; no program depends on it.
        let flags = hardened | libc::MS_NOEXEC | libc::MS_RDONLY;
        // Processes that cannot be looked into are not listed: the first one is a copy of the parent, with its arguments.
        let options = if self.shows_machine { c"hidepid=4" } else { c"hidepid=4,subset=pid" };
        let _ = mount(c"proc", c"proc", c"proc", flags, Some(options));
        set_attributes(root, 0, libc::MOUNT_ATTR_RDONLY)?;
        pivot()
    }
}

/// [`SCRATCH`], for the C library.
const SCRATCH_PATH: &CStr = c"/.scratch";
const _: () = assert!(SCRATCH_PATH.count_bytes() == SCRATCH.len());

impl Entry {
    fn make(&self, places: &[Place], root: RawFd) -> io::Result<()> {
        match self {
            // SAFETY: the path is terminated and outlives the call.
            Self::Folder(path) => made(unsafe { libc::mkdir(path.as_ptr(), 0o755) }),
            // SAFETY: the path is terminated and outlives the call.
            Self::File(path) => made(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | 0o644, 0) }),
            // SAFETY: both paths are terminated and outlive the call.
            Self::Link { target, path } => made(unsafe { libc::symlink(target.as_ptr(), path.as_ptr()) }),
            Self::Mount { place, path } => match places.get(*place) {
                Some(place) => place.attach(root, path),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

/// What is there already is as good.
fn made(result: libc::c_int) -> io::Result<()> {
    match checked(result.into()) {
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
        other => other.map(|_| ()),
    }
}

impl Place {
    /// Mounts it, with all that is mounted below it, for this sandbox alone.
    fn mount(&mut self) -> io::Result<()> {
        let flags =
            libc::OPEN_TREE_CLONE | libc::O_CLOEXEC.cast_unsigned() | libc::AT_RECURSIVE.cast_unsigned();
        let (folder, path) = (libc::AT_FDCWD, self.path.as_ptr());
        // SAFETY: the path is terminated and outlives the call.
        let tree = checked(unsafe { libc::syscall(libc::SYS_open_tree, folder, path, flags) })?;
        let tree = descriptor(tree)?;
        let kind = match self.access {
            Access::Read => libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NODEV,
            Access::Device => libc::MOUNT_ATTR_NOEXEC,
            Access::Write => libc::MOUNT_ATTR_NODEV,
        };
        set_attributes(tree, libc::AT_RECURSIVE, libc::MOUNT_ATTR_NOSUID | kind)?;
        self.tree = tree;
        Ok(())
    }

    fn attach(&self, root: RawFd, path: &CStr) -> io::Result<()> {
        let (tree, nothing, flags) = (self.tree, NOTHING.as_ptr(), libc::MOVE_MOUNT_F_EMPTY_PATH);
        // SAFETY: both paths are terminated and outlive the call.
        checked(unsafe { libc::syscall(libc::SYS_move_mount, tree, nothing, root, path.as_ptr(), flags) })
            .map(|_| ())
    }
}

fn set_attributes(mounted: RawFd, flags: libc::c_int, attributes: u64) -> io::Result<()> {
    let propagation = libc::MS_PRIVATE;
    let change = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation, userns_fd: 0 };
    let flags = flags | libc::AT_EMPTY_PATH;
    let (nothing, bytes) = (NOTHING.as_ptr(), size_of::<libc::mount_attr>());
    // SAFETY: the path is terminated, the structure is a local variable, and its size is given.
    let result =
        unsafe { libc::syscall(libc::SYS_mount_setattr, mounted, nothing, flags, &raw const change, bytes) };
    checked(result).map(|_| ())
}

fn mount(
    source: &CStr,
    target: &CStr,
    kind: &CStr,
    flags: libc::c_ulong,
    options: Option<&CStr>,
) -> io::Result<()> {
    let options = options.map_or(std::ptr::null(), |options| options.as_ptr().cast());
    // SAFETY: all texts are terminated and outlive the call.
    let result = unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, options) };
    checked(result.into()).map(|_| ())
}

fn open(folder: RawFd, path: &CStr) -> io::Result<RawFd> {
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the path is terminated and outlives the call.
    descriptor(checked(unsafe { libc::openat(folder, path.as_ptr(), flags) }.into())?)
}

fn descriptor(result: libc::c_long) -> io::Result<RawFd> {
    RawFd::try_from(result).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Makes the working folder the root, and lets the old one go.
fn pivot() -> io::Result<()> {
    let here = HERE.as_ptr();
    // SAFETY: both paths are terminated and outlive the call.
    checked(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) })?;
    // The old root lies on the new one.
    // SAFETY: the path is terminated and outlives the call.
    checked(unsafe { libc::umount2(here, libc::MNT_DETACH) }.into())?;
    // SAFETY: the path is terminated and outlives the call.
    checked(unsafe { libc::chdir(c"/".as_ptr()) }.into()).map(|_| ())
}
