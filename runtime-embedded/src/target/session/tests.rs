//! Where tensors are placed, and what arrives of them.

use super::*;
use crate::boards;
use crate::image::Symbols;

fn tensor(bytes: u64) -> TensorRecord {
    TensorRecord { address: 0, bytes, seed: 0, content: 0, class: 0, element_bytes: 1 }
}

#[test]
fn tensors_are_aligned_and_guarded() {
    let mut tensors = [tensor(1), tensor(64), tensor(0)];
    place(&mut tensors, 0x1000..0x1160).unwrap();
    assert_eq!(tensors.map(|tensor| tensor.address), [0x1040, 0x10c0, 0x1140]);
    assert_eq!(place(&mut tensors, 0x1000..0x115f).unwrap_err().kind(), ErrorKind::OutOfMemory);
}

#[test]
fn sizes_beyond_64_bits_do_not_fit() {
    for bytes in [[u64::MAX / 2 + 1, u64::MAX / 2 + 1, 8], [u64::MAX, 8, 8], [8, 8, u64::MAX]] {
        let error = place(&mut bytes.map(tensor), 0x1000..0x2000).unwrap_err();
        assert!(error.message().contains("the board has 4096 bytes"), "{error}");
    }
    assert!(place(&mut [tensor(8)], u64::MAX - 8..u64::MAX).is_err());
}

const MAILBOX: u64 = 0x1000;
const HEAP: u64 = 0x2000;

/// A target that prepares tensors, and whose link may damage data.
#[derive(Debug)]
struct Target {
    /// From address `MAILBOX`.
    memory: Vec<u8>,
    damages: bool,
    /// What a command writes into the mailbox, at an offset.
    sabotage: Option<(u32, u64, u8)>,
}

impl Target {
    fn at(&mut self, address: u64, bytes: usize) -> &mut [u8] {
        let offset = usize::try_from(address - MAILBOX).unwrap();
        &mut self.memory[offset..offset + bytes]
    }

    fn word(&mut self, address: u64) -> u64 {
        u64::from_le_bytes(self.at(address, 8).try_into().unwrap())
    }
}

impl Link for Target {
    fn flash(&mut self, _image: &Arc<Image>, _constants: &[Constant<'_>]) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(self.at(address, bytes.len()));
        Ok(())
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.at(address, bytes.len()).copy_from_slice(bytes);
        if self.damages && address >= HEAP {
            self.at(address, 1)[0] ^= 1;
        }
        Ok(())
    }

    fn execute(&mut self, _until: Instant) -> Result<()> {
        // The number of calls follows in the high half.
        for index in 0..self.word(MAILBOX + 24) & 0xffff_ffff {
            let record = MAILBOX + mailbox::TENSORS + index * mailbox::TENSOR_BYTES as u64;
            let (address, bytes) = (self.word(record), self.word(record + 8));
            let checksum = crc32(self.at(address, usize::try_from(bytes).unwrap()));
            self.at(record + 36, 4).copy_from_slice(&checksum.to_le_bytes());
        }
        self.at(MAILBOX + 12, 1)[0] = 2;
        let command = self.word(MAILBOX + 16) & 0xff;
        if let Some((_, offset, byte)) = self.sabotage.filter(|sabotage| u64::from(sabotage.0) == command) {
            self.at(MAILBOX + offset, 1)[0] = byte;
        }
        Ok(())
    }

    fn is_usable(&mut self) -> bool {
        true
    }
}

fn session(damages: bool) -> Session {
    sabotaged(damages, None)
}

fn sabotaged(damages: bool, sabotage: Option<(u32, u64, u8)>) -> Session {
    let mut target = Target { memory: vec![0; 0x2000], damages, sabotage };
    target.at(MAILBOX, 8).copy_from_slice(b"RTEMBED1");
    target.at(MAILBOX + 8, 1)[0] = 1;
    target.at(MAILBOX + 72, 8).copy_from_slice(&HEAP.to_le_bytes());
    target.at(MAILBOX + 80, 8).copy_from_slice(&(HEAP + 0x1000).to_le_bytes());
    let board = boards::all(None).unwrap().remove(0);
    let symbols = Symbols { start: 0, park: 0, resume: 0, mailbox: MAILBOX };
    Session {
        processor: board.processor,
        link: Box::new(target),
        image: Arc::new(Image::with(&board, symbols, &[])),
        tensors: Vec::new(),
        memory: [0..0, HEAP..HEAP + 0x1000],
        constants: Vec::new(),
        fault: None,
        has_run: false,
    }
}

#[test]
fn data_that_is_damaged_on_its_way_is_an_error() {
    let prepare =
        |damages| session(damages).prepare(vec![tensor(8), tensor(4)], &[None, Some(&[1, 2, 3, 4])]);
    assert_eq!(prepare(false).unwrap(), [0x2040, 0x20c0]);
    let error = prepare(true).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("tensor 1 was damaged"), "{error}");
}

#[test]
fn a_constant_that_differs_in_flash_is_an_error() {
    let constant = TensorRecord { address: HEAP, content: CONSTANT, ..tensor(4) };
    let prepare = |data: [u8; 4]| session(false).prepare(vec![constant], &[Some(&data)]);
    assert_eq!(prepare([0; 4]).unwrap(), [HEAP]);
    let error = prepare([1, 2, 3, 4]).unwrap_err();
    assert!(error.kind() == ErrorKind::Io && error.message().contains("tensor 0 was damaged"), "{error}");
}

/// Magic, command, tensors, calls, the stack, the memory for tensors, the address of a tensor, its bytes.
#[test]
fn a_kernel_that_writes_over_the_mailbox_has_failed() {
    let run = |sabotage| {
        let mut session = sabotaged(false, sabotage);
        session.prepare(vec![tensor(8)], &[None]).unwrap();
        session.run(3, Duration::from_secs(60))
    };
    run(None).unwrap();
    for (offset, byte) in [(0, 1), (16, 1), (24, 0), (28, 2), (48, 9), (56, 9), (72, 9), (136, 0), (144, 7)] {
        let error = run(Some((mailbox::RUN, offset, byte))).unwrap_err();
        let message = error.message();
        assert!(error.kind() == ErrorKind::Failed && message.contains("mailbox"), "{offset}: {message}");
    }
}

/// Magic, command, the stack, the bytes of a tensor.
#[test]
fn a_mailbox_that_changes_before_a_run_is_an_error_of_the_link() {
    for (offset, byte) in [(0, 1), (16, 9), (48, 9), (144, 7)] {
        let mut session = sabotaged(false, Some((mailbox::PREPARE, offset, byte)));
        let error = session.prepare(vec![tensor(8)], &[Some(&[0; 8])]).unwrap_err();
        assert!(error.kind() == ErrorKind::Io && error.message().contains("before"), "{offset}: {error}");
    }
}
