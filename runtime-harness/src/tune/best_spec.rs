//! Writes a candidate as a spec of its own.

use std::path::{Component, Path, PathBuf};

use runtime_core::{Error, ErrorKind, OptionValue, Result};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use crate::spec::{Extent, Number, Overrides, Spec};
use crate::text_file;

/// The text of the spec at `path` with `overrides` in it, for a file in `folder`: without `[tune]` and `[sweep]`, with paths that
/// resolve from there. Each line of `comment` becomes a comment at its beginning.
///
/// # Errors
/// Those of [`Spec::load`]; `Io` if a folder does not exist.
pub fn best_spec(path: &Path, overrides: &Overrides, folder: &Path, comment: &str) -> Result<String> {
    // The name is that without the overrides, which the spec has from now on.
    let name = Spec::load(path, &Overrides::default())?.name;
    let text = text_file::read(path)?;
    let invalid = |error: &dyn std::fmt::Display| Error::invalid(format!("{}: {error}", path.display()));
    let mut document: DocumentMut = text.parse().map_err(|error| invalid(&error))?;
    let top = document.as_table_mut();
    top.remove("tune");
    top.remove("sweep");
    if !top.contains_key("name") {
        top.insert("name", name.into());
    }
    let moved = Moved::new(path, folder)?;
    moved.rewrite(top)?;
    set_values(top, overrides);
    let comment: String = comment.lines().map(|line| format!("# {line}\n")).collect();
    Ok(comment + &document.to_string())
}

/// A spec that moves to another folder.
struct Moved {
    from: PathBuf,
    to: PathBuf,
}

impl Moved {
    fn new(spec: &Path, folder: &Path) -> Result<Self> {
        let parent = spec.parent().unwrap_or(Path::new(""));
        Ok(Self { from: canonical(parent)?, to: canonical(folder)? })
    }

    fn rewrite(&self, top: &mut Table) -> Result<()> {
        for key in ["kernel", "reference"] {
            let Some(table) = top.get_mut(key).and_then(Item::as_table_like_mut) else { continue };
            if let Some(path) = table.get("path").and_then(Item::as_str).map(str::to_owned) {
                set(table, "path", self.path(&path)?.into());
            }
            let outputs = table.get_mut("outputs").and_then(Item::as_array_mut);
            for output in outputs.into_iter().flat_map(Array::iter_mut) {
                self.rewrite_file(output)?;
            }
        }
        match top.get_mut("arg") {
            Some(Item::ArrayOfTables(args)) => args.iter_mut().try_for_each(|arg| self.rewrite_arg(arg)),
            Some(Item::Value(Value::Array(args))) => {
                let tables = args.iter_mut().filter_map(Value::as_inline_table_mut);
                tables.into_iter().try_for_each(|arg| self.rewrite_arg(arg))
            }
            _ => Ok(()),
        }
    }

    fn rewrite_arg(&self, arg: &mut dyn TableLike) -> Result<()> {
        for key in ["init", "bytes"] {
            if let Some(value) = arg.get_mut(key).and_then(Item::as_value_mut) {
                self.rewrite_file(value)?;
            }
        }
        Ok(())
    }

    /// Rewrites `file:PATH`.
    fn rewrite_file(&self, value: &mut Value) -> Result<()> {
        let Some(path) = value.as_str().and_then(|text| text.strip_prefix("file:")) else { return Ok(()) };
        let mut moved = Value::from(format!("file:{}", self.path(path)?));
        *moved.decor_mut() = value.decor().clone();
        *value = moved;
        Ok(())
    }

    /// A path from the new folder to the same file.
    fn path(&self, path: &str) -> Result<String> {
        if Path::new(path).is_absolute() || self.from == self.to {
            return Ok(path.to_owned());
        }
        let file = self.from.join(path);
        let folder = canonical(file.parent().unwrap_or(Path::new("/")))?;
        let mut relative = relative(&folder, &self.to);
        relative.extend(file.file_name());
        let text = relative.to_str().map(str::to_owned);
        text.ok_or_else(|| Error::invalid(format!("{}: the path is not UTF-8", relative.display())))
    }
}

fn canonical(folder: &Path) -> Result<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    folder.canonicalize().map_err(|error| {
        Error::new(ErrorKind::Io, format!("cannot find the folder {}: {error}", folder.display()))
            .with_source(error)
    })
}

/// A path from `base` to `folder`, both canonical.
fn relative(folder: &Path, base: &Path) -> PathBuf {
    let common = folder.components().zip(base.components()).take_while(|(one, other)| one == other).count();
    let up = base.components().skip(common).map(|_| Component::ParentDir);
    up.chain(folder.components().skip(common)).collect()
}

fn set_values(top: &mut Table, overrides: &Overrides) {
    for (name, number) in &overrides.values {
        match scalar(top, name) {
            Some(arg) => set(arg, "value", number_value(*number)),
            None => {
                if let Some(constants) = table_at(top, &["specialise", "constants"]) {
                    set(constants, name, number_value(*number));
                }
            }
        }
    }
    if let Some(element) = overrides.element
        && let Some(specialise) = table_at(top, &["specialise"])
    {
        set(specialise, "element", element.to_string().into());
    }
    for (key, values) in &overrides.options {
        let Some(options) = table_at(top, &["kernel", "options"]) else { continue };
        match &values[..] {
            [] => drop(options.remove(key)),
            [value] => set(options, key, option_value(value)),
            values => set(options, key, values.iter().map(option_value).collect::<Array>().into()),
        }
    }
    for (key, extents) in &overrides.launch {
        let Some(launch) = table_at(top, &["launch"]) else { continue };
        match &extents[..] {
            [extent] => set(launch, key, extent_value(extent)),
            extents => set(launch, key, extents.iter().map(extent_value).collect::<Array>().into()),
        }
    }
}

/// The table of a scalar argument.
fn scalar<'a>(top: &'a mut Table, name: &str) -> Option<&'a mut dyn TableLike> {
    let args: Vec<&mut dyn TableLike> = match top.get_mut("arg")? {
        Item::ArrayOfTables(args) => args.iter_mut().map(|arg| arg as &mut dyn TableLike).collect(),
        Item::Value(Value::Array(args)) => {
            let tables = args.iter_mut().filter_map(Value::as_inline_table_mut);
            tables.map(|arg| arg as &mut dyn TableLike).collect()
        }
        _ => return None,
    };
    let is_it = |(position, arg): &(usize, &mut dyn TableLike)| match arg.get("name").and_then(Item::as_str) {
        Some(own) => own == name,
        None => name == format!("arg{position}"),
    };
    args.into_iter().enumerate().find(is_it).map(|(_, arg)| arg)
}

/// A table in a table, which is added if it is missing.
fn table_at<'a>(top: &'a mut Table, path: &[&str]) -> Option<&'a mut dyn TableLike> {
    let mut table: &mut dyn TableLike = top;
    for key in path {
        let empty = Item::Value(Value::InlineTable(InlineTable::new()));
        table = table.entry(key).or_insert(empty).as_table_like_mut()?;
    }
    Some(table)
}

/// Sets a value, and keeps the comment behind it.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => drop(table.insert(key, Item::Value(value))),
    }
}

fn number_value(number: Number) -> Value {
    match number {
        Number::Bool(flag) => flag.into(),
        Number::Float(value) => value.into(),
        Number::Integer(value) => match i64::try_from(value) {
            Ok(value) => value.into(),
            // TOML's integers are not limited, those of its editor are.
            Err(_) => value.to_string().parse().unwrap_or_else(|_| value.to_string().into()),
        },
    }
}

fn option_value(value: &OptionValue) -> Value {
    match value {
        OptionValue::Flag(flag) => (*flag).into(),
        OptionValue::Integer(value) => (*value).into(),
        OptionValue::Number(value) => (*value).into(),
        OptionValue::Text(text) => text.as_str().into(),
    }
}

fn extent_value(extent: &Extent) -> Value {
    match extent {
        Extent::Number(number) => (*number).into(),
        Extent::Expression(text) => text.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = "version = 1
kernel = { path = \"k.c\", entry = \"k\" }
arg = [
    { name = \"x\", dtype = \"f32\", shape = [2], init = \"file:x.npy\" }, # the data
    { scalar = \"i64\", value = 3 },
    { name = \"y\", dtype = \"f32\", shape = [2], use = \"write\" },
]
[specialise]
constants = { N = 4 } # four
[reference]
outputs = [\"file:x.npy\"]
[tune]
arg1 = [3, 5]
[sweep]
N = [4, 8]
";

    #[test]
    fn every_value_and_path_is_in_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        std::fs::create_dir(&to).unwrap();
        for (name, text) in [("k.c", ""), ("x.npy", ""), ("k.toml", SPEC)] {
            std::fs::write(from.join(name), text).unwrap();
        }
        let overrides = Overrides {
            values: vec![("arg1".to_owned(), Number::Integer(5)), ("N".to_owned(), Number::Integer(8))],
            options: vec![("flags".to_owned(), vec!["-O3".into(), "-g".into()])],
            launch: [("group_size".to_owned(), vec![Extent::Number(2), Extent::Expression("N".to_owned())])]
                .into(),
            element: None,
        };
        let text = best_spec(&from.join("k.toml"), &overrides, &to, "found\ntoday").unwrap();
        assert!(text.starts_with("# found\n# today\n"), "{text}");
        assert!(text.contains("# the data") && text.contains("{ N = 8 } # four"), "{text}");
        std::fs::write(to.join("best.toml"), &text).unwrap();
        let spec = |path: PathBuf, overrides: &Overrides| Spec::load(&path, overrides).unwrap();
        let best = spec(to.join("best.toml"), &Overrides::default());
        let expected = spec(from.join("k.toml"), &overrides);
        assert!(best.tune.is_none() && best.sweep.is_none());
        assert_eq!(best.name, "k");
        assert_eq!(
            (best.config, best.specialise.constants),
            (expected.config, expected.specialise.constants)
        );
        assert_eq!(format!("{:?}", best.kernel.options), format!("{:?}", expected.kernel.options));
        assert_eq!(format!("{:?}", best.args[1].kind), format!("{:?}", expected.args[1].kind));
        assert_eq!(best.kernel.path.canonicalize().unwrap(), from.join("k.c").canonicalize().unwrap());
    }
}
