//! An embedded device: flashed with a builtin and described tensors, run, and read back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use half::{bf16, f16};
use parking_lot::Mutex;
use runtime_core::backend::{Program, ProgramArg, TensorDescription};
use runtime_core::code::{Register, RunReport};
use runtime_core::{DType, DTypeClass, Error, ErrorKind, Result};

use crate::arguments::{Argument, Arguments, Tensor};
use crate::builtins::Code;
use crate::memory::{Memory, Usage};
use crate::module::NullModule;

/// All memory of the device.
const MEMORY_BYTES: u64 = 16 << 20;

/// The flashed program, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Embedded {
    program: Mutex<Option<Flashed>>,
}

#[derive(Debug)]
struct Flashed {
    code: Code,
    arguments: Arguments,
    memories: Vec<Arc<Memory>>,
}

impl Embedded {
    pub(crate) fn flash(&self, image: &NullModule, program: &Program<'_>) -> Result<()> {
        // The old image is dropped first, because its memory is needed.
        let mut flashed = self.program.lock();
        *flashed = None;
        let usage = Usage::new(MEMORY_BYTES);
        let memories =
            program.tensors.iter().map(|tensor| create(tensor, &usage)).collect::<Result<Vec<_>>>()?;
        let list = program
            .args
            .iter()
            .map(|arg| argument(arg, &program.tensors, &memories))
            .collect::<Result<_>>()?;
        let arguments = Arguments { list, items: 1 };
        *flashed = Some(Flashed { code: image.first()?.code, arguments, memories });
        Ok(())
    }

    pub(crate) fn run(&self, deadline: Duration, clock_hz: u64) -> Result<RunReport> {
        let flashed = self.program.lock();
        let Flashed { code, arguments, .. } = flashed.as_ref().ok_or_else(nothing)?;
        let began = Instant::now();
        let duration = code.duration(arguments)?;
        std::thread::sleep(duration.min(deadline));
        if duration > deadline {
            return Err(Error::new(
                ErrorKind::Timeout,
                format!("the program was still running after {deadline:?}"),
            ));
        }
        code.run(arguments, &[])?;
        let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let cycles = elapsed_ns.saturating_mul(clock_hz / 1_000_000) / 1_000;
        Ok(RunReport { cycles: Some(cycles), elapsed_ns, ..RunReport::default() })
    }

    pub(crate) fn read(&self, tensor: u32, offset: u64, destination: &mut [u8]) -> Result<()> {
        let flashed = self.program.lock();
        let memories = &flashed.as_ref().ok_or_else(nothing)?.memories;
        let memory = memories.get(tensor as usize).ok_or_else(|| no_tensor(tensor, memories.len()))?;
        memory.take(offset, destination)
    }

    /// The memory of the target is that of its first tensor, from address 0.
    pub(crate) fn read_memory(&self, address: u64, destination: &mut [u8]) -> Result<()> {
        let flashed = self.program.lock();
        let memories = &flashed.as_ref().ok_or_else(nothing)?.memories;
        let memory = memories.first().ok_or_else(|| no_tensor(0, 0))?;
        memory
            .take(address, destination)
            .map_err(|error| Error::new(ErrorKind::Driver, format!("no memory there: {}", error.message())))
    }

    pub(crate) fn registers(&self) -> Result<Vec<Register>> {
        let flashed = self.program.lock();
        let Flashed { memories, .. } = flashed.as_ref().ok_or_else(nothing)?;
        Ok(vec![
            Register { name: "pc".to_owned(), value: 0 },
            Register { name: "tensors".to_owned(), value: memories.len() as u64 },
        ])
    }
}

fn nothing() -> Error {
    Error::invalid("nothing is flashed; call flash first")
}

fn no_tensor(index: u32, count: usize) -> Error {
    Error::invalid(format!("tensor {index} does not exist; the program has {count}"))
}

/// Creates a tensor, filled from its data or its seed.
fn create(tensor: &TensorDescription<'_>, usage: &Arc<Usage>) -> Result<Arc<Memory>> {
    let elements =
        tensor.shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(usize::try_from(extent).ok()?));
    let elements = elements
        .ok_or_else(|| Error::invalid(format!("shape {:?} is negative or too large", tensor.shape)))?;
    let bytes = elements.saturating_mul(tensor.dtype.bytes());
    let memory = Memory::allocate(bytes, 256, usage)?;
    match tensor.data {
        Some(data) if data.len() != bytes => {
            Err(Error::invalid(format!("data has {} bytes, the tensor {bytes}", data.len())))
        }
        Some(data) => memory.put(0, data),
        None => memory.put(0, &generate(tensor.dtype, tensor.seed, elements)),
    }?;
    Ok(memory)
}

/// Element `i` is derived from `splitmix64(seed + i)`: a float in [0, 1), or the low bytes.
fn generate(dtype: DType, seed: u64, elements: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(elements * dtype.bytes());
    for index in 0..elements as u64 {
        let bits = splitmix64(seed.wrapping_add(index));
        // 24 bits are exact in f32, 53 in f64.
        #[expect(clippy::cast_precision_loss, reason = "exact")]
        let (single, double) =
            ((bits >> 40) as f32 / 16_777_216.0, (bits >> 11) as f64 / 9_007_199_254_740_992.0);
        match (dtype.class(), dtype.bytes()) {
            (DTypeClass::Float, 2) => bytes.extend(f16::from_f32(single).to_le_bytes()),
            (DTypeClass::BFloat, 2) => bytes.extend(bf16::from_f32(single).to_le_bytes()),
            (DTypeClass::Float, 4) => bytes.extend(single.to_le_bytes()),
            (DTypeClass::Float, 8) => bytes.extend(double.to_le_bytes()),
            (DTypeClass::Bool, _) => bytes.push((bits & 1) as u8),
            (_, size) => bytes.extend(bits.to_le_bytes().iter().cycle().take(size)),
        }
    }
    bytes
}

/// Vigna's `splitmix64`.
const fn splitmix64(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn argument(
    arg: &ProgramArg<'_>,
    tensors: &[TensorDescription<'_>],
    memories: &[Arc<Memory>],
) -> Result<Argument> {
    let index = match *arg {
        ProgramArg::Tensor(index) => index,
        ProgramArg::Scalar(dtype, bits) => return Ok(Argument::Scalar(dtype, bits)),
        ProgramArg::Bytes(_) => return Ok(Argument::Other),
    };
    let tensor = tensors.get(index as usize).ok_or_else(|| no_tensor(index, tensors.len()))?;
    let memory = Arc::clone(&memories[index as usize]);
    Ok(Argument::Tensor(Tensor::contiguous(memory, tensor.dtype, tensor.shape)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime_core::backend::Source;
    use runtime_core::{Access, Options};

    use super::*;
    use crate::fault::Faults;

    fn image(text: &str) -> NullModule {
        let options = Options::new();
        let source = Source { format: "null", path: "", code: Some(text.as_bytes()), options: &options };
        NullModule::load(&source, &Arc::<Faults>::default()).unwrap()
    }

    fn described(data: Option<&[u8]>, seed: u64) -> TensorDescription<'_> {
        TensorDescription { dtype: DType::F32, shape: &[2], access: Access::ReadWrite, data, seed }
    }

    #[test]
    fn a_flashed_program_runs_on_its_tensors() {
        let device = Embedded::default();
        assert!(device.run(Duration::from_secs(1), 1).is_err(), "nothing is flashed");
        let data: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let two = ProgramArg::Scalar(DType::F32, u64::from(2.0f32.to_bits()));
        let program =
            Program { tensors: vec![described(Some(&data), 0)], args: vec![ProgramArg::Tensor(0), two] };
        device.flash(&image("scale_f32"), &program).unwrap();
        assert_eq!(device.run(Duration::from_secs(1), 1_000_000_000).unwrap().exit_code, 0);
        let mut bytes = [0; 4];
        device.read(0, 4, &mut bytes).unwrap();
        assert_eq!(f32::from_le_bytes(bytes).to_bits(), 4.0f32.to_bits());
        assert!(device.read(0, 5, &mut bytes).is_err() && device.read(1, 0, &mut bytes).is_err());
    }

    #[test]
    fn a_program_that_is_too_slow_is_a_timeout() {
        let device = Embedded::default();
        let program = Program { tensors: Vec::new(), args: vec![ProgramArg::Scalar(DType::I64, 50_000)] };
        device.flash(&image("spin"), &program).unwrap();
        assert_eq!(device.run(Duration::from_micros(10), 1).unwrap_err().kind(), ErrorKind::Timeout);
    }

    #[test]
    fn a_seed_gives_the_same_numbers_every_time() {
        // The first output of the reference implementation for seed 0.
        assert_eq!(splitmix64(0), 0xe220_a839_7b1d_cdaf);
        let floats = generate(DType::F32, 7, 100);
        assert_eq!(floats, generate(DType::F32, 7, 100));
        assert_ne!(floats, generate(DType::F32, 8, 100));
        assert!(bytemuck::pod_collect_to_vec::<u8, f32>(&floats).iter().all(|x| (0.0..1.0).contains(x)));
        assert_eq!(generate(DType::COMPLEX128, 1, 3).len(), 48);
    }
}
