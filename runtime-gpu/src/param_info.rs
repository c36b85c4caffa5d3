//! The parameters of a kernel, as the driver reports them.

/// Largest parameter buffer. A kernel with more parameter bytes takes them by pointers.
pub(crate) const MAX_BYTES: usize = 256;

/// Offset and size of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamInfo {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Size of the buffer for these parameters; `None` if they cannot be packed.
pub(crate) fn packed_bytes(parameters: &[ParamInfo]) -> Option<usize> {
    let end = |parameter: &ParamInfo| parameter.offset.checked_add(parameter.bytes);
    let ascending = parameters.windows(2).all(|pair| end(&pair[0]).is_some_and(|end| end <= pair[1].offset));
    let bytes = end(parameters.last()?)?;
    (ascending && bytes <= MAX_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(layout: &[(usize, usize)]) -> Vec<ParamInfo> {
        layout.iter().map(|&(offset, bytes)| ParamInfo { offset, bytes }).collect()
    }

    #[test]
    fn small_ordered_parameters_are_packed() {
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (8, 8), (16, 4)])), Some(20));
        assert_eq!(packed_bytes(&parameters(&[(0, 1), (8, 248)])), Some(256));
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (8, 249)])), None, "too large");
        assert_eq!(packed_bytes(&parameters(&[(8, 8), (0, 8)])), None, "out of order");
        assert_eq!(packed_bytes(&parameters(&[(0, 8), (4, 8)])), None, "overlapping");
        assert_eq!(packed_bytes(&parameters(&[(usize::MAX, 8)])), None, "overflow");
        assert_eq!(packed_bytes(&[]), None, "no parameters");
    }
}
