//! Runs cases on a device.

#![allow(unsafe_code, reason = "imports guarded memory into tensors of the host")]

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use naga::ScalarKind;
use portable::host_checks;
use portable::modified_lowering::modified_lowering;
use runtime_core::lowering::Lowering;
use runtime_core::{
    Arg, CommonRuntime, DType, ErrorKind, Geometry, ModuleSource, Options, Placement, Queue, Runtime, Tensor,
};
use runtime_kernel::{REJECTED, naga};

use crate::case::{Case, Launch};
use crate::device_process::CHECKER_LOG;
use crate::guarded_memory::GuardedMemory;
use crate::interpret::{self, Expected};
use crate::opaque_constants::opaque_constants;

/// A launch that takes longer than this hangs.
const LAUNCH_TIMEOUT: Duration = Duration::from_secs(60);
/// Guard bytes on each side of a tensor, on devices without guard pages.
const GUARD_BYTES: usize = 256;
const GUARD: u8 = 0x5a;

/// The result of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The expected result.
    Same,
    /// The device lacks a feature that the kernel needs.
    Unsupported(String),
    /// The module failed to load.
    Rejected(String),
    /// The launch failed or hung.
    Failed(String),
    /// A different result.
    Different(String),
    /// The process crashed; with the reason.
    Crashed(String),
}

impl Verdict {
    /// Whether the verdict is a failure.
    #[must_use]
    pub const fn is_wrong(&self) -> bool {
        !matches!(self, Self::Same | Self::Unsupported(_))
    }

    /// Whether two verdicts show the same failure, so that a smaller case still reproduces it.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        // Compare the words of an error, without names and line numbers.
        let words =
            |text: &str| text.chars().filter(|c| c.is_alphabetic() || *c == ' ').take(40).collect::<String>();
        match (self, other) {
            (Self::Rejected(a), Self::Rejected(b)) => words(a) == words(b),
            (Self::Crashed(a), Self::Crashed(b)) => a == b,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// A device that accepts WGSL.
#[derive(Debug)]
pub struct Device {
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
    options: Options,
    /// The log of an external checker (validation layer, Oclgrind), and how much of it was read.
    checker_log: Option<(PathBuf, Cell<usize>)>,
}

/// What the words after a device select.
struct Selected {
    lowering: Arc<dyn Lowering>,
    /// For loading.
    options: Options,
    /// For opening the device.
    open_options: Options,
}

impl Selected {
    fn by(words: &str) -> Self {
        let (mut options, mut open_options) = (Options::new(), Options::new());
        let (mut lowering, mut is_quick) = (verified(), false);
        for (key, value) in words.split('/').filter_map(|word| word.split_once('=')) {
            match key {
                "unchecked" => lowering = host_checks::unchecked(),
                "constants" => lowering = opaque_constants(),
                "quick" => is_quick = value == "true",
                "serial_items" => open_options.push(key, value == "true"),
                _ => {
                    options = match value.parse::<bool>() {
                        Ok(flag) => options.with(key, flag),
                        Err(_) => options.with(key, value),
                    }
                }
            }
        }
        if is_quick {
            lowering = host_checks::quick_to_compile(lowering);
        }
        Self { lowering, options, open_options }
    }
}

impl Device {
    /// Opens `host`, `opencl:0`, …; load options follow after slashes: `host/variants=2`. Two more options select a
    /// lowering: `unchecked=true` (no bounds checks on the host) and `constants=opaque` (SPIR-V whose constants the
    /// driver's compiler cannot see). With `quick=true`, C of any lowering is compiled without optimisation.
    /// `serial_items=true` is an option of the host itself.
    ///
    /// # Errors
    /// Those of opening the device.
    pub fn open(name: &str) -> runtime_core::Result<Self> {
        let (name, words) = name.split_once('/').unwrap_or((name, ""));
        let Selected { lowering, options, open_options } = Selected::by(words);
        let runtime = Runtime::builder().with_lowering(lowering).build();
        let device = runtime.open_with(name, &open_options)?;
        let queue = device.queue()?;
        let checker_log = std::env::var_os(CHECKER_LOG).map(|path| (PathBuf::from(path), Cell::new(0)));
        Ok(Self { device, queue, options, checker_log })
    }

    /// New messages in the log of the external checker.
    fn checker_messages(&self) -> Option<String> {
        let (path, seen) = self.checker_log.as_ref()?;
        let text = std::fs::read_to_string(path).ok()?;
        let new = text.get(seen.replace(text.len())..)?.trim().to_owned();
        (!new.is_empty()).then_some(new)
    }

    /// Loads a case, and calls `report` before each launch, without a verdict, and after it, with one.
    ///
    /// # Errors
    /// The verdict for all launches, if the module does not load.
    pub fn run(
        &self,
        case: &Case,
        expected: &[Expected],
        mut report: impl FnMut(usize, Option<Verdict>),
    ) -> Result<(), Verdict> {
        let mut source = ModuleSource::wgsl(&case.text);
        for (name, value) in case.launches.iter().flat_map(|launch| &launch.constants) {
            source = source.constant(name, value);
        }
        for (key, value) in self.options.iter() {
            source = source.option(key, value.clone());
        }
        let refused = |error: runtime_core::Error| match error.kind() {
            // More work-group memory or stack than the device has.
            ErrorKind::Unsupported | ErrorKind::OutOfResources => Verdict::Unsupported(error.to_string()),
            _ => Verdict::Rejected(error.to_string()),
        };
        let module = self.device.load(&source).map_err(refused)?;
        for (index, (launch, expected)) in case.launches.iter().zip(expected).enumerate() {
            report(index, None);
            let verdict = match self.launch(&module, launch, expected) {
                Ok(verdict) => self.checker_messages().map_or(verdict, Verdict::Failed),
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    Verdict::Unsupported(error.to_string())
                }
                Err(error) => Verdict::Failed(error.to_string()),
            };
            report(index, Some(verdict));
        }
        Ok(())
    }

    fn launch(
        &self,
        module: &runtime_core::Module,
        launch: &Launch,
        expected: &Expected,
    ) -> runtime_core::Result<Verdict> {
        let kernel = module.kernel(&launch.entry)?;
        // Some drivers limit the group size of a kernel further when it is compiled.
        let items: u32 = expected.group.iter().product();
        if let Some(limit) = kernel.info().max_group_items.filter(|limit| *limit < items) {
            return Ok(Verdict::Unsupported(format!(
                "groups of {items} items, the kernel's limit is {limit}"
            )));
        }
        let guarded: Vec<_> = (expected.tensors.iter().enumerate())
            .map(|(index, tensor)| {
                self.allocate_guarded(tensor, (launch.seed + index as u64).is_multiple_of(4))
            })
            .collect::<runtime_core::Result<_>>()?;
        let mut args: Vec<_> = (guarded.iter().zip(&expected.tensors))
            .map(|(guarded, tensor)| match tensor.written {
                true => Arg::read_write(&guarded.tensor),
                false => Arg::read(&guarded.tensor),
            })
            .collect();
        args.extend(expected.scalars.iter().map(|(scalar, bits)| Arg::scalar_bits(dtype(*scalar), *bits)));
        let geometry = Geometry::new(launch.groups, expected.group);
        self.queue.launch(&kernel, geometry, &args)?.wait_timeout(LAUNCH_TIMEOUT)?;
        drop(args);
        let mut result = Verdict::Same;
        for (index, (guarded, tensor)) in guarded.into_iter().zip(&expected.tensors).enumerate() {
            if let Err(difference) = guarded.content().and_then(|content| compare(tensor, &content)) {
                result = Verdict::Different(format!("tensor {index}{difference}"));
            }
        }
        Ok(result)
    }

    /// Allocates a tensor with guards: pages without access on the host, guard bytes on other devices.
    fn allocate_guarded(
        &self,
        tensor: &interpret::Tensor,
        at_start: bool,
    ) -> runtime_core::Result<GuardedTensor> {
        let dtype = tensor.scalar.map_or(DType::U8, dtype);
        let size = dtype_bytes(dtype);
        let count = tensor.before.len() / size;
        if let Some(host) = self.device.as_host() {
            let memory = GuardedMemory::new(&tensor.before, !at_start, 16)
                .map_err(|error| runtime_core::Error::new(ErrorKind::OutOfMemory, error.to_string()))?;
            // SAFETY: the memory is dropped after the tensor and after all work on it has completed.
            let tensor = unsafe { host.import(memory.start(), dtype, &[count]) }?;
            return Ok(GuardedTensor { tensor, guards: Guards::Pages(memory) });
        }
        let guard = GUARD_BYTES / size;
        let whole = self.device.allocate(dtype, &[count + 2 * guard], &Placement::default())?;
        let guards = [GUARD; GUARD_BYTES];
        whole.write_bytes(&[&guards[..], &tensor.before, &guards].concat())?;
        let inner = whole.slice(0, guard..guard + count)?;
        Ok(GuardedTensor { tensor: inner, guards: Guards::Bytes(whole) })
    }
}

/// The lowering of WGSL. It fails if the verifier rejects a schedule for the host, instead of using the plain one.
fn verified() -> Arc<dyn Lowering> {
    modified_lowering(None, |_, _, lowered| {
        let text = std::str::from_utf8(&lowered.code).unwrap_or_default();
        match text.lines().find(|line| line.starts_with(REJECTED)) {
            None => Ok(()),
            Some(why) => {
                let message = format!("a schedule was rejected: {why}");
                Err(runtime_core::Error::new(ErrorKind::Internal, message))
            }
        }
    })
}

struct GuardedTensor {
    tensor: Tensor,
    guards: Guards,
}

enum Guards {
    Pages(GuardedMemory),
    Bytes(Tensor),
}

impl GuardedTensor {
    fn content(self) -> Result<Vec<u8>, String> {
        let Self { tensor, guards } = self;
        drop(tensor);
        let whole = match guards {
            Guards::Pages(memory) => return Ok(memory.content()),
            Guards::Bytes(whole) => whole,
        };
        let array = whole.to_array().map_err(|error| format!(": {error}"))?;
        let (front, rest) = array.bytes().split_at(GUARD_BYTES);
        let (inner, back) = rest.split_at(rest.len() - GUARD_BYTES);
        for (side, guard) in [("in front of it", front), ("behind it", back)] {
            if let Some(at) = guard.iter().position(|byte| *byte != GUARD) {
                return Err(format!(": byte {at} {side} was written"));
            }
        }
        Ok(inner.to_vec())
    }
}

/// Compares all bytes. Zeros of either sign are equal, because WGSL lets devices ignore the sign ("Differences from
/// IEEE-754").
pub(crate) fn compare(tensor: &interpret::Tensor, content: &[u8]) -> Result<(), String> {
    compare_padding(tensor, content)?;
    let mut wrong = 0;
    let mut first = String::new();
    for (index, slot) in tensor.slots.iter().enumerate() {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            let width = usize::from(slot.scalar.width);
            word[..width].copy_from_slice(&bytes[slot.offset..slot.offset + width]);
            u64::from_le_bytes(word)
        };
        let (expected, is) = (word(&tensor.after), word(content));
        let sign = 1 << (u32::from(slot.scalar.width) * 8 - 1);
        let zeros = slot.scalar.kind == ScalarKind::Float && expected & !sign == 0 && is & !sign == 0;
        if expected != is && !zeros {
            wrong += 1;
            if first.is_empty() {
                first = format!(
                    " scalar {index} is {is:#x}, not {expected:#x} (before: {:#x})",
                    word(&tensor.before)
                );
            }
        }
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{first}; {wrong} of {} differ", tensor.slots.len())) }
}

/// Compares the bytes between scalars, which no kernel writes.
fn compare_padding(tensor: &interpret::Tensor, content: &[u8]) -> Result<(), String> {
    let mut is_padding = vec![true; tensor.after.len()];
    for slot in &tensor.slots {
        is_padding[slot.offset..slot.offset + usize::from(slot.scalar.width)].fill(false);
    }
    match (0..is_padding.len()).find(|at| is_padding[*at] && content[*at] != tensor.after[*at]) {
        None => Ok(()),
        Some(at) => {
            Err(format!(" byte {at}, which is padding, is {:#x}, not {:#x}", content[at], tensor.after[at]))
        }
    }
}

const fn dtype_bytes(dtype: DType) -> usize {
    match dtype {
        DType::U8 => 1,
        DType::F16 => 2,
        DType::I64 | DType::U64 | DType::F64 => 8,
        _ => 4,
    }
}

const fn dtype(scalar: naga::Scalar) -> DType {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Float, 2) => DType::F16,
        (ScalarKind::Float, 4) => DType::F32,
        (ScalarKind::Float, _) => DType::F64,
        (ScalarKind::Sint, 4) => DType::I32,
        (ScalarKind::Sint, _) => DType::I64,
        (_, 4) => DType::U32,
        (_, _) => DType::U64,
    }
}

#[cfg(test)]
mod tests {
    use runtime_core::lowering::PortableSource;
    use runtime_core::{CodeFormat, DeviceInfo, DeviceKind};

    use super::*;

    #[test]
    fn bytes_between_scalars_are_compared() {
        let slot = |offset| interpret::Slot { offset, scalar: naga::Scalar::U32 };
        let bytes = vec![0xa5; 12];
        let tensor = interpret::Tensor {
            binding: 0,
            written: true,
            before: bytes.clone(),
            after: bytes.clone(),
            slots: vec![slot(0), slot(8)],
            scalar: None,
        };
        assert_eq!(compare(&tensor, &bytes), Ok(()));
        let mut written = bytes;
        written[6] = 0;
        let words = " byte 6, which is padding, is 0x0, not 0xa5";
        assert_eq!(compare(&tensor, &written), Err(words.to_owned()));
    }

    #[test]
    fn quick_code_comes_from_the_selected_lowering_in_any_order() {
        let code = "@group(0) @binding(0) var<storage, read_write> x: array<u32>;
                    @compute @workgroup_size(1) fn main() { x[x[0]] = 1u; }";
        let mut host = DeviceInfo::new(DeviceKind::Host, 0, "Host");
        host.formats = vec![CodeFormat::C];
        let lower = |words| {
            let Selected { lowering, options, .. } = Selected::by(words);
            let source = PortableSource { code, path: "main.wgsl", options: &options };
            let lowered = lowering.lower(&source, &host).unwrap();
            (String::from_utf8(lowered.code).unwrap(), lowered.options.text("flags") == Some("-O0"))
        };
        let (unchecked, is_quick) = lower("unchecked=true");
        assert!(!is_quick && unchecked != lower("").0);
        for words in ["unchecked=true/quick=true", "quick=true/unchecked=true"] {
            assert_eq!(lower(words), (unchecked.clone(), true), "{words}");
        }
        assert_eq!(lower("quick=true"), (lower("").0, true));
        assert_eq!(lower("quick=false"), lower(""));
    }
}
