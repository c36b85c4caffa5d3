//! Reads and writes `.npy` files, and uses views: other shapes of the same memory.

use runtime_core::{HostArray, Placement, Result, Runtime};

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let [input, output] = ["input.npy", "output.npy"].map(|name| folder.path().join(name));
    HostArray::from_slice(&[2, 3], &[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0])?.save_npy(&input)?;

    let device = Runtime::new().open("host")?;
    let matrix =
        device.tensor_from_array(&HostArray::load_npy(&input)?, &Placement::default().aligned(4096))?;
    assert_eq!((matrix.shape(), matrix.strides()), (&[2, 3][..], &[3, 1][..]));

    let transposed = matrix.permute(&[1, 0])?;
    assert_eq!(transposed.to_vec::<f32>()?, [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]); // elements come out in row-major order
    let copy = device.queue()?.contiguous(&transposed)?; // what a kernel takes
    assert_eq!((copy.shape(), copy.strides()), (&[3, 2][..], &[2, 1][..]));

    matrix.slice(0, 1..2)?.write(&[7.0f32, 8.0, 9.0])?; // the second row
    matrix.slice(1, 0..1)?.fill(&(-1.0f32).to_le_bytes())?; // the first column, which has gaps
    assert_eq!(matrix.to_vec::<f32>()?, [-1.0, 1.0, 2.0, -1.0, 8.0, 9.0]);

    let repeated = matrix.view(&[2, 3], &[0, 1], 3)?; // the second row twice: a stride of zero
    assert_eq!(repeated.to_vec::<f32>()?, [-1.0, 8.0, 9.0, -1.0, 8.0, 9.0]);
    assert!(matrix.view(&[2, 3], &[3, 1], 1).is_err()); // one element too far
    let mut mapped = matrix.map_mut()?; // host-visible memory, without a copy
    mapped.as_mut_slice::<f32>()?[0] = 100.0;
    assert!(matrix.map().is_err()); // a mutable view excludes all others
    drop(mapped);

    transposed.to_array()?.save_npy(&output)?;
    let saved = HostArray::load_npy(&output)?;
    assert_eq!(saved.shape(), [3, 2]);
    assert_eq!(saved.as_slice::<f32>()?, [100.0, -1.0, 1.0, 8.0, 2.0, 9.0]);

    matrix.freeze()?; // read-only from here on, for all views
    assert!(transposed.is_frozen() && matrix.write(&[0.0f32; 6]).is_err());
    Ok(())
}
