//! Between the seam's structures and Rust's: strings, errors, options, element types. Used by both sides.

#![allow(unsafe_code, reason = "reads raw memory that the contract of each structure describes")]

use super::{
    Error as RawError, Property, Status, Str, VALUE_FLAG, VALUE_INTEGER, VALUE_NUMBER, VALUE_TEXT, Value,
};
use crate::{Error, ErrorKind, Options, Result, Value as OptionValue, end_of};

/// Reads text.
///
/// # Errors
/// `AbiMismatch` for a null pointer with a length, or bytes that are not UTF-8.
///
/// # Safety
/// `text.ptr` is null or readable for `text.len` bytes.
pub unsafe fn read_str(text: Str) -> Result<String> {
    // SAFETY: the caller's promise.
    unsafe { borrow_str(text) }.map(str::to_owned)
}

/// Borrows text for as long as its structure's contract says.
///
/// # Errors
/// As [`read_str`].
///
/// # Safety
/// `text.ptr` is null or readable for `text.len` bytes for `'a`.
pub unsafe fn borrow_str<'a>(text: Str) -> Result<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { borrow_slice(text.ptr, text.len) }?;
    std::str::from_utf8(bytes)
        .map_err(|_| Error::new(ErrorKind::AbiMismatch, "text across the seam is not UTF-8"))
}

/// Borrows an array.
///
/// # Errors
/// `AbiMismatch` for a null or misaligned pointer with a length.
///
/// # Safety
/// `ptr` is null or points to `len` valid elements for `'a`.
pub unsafe fn borrow_slice<'a, T>(ptr: *const T, len: usize) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    if ptr.is_null() || !ptr.is_aligned() {
        return Err(Error::new(ErrorKind::AbiMismatch, format!("array of {len} elements at a bad address")));
    }
    // SAFETY: not null, aligned, and the caller promises `len` elements.
    Ok(unsafe { std::slice::from_raw_parts(ptr, len) })
}

/// Reads a property list.
///
/// # Errors
/// `AbiMismatch` for broken text or an unknown value kind.
///
/// # Safety
/// `list` is null or points to `count` properties whose text is readable.
pub unsafe fn read_properties(list: *const Property, count: usize) -> Result<Options> {
    // SAFETY: the caller's promise.
    let list = unsafe { borrow_slice(list, count) }?;
    let mut options = Options::new();
    for property in list {
        // SAFETY: the caller promises readable text.
        let key = unsafe { borrow_str(property.key) }?;
        // SAFETY: as above.
        options.push(key, unsafe { read_value(property) }?);
    }
    Ok(options)
}

unsafe fn read_value(property: &Property) -> Result<OptionValue> {
    Ok(match property.kind {
        // SAFETY: the kind says which member is set.
        VALUE_FLAG => OptionValue::Flag(unsafe { property.value.integer } != 0),
        // SAFETY: as above.
        VALUE_INTEGER => OptionValue::Integer(unsafe { property.value.integer }),
        // SAFETY: as above.
        VALUE_NUMBER => OptionValue::Number(unsafe { property.value.number }),
        VALUE_TEXT => {
            // SAFETY: the kind says which member is set.
            let text = unsafe { property.value.text };
            // SAFETY: the caller promises readable text.
            OptionValue::Text(unsafe { read_str(text) }?)
        }
        kind => return Err(Error::new(ErrorKind::AbiMismatch, format!("unknown value kind {kind}"))),
    })
}

/// The properties of `options`; they borrow its text.
#[must_use]
pub fn properties(options: &Options) -> Vec<Property> {
    let property = |(key, value): (&str, &OptionValue)| {
        let raw = match value {
            OptionValue::Flag(flag) => Value { integer: i64::from(*flag) },
            OptionValue::Integer(integer) => Value { integer: *integer },
            OptionValue::Number(number) => Value { number: *number },
            OptionValue::Text(text) => Value { text: Str::new(text) },
        };
        Property { key: Str::new(key), kind: value.kind(), reserved: 0, value: raw }
    };
    options.iter().map(property).collect()
}

/// An error object with the text that it points to. In C's layout, so that the object's address is the box's.
#[repr(C)]
struct OwnedError {
    raw: RawError,
    _text: [String; 3],
}

unsafe extern "C" fn release_owned(error: *mut RawError) {
    // SAFETY: `into_status` made it as the first field of an `OwnedError` box, and the receiver calls this once.
    drop(unsafe { Box::from_raw(error.cast::<OwnedError>()) });
}

/// Turns an error into an owned object for the other side.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "the error ends here and goes on as another object")]
pub fn into_status(error: Error) -> Status {
    let (symbol, code) = error.driver().unwrap_or(("", 0));
    let text = [error.operation().to_owned(), error.message().to_owned(), symbol.to_owned()];
    let raw = RawError {
        struct_size: end_of!(RawError, release),
        kind: error.kind().code(),
        code,
        operation: Str::new(&text[0]),
        message: Str::new(&text[1]),
        symbol: Str::new(&text[2]),
        release: Some(release_owned),
    };
    // The strings' bytes stay where they are when the box is made.
    Box::into_raw(Box::new(OwnedError { raw, _text: text })).cast()
}

/// Takes over and releases an error object of the other side.
///
/// # Errors
/// The error, if there is one.
///
/// # Safety
/// `status` is null or an owned error object that nobody else releases.
pub unsafe fn from_status(status: Status) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so it is the error object that the contract promises.
    Err(unsafe { take_error(status) })
}

#[cold]
unsafe fn take_error(status: Status) -> Error {
    // SAFETY: the caller promises an error object.
    let raw = unsafe { &*status };
    let text = |text: Str| {
        // SAFETY: text of an error object is readable until it is released.
        unsafe { borrow_slice(text.ptr, text.len) }
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .unwrap_or_default()
    };
    let mut error = Error::new(ErrorKind::from_code(raw.kind), text(raw.message));
    let (operation, symbol) = (text(raw.operation), text(raw.symbol));
    if raw.code != 0 || !symbol.is_empty() {
        error = error.with_driver(symbol, raw.code);
    }
    if !operation.is_empty() {
        error = error.in_operation(&operation);
    }
    if let Some(release) = raw.release {
        // SAFETY: it is released once, here, and not read any more.
        unsafe { release(status) };
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_the_crossing() {
        let error = Error::new(ErrorKind::OutOfMemory, "16 GiB")
            .with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2)
            .in_operation("cuMemAlloc");
        // SAFETY: a fresh status, taken once.
        let back = unsafe { from_status(into_status(error.clone())) }.unwrap_err();
        assert_eq!(back.to_string(), error.to_string());
        assert_eq!(back.kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn options_survive_the_crossing() {
        let options =
            Options::new().with("a", true).with("b", 7i64).with("c", 0.5).with("d", "x").with("d", "y");
        let raw = properties(&options);
        // SAFETY: `raw` borrows from `options`, which is alive.
        assert_eq!(unsafe { read_properties(raw.as_ptr(), raw.len()) }.unwrap(), options);
    }
}
