//! Fake machines for unit tests: a root with a driver's tree, firmware and tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::environment::Environment;

/// A temporary root.
#[derive(Debug)]
pub(crate) struct FakeRoot(TempDir);

impl FakeRoot {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Writes a shell script, and returns its path. Another process writes it: a child that another thread starts meanwhile would
    /// inherit this one's descriptor, and a file that is open for writing cannot be executed.
    pub(crate) fn tool(&self, name: &str, script: &str) -> PathBuf {
        let path = self.path().join(name);
        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        let status =
            Command::new("install").args(["-D", "-m", "755"]).arg(text.path()).arg(&path).status().unwrap();
        assert!(status.success());
        path
    }

    /// A loaded driver without boards.
    pub(crate) fn driver(&self) -> &Self {
        self.write("mppa/version", "5.0.0\n")
    }

    /// A board with `chips` chips.
    pub(crate) fn board(&self, number: u32, chips: u32) -> &Self {
        let serial = format!("S{number}\n");
        for (name, text) in
            [("archver", "kv3-2\n"), ("type", "K300\n"), ("revision", "B1\n"), ("serial", &serial)]
        {
            self.write(&format!("mppa/board{number}/{name}"), text);
        }
        for chip in 0..chips {
            let clocks: String = (0..5).map(|cluster| format!("cluster{cluster} : 1000000000\n")).collect();
            self.write(&format!("mppa/board{number}/mppa{chip}/freq"), &clocks);
        }
        self
    }

    /// Variables of a process on this machine, without an SDK.
    pub(crate) fn environment(&self, more: &[(&str, &str)]) -> Environment {
        let root = self.path().to_str().unwrap();
        let bin = self.path().join("bin");
        let ours = [("RUNTIME_MPPA_ROOT", root), ("PATH", bin.to_str().unwrap())];
        ours.into_iter().chain(more.iter().copied()).collect()
    }
}
