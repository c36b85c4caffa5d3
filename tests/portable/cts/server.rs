//! Usage: `cts-server DEVICE COMMAND…`. Starts a command, such as `node shard.mjs`, and answers what it asks on its standard output
//! on its standard input: whether WGSL is accepted, and what a launch on the device leaves in its buffers. Device `text` answers
//! the first only.
//!
//! A frame is the sizes of its two parts as `u32`, then JSON, then bytes.

#![allow(clippy::print_stderr, reason = "reports why it ends")]

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use runtime_core::{
    Access, Arg, CommonRuntime, DType, DeviceKind, Error, ErrorKind, Geometry, Kernel, ModuleSource,
    Placement, Queue, Runtime, Tensor, abi,
};
use runtime_kernel::naga::{self, TypeInner};
use runtime_kernel::{Interface, Program, Specialisation};
use serde_json::{Value, json};

/// Bytes on each side of a buffer, which a kernel must leave as they are.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0xa5;
/// A launch that takes longer hangs.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(60);
/// The language extensions that the suite asks for.
const LANGUAGE_FEATURES: [&str; 9] = [
    "readonly_and_readwrite_storage_textures",
    "packed_4x8_integer_dot_product",
    "unrestricted_pointer_parameters",
    "pointer_composite_access",
    "uniform_buffer_standard_layout",
    "texture_and_sampler_let",
    "subgroup_id",
    "subgroup_uniformity",
    "swizzle_assignment",
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cts-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [device, program, rest @ ..] = arguments.as_slice() else {
        return Err("usage: cts-server DEVICE COMMAND…".into());
    };
    let mut server = Server::open(device)?;
    let mut child = Command::new(program).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut replies), Some(mut requests)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the pipes are missing".into());
    };
    while let Some((head, bytes)) = read_frame(&mut requests)? {
        let (head, bytes) = server.answer(&head, &bytes);
        // If the command has ended, so has this.
        write_frame(&mut replies, &head, &bytes)?;
    }
    let status = child.wait()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The next frame; `None` at the end.
fn read_frame(from: &mut impl Read) -> io::Result<Option<(Value, Vec<u8>)>> {
    let mut json_size = [0; 4];
    if let Err(error) = from.read_exact(&mut json_size) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let mut byte_size = [0; 4];
    from.read_exact(&mut byte_size)?;
    let mut part = |size: [u8; 4]| {
        let mut bytes = vec![0; u32::from_le_bytes(size) as usize];
        from.read_exact(&mut bytes)?;
        io::Result::Ok(bytes)
    };
    let (json, bytes) = (part(json_size)?, part(byte_size)?);
    Ok(Some((serde_json::from_slice(&json)?, bytes)))
}

fn write_frame(to: &mut impl Write, head: &Value, bytes: &[u8]) -> io::Result<()> {
    let json = head.to_string().into_bytes();
    let too_long = |_| io::Error::other("a reply is too long");
    let sizes = [json.len(), bytes.len()].map(|size| u32::try_from(size).map_err(too_long));
    for size in sizes {
        to.write_all(&size?.to_le_bytes())?;
    }
    to.write_all(&json)?;
    to.write_all(bytes)?;
    to.flush()
}

/// Why a request fails: the text is at fault, or the device and what is below it.
enum Refusal {
    Invalid(String),
    Internal(String),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Internal(error.to_string())
    }
}

fn invalid(error: impl Into<String>) -> Refusal {
    Refusal::Invalid(error.into())
}

/// An entry point that is ready to run.
struct Pipeline {
    /// `None` on the device `text`.
    kernel: Option<Kernel>,
    interface: Interface,
}

struct Server {
    opened: Option<(Arc<dyn CommonRuntime>, Queue)>,
    pipelines: Vec<Pipeline>,
    /// By everything that makes it: the suite makes the same pipeline many times.
    numbers: HashMap<String, usize>,
}

impl Server {
    fn open(device: &str) -> runtime_core::Result<Self> {
        let mut opened = None;
        if device != "text" {
            let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).build();
            let device = runtime.open(device)?;
            let queue = device.queue()?;
            opened = Some((device, queue));
        }
        Ok(Self { opened, pipelines: Vec::new(), numbers: HashMap::new() })
    }

    fn answer(&mut self, head: &Value, bytes: &[u8]) -> (Value, Vec<u8>) {
        let answer = match head["op"].as_str() {
            Some("hello") => Ok((self.hello(), Vec::new())),
            Some("module") => check_module(text(head, "code")).map(|()| (json!({}), Vec::new())),
            Some("pipeline") => self.pipeline(head).map(|answer| (answer, Vec::new())),
            Some("dispatch") => self.dispatch(head, bytes),
            _ => Err(invalid("an unknown request")),
        };
        answer.unwrap_or_else(|refusal| {
            let (reason, error) = match refusal {
                Refusal::Invalid(error) => ("validation", error),
                Refusal::Internal(error) => ("internal", error),
            };
            (json!({ "error": error, "reason": reason }), Vec::new())
        })
    }

    /// What the device has.
    fn hello(&self) -> Value {
        let mut features = vec!["core-features-and-limits"];
        let (mut sizes, mut name) = ((4, 128), "text".to_owned());
        let mut has = |feature, text, on_device| {
            if on_device && check_module(text).is_ok() {
                features.push(feature);
            }
        };
        let info = self.opened.as_ref().map(|(device, _)| device.info());
        let has_f16 = info.is_none_or(|info| info.capabilities.has(abi::CAP_F16));
        has("shader-f16", "enable f16;", has_f16);
        // Emulated where there are none, except on Vulkan.
        let has_subgroups = info.is_none_or(|info| {
            let mut operations = info.properties.texts("sub_group_operation");
            info.id.target != "vulkan" || operations.any(|operation| operation.contains("arithmetic"))
        });
        has("subgroups", "enable subgroups;", has_subgroups);
        if let Some(info) = info {
            let number = |key| info.properties.text(key).and_then(|text| text.parse::<u32>().ok());
            let fixed = number("sub_group_size").filter(|_| info.kind != DeviceKind::Host);
            let fixed = fixed.filter(|_| info.id.target == "vulkan");
            sizes.0 = number("sub_group_size_min").or(fixed).unwrap_or(sizes.0);
            sizes.1 = number("sub_group_size_max").or(fixed).unwrap_or(sizes.1);
            name = info.id.to_string();
        }
        let is_known = |name: &&str| check_module(&format!("requires {name};")).is_ok();
        let language: Vec<_> = LANGUAGE_FEATURES.into_iter().filter(is_known).collect();
        let info = json!({ "subgroupMinSize": sizes.0, "subgroupMaxSize": sizes.1 });
        json!({ "device": name, "features": features, "languageFeatures": language, "info": info })
    }

    fn pipeline(&mut self, head: &Value) -> Result<Value, Refusal> {
        let key = head.to_string();
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None => {
                let made = self.make_pipeline(head)?;
                self.pipelines.push(made);
                self.numbers.insert(key, self.pipelines.len() - 1);
                self.pipelines.len() - 1
            }
        };
        let tensors = self.pipelines[number].interface.tensors.iter();
        let names: Vec<_> = tensors.map(|tensor| &tensor.name).collect();
        Ok(json!({ "id": number, "tensors": names }))
    }

    fn make_pipeline(&self, head: &Value) -> Result<Pipeline, Refusal> {
        let code = text(head, "code");
        let constants = constants(code, &head["constants"])?;
        let specialisation =
            constants.iter().fold(Specialisation::default(), |all, (name, value)| all.constant(name, value));
        let program =
            Program::parse(code, "", &specialisation).map_err(|error| invalid(error.to_string()))?;
        let interface = match (head["entry"].as_str(), program.interfaces()) {
            (Some(entry), all) => all.iter().find(|one| one.name == entry),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        let interface = interface.ok_or_else(|| invalid("there is no such compute entry point"))?.clone();
        let source =
            constants.iter().fold(ModuleSource::wgsl(code), |all, (name, value)| all.constant(name, value));
        let load = |(device, _): &(Arc<dyn CommonRuntime>, _)| device.load(&source)?.kernel(&interface.name);
        let kernel = self.opened.as_ref().map(load).transpose()?;
        Ok(Pipeline { kernel, interface })
    }

    /// Runs a pipeline; the reply has what is in all buffers afterwards.
    fn dispatch(&self, head: &Value, bytes: &[u8]) -> Result<(Value, Vec<u8>), Refusal> {
        let number = head["pipeline"].as_u64().and_then(|number| usize::try_from(number).ok());
        let pipeline = number.and_then(|number| self.pipelines.get(number));
        let pipeline = pipeline.ok_or_else(|| invalid("there is no such pipeline"))?;
        let (Some((device, queue)), Some(kernel)) = (&self.opened, &pipeline.kernel) else {
            return Err(Refusal::Internal("there is no device".to_owned()));
        };
        let (sizes, groups) = (numbers(&head["sizes"]), numbers(&head["groups"]));
        let tensors = &pipeline.interface.tensors;
        let [x, y, z] = groups[..] else { return Err(invalid("a launch has three dimensions")) };
        if sizes.len() != tensors.len() || sizes.iter().sum::<usize>() != bytes.len() {
            return Err(invalid("the buffers are not those of the pipeline"));
        }
        let mut rest = bytes;
        let mut parts = Vec::new();
        for size in sizes {
            let (part, behind) = rest.split_at(size);
            parts.push(part);
            rest = behind;
        }
        let made = tensors.iter().zip(&parts);
        let made = made.map(|(declared, part)| guarded(&**device, declared.dtype, part));
        let made = made.collect::<runtime_core::Result<Vec<_>>>()?;
        let args: Vec<_> = made
            .iter()
            .zip(tensors)
            .map(|((_, tensor), declared)| Arg::tensor(tensor, declared.access))
            .collect();
        let groups = [x, y, z].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let event = queue.launch(kernel, Geometry::new(groups, pipeline.interface.group_size), &args)?;
        event.wait_timeout(LAUNCH_TIMEOUT)?;
        let mut all = Vec::with_capacity(bytes.len());
        for (((whole, _), part), declared) in made.iter().zip(&parts).zip(tensors) {
            let now = between_guards(whole, part.len())?;
            if declared.access == Access::Read && now != *part {
                return Err(Refusal::Internal(format!("\"{}\" is read, but was written", declared.name)));
            }
            all.extend(now);
        }
        let written: Vec<_> = tensors.iter().map(|declared| declared.access != Access::Read).collect();
        Ok((json!({ "written": written }), all))
    }
}

/// Whether a text is valid, whatever the values of its overrides. Unlike a kernel, it needs no entry point.
fn check_module(code: &str) -> Result<(), Refusal> {
    match check_text(code) {
        Err(Refusal::Invalid(error)) if error.contains("there is no entry point") => {
            check_text(&format!("{code}\n@compute @workgroup_size(1) fn entry_of_the_suite() {{}}"))
        }
        other => other,
    }
}

fn check_text(code: &str) -> Result<(), Refusal> {
    match Program::parse(code, "", &Specialisation::default()) {
        Ok(_) => Ok(()),
        Err(error) if !code.contains("override") => Err(invalid(error.to_string())),
        // Whether the values are right is asked with the pipeline.
        Err(error) => {
            let with_values = error.to_string().contains("with the given constants");
            let by_text = error.kind() == ErrorKind::CompileFailed && !with_values;
            match Program::signature(code, "", &Specialisation::default(), "") {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(invalid(error.to_string())),
                _ if by_text => Err(invalid(error.to_string())),
                _ => Ok(()),
            }
        }
    }
}

/// The values of overrides as text of their types: the suite has numbers only.
fn constants(code: &str, values: &Value) -> Result<Vec<(String, String)>, Refusal> {
    let Some(values) = values.as_object().filter(|values| !values.is_empty()) else { return Ok(Vec::new()) };
    // naga does not know the extension.
    let plain = code.replace("enable subgroups;", "");
    let module = naga::front::wgsl::parse_str(&plain).map_err(|error| invalid(error.message()))?;
    let all = values.iter().map(|(key, value)| {
        let id = key.parse::<u16>().ok();
        let mut overrides = module.overrides.iter();
        let found = overrides.find(|(_, one)| match one.id {
            Some(number) => id == Some(number),
            None => one.name.as_ref() == Some(key),
        });
        let (_, found) = found.ok_or_else(|| invalid(format!("there is no override \"{key}\"")))?;
        let number = value.as_str().and_then(|text| text.parse::<f64>().ok());
        let number = number.ok_or_else(|| invalid(format!("override \"{key}\" has no number")))?;
        let is_bool = module.types[found.ty].inner == TypeInner::Scalar(naga::Scalar::BOOL);
        let value = if is_bool { (number != 0.0).to_string() } else { number.to_string() };
        Ok((found.name.clone().unwrap_or_default(), value))
    });
    all.collect()
}

fn text<'a>(head: &'a Value, key: &str) -> &'a str {
    head[key].as_str().unwrap_or_default()
}

fn numbers(value: &Value) -> Vec<usize> {
    let all = value.as_array().into_iter().flatten();
    all.map(|number| number.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(usize::MAX))
        .collect()
}

/// Allocates a tensor between guards; returns the whole allocation and the tensor.
fn guarded(
    device: &dyn CommonRuntime,
    dtype: Option<DType>,
    bytes: &[u8],
) -> runtime_core::Result<(Tensor, Tensor)> {
    let dtype = dtype.unwrap_or(DType::U32);
    let (guard, n) = (GUARD_BYTES / dtype.bytes(), bytes.len() / dtype.bytes());
    let whole = device.allocate(dtype, &[n + 2 * guard], &Placement::default())?;
    let guards = [GUARD; GUARD_BYTES];
    whole.write_bytes(&[&guards[..], bytes, &guards].concat())?;
    let inner = whole.slice(0, guard..guard + n)?;
    Ok((whole, inner))
}

/// The content between the guards, which must be intact.
fn between_guards(whole: &Tensor, bytes: usize) -> Result<Vec<u8>, Refusal> {
    let array = whole.to_array()?;
    let (front, rest) = array.bytes().split_at(GUARD_BYTES);
    let (inner, back) = rest.split_at(bytes);
    for (side, guard) in [("in front of", front), ("behind", back)] {
        if guard.iter().any(|byte| *byte != GUARD) {
            return Err(Refusal::Internal(format!("a buffer was written {side} its range")));
        }
    }
    Ok(inner.to_vec())
}
