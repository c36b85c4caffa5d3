use std::fs;

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A file in NumPy's format, with the given version, header text and data.
fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([version, 0]);
    let length = u32::try_from(header.len()).unwrap().to_le_bytes();
    bytes.extend(if version == 1 { &length[..2] } else { &length[..] });
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

fn load_bytes(bytes: &[u8]) -> Result<HostArray> {
    let folder = folder();
    let path = folder.path().join("array.npy");
    fs::write(&path, bytes).unwrap();
    HostArray::load_npy(&path)
}

#[test]
fn all_dtypes_survive_a_round_trip() {
    let folder = folder();
    let path = folder.path().join("array.npy");
    for (_, dtype) in ELEMENT_TYPES {
        for shape in [&[][..], &[3], &[0, 5], &[2, 3, 4]] {
            let mut array = HostArray::new(dtype, shape).unwrap();
            array.bytes_mut().iter_mut().zip((1..=u8::MAX).cycle()).for_each(|(byte, value)| *byte = value);
            array.save_npy(&path).unwrap();
            assert_eq!(HostArray::load_npy(&path).unwrap(), array, "{dtype} {shape:?}");
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left");
}

#[test]
fn the_header_is_what_numpy_writes() {
    let array = HostArray::from_slice(&[2, 3], &[0f32; 6]).unwrap();
    let header = encode_header(&array).unwrap();
    // numpy.save(f, numpy.zeros((2, 3), "f4")): 128 bytes up to the data, the length is 118.
    assert_eq!(header.len() % 64, 0);
    assert_eq!(header[..8], *b"\x93NUMPY\x01\x00");
    assert!(header[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  "));
    assert_eq!(header.last(), Some(&b'\n'));
    let text = |shape: &[usize]| {
        String::from_utf8_lossy(&encode_header(&HostArray::new(DType::BOOL, shape).unwrap()).unwrap())
            .into_owned()
    };
    assert!(text(&[7]).contains("'|b1'") && text(&[7]).contains("'shape': (7,),"));
    assert!(text(&[]).contains("'shape': (),"));
}

#[test]
fn all_versions_and_spellings_are_read() {
    let data = [1u8, 0, 2, 0];
    for version in 1..=3 {
        let bytes = file(version, "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n", &data);
        assert_eq!(load_bytes(&bytes).unwrap().as_slice::<i16>().unwrap(), [1, 2]);
    }
    let odd = file(1, "{\"shape\":(1L,2L),'fortran_order':False , 'descr':'=i2'}", &data);
    assert_eq!(load_bytes(&odd).unwrap().shape(), [1, 2]);
}

#[test]
fn column_major_becomes_row_major() {
    // numpy.arange(24).reshape(2, 3, 4) in column-major order: element (i, j, k) is at i + 2 j + 6 k.
    let mut data = [0u8; 24];
    for (i, j, k) in (0..2).flat_map(|i| (0..3).flat_map(move |j| (0..4).map(move |k| (i, j, k)))) {
        data[i + 2 * j + 6 * k] = u8::try_from(12 * i + 4 * j + k).unwrap();
    }
    let bytes = file(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4), }", &data);
    let expected: Vec<u8> = (0..24).collect();
    assert_eq!(load_bytes(&bytes).unwrap().as_slice::<u8>().unwrap(), expected);
}

#[test]
fn foreign_byte_order_is_converted() {
    let bytes = file(
        1,
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
        &[1.5f32.to_be_bytes(), 2.5f32.to_be_bytes()].concat(),
    );
    assert_eq!(load_bytes(&bytes).unwrap().as_slice::<f32>().unwrap(), [1.5, 2.5]);
    let complex = file(
        1,
        "{'descr': '>c8', 'fortran_order': False, 'shape': (), }",
        &[1.5f32.to_be_bytes(), 2.5f32.to_be_bytes()].concat(),
    );
    assert_eq!(load_bytes(&complex).unwrap().bytes(), [1.5f32.to_ne_bytes(), 2.5f32.to_ne_bytes()].concat());
}

#[test]
fn wrong_sizes_are_io_errors() {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
    for (bytes, word) in [
        (file(1, header, &[0; 7]), "truncated"),
        (file(1, header, &[0; 9]), "too long"),
        (file(1, header, &[])[..30].to_vec(), "truncated"),
        (file(1, header, &[])[..7].to_vec(), "truncated"),
        (file(2, header, &[])[..9].to_vec(), "truncated"),
    ] {
        let error = load_bytes(&bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(error.message().contains(word), "{error}");
    }
    let mut endless = file(2, header, &[]);
    endless[8..12].fill(0xFF);
    assert!(load_bytes(&endless).unwrap_err().message().contains("the header needs 4294967307 bytes"));
    let huge = file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9999999), }", &[]);
    assert_eq!(load_bytes(&huge).unwrap_err().kind(), ErrorKind::Io);
    let overflow =
        file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999, 9), }", &[]);
    assert_eq!(load_bytes(&overflow).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn malformed_headers_are_diagnosed() {
    for (header, kind, words) in [
        ("{'descr': '<f4', 'shape': (0,)}", ErrorKind::InvalidArgument, "lacks 'fortran_order'"),
        (
            "{'descr': '<f4', 'fortran_order': false, 'shape': (0,)}",
            ErrorKind::InvalidArgument,
            "expected 'False'",
        ),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", ErrorKind::InvalidArgument, "an extent"),
        ("{'descr': '<f4', 'colour': 1}", ErrorKind::InvalidArgument, "unknown key 'colour'"),
        ("{'descr': '<f4", ErrorKind::InvalidArgument, "closing quote"),
        ("", ErrorKind::InvalidArgument, "expected '{'"),
        ("{'descr': '<U7', 'fortran_order': False, 'shape': (0,)}", ErrorKind::Unsupported, "'<U7'"),
        ("{'descr': '', 'fortran_order': False, 'shape': (0,)}", ErrorKind::Unsupported, "''"),
        (
            "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (0,)}",
            ErrorKind::Unsupported,
            "records",
        ),
    ] {
        let error = load_bytes(&file(1, header, &[])).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(words), "{error}");
    }
    assert!(load_bytes(b"PK\x03\x04 what is this").unwrap_err().message().contains("not a .npy file"));
    assert_eq!(load_bytes(&file(9, "", &[0; 9])).unwrap_err().kind(), ErrorKind::Unsupported);
    let missing = HostArray::load_npy("/nonexistent/a.npy").unwrap_err();
    assert!(missing.to_string().contains("/nonexistent/a.npy") && missing.kind() == ErrorKind::Io);
}

#[test]
fn unsupported_element_types_are_named() {
    let folder = folder();
    for dtype in [DType::BF16, DType::FP8_E4M3, DType::FP8_E5M2] {
        let error = HostArray::new(dtype, &[1]).unwrap().save_npy(folder.path().join("a.npy")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains(&dtype.to_string()));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = folder();
    let path = folder.path().join("taken");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), b"").unwrap();
    // A file cannot replace a non-empty folder.
    let error = HostArray::new(DType::U8, &[4]).unwrap().save_npy(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a temporary file was left");
}
