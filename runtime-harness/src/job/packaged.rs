//! Kernels of a package: finds the kernel file that a spec means, and loads what fits a device best.

use runtime_core::backend::did_you_mean;
use runtime_core::{CodeFormat, CommonRuntime, Error, ErrorKind, Kernel, Options, Result};
use runtime_package::{Choice, Package, PackagedCode, PackagedKernel, Taken};
use serde::{Deserialize, Serialize};

use crate::spec::{KernelSource, Specialise};

/// What a device took from a package, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageChoice {
    /// Name of the kernel file in the package.
    pub file: String,
    /// The target that the code was compiled for; `None` for the fallback.
    pub target: Option<String>,
    /// Format of the code.
    pub format: String,
    /// Why it was taken: a sentence for people.
    pub why: String,
    /// The native code that was not taken.
    pub passed_over: Vec<PassedOver>,
}

/// Native code that was not taken from a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOver {
    /// The target that it was compiled for.
    pub target: String,
    /// Why.
    pub reason: String,
}

impl PackageChoice {
    fn new(file: &str, choice: &Choice) -> Self {
        let target = match &choice.taken {
            Taken::Code { target, .. } => Some(target.clone()),
            Taken::Fallback(_) => None,
        };
        let passed_over = choice
            .passed_over
            .iter()
            .map(|passed| PassedOver { target: passed.target.clone(), reason: passed.reason.to_string() });
        Self {
            file: file.to_owned(),
            target,
            format: choice.source.format().to_string(),
            why: choice.why.clone(),
            passed_over: passed_over.collect(),
        }
    }
}

/// What kind of code a device takes of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackagedKind {
    /// A portable kernel.
    Portable,
    /// Code that was compiled from a portable kernel, which is called in another way than native code.
    Lowered,
    /// Native code, compiled or not.
    Native,
}

/// What a device takes of a package.
struct Chosen {
    package: Package,
    /// Name of the kernel file.
    file: String,
    choice: Choice,
    /// The code that was compiled for the device; `None` for the fallback.
    code: Option<PackagedCode>,
}

impl Chosen {
    /// Chooses what a device takes of `code`, which is a package.
    fn new(device: &dyn CommonRuntime, code: &KernelSource, specialise: &Specialise) -> Result<Self> {
        let (package, file) = open(code, specialise)?;
        let choice = choose(&package, device, &file)?;
        let format = choice.source.format();
        let code = match &choice.taken {
            Taken::Code { target, .. } => {
                let is_taken = |code: &&PackagedCode| code.target == *target && code.file.format == *format;
                package.kernel(&file)?.codes.iter().find(is_taken).cloned()
            }
            Taken::Fallback(_) => None,
        };
        Ok(Self { package, file, choice, code })
    }

    fn kind(&self) -> PackagedKind {
        let is_lowered = self.code.as_ref().is_some_and(|code| code.lowered.is_some());
        match &self.choice.taken {
            Taken::Fallback(format) if *format == CodeFormat::WGSL => PackagedKind::Portable,
            _ if is_lowered || *self.choice.source.format() == CodeFormat::WGSL => PackagedKind::Lowered,
            _ => PackagedKind::Native,
        }
    }
}

/// What kind of code a device takes of `code`, which is a package.
///
/// # Errors
/// As [`load`].
pub(crate) fn packaged_kind(
    device: &dyn CommonRuntime,
    code: &KernelSource,
    specialise: &Specialise,
) -> Result<PackagedKind> {
    Ok(Chosen::new(device, code, specialise)?.kind())
}

/// The hash of what a device takes of `code`, which is a package; `None` if nothing fits, or the package is damaged.
pub(super) fn chosen_sha256(
    device: &dyn CommonRuntime,
    code: &KernelSource,
    specialise: &Specialise,
) -> Option<String> {
    let Chosen { package, file, code, .. } = Chosen::new(device, code, specialise).ok()?;
    match code {
        Some(code) => Some(code.file.sha256),
        None => Some(package.kernel(&file).ok()?.fallback.as_ref()?.file.sha256.clone()),
    }
}

/// The shared object of the native code that a device takes of `code`, which is a package, with the options that it needs.
///
/// # Errors
/// As [`load`]; those of compiling a fallback, and of linking.
pub(crate) fn shared_object(
    device: &dyn CommonRuntime,
    code: &KernelSource,
    specialise: &Specialise,
) -> Result<(Vec<u8>, Options, PackageChoice)> {
    let Chosen { package, file, choice, code } = Chosen::new(device, code, specialise)?;
    let compiled = code.filter(|code| code.file.format == CodeFormat::SHARED_OBJECT);
    let (content, options) = match compiled {
        Some(code) => (package.read_file(&code.file)?, code.file.options),
        None => {
            let native = device.compile(&choice.source)?.native;
            (native.code, native.options)
        }
    };
    Ok((content, options, PackageChoice::new(&file, &choice)))
}

/// Loads the entry point of `code`, which is a package.
///
/// # Errors
/// `InvalidArgument` for load options, for an ambiguous entry point and for a damaged package; `NotFound` for an unknown kernel
/// file or entry point; `Unsupported` for specialisation, and if nothing in the package fits the device; `Io`; any error of the driver.
pub(super) fn load(
    device: &dyn CommonRuntime,
    code: &KernelSource,
    specialise: &Specialise,
) -> Result<(Kernel, PackageChoice)> {
    let (package, file) = open(code, specialise)?;
    #[allow(unsafe_code, reason = "loads the code of a package, as the user asked for")]
    // SAFETY: whoever made the job has vouched for its code and argument list.
    let (module, choice) = unsafe { package.load(device, &file) }?;
    Ok((module.kernel(&code.entry)?, PackageChoice::new(&file, &choice)))
}

/// Opens a package, and finds the kernel file that `code` means.
fn open(code: &KernelSource, specialise: &Specialise) -> Result<(Package, String)> {
    if !code.options.is_empty() {
        return Err(Error::invalid(
            "the code of a package has the load options that it was compiled with; give them to `runtime compile`",
        ));
    }
    if !specialise.constants.is_empty() || specialise.element.is_some() {
        let message =
            "[specialise] is not supported for a package; specialise its kernels with `runtime compile`";
        return Err(Error::unsupported(message));
    }
    let package = Package::open(&code.path)?;
    let file = find(package.kernels(), code)?.name.clone();
    Ok((package, file))
}

#[allow(unsafe_code, reason = "names the code of a package, which is not loaded here")]
fn choose(package: &Package, device: &dyn CommonRuntime, file: &str) -> Result<Choice> {
    // SAFETY: nothing is loaded.
    unsafe { package.choose(device, file) }
}

/// Whether a device can take code from a package; also `true` if that cannot be found out, so that loading tells why.
pub fn fits(device: &dyn CommonRuntime, code: &KernelSource) -> bool {
    let choose = || {
        let package = Package::open(&code.path)?;
        choose(&package, device, &find(package.kernels(), code)?.name)
    };
    !choose().is_err_and(|error| error.kind() == ErrorKind::Unsupported)
}

/// The kernel file that has the entry point of `code`.
fn find<'p>(kernels: &'p [PackagedKernel], code: &KernelSource) -> Result<&'p PackagedKernel> {
    let not_found =
        |message: String| Error::new(ErrorKind::NotFound, format!("{}: {message}", code.path.display()));
    if let Some(name) = &code.file {
        let names: Vec<_> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let found = kernels.iter().find(|kernel| kernel.name == *name);
        return found.ok_or_else(|| {
            not_found(format!("no kernel file \"{name}\" in the package; {}", did_you_mean(name, &names)))
        });
    }
    let with_entry = |kernel: &&PackagedKernel| kernel.entries.contains(&code.entry);
    let mut found: Vec<_> = kernels.iter().filter(with_entry).collect();
    if found.is_empty() {
        // The entry points of a file that was compiled for no target are unknown.
        found = kernels.iter().filter(|kernel| kernel.entries.is_empty()).collect();
    }
    let names = |kernels: &[&PackagedKernel]| {
        kernels.iter().map(|kernel| format!("\"{}\"", kernel.name)).collect::<Vec<_>>().join(", ")
    };
    match found[..] {
        [kernel] => Ok(kernel),
        [] => {
            let entries: Vec<_> =
                kernels.iter().flat_map(|kernel| &kernel.entries).map(String::as_str).collect();
            let hint = did_you_mean(&code.entry, &entries);
            Err(not_found(format!("no entry point \"{}\" in the package; {hint}", code.entry)))
        }
        _ => Err(Error::invalid(format!(
            "{}: several kernel files may have the entry point \"{}\": {}; name one with `file`",
            code.path.display(),
            code.entry,
            names(&found)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packaged(name: &str, entries: &[&str]) -> PackagedKernel {
        PackagedKernel {
            name: name.to_owned(),
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            codes: Vec::new(),
            fallback: None,
        }
    }

    fn code(file: Option<&str>, entry: &str) -> KernelSource {
        KernelSource {
            text: None,
            path: "k.rtpkg".into(),
            entry: entry.to_owned(),
            format: KernelSource::PACKAGE.into(),
            file: file.map(str::to_owned),
            options: Options::new(),
        }
    }

    #[test]
    fn the_file_with_the_entry_point_is_found() {
        let kernels =
            [packaged("sums", &["add", "scale"]), packaged("blas", &["scale"]), packaged("raw", &[])];
        let found = |file, entry: &str| find(&kernels, &code(file, entry)).map(|kernel| kernel.name.as_str());
        assert_eq!(found(None, "add").unwrap(), "sums");
        assert_eq!(found(Some("blas"), "scale").unwrap(), "blas");
        assert_eq!(found(None, "unknown").unwrap(), "raw", "the only one whose entry points are unknown");
        let error = found(None, "scale").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("\"sums\", \"blas\"; name one with `file`"), "{error}");
        let error = found(Some("sum"), "add").unwrap_err();
        assert!(error.message().contains("did you mean \"sums\"?"), "{error}");
        let error = find(&kernels[..2], &code(None, "ad")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("did you mean \"add\"?"), "{error}");
    }
}
