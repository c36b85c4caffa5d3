//! Random views, and everything that moves their elements, compared with arithmetic on a vector.

use std::sync::Arc;

use runtime_core::{Arg, CommonRuntime, DType, Geometry, Kernel, Options, Placement, Queue, Tensor};

use super::random::Random;
use super::{kernel, open, queue};

/// Steps of one run. Miri is some hundred times slower.
const STEPS: usize = if cfg!(miri) { 25 } else { 400 };
/// Elements of a buffer.
const ELEMENTS: usize = 60;

/// A buffer and its expected content.
struct Whole {
    tensor: Tensor,
    data: Vec<f32>,
}

/// A view, and for each of its elements, in row-major order, the index in the buffer.
struct View {
    of: usize,
    tensor: Tensor,
    places: Vec<usize>,
}

struct Scene {
    device: Arc<dyn CommonRuntime>,
    queues: [Queue; 2],
    scale: Kernel,
    wholes: Vec<Whole>,
    random: Random,
}

impl Scene {
    fn new(name: &str, options: &Options, seed: u64) -> Self {
        let device = open(name, options);
        let whole = |space: &str| {
            let tensor = device.allocate(DType::F32, &[ELEMENTS], &Placement::space(space)).unwrap();
            let data: Vec<f32> = (0u16..).map(f32::from).take(ELEMENTS).collect();
            tensor.write(&data).unwrap();
            Whole { tensor, data }
        };
        let wholes = ["device", "device", "shared"].map(whole).into();
        let queues = [queue(&*device), queue(&*device)];
        let scale = kernel(&*device, "scale_f32");
        Self { device, queues, scale, wholes, random: Random(seed) }
    }

    fn queue(&mut self) -> &Queue {
        let index = self.random.index(2);
        &self.queues[index]
    }

    /// Extents and strides, and an offset with which they lie within a buffer.
    fn layout(&mut self) -> (Vec<usize>, Vec<i64>, usize) {
        loop {
            let ndim = self.random.index(4);
            let shape: Vec<usize> = (0..ndim).map(|_| self.random.index(6)).collect();
            let strides: Vec<i64> = (0..ndim).map(|_| self.random.within(-6, 13)).collect();
            let last = |(&n, &stride): (&usize, &i64)| (i64::try_from(n).unwrap() - 1).max(0) * stride;
            let ends: Vec<i64> = shape.iter().zip(&strides).map(last).collect();
            let low: i64 = ends.iter().filter(|end| **end < 0).sum();
            let high: i64 = ends.iter().filter(|end| **end > 0).sum();
            let room = i64::try_from(ELEMENTS).unwrap() - high;
            if -low < room {
                return (shape, strides, usize::try_from(self.random.within(-low, room)).unwrap());
            }
        }
    }

    fn view(&mut self) -> View {
        let of = self.random.index(self.wholes.len());
        let (shape, strides, offset) = self.layout();
        let tensor = self.wholes[of].tensor.view(&shape, &strides, offset).unwrap();
        self.changed(View { of, tensor, places: places(&shape, &strides, offset) })
    }

    /// The view, or one derived from it in a few steps.
    fn changed(&mut self, mut view: View) -> View {
        for _ in 0..self.random.index(3) {
            let tensor = view.tensor.clone();
            let ndim = tensor.shape().len();
            view.tensor = match self.random.index(3) {
                0 if ndim > 0 => {
                    let axis = self.random.index(ndim);
                    let from = self.random.index(tensor.shape()[axis] + 1);
                    let to = from + self.random.index(tensor.shape()[axis] + 1 - from);
                    tensor.slice(axis, from..to).unwrap()
                }
                1 if ndim > 1 => {
                    let mut axes: Vec<_> = (0..ndim).collect();
                    axes.swap(0, self.random.index(ndim));
                    tensor.permute(&axes).unwrap()
                }
                2 if tensor.is_contiguous() => tensor.reshape(&[1, tensor.len()]).unwrap(),
                _ => tensor,
            };
            view.places = if view.tensor.is_empty() {
                Vec::new()
            } else {
                places(view.tensor.shape(), view.tensor.strides(), view.tensor.byte_offset() / 4)
            };
        }
        view
    }

    fn step(&mut self) {
        let view = self.view();
        let bytes = view.tensor.size_bytes();
        match self.random.index(8) {
            0 => {
                let values: Vec<f32> = view.places.iter().map(|_| self.value()).collect();
                view.tensor.write(&values).unwrap();
                self.set(&view, &values);
            }
            1 => {
                let values: Vec<f32> = view.places.iter().map(|_| self.value()).collect();
                self.queue().write(&view.tensor, &bytes_of(&values)).unwrap();
                self.set(&view, &values);
            }
            2 => {
                // One value or two alternating ones, if they fit.
                let count = if view.places.len().is_multiple_of(2) { 1 + self.random.index(2) } else { 1 };
                let values: Vec<f32> = (0..count).map(|_| self.value()).collect();
                view.tensor.fill(&bytes_of(&values)).unwrap();
                self.set(&view, &values.repeat(view.places.len() / count));
            }
            3 => self.copy(&view),
            4 => {
                let dense = self.queue().contiguous(&view.tensor).unwrap();
                assert!(dense.is_contiguous());
                assert_eq!(dense.to_vec::<f32>().unwrap(), self.get(&view));
            }
            5 => {
                let mut read = vec![0u8; bytes];
                self.queue().read(&view.tensor, &mut read).unwrap();
                assert_eq!(read, bytes_of(&self.get(&view)));
            }
            6 => self.exchange(&view),
            _ => self.scale(&view),
        }
        assert_eq!(view.tensor.to_vec::<f32>().unwrap(), self.get(&view), "{:?}", view.tensor.strides());
    }

    /// A whole number, so that sums and products of a few stay exact.
    fn value(&mut self) -> f32 {
        f32::from(u16::try_from(self.random.index(1000)).unwrap())
    }

    fn copy(&mut self, to: &View) {
        let (shape, ndim) = (to.tensor.shape().to_vec(), to.tensor.shape().len());
        // The source: another view of the same shape, if one is found quickly.
        for _ in 0..50 {
            let strides: Vec<i64> = (0..ndim).map(|_| self.random.within(-3, 8)).collect();
            let (of, offset) = (self.random.index(self.wholes.len()), self.random.index(ELEMENTS));
            let Ok(tensor) = self.wholes[of].tensor.view(&shape, &strides, offset) else { continue };
            let places = if tensor.is_empty() { Vec::new() } else { places(&shape, &strides, offset) };
            let from = View { of, tensor, places };
            let values = self.get(&from);
            drop(self.queue().copy(&to.tensor, &from.tensor).unwrap());
            return self.set(to, &values);
        }
    }

    /// The kernel multiplies element by element: an element that occurs twice in the view, twice.
    fn scale(&mut self, view: &View) {
        let scale = self.scale.clone();
        let args = [Arg::read_write(&view.tensor), Arg::scalar(0.5f32)];
        drop(self.queue().launch(&scale, Geometry::single(), &args).unwrap());
        for &place in &view.places {
            self.wholes[view.of].data[place] *= 0.5;
        }
    }

    /// Another library gets the view and gives it back.
    fn exchange(&self, view: &View) {
        let managed = view.tensor.to_dlpack().unwrap().into_raw();
        // SAFETY: made by `to_dlpack`, given back once, and nothing uses the memory meanwhile.
        let theirs = unsafe { self.device.import_dlpack(managed) }.unwrap();
        assert_eq!((theirs.shape(), theirs.strides()), (view.tensor.shape(), view.tensor.strides()));
        assert_eq!(theirs.to_vec::<f32>().unwrap(), self.get(view));
    }

    fn get(&self, view: &View) -> Vec<f32> {
        view.places.iter().map(|&place| self.wholes[view.of].data[place]).collect()
    }

    fn set(&mut self, view: &View, values: &[f32]) {
        for (&place, &value) in view.places.iter().zip(values) {
            self.wholes[view.of].data[place] = value;
        }
    }

    fn check(&self) {
        for whole in &self.wholes {
            assert_eq!(whole.tensor.to_vec::<f32>().unwrap(), whole.data);
        }
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The index in the buffer of each element of a view.
fn places(shape: &[usize], strides: &[i64], offset: usize) -> Vec<usize> {
    let (Some((&extent, shape)), Some((&stride, strides))) = (shape.split_first(), strides.split_first())
    else {
        return vec![offset];
    };
    (0..extent)
        .flat_map(|index| {
            let first = i64::try_from(offset).unwrap() + i64::try_from(index).unwrap() * stride;
            places(shape, strides, usize::try_from(first).unwrap_or(usize::MAX))
        })
        .collect()
}

#[test]
fn random_views_do_what_arithmetic_says() {
    let modes = [
        ("null:0", Options::new()),
        ("null:1", Options::new()),
        ("null:0", Options::new().with("out_of_order", true)),
        ("null:0", Options::new().with("reorders", true)),
        ("null:0", Options::new().with("needs_flush", true).with("needs_signals", true)),
        ("null:0", Options::new().with("fail_call", "copy_2d:1:unsupported")),
        ("null:0", Options::new().with("delay_us", 50)),
    ];
    for (number, (name, options)) in modes.iter().enumerate() {
        let mut scene = Scene::new(name, options, 7 + number as u64);
        for _ in 0..STEPS {
            scene.step();
        }
        scene.check();
    }
}
