//! Which files a program in a sandbox sees: the folders that it was given, those of the system, a few devices, and the symbolic
//! links on the way to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::root::{Access, Root};
use super::{SCRATCH, c_path};
use crate::{Error, ErrorKind, Result};

/// Programs, headers and libraries of the system, and what leads to them.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/nix/store",
    "/gnu/store",
    "/opt/rh",
];
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// More symbolic links than this on one path are a circle, as for Linux.
const MAX_LINKS: usize = 40;

/// The files of a sandbox.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Files and folders without symbolic links on their paths; none is in another one with the same access.
    pub(super) places: BTreeMap<PathBuf, Access>,
    /// Symbolic links, each with its target.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Folders that paths lead through only to leave them by `..`.
    crossed: BTreeSet<PathBuf>,
}

impl Layout {
    /// The files that are given, with those that every program needs.
    ///
    /// # Errors
    /// `InvalidArgument` for a path that does not exist, and for the root of the file system.
    pub(super) fn new(readable: &[PathBuf], writable: &[PathBuf]) -> Result<Self> {
        let mut layout = Self::default();
        for path in SYSTEM.map(Path::new) {
            layout.add_if_there(path, Access::Read)?;
        }
        for path in DEVICES.map(Path::new) {
            layout.add_if_there(path, Access::Device)?;
        }
        for path in readable {
            layout.add(path, Access::Read).map_err(|error| refused(path, &error))?;
        }
        for path in writable {
            layout.add(path, Access::Write).map_err(|error| refused(path, &error))?;
        }
        layout.remove_nested();
        Ok(layout)
    }

    /// A working folder, as it is in the sandbox.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not there.
    pub(super) fn working_folder(&self, folder: &Path) -> Result<PathBuf> {
        let place = resolve(folder).map_err(|error| refused(folder, &error))?.place;
        let is_there =
            place == Path::new("/") || place.ancestors().any(|around| self.places.contains_key(around));
        if is_there {
            return Ok(place);
        }
        Err(Error::invalid(format!(
            "a program in a sandbox may not read its working folder \"{}\"",
            folder.display()
        )))
    }

    /// Adds a path of the system, unless this user's programs could not reach it anyway.
    fn add_if_there(&mut self, path: &Path, access: Access) -> Result<()> {
        use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
        match self.add(path, access) {
            Err(error) if [NotFound, NotADirectory, PermissionDenied].contains(&error.kind()) => Ok(()),
            other => other.map_err(|error| refused(path, &error)),
        }
    }

    /// Adds a path, and the links on the way.
    fn add(&mut self, path: &Path, access: Access) -> io::Result<()> {
        let Resolved { place, links, crossed } = resolve(path)?;
        if place == Path::new("/") {
            let message = "the root of the file system cannot be given to a sandbox; use a folder below it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.links.extend(links);
        self.crossed.extend(crossed);
        let present = self.places.entry(place).or_insert(access);
        *present = access.max(*present);
        Ok(())
    }

    /// Removes what a folder contains that has the same access, or a greater one.
    fn remove_nested(&mut self) {
        let places = self.places.clone();
        self.places.retain(|path, access| {
            let around = path.ancestors().skip(1).find_map(|folder| places.get(folder));
            around.is_none_or(|around| *around < *access)
        });
        let is_inside = |path: &Path| path.ancestors().any(|folder| places.contains_key(folder));
        self.links.retain(|path, _| !is_inside(path));
        self.crossed.retain(|path| !is_inside(path));
    }

    /// The file system of the sandbox.
    ///
    /// # Errors
    /// `InvalidArgument` for a path with a zero byte.
    pub(super) fn root(&self, shows_machine: bool) -> Result<Root> {
        let mut root = Root::new(shows_machine);
        let mut made = BTreeSet::new();
        for (path, target) in &self.links {
            make_parents(&mut root, &mut made, path)?;
            root.add_link(&c_path(target)?, &c_path(relative(path))?);
        }
        // A folder comes before what is in it.
        for (path, access) in &self.places {
            let is_inside = path.ancestors().skip(1).any(|folder| self.places.contains_key(folder));
            if !is_inside {
                make_parents(&mut root, &mut made, path)?;
            }
            root.add_place(&c_path(path)?, &c_path(relative(path))?, (path.is_dir(), !is_inside), *access);
        }
        let own = [SCRATCH, "/proc"].map(Path::new);
        for folder in self.crossed.iter().map(PathBuf::as_path).chain(own) {
            make_parents(&mut root, &mut made, &folder.join("x"))?;
        }
        Ok(root)
    }
}

fn refused(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("a sandbox cannot have \"{}\": {error}", path.display()))
}

/// A path below the root, as one below the sandbox's root before it is one.
fn relative(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

fn make_parents(root: &mut Root, made: &mut BTreeSet<PathBuf>, path: &Path) -> Result<()> {
    let mut missing: Vec<&Path> =
        path.ancestors().skip(1).take_while(|folder| *folder != Path::new("/")).collect();
    missing.reverse();
    for folder in missing {
        if made.insert(folder.to_owned()) {
            root.add_folder(&c_path(relative(folder))?);
        }
    }
    Ok(())
}

/// A path without symbolic links and `..`.
struct Resolved {
    place: PathBuf,
    /// The links that were followed, with their targets.
    links: Vec<(PathBuf, PathBuf)>,
    /// The folders that `..` has left.
    crossed: Vec<PathBuf>,
}

fn resolve(path: &Path) -> io::Result<Resolved> {
    let path = std::path::absolute(path)?;
    let mut left: VecDeque<OsString> = words(&path);
    let (mut place, mut links, mut crossed) = (PathBuf::from("/"), Vec::new(), Vec::new());
    while let Some(word) = left.pop_front() {
        if word == ".." {
            crossed.push(place.clone());
            place.pop();
            continue;
        }
        let next = place.join(&word);
        if !next.symlink_metadata()?.is_symlink() {
            place = next;
            continue;
        }
        if links.len() == MAX_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = next.read_link()?;
        if target.is_absolute() {
            place = PathBuf::from("/");
        }
        for word in words(&target).into_iter().rev() {
            left.push_front(word);
        }
        links.push((next, target));
    }
    Ok(Resolved { place, links, crossed })
}

fn words(path: &Path) -> VecDeque<OsString> {
    let words = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    words.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
#[allow(unsafe_code, reason = "a thread acts as another user")]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn links_are_followed_and_told() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        symlink("a/b", folder.join("near")).unwrap();
        symlink(folder.join("near/../c"), folder.join("far")).unwrap();
        symlink("loop", folder.join("loop")).unwrap();
        std::fs::create_dir(folder.join("a/c")).unwrap();
        let Resolved { place, links, crossed } = resolve(&folder.join("far")).unwrap();
        assert_eq!(place, folder.join("a/c"), "`..` is that of the link's target");
        assert_eq!((links.len(), crossed), (2, vec![folder.join("a/b")]));
        let error = |name| resolve(&folder.join(name)).err().unwrap();
        assert_eq!(error("loop").raw_os_error(), Some(libc::ELOOP));
        assert_eq!(error("none").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_a_folder_contains_is_not_added_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (read, nested, written) = (folder.clone(), folder.join("nested"), folder.join("written"));
        std::fs::create_dir(&nested).unwrap();
        std::fs::create_dir(&written).unwrap();
        let layout =
            Layout::new(&[read.clone(), nested.clone(), "/usr/lib".into()], std::slice::from_ref(&written))
                .unwrap();
        assert_eq!(layout.places.get(&read), Some(&Access::Read));
        assert_eq!(layout.places.get(&written), Some(&Access::Write));
        assert!(!layout.places.contains_key(&nested) && !layout.places.contains_key(Path::new("/usr/lib")));
    }

    #[test]
    fn a_program_works_in_a_folder_that_it_was_given() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        let layout = Layout::new(&[folder.path().join("in")], &[]).unwrap();
        for inside in [Path::new("/"), Path::new("/usr/lib"), &folder.path().join("in")] {
            layout.working_folder(inside).unwrap();
        }
        let error = layout.working_folder(folder.path()).unwrap_err();
        assert!(error.message().contains("working folder"), "{error}");
    }

    #[test]
    fn places_of_the_system_that_cannot_be_reached_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (closed, file) = (folder.join("closed"), folder.join("file"));
        std::fs::create_dir_all(closed.join("rh")).unwrap();
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        let inside = closed.join("rh");
        let unreachable = [inside.clone(), file.join("rh"), folder.join("missing/rh")];
        let as_user = move || {
            // For file accesses, this thread is an ordinary user's, whoever runs the test.
            // SAFETY: only changes an attribute of this thread.
            unsafe { libc::setfsuid(65_534) };
            assert!(inside.symlink_metadata().is_err(), "nobody can look into it");
            let mut layout = Layout::default();
            for path in &unreachable {
                layout.add_if_there(path, Access::Read).unwrap();
            }
            assert!(layout.places.is_empty());
        };
        std::thread::spawn(as_user).join().unwrap();
        // An ordinary user could not remove it otherwise.
        std::fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_root_and_missing_paths_are_refused() {
        for (path, word) in [("/", "root"), ("/usr/..", "root"), ("/no such file", "No such file")] {
            let error = Layout::new(&[path.into()], &[]).unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains(word), "{error}");
        }
    }
}
