//! Code: text with one builtin per line, and its compiled form, which begins with [`BINARY`].

use std::fmt::Write as _;
use std::sync::Arc;

use runtime_core::backend::{Kernel, Module, Source, did_you_mean};
use runtime_core::code::{CompiledCode, Fit, KernelInfo, Occupancy};
use runtime_core::{Error, ErrorKind, Geometry, Options, Result};

use crate::builtins::{BUILTINS, Builtin};
use crate::fault::{Faults, OnDrop};

/// The reported sub-group size.
const SUB_GROUP_ITEMS: u32 = 32;
/// The reported number of sub-groups per compute unit.
const UNIT_SUB_GROUPS: u32 = 64;
/// The reported work-group memory per compute unit.
const UNIT_SHARED_BYTES: u32 = 96 << 10;

/// The accepted formats: text, and compiled text.
pub(crate) const FORMATS: [&str; 2] = ["null", "null-binary"];
/// The first line of compiled text.
const BINARY: &str = "null binary 1\n";

/// Loaded code.
#[derive(Debug)]
pub struct NullModule {
    names: Vec<String>,
    builtins: Vec<&'static Builtin>,
    faults: Arc<Faults>,
    _unload: OnDrop,
}

impl NullModule {
    /// Reads the text: an entry point per line.
    pub(crate) fn load(source: &Source<'_>, faults: &Arc<Faults>) -> Result<Self> {
        if !FORMATS.contains(&source.format) {
            return Err(Error::unsupported(format!(
                "code of format \"{}\" is not supported; pass \"null\"",
                source.format
            )));
        }
        let text = text(source)?;
        let code = match source.format {
            "null-binary" => text.strip_prefix(BINARY).ok_or_else(|| {
                Error::new(
                    ErrorKind::CompileFailed,
                    "this is not a null binary of this version; compile it again",
                )
            })?,
            _ => &text,
        };
        let prefix = source.options.text("prefix").unwrap_or_default();
        let (names, builtins) = parse(code, prefix)?;
        Ok(Self { names, builtins, faults: Arc::clone(faults), _unload: OnDrop::new(faults, "unload") })
    }

    /// The first entry point, which an embedded device runs.
    pub(crate) fn first(&self) -> Result<&'static Builtin> {
        let first = self.builtins.first().copied();
        first.ok_or_else(|| {
            Error::new(ErrorKind::CompileFailed, "the image names no builtin; write one per line")
        })
    }
}

impl Module for NullModule {
    type Kernel = NullKernel;

    fn symbols(&self) -> &[String] {
        self.faults.enter("symbols");
        &self.names
    }

    fn kernel(&self, name: &str) -> Result<NullKernel> {
        self.faults.call("kernel")?;
        let found = self.names.iter().position(|symbol| symbol == name);
        let index =
            found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no entry point \"{name}\"")))?;
        let faults = Arc::clone(&self.faults);
        Ok(NullKernel {
            builtin: self.builtins[index],
            _release: OnDrop::new(&faults, "release_kernel"),
            faults,
        })
    }
}

/// An entry point.
#[derive(Debug)]
pub struct NullKernel {
    pub(crate) builtin: &'static Builtin,
    faults: Arc<Faults>,
    _release: OnDrop,
}

impl Kernel for NullKernel {
    fn info(&self) -> KernelInfo {
        self.faults.enter("kernel_info");
        info(self.builtin)
    }

    fn occupancy(&self, geometry: &Geometry, local_bytes: u64) -> Result<Occupancy> {
        self.faults.call("occupancy")?;
        let sub_groups = geometry.group_size.iter().product::<u32>().div_ceil(SUB_GROUP_ITEMS);
        let fitting = UNIT_SHARED_BYTES.checked_div(u32::try_from(local_bytes).unwrap_or(u32::MAX));
        let groups = (UNIT_SUB_GROUPS / sub_groups).min(fitting.unwrap_or(UNIT_SUB_GROUPS));
        Ok(Occupancy { groups, sub_groups: groups * sub_groups, max_sub_groups: UNIT_SUB_GROUPS })
    }
}

/// Compiles text: resolves its names, so that the binary has a line `NAME=BUILTIN` per entry point.
pub(crate) fn compile(source: &Source<'_>) -> Result<CompiledCode> {
    if source.format != "null" {
        return Err(Error::unsupported(format!("\"{}\" is not compiled", source.format)));
    }
    let (names, builtins) = parse(&text(source)?, source.options.text("prefix").unwrap_or_default())?;
    let mut code = BINARY.to_owned();
    for (name, builtin) in names.iter().zip(&builtins) {
        // Writing to a string cannot fail.
        let _ = writeln!(code, "{name}={}", builtin.name);
    }
    Ok(CompiledCode {
        format: "null-binary".into(),
        code: code.into_bytes(),
        log: format!("{} entry points", names.len()),
        options: Options::new(),
        kernels: names.into_iter().zip(builtins.into_iter().map(info)).collect(),
    })
}

/// How compiled text fits: only this version reads it.
pub(crate) fn fits(code: &Source<'_>) -> Result<Fit> {
    Ok(match code.format {
        "null-binary" if text(code)?.starts_with(BINARY) => Fit::Optimal,
        "null" => Fit::Recompile,
        _ => Fit::Unsupported,
    })
}

fn info(builtin: &Builtin) -> KernelInfo {
    KernelInfo {
        registers: Some(16),
        spilled_bytes: Some(0),
        shared_bytes: Some(0),
        params: builtin.params.map(<[_]>::to_vec),
        preferred_multiple: Some(SUB_GROUP_ITEMS),
        private_bytes: Some(0),
        ..KernelInfo::default()
    }
}

fn text(source: &Source<'_>) -> Result<String> {
    let code = match source.code {
        Some(code) => code.to_vec(),
        None => std::fs::read(source.path).map_err(|error| {
            Error::new(ErrorKind::Io, format!("{}: {error}", source.path)).with_source(error)
        })?,
    };
    String::from_utf8(code)
        .map_err(|_| Error::new(ErrorKind::CompileFailed, "null code is UTF-8 text, and this is not"))
}

fn parse(text: &str, prefix: &str) -> Result<(Vec<String>, Vec<&'static Builtin>)> {
    let (mut names, mut builtins) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let (name, builtin) = line.split_once('=').unwrap_or((line, line));
        builtins.push(find(builtin.trim()).map_err(|error| {
            Error::new(ErrorKind::CompileFailed, format!("line {}: {}", number + 1, error.message()))
        })?);
        names.push(format!("{prefix}{}", name.trim()));
    }
    Ok((names, builtins))
}

fn find(name: &str) -> Result<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name).ok_or_else(|| {
        let names: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        Error::invalid(format!("unknown builtin \"{name}\"; {}", did_you_mean(name, &names)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_an_entry_point() {
        let (names, builtins) = parse("# two\n add = add_f32 # sum\n\nnoop\n", "my_").unwrap();
        assert_eq!(names, ["my_add", "my_noop"]);
        assert_eq!((builtins[0].name, builtins[1].name), ("add_f32", "noop"));
    }

    #[test]
    fn a_wrong_line_is_named_with_the_remedy() {
        let error = parse("noop\nx = ad_f32", "").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompileFailed);
        assert!(
            error.message().contains("line 2") && error.message().contains("did you mean \"add_f32\""),
            "{error}"
        );
    }
}
