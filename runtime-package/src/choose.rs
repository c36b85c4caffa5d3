//! What a device takes from a package, and why.

#![allow(unsafe_code, reason = "loads native code for which the caller is responsible")]

use std::fmt;

use runtime_core::code::{Compiled, CompiledCode, Fit};
use runtime_core::{
    CodeFormat, CommonRuntime, Error, ErrorKind, Module, ModuleSource, OptionValue, Options, Result,
};

use crate::manifest::{CodeFile, PackagedCode, PackagedKernel};
use crate::package::{Package, is_portable};

/// What was taken from a package for a device.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The code.
    pub source: ModuleSource,
    /// What it is.
    pub taken: Taken,
    /// Why it was taken: a sentence for people.
    pub why: String,
    /// Everything that was not taken, in the order of the package.
    pub passed_over: Vec<PassedOver>,
}

/// What was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Native code.
    Code {
        /// The target that it was compiled for.
        target: String,
        /// How it fits; `None` if the backend cannot say, and the code is for the device's architecture.
        fit: Option<Fit>,
    },
    /// The fallback, which the device compiles.
    Fallback(CodeFormat),
}

/// Native code that was not taken.
#[derive(Clone, Debug)]
pub struct PassedOver {
    /// The target that it was compiled for.
    pub target: String,
    /// Why.
    pub reason: Reason,
}

/// Why native code was not taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// It is for another backend.
    OtherTarget,
    /// The device does not accept its format.
    Format(CodeFormat),
    /// It does not run on the device, or not with this driver.
    Unfit,
    /// The backend cannot say whether it fits, and the architectures differ: that of the code, if known, and the device's.
    OtherArchitecture(Option<String>, Option<String>),
    /// Other code fits better, or as well and comes first.
    Outranked,
    /// The device refused to load it.
    Refused(Error),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |arch: &Option<String>| arch.clone().unwrap_or_else(|| "an unknown one".to_owned());
        match self {
            Self::OtherTarget => f.write_str("it is for another backend"),
            Self::Format(format) => write!(f, "the device does not accept the format \"{format}\""),
            Self::Unfit => f.write_str("it does not run on this device with its driver"),
            Self::OtherArchitecture(code, device) => {
                write!(f, "its architecture is {}, that of the device {}", known(code), known(device))
            }
            Self::Outranked => f.write_str("other code fits better, or comes first"),
            Self::Refused(error) => write!(f, "the device refused it: {error}"),
        }
    }
}

/// Code that a device can take.
struct Candidate {
    source: ModuleSource,
    taken: Taken,
    why: String,
}

/// The candidates, best first, and the native code that is none.
struct Ranking {
    candidates: Vec<Candidate>,
    passed_over: Vec<PassedOver>,
}

impl Package {
    /// Chooses the code that fits a device best: native code that is optimal for it, then native code that runs on it, then the
    /// fallback.
    ///
    /// # Errors
    /// `NotFound` for an unknown kernel; `Unsupported`, with everything that was passed over, if nothing fits;
    /// `InvalidArgument` for a damaged package; `Io`; any error of the driver.
    ///
    /// # Safety
    /// As for [`ModuleSource::native`]: the caller is responsible for the code in the package.
    pub unsafe fn choose(&self, device: &dyn CommonRuntime, kernel: &str) -> Result<Choice> {
        let Ranking { candidates, mut passed_over } = self.rank(device, self.kernel(kernel)?)?;
        let mut candidates = candidates.into_iter();
        let Some(Candidate { source, taken, why }) = candidates.next() else {
            return Err(self.nothing_fits(device, kernel, &passed_over));
        };
        passed_over.extend(candidates.filter_map(outranked));
        Ok(Choice { source, taken, why, passed_over })
    }

    /// Loads the code that fits a device best, as [`Package::choose`] does. If the device refuses native code, the next best is
    /// loaded.
    ///
    /// # Errors
    /// As [`Package::choose`]; if everything is refused, the error of the last with the reasons of the others.
    ///
    /// # Safety
    /// As for [`Package::choose`].
    pub unsafe fn load(&self, device: &dyn CommonRuntime, kernel: &str) -> Result<(Module, Choice)> {
        let Ranking { candidates, mut passed_over } = self.rank(device, self.kernel(kernel)?)?;
        let mut candidates = candidates.into_iter();
        while let Some(Candidate { source, taken, why }) = candidates.next() {
            match (device.load(&source), &taken) {
                (Ok(module), _) => {
                    passed_over.extend(candidates.filter_map(outranked));
                    return Ok((module, Choice { source, taken, why, passed_over }));
                }
                (Err(error), Taken::Code { target, .. }) if is_refusal(&error) => {
                    passed_over.push(PassedOver { target: target.clone(), reason: Reason::Refused(error) });
                }
                (Err(error), _) if passed_over.is_empty() => return Err(error),
                (Err(error), _) => return Err(error.with_note(list(&passed_over))),
            }
        }
        Err(self.nothing_fits(device, kernel, &passed_over))
    }

    fn rank(&self, device: &dyn CommonRuntime, kernel: &PackagedKernel) -> Result<Ranking> {
        let (mut ranked, mut passed_over) = (Vec::new(), Vec::new());
        for code in &kernel.codes {
            match self.judge(device, code)? {
                Ok((fit, source)) => ranked.push((fit, code, source)),
                Err(reason) => passed_over.push(PassedOver { target: code.target.clone(), reason }),
            }
        }
        // A stable sort: among equals, the first of the package.
        ranked.sort_by_key(|(fit, ..)| *fit != Some(Fit::Optimal));
        let mut candidates: Vec<_> =
            ranked.into_iter().map(|(fit, code, source)| candidate(device, fit, code, source)).collect();
        if let Some(fallback) = &kernel.fallback
            && device.info().accepts(&fallback.file.format)
        {
            candidates.push(Candidate {
                source: self.fallback_source(&fallback.file)?,
                taken: Taken::Fallback(fallback.file.format.clone()),
                why: format!(
                    "no native code of the package was taken, so {} compiles its {} code",
                    device.device_id(),
                    fallback.file.format
                ),
            });
        }
        Ok(Ranking { candidates, passed_over })
    }

    /// How code fits the device, with its source; or why it does not.
    fn judge(
        &self,
        device: &dyn CommonRuntime,
        code: &PackagedCode,
    ) -> Result<std::result::Result<(Option<Fit>, ModuleSource), Reason>> {
        if code.target.split(':').next() != Some(device.target_name()) {
            return Ok(Err(Reason::OtherTarget));
        }
        if !device.info().accepts(&code.file.format) || is_portable(&code.file.format) {
            return Ok(Err(Reason::Format(code.file.format.clone())));
        }
        let source = self.source(code)?;
        Ok(match device.fits(&source) {
            Ok(Fit::Unsupported) => Err(Reason::Unfit),
            Ok(fit) => Ok((Some(fit), source)),
            // The backend cannot say.
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                match code.arch.is_some() && code.arch.as_deref() == device.device_arch() {
                    true => Ok((None, source)),
                    false => {
                        let device = device.device_arch().map(str::to_owned);
                        Err(Reason::OtherArchitecture(code.arch.clone(), device))
                    }
                }
            }
            Err(error) if is_refusal(&error) => Err(Reason::Refused(error)),
            Err(error) => return Err(error),
        })
    }

    fn source(&self, code: &PackagedCode) -> Result<ModuleSource> {
        let native = CompiledCode {
            format: code.file.format.clone(),
            code: self.read_file(&code.file)?,
            log: String::new(),
            options: code.file.options.clone(),
            kernels: code.resources.clone(),
        };
        // SAFETY: the caller of `choose` or `load` is responsible for the code.
        Ok(unsafe { ModuleSource::compiled(Compiled { native, lowered: code.lowered.clone() }) })
    }

    fn fallback_source(&self, file: &CodeFile) -> Result<ModuleSource> {
        let content = self.read_file(file)?;
        let source = if is_portable(&file.format) {
            let text = std::str::from_utf8(&content).map_err(|_| {
                Error::invalid(format!("{}: file \"{}\" is not UTF-8 text", self.path(), file.name))
            })?;
            ModuleSource::wgsl(text)
        } else {
            // SAFETY: the caller of `choose` or `load` is responsible for the code.
            unsafe { ModuleSource::native(file.format.clone(), content) }
        };
        Ok(with_options(source, &file.options))
    }

    fn nothing_fits(&self, device: &dyn CommonRuntime, kernel: &str, passed_over: &[PassedOver]) -> Error {
        let mut message =
            format!("{} has no code of \"{kernel}\" that {} can load", self.path(), device.device_id());
        let fallback = self
            .kernels()
            .iter()
            .find(|other| other.name == kernel)
            .and_then(|kernel| kernel.fallback.as_ref());
        if let Some(fallback) = fallback
            && !device.info().accepts(&fallback.file.format)
        {
            message += &format!("; it does not accept the fallback, which is \"{}\"", fallback.file.format);
            if is_portable(&fallback.file.format) {
                message += " (is its lowering registered, with RuntimeBuilder::with_lowering?)";
            }
        }
        let error = Error::new(ErrorKind::Unsupported, message);
        if passed_over.is_empty() { error } else { error.with_note(list(passed_over)) }
    }
}

/// Adds the options of a list.
pub(crate) fn with_options(source: ModuleSource, options: &Options) -> ModuleSource {
    options.iter().fold(source, |source, (key, value)| match value {
        // SAFETY: the caller of `choose` or `load` is responsible for the code; code that is only compiled does nothing.
        OptionValue::Flag(true) if key == "unchecked" && is_portable(source.format()) => unsafe {
            source.unchecked()
        },
        _ => source.option(key, value.clone()),
    })
}

fn candidate(
    device: &dyn CommonRuntime,
    fit: Option<Fit>,
    code: &PackagedCode,
    source: ModuleSource,
) -> Candidate {
    let (target, device) = (code.target.clone(), device.device_id());
    let why = match fit {
        Some(Fit::Optimal) => format!("code for {target} is optimal for {device}"),
        Some(_) => {
            format!("code for {target} runs on {device}; code that is compiled for it could be faster")
        }
        None => format!("code for {target} is for the architecture of {device}"),
    };
    Candidate { source, taken: Taken::Code { target, fit }, why }
}

fn outranked(candidate: Candidate) -> Option<PassedOver> {
    match candidate.taken {
        Taken::Code { target, .. } => Some(PassedOver { target, reason: Reason::Outranked }),
        Taken::Fallback(_) => None,
    }
}

/// Whether an error is about the code. Others, such as a lost device, would meet other code as well.
fn is_refusal(error: &Error) -> bool {
    use ErrorKind::{
        AbiMismatch, CompileFailed, Driver, InvalidArgument, NotFound, OutOfResources, Unsupported,
    };
    matches!(
        error.kind(),
        AbiMismatch | CompileFailed | Driver | InvalidArgument | NotFound | OutOfResources | Unsupported
    )
}

/// What was passed over, in one line.
fn list(passed_over: &[PassedOver]) -> String {
    let one = |passed: &PassedOver| format!("{}: {}", passed.target, passed.reason);
    passed_over.iter().map(one).collect::<Vec<_>>().join("; ")
}
