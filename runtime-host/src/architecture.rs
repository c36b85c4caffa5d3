//! The architectures that code is compiled for, and the mark in native code that names its own.
//!
//! A shared object that needs other instructions than the processor has is loaded without complaint, and ends the process
//! later. The mark makes it an error: it follows the shared object, where neither a linker nor the dynamic loader looks,
//! so any compiler will do.

use runtime_core::backend::did_you_mean;
use runtime_core::{Error, ErrorKind, Result};

use crate::{cpu_features, platform, shared_object};

/// What is in front of the architecture in a mark.
const MARK: &[u8] = b"\0runtime-host-architecture ";
/// More than the size of any mark.
const MARK_BYTES: usize = 256;
/// The micro-architecture levels of the x86-64 psABI, each of which includes the ones before.
pub(crate) const LEVELS: [&str; 4] = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"];

/// An architecture to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    /// Exactly this processor.
    Native,
    /// A level of x86-64: an index into [`LEVELS`].
    Level(usize),
    /// Every 64-bit processor of Arm.
    Aarch64,
}

impl Architecture {
    /// The architecture of this name; an empty one is this processor.
    ///
    /// # Errors
    /// `NotFound`, which lists the architectures.
    pub(crate) fn named(name: &str) -> Result<Self> {
        match name {
            "" | "native" => return Ok(Self::Native),
            "aarch64" => return Ok(Self::Aarch64),
            _ => {}
        }
        LEVELS.iter().position(|level| *level == name).map(Self::Level).ok_or_else(|| {
            let names: Vec<_> = ["native"].into_iter().chain(LEVELS).chain(["aarch64"]).collect();
            let message = format!("unknown architecture \"{name}\"; {}", did_you_mean(name, &names));
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// The compiler flag that selects it.
    pub(crate) fn flag(self) -> String {
        match self {
            Self::Native => "-march=native".to_owned(),
            Self::Level(level) => format!("-march={}", LEVELS[level]),
            Self::Aarch64 => "-march=armv8-a".to_owned(),
        }
    }

    /// The machine, as [`std::env::consts::ARCH`] names it.
    pub(crate) const fn machine(self) -> &'static str {
        match self {
            Self::Native => std::env::consts::ARCH,
            Self::Level(_) => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The architecture as [`DeviceInfo::arch`](runtime_core::DeviceInfo) names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => cpu_features::arch(&cpu_features::features()),
            Self::Level(level) => LEVELS[level],
            Self::Aarch64 => "aarch64",
        }
    }

    /// `code`, a shared object, with a mark.
    pub(crate) fn mark(self, mut code: Vec<u8>) -> Vec<u8> {
        code.extend_from_slice(MARK);
        code.extend_from_slice(self.identity().as_bytes());
        code.push(b'\n');
        code
    }

    fn identity(self) -> String {
        match self {
            Self::Native => native_identity().to_owned(),
            _ => self.name().to_owned(),
        }
    }
}

/// `native` and a hash of the processor.
fn native_identity() -> &'static str {
    static IDENTITY: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    IDENTITY.get_or_init(|| format!("native {}", blake3::hash(platform::processor().as_bytes()).to_hex()))
}

/// What a mark says of code on this processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Marked {
    /// The code has none, or was compiled for something less than this processor.
    Runs,
    /// It was compiled for exactly this processor, or its level.
    Best,
    /// It needs what this processor does not have; why.
    Refused(String),
}

impl Marked {
    /// Reads the mark of `code`, a shared object for this machine.
    pub(crate) fn of(code: &[u8]) -> Self {
        Self::on(code, Architecture::Native.name())
    }

    /// As [`Marked::of`], on a processor of this level.
    fn on(code: &[u8], own: &str) -> Self {
        let end = &code[code.len().saturating_sub(MARK_BYTES)..];
        let mark = end.windows(MARK.len()).rposition(|window| window == MARK);
        let level = |name: &str| LEVELS.iter().position(|level| *level == name);
        let Some(mark) = mark.map(|at| String::from_utf8_lossy(&end[at + MARK.len()..])) else {
            let needed = shared_object::needed_level(code).zip(level(own));
            return match needed.filter(|(needed, own)| needed > own) {
                Some((needed, _)) => Self::beyond(LEVELS.get(needed).unwrap_or(&"a later x86-64"), own),
                None => Self::Runs,
            };
        };
        let mark = mark.trim_end();
        match (level(mark), level(own)) {
            _ if mark == native_identity() || mark == own => Self::Best,
            _ if mark.starts_with("native ") => {
                Self::Refused("is built for another processor (-march=native)".to_owned())
            }
            (Some(needed), Some(own)) if needed < own => Self::Runs,
            _ => Self::beyond(mark, own),
        }
    }

    fn beyond(needed: &str, own: &str) -> Self {
        Self::Refused(format!("is built for {needed}, but this processor is {own}"))
    }
}

/// Checks that the file is a complete shared object for this machine and processor; `name` is its name in messages.
///
/// # Errors
/// `CompileFailed`, which says what the file is instead.
pub(crate) fn check(code: &[u8], name: &str) -> Result<()> {
    shared_object::check_for(code, name, std::env::consts::ARCH)?;
    match Marked::of(code) {
        Marked::Refused(reason) => {
            let message = format!("\"{name}\" {reason}; compile it for this one");
            Err(Error::new(ErrorKind::CompileFailed, message))
        }
        Marked::Runs | Marked::Best => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_or_listed() {
        assert_eq!(Architecture::named("").unwrap(), Architecture::Native);
        assert_eq!(Architecture::named("x86-64-v3").unwrap().flag(), "-march=x86-64-v3");
        assert_eq!(Architecture::named("aarch64").unwrap().machine(), "aarch64");
        let error = Architecture::named("x86-64-v5").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("x86-64-v4") && error.message().contains("native"), "{error}");
    }

    #[test]
    fn a_mark_says_where_code_runs() {
        let marked = |architecture: Architecture, own: &str| {
            Marked::on(&architecture.mark(b"\x7fELF code".to_vec()), own)
        };
        let level = Architecture::Level;
        assert_eq!(marked(level(2), "x86-64-v3"), Marked::Best);
        assert_eq!(marked(level(1), "x86-64-v3"), Marked::Runs);
        let Marked::Refused(reason) = marked(level(3), "x86-64-v3") else { panic!("it needs more") };
        assert_eq!(reason, "is built for x86-64-v4, but this processor is x86-64-v3");
        assert_eq!(marked(Architecture::Native, "x86-64"), Marked::Best);
        assert_eq!(Marked::on(b"no mark", "x86-64"), Marked::Runs);
        let other = [MARK, b"native 0123\n"].concat();
        assert!(matches!(Marked::on(&other, "x86-64-v4"), Marked::Refused(_)));
        let unknown = [MARK, b"x86-64-v5\n"].concat();
        assert!(matches!(Marked::on(&unknown, "x86-64-v4"), Marked::Refused(_)));
    }
}
