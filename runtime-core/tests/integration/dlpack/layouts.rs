//! Tensors of any shape, strides and offset, compared with plain arithmetic.

use runtime_core::{DType, Tensor};

use super::producer::{Recipe, device};

/// A deterministic pseudo-random sequence (xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.below(u64::try_from(high - low + 1).unwrap())).unwrap()
    }
}

/// A tensor in memory, and its elements as they are expected to be read.
struct Case {
    recipe: Recipe,
    expected: Vec<u8>,
}

fn case(random: &mut Random) -> Case {
    let dtypes = [DType::U8, DType::BF16, DType::F32, DType::COMPLEX64, DType::COMPLEX128, DType::FP8_E5M2];
    let dtype = dtypes[usize::try_from(random.below(6)).unwrap()];
    let size = i64::try_from(dtype.bytes()).unwrap();
    let ndim = random.below(5);
    let shape: Vec<_> = (0..ndim).map(|_| random.between(0, 4).max(random.between(0, 2))).collect();
    let strides: Vec<_> = (0..ndim).map(|_| random.between(-6, 6)).collect();
    let reach = |sign: i64| -> i64 {
        let far = shape.iter().zip(&strides).map(|(n, s)| (n - 1).max(0) * s);
        far.filter(|far| far.signum() == sign).sum()
    };
    // In elements of the memory: where the first one lies, with some margin around everything.
    let first = random.between(0, 5) - reach(-1);
    let elements = first + reach(1) + 1 + random.between(0, 5);
    let words = usize::try_from(elements * size).unwrap().div_ceil(8);
    let words: Vec<_> = (0..words).map(|_| random.below(u64::MAX)).collect();
    let expected = read(bytemuck::cast_slice(&words), &shape, &strides, (first, size));
    let data_at = random.between(0, first);
    let recipe = Recipe {
        dtype,
        shape,
        strides: Some(strides),
        words,
        data_at: usize::try_from(data_at * size).unwrap(),
        byte_offset: u64::try_from((first - data_at) * size).unwrap(),
        flags: 0,
    };
    Case { recipe, expected }
}

/// The elements in row-major order of the indices.
fn read(memory: &[u8], shape: &[i64], strides: &[i64], (first, size): (i64, i64)) -> Vec<u8> {
    let [extent, shape @ ..] = shape else {
        let at = usize::try_from(first * size).unwrap();
        return memory[at..at + usize::try_from(size).unwrap()].to_vec();
    };
    (0..*extent).flat_map(|i| read(memory, shape, &strides[1..], (first + i * strides[0], size))).collect()
}

fn bytes(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = vec![0; tensor.size_bytes()];
    tensor.read_bytes(&mut bytes).unwrap();
    bytes
}

#[test]
fn elements_are_found_whatever_the_strides() {
    let device = device();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let rounds = if cfg!(miri) { 20 } else { 600 };
    for round in 0..rounds {
        let Case { recipe, expected } = case(&mut random);
        let (shape, strides) = (recipe.shape.clone(), recipe.strides.clone().unwrap());
        let (managed, watch) = recipe.make();
        // SAFETY: the memory holds all that the strides reach.
        let theirs = unsafe { device.import_dlpack(managed) }.unwrap();
        assert_eq!(bytes(&theirs), expected, "round {round}: {shape:?} {strides:?}");
        assert_eq!((theirs.strides(), theirs.shape().len()), (&strides[..], shape.len()));
        // Out and in again: the same elements.
        let again = theirs.to_dlpack().unwrap().into_raw();
        // SAFETY: our own structure; nothing is in flight.
        let again = unsafe { device.import_dlpack(again) }.unwrap();
        drop(theirs);
        assert_eq!(bytes(&again), expected, "round {round}: {shape:?} {strides:?}");
        assert_eq!(watch.deletions(), 0, "round {round}");
        drop(again);
        assert_eq!(watch.deletions(), 1, "round {round}");
    }
}

#[test]
fn writes_stay_within_the_elements() {
    let recipe = Recipe {
        shape: vec![2, 2],
        strides: Some(vec![-4, 2]),
        data_at: 5 * 4,
        ..Recipe::f32(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    };
    let (managed, _watch) = recipe.make();
    let device = device();
    // SAFETY: the elements 5, 7, 1 and 3 are inside.
    let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
    assert_eq!(tensor.to_vec::<f32>().unwrap(), [5.0, 7.0, 1.0, 3.0]);
    tensor.write(&[50f32, 70.0, 10.0, 30.0]).unwrap();
    // SAFETY: alive until the deleter is called.
    let data = unsafe { (*managed).dl_tensor.data }.cast::<f32>().wrapping_sub(5);
    // SAFETY: nine floats, which nobody writes meanwhile.
    let memory = unsafe { std::slice::from_raw_parts(data, 9) };
    assert_eq!(memory, [0.0, 10.0, 2.0, 30.0, 4.0, 50.0, 6.0, 70.0, 8.0]);
    let mirrored = tensor.view(&[4], &[2], 0).unwrap();
    assert_eq!(
        mirrored.to_vec::<f32>().unwrap(),
        [10.0, 30.0, 50.0, 70.0],
        "the buffer begins with what is reached"
    );
}

#[test]
fn null_strides_are_row_major_and_empty_tensors_need_no_data() {
    let device = device();
    let (managed, _watch) = Recipe { shape: vec![2, 2], ..Recipe::f32(&[1.0, 2.0, 3.0, 4.0]) }.make();
    // SAFETY: four elements.
    let tensor = unsafe { device.import_dlpack(managed) }.unwrap();
    assert_eq!((tensor.strides(), tensor.is_contiguous()), (&[2, 1][..], true));

    let (managed, watch) = Recipe { shape: vec![3, 0, 1 << 40], ..Recipe::f32(&[]) }.make();
    // SAFETY: our own structure.
    unsafe { (*managed).dl_tensor.data = std::ptr::null_mut() };
    // SAFETY: no element.
    let empty = unsafe { device.import_dlpack(managed) }.unwrap();
    assert_eq!((empty.len(), empty.to_vec::<f32>().unwrap()), (0, vec![]));
    let out = empty.to_dlpack().unwrap().into_raw();
    // SAFETY: just made.
    assert!(unsafe { (*out).dl_tensor.data }.is_null());
    super::producer::give_back(out);
    drop(empty);
    assert_eq!(watch.deletions(), 1);

    let (managed, _watch) = Recipe { shape: vec![], ..Recipe::f32(&[7.0]) }.make_unversioned();
    // SAFETY: one element.
    let scalar = unsafe { device.import_dlpack_unversioned(managed) }.unwrap();
    assert_eq!((scalar.shape(), scalar.to_vec::<f32>().unwrap()), (&[][..], vec![7.0]));
}
