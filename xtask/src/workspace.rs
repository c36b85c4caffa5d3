//! The packages and targets of the workspace, from `cargo metadata`. Names no backend.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Failure, Outcome, output};

/// The members of the workspace and its build directory.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// Folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Version of all members.
    pub(crate) version: String,
    /// Cargo's target directory.
    target: PathBuf,
    /// All members.
    packages: Vec<Package>,
}

/// One member.
#[derive(Debug)]
struct Package {
    name: String,
    /// Folder, relative to the root.
    folder: PathBuf,
    /// Kind and name of each target.
    targets: Vec<(String, String)>,
    /// As [`Target::drivers`].
    drivers: Vec<String>,
    /// Names of its direct dependencies outside the repository, of all kinds.
    dependencies: BTreeSet<String>,
}

/// A target of a package.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) package: String,
    pub(crate) name: String,
    /// Of a backend: libraries, programs and variables, one of which is found where it has devices. None for the host.
    pub(crate) drivers: Vec<String>,
}

/// A cargo profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Quick,
    Release,
    Fuzzing,
}

impl Workspace {
    /// Reads `cargo metadata`.
    pub(crate) fn read() -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let root = std::env::var_os("CARGO_MANIFEST_DIR")
            .and_then(|folder| PathBuf::from(folder).parent().map(Path::to_owned))
            .unwrap_or_else(|| root.to_owned());
        Self::read_manifest(&root.join("Cargo.toml"))
    }

    /// Reads `cargo metadata` of the workspace with this manifest.
    pub(crate) fn read_manifest(manifest: &Path) -> Outcome<Self> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1", "--manifest-path"];
        let text = output(Command::new(cargo_program()).args(arguments).arg(manifest))?;
        let metadata =
            serde_json::from_str(&text).map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
        Self::parse(&metadata).ok_or_else(|| Failure::new("cargo metadata has an unknown format"))
    }

    fn parse(metadata: &Value) -> Option<Self> {
        let root = PathBuf::from(metadata["workspace_root"].as_str()?);
        let target = PathBuf::from(metadata["target_directory"].as_str()?);
        let version = metadata["packages"][0]["version"].as_str()?.to_owned();
        let packages = metadata["packages"].as_array()?.iter().map(|package| Package::parse(package, &root));
        Some(Self { packages: packages.collect::<Option<_>>()?, root, version, target })
    }

    /// The files that git tracks, relative to the root.
    pub(crate) fn tracked_files(&self) -> Outcome<Vec<String>> {
        let listed = output(Command::new("git").current_dir(&self.root).args(["ls-files", "-z"]))?;
        Ok(listed.split_terminator('\0').map(str::to_owned).collect())
    }

    /// `cargo` in the workspace root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root).args(arguments);
        command
    }

    /// A directory for other files of the tasks, in cargo's target directory.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }

    /// The output directory of a profile.
    pub(crate) fn built(&self, profile: Profile) -> PathBuf {
        self.target.join(match profile {
            Profile::Debug => "debug",
            other => other.name(),
        })
    }

    /// A command for an executable of `profile`, which finds the backends next to it.
    pub(crate) fn executable(&self, profile: Profile, name: &str) -> Command {
        Command::new(self.built(profile).join(name))
    }

    /// The backends: dynamic libraries whose name the loader recognises.
    pub(crate) fn backends(&self) -> Vec<Target> {
        self.targets("cdylib").into_iter().filter(|target| target.backend().is_some()).collect()
    }

    /// The backends for real devices: those outside `tests`.
    pub(crate) fn device_backends(&self) -> Vec<Target> {
        let in_tests =
            |name: &str| self.packages.iter().any(|p| p.name == name && p.folder.starts_with("tests"));
        self.backends().into_iter().filter(|backend| !in_tests(&backend.package)).collect()
    }

    /// The direct dependencies outside the repository.
    pub(crate) fn dependencies(&self) -> BTreeSet<String> {
        self.packages.iter().flat_map(|package| package.dependencies.iter().cloned()).collect()
    }

    /// Targets of one kind: `bin`, `example`, `bench`, `cdylib`.
    pub(crate) fn targets(&self, kind: &str) -> Vec<Target> {
        let mut found = Vec::new();
        for package in &self.packages {
            let matching = package.targets.iter().filter(|(of, _)| of == kind);
            found.extend(matching.map(|(_, name)| Target {
                package: package.name.clone(),
                name: name.clone(),
                drivers: package.drivers.clone(),
            }));
        }
        found
    }
}

impl Profile {
    /// What cargo calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Debug => "dev",
            Self::Quick => "quick",
            Self::Release => "release",
            Self::Fuzzing => "fuzzing",
        }
    }
}

impl Target {
    /// File name of a dynamic library.
    pub(crate) fn library(&self) -> String {
        library_file(&self.name)
    }

    /// Name of the backend in a library called `runtime_<name>`.
    pub(crate) fn backend(&self) -> Option<&str> {
        self.name.strip_prefix("runtime_")
    }
}

impl Package {
    fn parse(package: &Value, root: &Path) -> Option<Self> {
        let folder = Path::new(package["manifest_path"].as_str()?).parent()?;
        let mut targets = Vec::new();
        for target in package["targets"].as_array()? {
            // An example may be a library, which cannot be run.
            let is_library =
                target["crate_types"].as_array().is_some_and(|types| !types.contains(&"bin".into()));
            if is_library && target["kind"][0] == "example" {
                continue;
            }
            for kind in target["kind"].as_array()? {
                targets.push((kind.as_str()?.to_owned(), target["name"].as_str()?.to_owned()));
            }
        }
        let folder = folder.strip_prefix(root).unwrap_or(folder).to_owned();
        let external = package["dependencies"].as_array()?.iter().filter(|one| one["path"].is_null());
        let dependencies = external.filter_map(|one| one["name"].as_str()).map(str::to_owned).collect();
        let drivers = package["metadata"]["runtime"]["drivers"].as_array().into_iter().flatten();
        let drivers = drivers.filter_map(Value::as_str).map(str::to_owned).collect();
        Some(Self { name: package["name"].as_str()?.to_owned(), folder, targets, drivers, dependencies })
    }
}

/// File name of the dynamic library that a target of this name builds.
pub(crate) fn library_file(target: &str) -> String {
    let name = target.replace('-', "_");
    format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

fn cargo_program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace() -> Workspace {
        let member = |folder: &str, name: &str, kinds: &[&str]| {
            json!({"name": name, "version": "0.1.0", "manifest_path": format!("/w/{folder}/Cargo.toml"),
                "dependencies": [{"name": "far", "path": null}, {"name": "near", "path": "/w/near"}],
                   "targets": [{"kind": kinds, "name": name.trim_end_matches("-plugin").replace('-', "_")}]})
        };
        Workspace::parse(&json!({"workspace_root": "/w", "target_directory": "/w/target", "packages": [
            member("runtime-host", "runtime-host", &["lib"]),
            member("runtime-host/plugin", "runtime-host-plugin", &["cdylib"]),
            member("tests/null/plugin", "runtime-null-plugin", &["cdylib"]),
            member("runtime-core", "runtime-core", &["lib"]),
            member("tests/interop", "interop", &["cdylib"]),
        ]}))
        .unwrap()
    }

    #[test]
    fn backends_are_recognised_by_library_name() {
        let names: Vec<_> = workspace().backends().into_iter().map(|backend| backend.package).collect();
        assert_eq!(names, ["runtime-host-plugin", "runtime-null-plugin"]);
    }

    #[test]
    fn backends_in_tests_are_not_device_backends() {
        let backends = workspace().device_backends();
        assert_eq!(backends.len(), 1);
        assert_eq!(backends[0].backend(), Some("host"));
        assert!(backends[0].library().contains("runtime_host"));
    }

    #[test]
    fn an_example_that_is_a_library_is_not_run() {
        let target = |name: &str, of: &str| json!({"kind": ["example"], "crate_types": [of], "name": name});
        let package = json!({"name": "p", "manifest_path": "/w/p/Cargo.toml", "dependencies": [],
                             "targets": [target("run", "bin"), target("load", "cdylib")]});
        let package = Package::parse(&package, Path::new("/w")).unwrap();
        assert_eq!(package.targets, [("example".to_owned(), "run".to_owned())]);
    }
}
