//! `runtime lower`: prints the code that a portable kernel is lowered to, or its interface.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use runtime_core::device::Limits;
use runtime_core::{Access, Error, Result};
use runtime_harness::text_file;
use runtime_kernel::{Checks, Dialect, GroupLoops, Interface, Program, Specialisation};
use serde_json::{Value, json};

use crate::output::Destination;
use crate::output_paths;
use crate::table::Table;

#[derive(Debug, Args)]
pub(crate) struct LowerArguments {
    /// The kernel, in WGSL
    #[arg(value_name = "FILE.wgsl")]
    file: PathBuf,
    /// The format to write
    #[arg(long, value_name = "FORMAT", value_enum, required_unless_present = "interface")]
    to: Option<Target>,
    /// Show the kernel's interface instead: arguments, work-groups, constants, features
    #[arg(long, conflicts_with_all = ["to", "unchecked", "debug"])]
    interface: bool,
    /// Show the interface as JSON
    #[arg(long, requires = "interface")]
    json: bool,
    /// Value of an `override` constant, by name or `@id`; may be repeated
    #[arg(long = "constant", value_name = "NAME=VALUE", value_parser = Specialisation::parse_constant)]
    constants: Vec<(String, String)>,
    /// Element type that replaces f32 in `alias T = f32;`, or in the alias of that name; may be repeated
    #[arg(long = "element", value_name = "[NAME=]DTYPE")]
    elements: Vec<String>,
    /// Uniform buffer whose numbers are scalar arguments; may be repeated
    #[arg(long, value_name = "BUFFER")]
    by_value: Vec<String>,
    /// Leave out bounds checks
    #[arg(long)]
    unchecked: bool,
    /// Let one item of element-wise entry points do the work of several: a number, or `auto` for what suits the elements
    /// [default: what GPUs get for large launches is `auto`; this command writes `1`]
    #[arg(long, value_name = "N|auto", value_parser = parse_items, conflicts_with = "debug")]
    items_per_thread: Option<Items>,
    /// In OpenCL C, run each work-group as loops in at most this many work-items, which devices with small groups get for larger
    /// ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    work_items: Option<u32>,
    /// Write the code that the load option `debug` selects
    #[arg(long)]
    debug: bool,
    /// Write to a file; `-` is standard output [default: standard output]
    #[arg(long, value_name = "FILE|-")]
    output: Option<PathBuf>,
}

/// A value of `--items-per-thread`: a number, or `auto`.
#[derive(Clone, Copy, Debug)]
struct Items(Option<u32>);

fn parse_items(text: &str) -> std::result::Result<Items, String> {
    match text {
        "auto" => Ok(Items(None)),
        "1" | "2" | "4" | "8" => Ok(Items(text.parse().ok())),
        _ => Err("expected 1, 2, 4, 8 or auto".to_owned()),
    }
}

/// A format that portable kernels are lowered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// SPIR-V for Vulkan (binary)
    #[value(alias = "spirv-shader")]
    Spirv,
    /// OpenCL C
    OpenclC,
    /// CUDA C++
    CudaC,
    /// C for the host
    C,
}

/// Lowers a file, or shows its interface.
///
/// # Errors
/// Errors in the kernel with their line; `Io` for a file that cannot be read or written.
pub(crate) fn lower(arguments: &LowerArguments) -> Result<()> {
    let output = arguments.output.as_deref().unwrap_or(Path::new("-"));
    output_paths::check_against(&[("--output", output)], std::slice::from_ref(&arguments.file))?;
    let destination = Destination::open(output)?;
    let path = arguments.file.display().to_string();
    let code = text_file::read(&arguments.file)?;
    let mut specialisation = Specialisation {
        constants: arguments.constants.clone(),
        by_value: arguments.by_value.clone(),
        ..Specialisation::default()
    };
    arguments.elements.iter().try_for_each(|element| specialisation.add_element(element))?;
    let program = Program::parse(&code, &path, &specialisation)?;
    let program = if arguments.debug { program.with_debug_info() } else { program };
    let program = match arguments.items_per_thread {
        Some(Items(items)) if arguments.to != Some(Target::C) => program.coarsened(items)?,
        _ => program,
    };
    let program = match arguments.work_items {
        Some(most) => with_loops(program, most),
        None => program,
    };
    let checks = if arguments.unchecked { Checks::Unchecked } else { Checks::Bounded };
    let Some(target) = arguments.to else {
        let show = if arguments.json { interface_json } else { interface_text };
        return destination.write(show(&program).as_bytes());
    };
    if target == Target::Spirv && destination.is_standard() && std::io::stdout().is_terminal() {
        let message = "SPIR-V is binary: use --output FILE, or pipe it, e.g. to `spirv-dis`";
        return Err(Error::invalid(message));
    }
    destination.write(&lower_to(&program, target, checks)?)
}

/// The program with groups that run as loops in at most `most` work-items, on a device without other limits.
fn with_loops(program: Program, most: u32) -> Program {
    let limits = Limits { group_size: [u32::MAX; 3], group_items: u32::MAX, ..Limits::default() };
    let loops = GroupLoops::new(program.interfaces(), most, &limits, u64::MAX);
    program.with_group_loops(loops)
}

/// The code of a program in a format.
///
/// # Errors
/// `Unsupported` for what the format cannot express.
pub(crate) fn lower_to(program: &Program, target: Target, checks: Checks) -> Result<Vec<u8>> {
    let dialect = match target {
        Target::Spirv => {
            let words = program.spirv(checks)?;
            return Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect());
        }
        Target::OpenclC => Dialect::OpenCl,
        Target::CudaC => Dialect::Cuda,
        Target::C => Dialect::Host,
    };
    Ok(program.c(dialect, checks)?.text.into_bytes())
}

const fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::ReadWrite => "read_write",
    }
}

/// A table of arguments per entry point, then the constants and features of all of them.
fn interface_text(program: &Program) -> String {
    let mut text = String::new();
    for (index, interface) in program.interfaces().iter().enumerate() {
        entry_text(interface, program.work_items(index), &mut text);
    }
    for constant in program.overrides() {
        let id = constant.id.map(|id| format!("@id({id}) ")).unwrap_or_default();
        let default =
            constant.default.as_deref().map_or("must be given".to_owned(), |text| format!("= {text}"));
        let _ = writeln!(text, "constant {id}{}: {} {default}", constant.name, constant.type_name);
    }
    let features: Vec<_> = program.features().iter().map(|feature| feature.name()).collect();
    if !features.is_empty() {
        let _ = writeln!(text, "needs {}", features.join(", "));
    }
    text
}

fn entry_text(interface: &Interface, work_items: Option<[u32; 3]>, text: &mut String) {
    let [x, y, z] = interface.group_size;
    let _ = writeln!(text, "{}: work-groups of {x} × {y} × {z}", interface.name);
    if let Some([x, y, z]) = work_items {
        let _ = writeln!(text, "  in OpenCL C, run as loops by {x} × {y} × {z} work-items");
    }
    if interface.items_per_thread > 1 {
        let _ = writeln!(
            text,
            "  {} items per thread; the code takes the number of work-groups along x after the scalars",
            interface.items_per_thread
        );
    }
    if interface.shared_bytes > 0 {
        let _ = writeln!(text, "  {} bytes of workgroup memory", interface.shared_bytes);
    }
    let mut table = Table::new(&["  argument", "name", "kind", "dtype", "access"]);
    for (at, tensor) in interface.tensors.iter().enumerate() {
        let dtype = tensor.dtype.map_or_else(|| "struct".to_owned(), |dtype| dtype.to_string());
        let access = access_name(tensor.access).to_owned();
        table.row(vec![format!("  {at}"), tensor.name.clone(), "tensor".to_owned(), dtype, access]);
    }
    scalar_rows(interface, &mut table);
    if !interface.tensors.is_empty() || !interface.scalar_arguments().is_empty() {
        let _ = write!(text, "{table}");
    }
}

/// A row for each scalar, and for each layout.
fn scalar_rows(interface: &Interface, table: &mut Table) {
    let mut at = 0;
    while let Some(scalar) = interface.scalar_arguments().get(at) {
        let argument = interface.tensors.len() + at;
        let layout = interface.layouts.iter().find(|layout| layout.first_scalar == at);
        let [numbers, name, kind, dtype] = match layout {
            Some(layout) => {
                let tensor = &interface.tensors[layout.tensor].name;
                let last = argument + 2 * layout.rank - 1;
                let dtype = format!("{0} × u32, {0} × i32", layout.rank);
                [format!("  {argument}–{last}"), format!("{tensor}_layout"), "layout".to_owned(), dtype]
            }
            None => {
                let dtype = scalar.dtype.to_string();
                [format!("  {argument}"), scalar.name.clone(), "scalar".to_owned(), dtype]
            }
        };
        table.row(vec![numbers, name, kind, dtype, String::new()]);
        at += layout.map_or(1, |layout| 2 * layout.rank);
    }
}

fn interface_json(program: &Program) -> String {
    let constants = program.overrides().iter().map(|constant| {
        json!({
            "name": constant.name,
            "id": constant.id,
            "type": constant.type_name,
            "default": constant.default,
        })
    });
    let value = json!({
        "entries": program.interfaces().iter().map(entry_json).collect::<Vec<_>>(),
        "constants": constants.collect::<Vec<_>>(),
        "features": program.features().iter().map(|feature| feature.name()).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn entry_json(interface: &Interface) -> Value {
    let tensors = interface.tensors.iter().map(|tensor| {
        json!({
            "name": tensor.name,
            "kind": "tensor",
            "dtype": tensor.dtype.map(|dtype| dtype.to_string()),
            "access": access_name(tensor.access),
            "min_bytes": tensor.min_bytes,
        })
    });
    let scalars = interface
        .scalar_arguments()
        .iter()
        .map(|scalar| json!({ "name": scalar.name, "kind": "scalar", "dtype": scalar.dtype.to_string() }));
    let layouts = interface.layouts.iter().map(|layout| {
        json!({
            "tensor": interface.tensors[layout.tensor].name,
            "rank": layout.rank,
            "first_argument": interface.tensors.len() + layout.first_scalar,
        })
    });
    json!({
        "name": interface.name,
        "group_size": interface.group_size,
        "shared_bytes": interface.shared_bytes,
        "items_per_thread": interface.items_per_thread,
        "arguments": tensors.chain(scalars).collect::<Vec<_>>(),
        "layouts": layouts.collect::<Vec<_>>(),
    })
}
