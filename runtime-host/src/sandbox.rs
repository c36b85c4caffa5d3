//! What a compiler may read in a sandbox: the folders of the code, and what its options name.

use std::path::{Path, PathBuf};

use runtime_core::Options;
use runtime_core::backend::Sandbox;

/// The option that names more folders of the code: those of a spec.
pub(crate) const READABLE: &str = "readable";

/// A sandbox for compiling code of `folder` with these options, in the folder `private`.
pub(crate) fn for_code(folder: &Path, private: &Path, options: &Options) -> Sandbox {
    let mut paths = vec![folder.to_owned()];
    for key in [READABLE, "include", "source", "libraries"] {
        paths.extend(options.texts(key).filter(|text| !text.is_empty()).map(|text| folder.join(text)));
    }
    // A further file includes those beside it. Beside a library may be anything: a flag names the folder of others that it needs.
    let sources: Vec<PathBuf> = options.texts("source").map(|file| folder.join(file)).collect();
    paths.extend(
        sources.iter().filter(|file| file.is_file()).filter_map(|file| Some(file.parent()?.to_owned())),
    );
    let flags = options.texts("flags").flat_map(str::split_whitespace);
    Sandbox::new().write(private).read_existing(paths).flags(flags, folder)
}
