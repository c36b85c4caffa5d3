//! Tensors that a kernel only reads, as constants in flash, behind the image.

use std::ops::Range;

use super::mailbox::{ALIGNMENT, CONSTANT, KEEP, TensorRecord};

/// Data in flash, with its address.
pub(crate) type Constant<'d> = (u64, &'d [u8]);

/// Places the tensors that may be constants in `room`, in their order. Those that do not fit stay in RAM.
pub(crate) fn place<'d>(
    tensors: &mut [TensorRecord],
    data: &[Option<&'d [u8]>],
    mut room: Range<u64>,
) -> Vec<Constant<'d>> {
    let mut constants = Vec::new();
    for (tensor, data) in tensors.iter_mut().zip(data).filter(|(tensor, _)| tensor.content == CONSTANT) {
        let begin = room.start.checked_next_multiple_of(ALIGNMENT);
        let end = begin.and_then(|begin| begin.checked_add(tensor.bytes));
        match (begin, end, data) {
            (Some(begin), Some(end), Some(data)) if end <= room.end && !data.is_empty() => {
                tensor.address = begin;
                room.start = end;
                constants.push((begin, *data));
            }
            _ => tensor.content = KEEP,
        }
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fill_the_flash_and_the_rest_stays_in_ram() {
        let tensor =
            |bytes, content| TensorRecord { address: 0, bytes, seed: 0, content, class: 0, element_bytes: 1 };
        let mut tensors = [
            tensor(4, CONSTANT),
            tensor(4, KEEP),
            tensor(99, CONSTANT),
            tensor(3, CONSTANT),
            tensor(0, CONSTANT),
        ];
        let (small, large, odd) = ([1; 4], [2; 99], [3; 3]);
        let data = [Some(&small[..]), Some(&small[..]), Some(&large[..]), Some(&odd[..]), Some(&[][..])];
        let constants = place(&mut tensors, &data, 0x1001..0x1083);
        assert_eq!(constants, [(0x1040, &small[..]), (0x1080, &odd[..])]);
        assert_eq!(tensors.map(|tensor| tensor.content), [CONSTANT, KEEP, KEEP, CONSTANT, KEEP]);
        assert_eq!(tensors.map(|tensor| tensor.address), [0x1040, 0, 0, 0x1080, 0]);
        let mut tensors = [tensor(4, CONSTANT)];
        assert!(place(&mut tensors, &[Some(&small[..])], 0..0).is_empty() && tensors[0].content == KEEP);
    }
}
