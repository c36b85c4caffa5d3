//! Parses the tables of a spec file, except `[[arg]]`.

use std::path::Path;

use runtime_core::code::ParallelRange;
use runtime_core::evaluate::{Cost, Tolerance};
use runtime_core::{CodeFormat, Error, Geometry, LaunchConfig, Number, OptionValue, Options, Result};
use toml::Spanned;
use toml::de::DeTable;

use super::argument::{self, Scope, dtype, file_of, is_identifier, is_scalar};
use super::document::{Document, Item, Section, to_integer};
use super::expression::{Symbol, Symbols, evaluate};
use super::inline::InlineSpec;
use super::scalar::{constant, value};
use super::space_table::{self, Known};
use super::{Argument, ArgumentKind, Expected, Extent, KernelSource, Overrides, Reference, Spec, Specialise};
use crate::settings::{Settings, check_number};

const TOP_LEVEL_KEYS: [&str; 11] = [
    "version",
    "name",
    "kernel",
    "arg",
    "specialise",
    "launch",
    "cost",
    "reference",
    "eval",
    "tune",
    "sweep",
];
const LAUNCH_KEYS: [&str; 6] = ["groups", "group_size", "cluster", "cooperative", "range", "grain"];
const EVAL_KEYS: [&str; 12] = [
    "repeat",
    "until_percent",
    "number",
    "min_repeat_ms",
    "warmup",
    "validate",
    "clock",
    "flush_cache",
    "cooldown_ms",
    "budget_s",
    "counters",
    "energy",
];
const KERNEL_KEYS: [&str; 6] = ["path", "code", "entry", "format", "file", "options"];
const REFERENCE_KEYS: [&str; 10] =
    ["path", "code", "entry", "format", "file", "options", "outputs", "rtol", "atol", "reduction"];
/// Formats that `code` cannot hold.
const BINARY_FORMATS: [CodeFormat; 10] = [
    CodeFormat::SHARED_OBJECT,
    CodeFormat::ARCHIVE,
    CodeFormat::OBJECT,
    CodeFormat::CUBIN,
    CodeFormat::FATBIN,
    CodeFormat::OPENCL_BINARY,
    CodeFormat::SPIRV_KERNEL,
    CodeFormat::SPIRV_SHADER,
    CodeFormat::VULKAN_BINARY,
    CodeFormat::ELF,
];

/// Parses the text of the spec at `path` and applies `overrides`.
pub(super) fn parse(path: &Path, text: &str, overrides: &Overrides) -> Result<Spec> {
    let document = Document::new(path, text);
    read(&document, &document.parse(text)?, overrides)
}

/// The same of a spec without a file.
pub(super) fn parse_inline(spec: &InlineSpec, overrides: &Overrides) -> Result<Spec> {
    let (table, keys) = spec.tables()?;
    read(&Document::inline(keys), &table, overrides)
}

fn read(document: &Document<'_>, table: &Spanned<DeTable<'_>>, overrides: &Overrides) -> Result<Spec> {
    let path = document.path();
    let top = Section::new(document, "the spec", table, &TOP_LEVEL_KEYS)?;
    let version = top.required("version")?;
    if version.integer::<u64>(0)? != 1 {
        return Err(version.error("unsupported version; this program reads version 1"));
    }
    let specialise =
        top.optional("specialise").map_or(Ok(Specialise::default()), |item| specialise(&item, overrides))?;
    let mut scope = Scope { overrides, element: specialise.element, names: constants(&specialise) };
    let args = arguments(&top, &mut scope)?;
    let mut names = scope.names;
    let overridable: Vec<_> = names.keys().map(String::as_str).collect();
    overrides.check(path, &overridable, specialise.element.is_some())?;
    names.extend(args.iter().filter_map(|arg| Some((arg.name.clone(), symbol(arg)?))));
    let name = top.optional("name").map(|item| item.text()).transpose()?;
    let launch = Launch { section: launch_section(&top)?, path, names: &names, overrides };
    let (config, has_group_size) = launch.config()?;
    let mut kernel = code(&top.required("kernel")?.section("[kernel]", &KERNEL_KEYS)?)?;
    kernel.options = overrides.applied_to(&kernel.options);
    let known = Known { overrides, specialise: &specialise, args: &args, config: &config, names: &names };
    let space =
        |key, table| top.optional(key).map_or(Ok(None), |item| space_table::parse(&item, &known, table));
    let (tune, sweep) = (space("tune", "[tune]")?, space("sweep", "[sweep]")?);
    Ok(Spec {
        path: path.to_owned(),
        name: name.map_or_else(|| default_name(path, &kernel), str::to_owned) + &overrides.describe(),
        kernel,
        tune,
        sweep,
        overrides: overrides.clone(),
        specialise,
        config,
        has_group_size,
        cost: top.optional("cost").map_or(Ok(Cost::default()), |item| cost(&item, &names))?,
        reference: top.optional("reference").map(|item| reference(&item, &args, &names)).transpose()?,
        settings: top.optional("eval").map_or(Ok(Settings::default()), |item| settings(&item))?,
        files: document.files(),
        args,
    })
}

/// The stem of the file; without a file, the entry point.
fn default_name(path: &Path, kernel: &KernelSource) -> String {
    let stem = path.file_stem().filter(|_| path != Path::new(InlineSpec::NAME));
    stem.map_or_else(|| kernel.entry.clone(), |stem| stem.to_string_lossy().into_owned())
}

/// Parses the arguments and adds the scalars to the symbols of `scope`.
fn arguments(top: &Section<'_>, scope: &mut Scope<'_>) -> Result<Vec<Argument>> {
    let Some(item) = top.optional("arg") else { return Ok(Vec::new()) };
    let items = item.list()?;
    // Scalars first: the extents of a tensor may refer to a later scalar.
    for (position, item) in items.iter().enumerate() {
        if is_scalar(item)? {
            let arg = argument::parse(item, position, scope)?;
            if scope.names.contains_key(&arg.name) {
                return Err(duplicate_name(item, &arg));
            }
            scope.names.extend(symbol(&arg).map(|symbol| (arg.name, symbol)));
        }
    }
    let mut args: Vec<Argument> = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let arg = argument::parse(item, position, scope)?;
        let is_taken = !is_scalar(item)? && scope.names.contains_key(&arg.name);
        if is_taken || args.iter().any(|other| other.name == arg.name) {
            return Err(duplicate_name(item, &arg));
        }
        args.push(arg);
    }
    Ok(args)
}

fn duplicate_name(item: &Item<'_>, arg: &Argument) -> Error {
    item.error(&format!(
        "the name \"{0}\" is used by two arguments, or by an argument and a constant",
        arg.name
    ))
}

fn constants(specialise: &Specialise) -> Symbols {
    let constants = specialise.constants.iter().filter_map(|(name, value)| {
        let value = match value {
            OptionValue::Flag(flag) => f64::from(u8::from(*flag)),
            number => number.to_string().parse().ok()?,
        };
        Some((name.clone(), Symbol::Value(value)))
    });
    constants.collect()
}

/// The symbol that an argument defines for expressions.
fn symbol(arg: &Argument) -> Option<Symbol> {
    match &arg.kind {
        ArgumentKind::Tensor(tensor) => Some(Symbol::Shape(tensor.shape.clone(), tensor.dtype.bytes())),
        ArgumentKind::Scalar(dtype, bits) => {
            Some(Symbol::Value(Number::of_bits(*dtype, *bits).map_or(f64::NAN, value)))
        }
        ArgumentKind::Record(_) | ArgumentKind::Bytes(_) | ArgumentKind::Local(_) => None,
    }
}

fn code(section: &Section<'_>) -> Result<KernelSource> {
    let (path, text) = match (section.optional("path"), section.optional("code")) {
        (_, None) => (section.required("path")?.file()?, None),
        (None, Some(code)) => (section.path().to_owned(), Some(code.text()?.into())),
        (Some(_), Some(code)) => return Err(code.error("cannot be combined with `path`")),
    };
    let code = KernelSource {
        format: format(section, &path, text.is_some())?,
        entry: section.required("entry")?.text()?.to_owned(),
        file: section.optional("file").map(|item| item.text().map(str::to_owned)).transpose()?,
        options: section.optional("options").map_or(Ok(Options::new()), |item| options(&item))?,
        path,
        text,
    };
    if code.entry.is_empty() {
        return Err(section.required("entry")?.error("is empty"));
    }
    match section.optional("file") {
        Some(item) if !code.is_package() => Err(item.error("is only valid with a package")),
        _ => Ok(code),
    }
}

fn format(section: &Section<'_>, path: &Path, is_text: bool) -> Result<CodeFormat> {
    let item = if is_text { Some(section.required("format")?) } else { section.optional("format") };
    let Some(item) = item else {
        return KernelSource::format_of(path).ok_or_else(|| {
            let message =
                format!("the extension of \"{}\" does not imply a code format; add `format`", path.display());
            section.required("path").map_or_else(|error| error, |item| item.error(&message))
        });
    };
    let format = CodeFormat::from(item.text()?);
    match is_text && (BINARY_FORMATS.contains(&format) || format == *KernelSource::PACKAGE) {
        true => Err(item.error(&format!("{format} is no text: give the `path` of a file instead of `code`"))),
        false => Ok(format),
    }
}

fn options(item: &Item<'_>) -> Result<Options> {
    let mut options = Options::new();
    for entry in item.open_section("options")?.items() {
        for value in entry.one_or_more() {
            options.push(entry.key, value.option()?);
        }
    }
    Ok(options)
}

fn specialise(item: &Item<'_>, overrides: &Overrides) -> Result<Specialise> {
    let section = item.section("[specialise]", &["constants", "element"])?;
    let mut constants = Vec::new();
    if let Some(table) = section.optional("constants") {
        for entry in table.open_section("[specialise.constants]")?.items() {
            if !is_identifier(entry.key) {
                return Err(entry.error("a constant's name may contain only letters, digits and _"));
            }
            let number = overrides.value(entry.key).map_or_else(|| entry.number(), Ok)?;
            let number = constant(number).ok_or_else(|| entry.error("the integer is too large"))?;
            constants.push((entry.key.to_owned(), number));
        }
    }
    let element = section.optional("element").map(|item| dtype(&item)).transpose()?;
    Ok(Specialise { constants, element: element.map(|element| overrides.element.unwrap_or(element)) })
}

fn launch_section<'a>(top: &Section<'a>) -> Result<Option<Section<'a>>> {
    top.optional("launch").map(|item| item.section("[launch]", &LAUNCH_KEYS)).transpose()
}

/// `[launch]` with its overrides.
struct Launch<'a> {
    section: Option<Section<'a>>,
    path: &'a Path,
    names: &'a Symbols,
    overrides: &'a Overrides,
}

impl Launch<'_> {
    /// What a launch runs, and whether the group size is given.
    fn config(&self) -> Result<(LaunchConfig, bool)> {
        let geometry = Geometry {
            groups: self.extents("groups", 0)?,
            group_size: self.extents("group_size", 1)?,
            cluster: self.extents("cluster", 1)?,
            cooperative: self.optional("cooperative").map_or(Ok(false), |item| item.flag())?,
        };
        let range = self.optional("range").map(|item| range(&item, self.names)).transpose()?;
        let has = |key: &str| self.optional(key).is_some() || self.overrides.launch.contains_key(key);
        match range {
            None if has("grain") => Err(self.error("grain", "is only valid with `range`")),
            None => Ok((LaunchConfig::Groups(geometry), has("group_size"))),
            Some(_) if geometry != Geometry::single() => Err(self.error(
                "range",
                "cannot be combined with `groups`, `group_size`, `cluster` or `cooperative`",
            )),
            Some([begin, end]) => {
                let grain = self.grain()?;
                Ok((LaunchConfig::Range(ParallelRange { begin, end, grain }), false))
            }
        }
    }

    fn optional(&self, key: &str) -> Option<Item<'_>> {
        self.section.as_ref()?.optional(key)
    }

    fn error(&self, key: &str, message: &str) -> Error {
        match self.optional(key) {
            Some(item) => item.error(message),
            None => Error::invalid(format!("{}: {key} {message}", self.path.display())),
        }
    }

    fn extents(&self, key: &str, least: i128) -> Result<[u32; 3]> {
        let Some(overridden) = self.overrides.launch.get(key) else {
            return self.optional(key).map_or(Ok([1; 3]), |item| extents(&item, self.names, least));
        };
        if !(1..=3).contains(&overridden.len()) {
            return Err(self.error(key, &format!("expected 1 to 3 dimensions, got {}", overridden.len())));
        }
        let mut extents = [1; 3];
        for (extent, overridden) in extents.iter_mut().zip(overridden) {
            *extent = self.overridden(key, overridden, least)?;
        }
        Ok(extents)
    }

    fn grain<T: TryFrom<i128>>(&self) -> Result<Option<T>> {
        match self.overrides.launch.get("grain").map(Vec::as_slice) {
            Some([grain]) => self.overridden("grain", grain, 1).map(Some),
            Some(_) => Err(self.error("grain", "expected one number")),
            None => self.optional("grain").map(|item| item.size(self.names, 1)).transpose(),
        }
    }

    /// The value of an extent from outside of the file, so that there is no line to name.
    fn overridden<T: TryFrom<i128>>(&self, key: &str, extent: &Extent, least: i128) -> Result<T> {
        let failed =
            |message: &str| Error::invalid(format!("{}: {key} = {extent}: {message}", self.path.display()));
        let whole = match extent {
            Extent::Number(number) => i128::from(*number),
            Extent::Expression(text) => {
                let value = evaluate(text, self.names).map_err(|message| failed(&message))?;
                to_integer(value)
                    .ok_or_else(|| failed(&format!("the value is {value}, not a whole number")))?
            }
        };
        if whole < least {
            return Err(failed(&format!("must be at least {least}, got {whole}")));
        }
        T::try_from(whole).map_err(|_| failed(&format!("{whole} is too large")))
    }
}

fn extents(item: &Item<'_>, names: &Symbols, least: i128) -> Result<[u32; 3]> {
    let items = item.one_or_more();
    if !(1..=3).contains(&items.len()) {
        return Err(item.error(&format!("expected 1 to 3 dimensions, got {}", items.len())));
    }
    let mut extents = [1; 3];
    for (extent, item) in extents.iter_mut().zip(items) {
        *extent = item.size(names, least)?;
    }
    Ok(extents)
}

fn range(item: &Item<'_>, names: &Symbols) -> Result<[i64; 2]> {
    let items = item.list()?;
    let [begin, end] = items[..] else { return Err(item.error("expected [begin, end]")) };
    let least = i128::from(i64::MIN);
    let range = [begin.size(names, least)?, end.size(names, least)?];
    match range[0] <= range[1] {
        true => Ok(range),
        false => Err(item.error("the end precedes the beginning")),
    }
}

fn cost(item: &Item<'_>, names: &Symbols) -> Result<Cost> {
    let section = item.section("[cost]", &["flops", "bytes"])?;
    let figure = |key| section.optional(key).map(|item| quantity(&item, names)).transpose();
    Ok(Cost { flops: figure("flops")?, bytes: figure("bytes")? })
}

/// A number, or an expression over shapes and scalars.
fn quantity(item: &Item<'_>, names: &Symbols) -> Result<f64> {
    if !item.is_text() {
        return item.real(0.0);
    }
    let value = evaluate(item.text()?, names).map_err(|message| item.error(&message))?;
    match value >= 0.0 && value.is_finite() {
        true => Ok(value),
        false => Err(item
            .error(&format!("must be a finite number of at least 0, but the expression's value is {value}"))),
    }
}

fn reference(item: &Item<'_>, args: &[Argument], names: &Symbols) -> Result<Reference> {
    let section = item.section("[reference]", &REFERENCE_KEYS)?;
    let written = args.iter().filter(|arg| arg.is_written()).count();
    if written == 0 {
        return Err(
            section.error("nothing can be compared: no argument has use = \"write\" or \"readwrite\"")
        );
    }
    let expected = match (section.optional("path").or(section.optional("code")), section.optional("outputs"))
    {
        (Some(_), None) => Expected::Kernel(code(&section)?),
        (None, Some(outputs)) => Expected::Files(files(&outputs, written)?),
        (None, None) => return Err(section.error("missing key in [reference]: path and entry, or outputs")),
        (Some(_), Some(outputs)) => return Err(outputs.error("cannot be combined with `path` or `code`")),
    };
    let tolerance = |key| section.optional(key).map(|item| item.real(0.0)).transpose();
    let tolerance = Tolerance {
        rtol: tolerance("rtol")?,
        atol: tolerance("atol")?,
        reduction_length: section.optional("reduction").map(|item| reduction(&item, names)).transpose()?,
    };
    Ok(Reference { expected, tolerance })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of at least 1")]
fn reduction(item: &Item<'_>, names: &Symbols) -> Result<u64> {
    let terms = quantity(item, names)?;
    match terms >= 1.0 && terms.fract() == 0.0 {
        true => Ok(terms as u64),
        false => Err(item.error(&format!("must be a whole number of at least 1, got {terms}"))),
    }
}

fn files(item: &Item<'_>, written: usize) -> Result<Vec<std::path::PathBuf>> {
    let items = item.list()?;
    if items.len() != written {
        return Err(
            item.error(&format!("expected one file per written argument: {written}, got {}", items.len()))
        );
    }
    items.iter().map(|item| file_of(item)?.ok_or_else(|| item.error("expected \"file:PATH.npy\""))).collect()
}

fn counter_names(item: &Item<'_>) -> Result<Vec<String>> {
    let items = item.list()?;
    items.iter().map(|name| name.text().map(str::to_owned)).collect()
}

fn settings(item: &Item<'_>) -> Result<Settings> {
    let section = item.section("[eval]", &EVAL_KEYS)?;
    let check =
        |item: &Item<'_>| check_number(item.key, item.real(0.0)?).map_err(|message| item.error(&message));
    let real = |key, least| {
        let bounded = |item: Item<'_>| item.real(least).and_then(|value| check(&item).map(|()| value));
        section.optional(key).map(bounded).transpose()
    };
    let count = |key, least| {
        let bounded = |item: Item<'_>| item.integer(least).and_then(|value| check(&item).map(|()| value));
        section.optional(key).map(bounded).transpose()
    };
    Ok(Settings {
        repeat: count("repeat", 1)?,
        until_percent: real("until_percent", 0.001)?,
        number: count("number", 1)?,
        min_repeat_ms: real("min_repeat_ms", 0.0)?,
        warmup: count("warmup", 0)?,
        validate: section.optional("validate").map(|item| item.flag()).transpose()?,
        clock: section.optional("clock").map(|item| item.parsed()).transpose()?,
        flush_cache: section.optional("flush_cache").map(|item| item.parsed()).transpose()?,
        cooldown_ms: real("cooldown_ms", 0.0)?,
        budget_s: real("budget_s", 0.0)?,
        counters: section.optional("counters").map(|item| counter_names(&item)).transpose()?,
        energy: section.optional("energy").map(|item| item.flag()).transpose()?,
    })
}
