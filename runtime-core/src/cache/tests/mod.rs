//! Tests of the code cache.

#![cfg(not(miri))]

mod bounds;
mod dumps;
mod entries;
mod layers;
mod measure;
mod processes;
mod shared;
mod threads;
mod trust;
mod warnings;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::store::path_of;
use super::*;
use crate::model::access::ArgKind;
use crate::model::kernel_info::{KernelInfo, Param};
use crate::model::lowering::{Coarsening, LoweredKernel, LoweredParam};
use crate::{Access, CodeFormat, DType, Error, ErrorKind, Options};

/// A cache folder of its own.
struct Fixture {
    folder: tempfile::TempDir,
    compiled: AtomicUsize,
}

impl Fixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), compiled: AtomicUsize::new(0) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn options(&self) -> CacheOptions {
        CacheOptions { folder: Some(self.path().to_owned()), ..CacheOptions::default() }
    }

    /// A cache as another process would open it.
    fn cache(&self) -> CodeCache {
        CodeCache::with_options(self.options())
    }

    fn file(&self, key: &Key) -> PathBuf {
        path_of(self.path(), &key.name())
    }

    /// How often something was compiled.
    fn compiled(&self) -> usize {
        self.compiled.load(Ordering::Relaxed)
    }

    fn fill(&self, cache: &CodeCache, numbers: std::ops::Range<u32>) {
        for number in numbers {
            self.get(cache, number);
        }
    }

    /// Obtains `code(number)`, which must be the result.
    fn get(&self, cache: &CodeCache, number: u32) -> CacheOutcome {
        let (found, outcome) = cache
            .get(&key(number), || {
                self.compiled.fetch_add(1, Ordering::Relaxed);
                Ok(code(number))
            })
            .unwrap();
        assert_eq!(*found, code(number));
        outcome
    }
}

fn key(number: u32) -> Key {
    let mut builder = KeyBuilder::new();
    builder.part("format", b"cubin").part("arch", b"sm_90").part("source", &number.to_le_bytes());
    builder.finish()
}

/// Code with every field set.
fn code(number: u32) -> CachedCode {
    let param =
        |kind, access, dtype| Param { kind, access: Some(access), strided: dtype == Some(DType::F32), dtype };
    let tensor = param(ArgKind::Tensor, Access::ReadWrite, Some(DType::F32));
    let scalar = param(ArgKind::Scalar, Access::Read, None);
    CachedCode {
        format: CodeFormat::CUBIN,
        code: number.to_le_bytes().repeat(500),
        log: "warning: “odd”".to_owned(),
        options: Options::new().with("a", true).with("b", -3).with("c", 0.5).with("d", "text"),
        lowered: Some(vec![LoweredKernel {
            name: "scale".to_owned(),
            symbol: "scale_0".to_owned(),
            params: [tensor, scalar]
                .map(|param| LoweredParam { param, min_bytes: 4, alignment_bytes: 16 })
                .to_vec(),
            group_size: [64, 2, 1],
            work_items: Some([16, 1, 1]),
            shared_bytes: 1024,
            tensor_sizes: true,
            coarsening: Some(Coarsening { factor: 4, min_groups: 1 << 40, min_groups_x: 32 }),
            reports_on: Some("scale.wgsl".to_owned()),
        }]),
        resources: vec![
            ("unknown".to_owned(), KernelInfo::default()),
            (
                "scale_0".to_owned(),
                KernelInfo {
                    registers: Some(1),
                    spilled_bytes: Some(2),
                    shared_bytes: Some(3),
                    max_group_items: Some(4),
                    group_size: Some([5, 6, 7]),
                    params: Some(vec![
                        tensor,
                        param(ArgKind::Local, Access::Read, None),
                        param(ArgKind::Bytes, Access::Write, None),
                    ]),
                    binary_version: Some(8),
                    virtual_version: Some(9),
                    preferred_multiple: Some(10),
                    private_bytes: Some(11),
                },
            ),
        ],
    }
}

/// The names of all files below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => found.extend(files_below(&path)),
            path => found.push(path),
        }
    }
    found
}
