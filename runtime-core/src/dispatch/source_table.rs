//! The sources of a kernel, one for each format. A device gets the one that it prefers.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::code::lowering::{find_lowering, read_text};
use crate::code::{loading, return_type};
use crate::dispatch::arg_type::ArgType;
use crate::dispatch::{c_types, typing};
use crate::model::lowering::Lowering;
use crate::model::portable_source::PortableSource;
use crate::model::signature::SignatureParam;
use crate::timeline::open_device::OpenDevice;
use crate::{CodeFormat, Error, ErrorKind, ModuleSource, Options, Result};

/// The sources of one entry point.
#[derive(Debug)]
pub(super) struct SourceTable {
    pub(super) entry: String,
    sources: Vec<Source>,
    /// The signature of native code, if it was given.
    signature: Option<Vec<SignatureParam>>,
}

#[derive(Debug)]
struct Source {
    source: ModuleSource,
    /// The signature of portable code, once it was read.
    portable: OnceLock<Option<Arc<[SignatureParam]>>>,
}

/// A source whose types are chosen, and what is known of its parameters.
pub(super) struct Typed {
    pub(super) source: ModuleSource,
    pub(super) signature: Option<Arc<[SignatureParam]>>,
    /// Whether it is portable code, which receives a layout as scalars instead of a structure.
    pub(super) portable: bool,
}

impl SourceTable {
    pub(super) fn new(
        entry: &str,
        sources: Vec<ModuleSource>,
        signature: Option<Vec<SignatureParam>>,
    ) -> Self {
        let sources = sources.into_iter().map(|source| Source { source, portable: OnceLock::new() });
        Self { entry: entry.to_owned(), sources: sources.collect(), signature }
    }

    /// The source for a device, with the element types that the arguments require.
    ///
    /// # Errors
    /// `Unsupported` if the device accepts none of the formats; `InvalidArgument` for arguments that the kernel does not take, and
    /// a kernel that returns a value; any error of the lowering.
    pub(super) fn typed(
        &self,
        device: &OpenDevice,
        constants: &[(String, String)],
        types: &[ArgType],
    ) -> Result<Typed> {
        let chosen = self.choose(device)?;
        let source = loading::read(device, &chosen.source)?;
        let lowering = find_lowering(source.format(), &device.instance.lowerings);
        let portable = lowering.is_some();
        let signature = match lowering {
            Some(lowering) => chosen.portable_signature(lowering, &source, &self.entry)?,
            None => self.signature.as_deref().map(Arc::from),
        };
        let bindings = match &signature {
            Some(signature) => typing::bind(&self.entry, signature, types)?,
            None => typing::Bindings::new(),
        };
        let mut typed = match portable {
            true => {
                let name =
                    |source: ModuleSource, (name, dtype): &(String, _)| source.element_named(name, *dtype);
                bindings.iter().fold(source.into_owned(), name)
            }
            false => self.native(source, signature.as_deref().unwrap_or_default(), &bindings)?,
        };
        for (name, value) in constants {
            typed = typed.constant(name, value);
        }
        Ok(Typed { source: typed, signature, portable })
    }

    /// The source that the device prefers: its formats are in order of preference.
    fn choose(&self, device: &OpenDevice) -> Result<&Source> {
        let offered =
            |format: &CodeFormat| self.sources.iter().find(|source| source.source.format() == format);
        device.info.formats.iter().find_map(offered).ok_or_else(|| {
            let (entry, accepted) = (&self.entry, device.info.format_names());
            let formats: Vec<_> = self.sources.iter().map(|source| source.source.format().as_str()).collect();
            let formats = formats.join(", ");
            Error::new(
                ErrorKind::Unsupported,
                format!(
                    "\"{entry}\" has code in the formats {formats}, but {} accepts {}",
                    device.info.id,
                    accepted.join(", ")
                ),
            )
        })
    }

    /// Native code with definitions of its type parameters in front of it.
    fn native(
        &self,
        source: Cow<'_, ModuleSource>,
        signature: &[SignatureParam],
        bindings: &typing::Bindings,
    ) -> Result<ModuleSource> {
        let code = source.code().and_then(|code| std::str::from_utf8(code).ok());
        let returned = code.and_then(|text| return_type::returned_type(source.format(), text, &self.entry));
        if let Some(returned) = returned {
            let entry = &self.entry;
            return Err(Error::invalid(format!(
                "\"{entry}\" returns {returned}, but a kernel returns nothing; declare it void, and write the result to a tensor"
            )));
        }
        let definitions = c_types::definitions(source.format(), signature, bindings)?;
        match code {
            Some(text) if !definitions.is_empty() => Ok(source.with_code((definitions + text).into_bytes())),
            _ => Ok(source.into_owned()),
        }
    }
}

impl Source {
    /// The signature of portable code. It depends on the text only, so it is read once.
    fn portable_signature(
        &self,
        lowering: &dyn Lowering,
        source: &ModuleSource,
        entry: &str,
    ) -> Result<Option<Arc<[SignatureParam]>>> {
        if let Some(known) = self.portable.get() {
            return Ok(known.clone());
        }
        let (path, options) = (source.path().to_string_lossy(), Options::new());
        let portable = PortableSource { code: &read_text(source)?, path: &path, options: &options };
        let signature = lowering.signature(&portable, entry)?.map(Arc::from);
        Ok(self.portable.get_or_init(|| signature).clone())
    }
}
