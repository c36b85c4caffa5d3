//! A runtime with a portable language, kernel files, and packages made by hand.

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::sync::Arc;

use runtime_core::backend::OptionSpec;
use runtime_core::code::{ArgKind, Param};
use runtime_core::lowering::{Lowered, LoweredKernel, LoweredParam, Lowering, PortableSource};
use runtime_core::{Access, CodeFormat, DType, DeviceInfo, Error, ErrorKind, Options, Result, Runtime};
use runtime_package::{KernelFile, Package, PackageBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Lowers `NAME BUILTIN` to a kernel of the null backend that takes a tensor, and a scalar.
#[derive(Debug)]
struct Portable;

// SAFETY: it renames a builtin of the null backend, which stays in its arguments.
unsafe impl Lowering for Portable {
    fn format(&self) -> CodeFormat {
        CodeFormat::WGSL
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![OptionSpec::module("constant", "", "NAME=VALUE")]
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        device.accepts(&"null".into()).then(|| "null".into())
    }

    fn lower(&self, source: &PortableSource<'_>, _device: &DeviceInfo) -> Result<Lowered> {
        let (name, builtin) = source
            .code
            .trim()
            .split_once(' ')
            .ok_or_else(|| Error::new(ErrorKind::CompileFailed, format!("line 1: {}", source.code)))?;
        let param = |kind, access, dtype| Param { kind, access: Some(access), strided: false, dtype };
        let prefix = source
            .options
            .texts("constant")
            .find_map(|text| text.strip_prefix("PREFIX="))
            .unwrap_or_default();
        Ok(Lowered {
            format: CodeFormat::from("null"),
            code: builtin.into(),
            options: Options::new().with("prefix", prefix),
            kernels: vec![LoweredKernel {
                name: name.to_owned(),
                symbol: format!("{prefix}{builtin}"),
                params: vec![
                    LoweredParam {
                        param: param(ArgKind::Tensor, Access::ReadWrite, Some(DType::F32)),
                        min_bytes: 8,
                        alignment_bytes: 4,
                    },
                    LoweredParam {
                        param: param(ArgKind::Scalar, Access::Read, Some(DType::F32)),
                        min_bytes: 0,
                        alignment_bytes: 1,
                    },
                ],
                group_size: [1; 3],
                work_items: None,
                shared_bytes: 0,
                tensor_sizes: false,
                coarsening: None,
                reports_on: None,
            }],
        })
    }
}

/// The null backend, with a lowering.
pub(crate) fn runtime() -> Runtime {
    Runtime::builder()
        .discover(false)
        .register(runtime_null::backend())
        .with_lowering(Arc::new(Portable))
        .build()
}

/// The null backend alone.
pub(crate) fn bare_runtime() -> Runtime {
    Runtime::builder().discover(false).register(runtime_null::backend()).build()
}

/// A folder with kernel files.
pub(crate) struct Files(TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn kernel(&self, name: &str, code: &str) -> KernelFile {
        std::fs::write(self.path(name), code).unwrap();
        KernelFile::new(self.path(name)).unwrap()
    }
}

/// A package of a portable kernel `scale` and a native one `sums`, each compiled for the null backend.
pub(crate) fn builder() -> PackageBuilder {
    let files = Files::new();
    let mut scale = files.kernel("scale.wgsl", "scale scale_f32");
    scale.options.push("constant", "PREFIX=p_");
    let mut builder = PackageBuilder::new("tests 1.0");
    builder.add(scale).unwrap();
    builder.add(files.kernel("sums.null", "add_f32\nnoop")).unwrap();
    for kernel in ["scale", "sums"] {
        builder.compile(&runtime(), kernel, "null:null").unwrap();
    }
    builder
}

/// A code file of a package that is made by hand.
pub(crate) struct Code<'a> {
    pub(crate) target: &'a str,
    pub(crate) format: &'a str,
    pub(crate) code: &'a str,
}

/// The manifest's entry for a file with this content.
pub(crate) fn file_entry(name: &str, format: &str, content: &[u8]) -> Value {
    let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "format": format, "file": name, "bytes": content.len(), "sha256": hash })
}

/// A package of one kernel, `kernel`, with these codes.
pub(crate) fn package_of(codes: &[Code<'_>], fallback: Option<(&str, &str)>) -> Package {
    let name = |at: usize| format!("kernel/{at}.bin");
    let mut files: Vec<(String, &str)> =
        codes.iter().enumerate().map(|(at, code)| (name(at), code.code)).collect();
    let entries: Vec<_> = codes
        .iter()
        .enumerate()
        .map(|(at, code)| {
            let mut entry = file_entry(&name(at), code.format, code.code.as_bytes());
            entry["target"] = json!(code.target);
            entry["arch"] = json!(code.target.split(':').nth(1));
            entry
        })
        .collect();
    let mut kernel = json!({ "name": "kernel", "codes": entries });
    if let Some((format, code)) = fallback {
        kernel["fallback"] = file_entry("kernel/source", format, code.as_bytes());
        files.push(("kernel/source".to_owned(), code));
    }
    let manifest = manifest(&json!([kernel]));
    let files = files.iter().map(|(name, code)| (name.as_str(), code.as_bytes()));
    Package::from_bytes(archive(files.chain([("manifest.json", manifest.as_bytes())]))).unwrap()
}

/// A manifest of version 1.
pub(crate) fn manifest(kernels: &Value) -> String {
    json!({ "schema": "rtpkg", "version": 1, "program": "by hand", "kernels": kernels }).to_string()
}

/// A zip archive.
pub(crate) fn archive<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}
