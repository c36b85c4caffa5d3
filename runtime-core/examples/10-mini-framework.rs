//! A framework of about 100 lines: a two-layer perceptron that runs on any available device and names no backend.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{
    CodeFormat, Device, DeviceInfo, DeviceKind, Error, ErrorKind, Kernel, ModuleSource, Queue, Result,
    Runtime, Tensor, read, read_write, write,
};

/// The framework's kernels, one source for each code format that it supports.
const SOURCES: &[(&str, &str)] = &[("c", C)];
const C: &str = "
void linear(const float *x, const float *w, const float *b, float *y, long rows, long inputs, long outputs) {
    for (long r = 0; r < rows; r++)
        for (long o = 0; o < outputs; o++) {
            float sum = b[o];
            for (long i = 0; i < inputs; i++) sum += x[r * inputs + i] * w[o * inputs + i];
            y[r * outputs + o] = sum;
        }
}
void relu(float *x, long n) { for (long i = 0; i < n; i++) if (x[i] < 0) x[i] = 0; }";

/// A device with the framework's kernels loaded.
struct Engine {
    device: Device,
    queue: Queue,
    linear: Kernel,
    relu: Kernel,
}

/// The first of a device's formats (listed in order of preference) that the framework supports.
fn source(info: &DeviceInfo) -> Option<(&str, &'static str)> {
    let text =
        |format: &CodeFormat| SOURCES.iter().find(|(name, _)| *format == **name).map(|(_, text)| *text);
    info.formats.iter().find_map(|format| Some((format.as_str(), text(format)?)))
}

impl Engine {
    fn open(runtime: &Runtime, info: &DeviceInfo) -> Result<Self> {
        let unspoken =
            || Error::new(ErrorKind::Unavailable, "accepts no format that this framework supports");
        let (format, text) = source(info).ok_or_else(unspoken)?;
        let device = runtime.open(&info.id.to_string())?;
        // SAFETY: the kernels access only what `linear` and `relu` below pass, as declared there.
        let module = device.load(&unsafe { ModuleSource::native(format, text) })?;
        let queue = device.queue()?;
        Ok(Self { linear: module.kernel("linear")?, relu: module.kernel("relu")?, queue, device })
    }

    /// `x` [rows, inputs] times the layer's weights, transposed, plus its bias: [rows, outputs].
    fn linear(&self, x: &Tensor, layer: &Layer) -> Result<Tensor> {
        let [rows, inputs, outputs] = [x.shape()[0], x.shape()[1], layer.weights.shape()[0]];
        let y = self.device.empty::<f32>([rows, outputs])?;
        let [rows, inputs, outputs] = [rows, inputs, outputs].map(|extent| extent as u64);
        let Layer { weights, bias } = layer;
        let args = (read(x), read(weights), read(bias), write(&y), rows, inputs, outputs);
        self.queue.launch(&self.linear, (1, 1), args)?;
        Ok(y)
    }

    /// Replaces negative elements by zero, in place.
    fn relu(&self, x: Tensor) -> Result<Tensor> {
        self.queue.launch(&self.relu, (1, 1), (read_write(&x), x.len() as i64))?;
        Ok(x)
    }
}

/// Weights [outputs, inputs] and a bias [outputs].
struct Layer {
    weights: Tensor,
    bias: Tensor,
}

impl Layer {
    fn new(device: &Device, [outputs, inputs]: [usize; 2], values: &[f32]) -> Result<Self> {
        let (weights, bias) = values.split_at(outputs * inputs);
        let weights = device.tensor([outputs, inputs], weights)?;
        let bias = device.tensor([outputs], bias)?;
        weights.freeze().and_then(|()| bias.freeze())?; // frozen: launches read them without bookkeeping
        Ok(Self { weights, bias })
    }
}

const ROWS: usize = 5;
const INPUTS: usize = 8;
const HIDDEN: usize = 16;
const OUTPUTS: usize = 3;

/// The forward pass: three launches in a row, and one wait at the end, for the values.
fn forward(engine: &Engine, x: &[f32], hidden: &[f32], output: &[f32]) -> Result<Vec<f32>> {
    let hidden = Layer::new(&engine.device, [HIDDEN, INPUTS], hidden)?;
    let output = Layer::new(&engine.device, [OUTPUTS, HIDDEN], output)?;
    let x = engine.device.tensor([ROWS, INPUTS], x)?;
    engine.linear(&engine.relu(engine.linear(&x, &hidden)?)?, &output)?.to_vec()
}

/// The same layer in plain Rust.
fn plain(x: &[f32], layer: &[f32], inputs: usize) -> Vec<f32> {
    let (weights, bias) = layer.split_at(layer.len() / (inputs + 1) * inputs);
    let dot = |x: &[f32], w: &[f32]| x.iter().zip(w).map(|(x, w)| x * w).sum::<f32>();
    x.chunks(inputs).flat_map(|x| weights.chunks(inputs).zip(bias).map(move |(w, b)| b + dot(x, w))).collect()
}

/// Pseudo-random numbers between -1 and 1.
fn values(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * 12.9898 + count as f32).sin()).collect()
}

fn main() -> Result<()> {
    let runtime = Runtime::new();
    let [x, hidden, output] = [ROWS * INPUTS, HIDDEN * (INPUTS + 1), OUTPUTS * (HIDDEN + 1)].map(values);
    let activations: Vec<_> = plain(&x, &hidden, INPUTS).iter().map(|x| x.max(0.0)).collect();
    let expected = plain(&activations, &output, HIDDEN);
    let mut ran = 0;
    let is_usable =
        |info: &&DeviceInfo| info.unavailable_reason.is_none() && info.kind != DeviceKind::Embedded;
    for info in runtime.devices().iter().filter(is_usable) {
        match Engine::open(&runtime, info) {
            Ok(engine) => {
                let result = forward(&engine, &x, &hidden, &output)?;
                let near = result.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
                println!("{} ({}): {:?}, ...", info.id, info.name, &result[..OUTPUTS]);
                assert!(result.len() == ROWS * OUTPUTS && near, "{result:?} is not {expected:?}");
                ran += 1;
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => println!("{}: {error}", info.id),
            Err(error) => return Err(error),
        }
    }
    match ran {
        0 => {
            Err(Error::new(ErrorKind::Unavailable, "no device accepts a format that this framework supports"))
        }
        _ => Ok(()),
    }
}
