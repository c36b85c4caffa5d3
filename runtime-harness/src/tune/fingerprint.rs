//! A hash of everything that a measurement depends on, apart from device and settings.

use std::collections::BTreeMap;
use std::path::PathBuf;

use runtime_core::Options;
use runtime_core::backend::read_file;
use sha2::{Digest, Sha256};

use crate::describe;
use crate::spec::Spec;

/// The contents of the files that a spec uses, read once.
#[derive(Debug)]
pub(super) struct Contents {
    files: BTreeMap<PathBuf, Vec<u8>>,
    options: String,
}

impl Contents {
    /// Reads the files of a spec, of which any combination of its values uses the same.
    pub(super) fn of(spec: &Spec, options: &Options) -> Self {
        let mut files = spec.files();
        files.retain(|path| *path != spec.path);
        let read = |path: PathBuf| {
            // A file that cannot be read is noticed when it is used.
            let digest = Sha256::digest(read_file(&path).unwrap_or_default()).to_vec();
            (path, digest)
        };
        Self {
            files: files.into_iter().map(read).collect(),
            options: serde_json::Value::from(describe::options(options)).to_string(),
        }
    }

    /// A number in hexadecimal that changes with the kernel's text, its arguments, constants, options and launch, the reference
    /// and the options of the device: with all that a time depends on, apart from the device and the settings. Neither the
    /// spec's comments nor its `[tune]` table count. Files that the code includes are not known.
    pub(super) fn fingerprint(&self, spec: &Spec) -> String {
        let kernel = &spec.kernel;
        let args: Vec<_> = spec.args.iter().map(|arg| (&arg.name, &arg.kind)).collect();
        let described = format!(
            "{:?}",
            (
                (&kernel.text, &kernel.entry, &kernel.format, &kernel.file, &kernel.options),
                (args, &spec.specialise, &spec.config, spec.has_group_size),
                (&spec.cost, &spec.reference, &self.files, &self.options),
            )
        );
        Sha256::digest(described).iter().take(12).map(|byte| format!("{byte:02x}")).collect()
    }
}
