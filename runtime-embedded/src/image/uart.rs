//! The files and flags of the firmware for boards that are reached over a UART.

use std::fs::File;
use std::io;
use std::path::Path;

use runtime_core::backend::{open_regular_file, read_file};
use runtime_core::{Error, ErrorKind, Result};

use crate::boards::{Board, DRIVERS, LinkKind, Uart};

/// Name of a copied driver.
const OWN_DRIVER: &str = "uart_driver.c";

/// What the compiler takes in addition.
#[derive(Debug, Default)]
pub(super) struct UartFiles {
    pub(super) sources: Vec<String>,
    pub(super) flags: Vec<String>,
}

/// The UART that the host uses.
fn uart(board: &Board) -> Option<&Uart> {
    board.uart.as_ref().filter(|_| board.link == LinkKind::Uart)
}

/// The text of a driver of the user; empty if the board has none.
pub(super) fn own_driver(board: &Board) -> Vec<u8> {
    let driver = uart(board).and_then(Uart::own_driver);
    driver.and_then(|driver| read_file(driver).ok()).unwrap_or_default()
}

/// The files for a board; none for one with a debugger. A driver of the user is copied into `folder`.
///
/// # Errors
/// `InvalidArgument` for a driver that cannot be read.
pub(super) fn files(board: &Board, folder: &Path) -> Result<UartFiles> {
    let Some(uart) = uart(board) else { return Ok(UartFiles::default()) };
    let driver = match uart.own_driver() {
        None => format!("uart_{}.c", uart.driver),
        Some(driver) => {
            let copy = |mut from| io::copy(&mut from, &mut File::create(folder.join(OWN_DRIVER))?);
            open_regular_file(driver).and_then(copy).map_err(|error| {
                Error::new(
                    ErrorKind::InvalidArgument,
                    format!(
                        "board {}: `uart.driver` is {}, or the path of a C file; {}: {error}",
                        board.name,
                        DRIVERS.join(" or "),
                        uart.driver
                    ),
                )
            })?;
            OWN_DRIVER.to_owned()
        }
    };
    Ok(UartFiles {
        sources: vec!["frame.c".to_owned(), "serve.c".to_owned(), driver],
        flags: vec!["-DRUNTIME_UART".to_owned(), format!("-DRUNTIME_UART_BASE={:#x}u", uart.address)],
    })
}
