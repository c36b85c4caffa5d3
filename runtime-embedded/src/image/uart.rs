//! The files and flags of the firmware for boards that are reached over a UART.

use std::fs;
use std::path::Path;

use runtime_core::{Error, ErrorKind, Result};

use crate::boards::{Board, LinkKind};

/// Drivers of the firmware.
const DRIVERS: [&str; 2] = ["cmsdk", "ns16550"];
/// Name of a copied driver.
const OWN_DRIVER: &str = "uart_driver.c";

/// What the compiler takes in addition.
#[derive(Debug, Default)]
pub(super) struct UartFiles {
    pub(super) sources: Vec<String>,
    pub(super) flags: Vec<String>,
}

/// The text of a driver of the user; empty if the board has none.
pub(super) fn own_driver(board: &Board) -> Vec<u8> {
    let driver =
        board.uart.as_ref().map(|uart| &uart.driver).filter(|driver| !DRIVERS.contains(&driver.as_str()));
    driver.and_then(|driver| fs::read(driver).ok()).unwrap_or_default()
}

/// The files for a board; none for one with a debugger. A driver of the user is copied into `folder`.
///
/// # Errors
/// `InvalidArgument` for a driver that cannot be read.
pub(super) fn files(board: &Board, folder: &Path) -> Result<UartFiles> {
    let Some(uart) = board.uart.as_ref().filter(|_| board.link == LinkKind::Uart) else {
        return Ok(UartFiles::default());
    };
    let driver = match DRIVERS.contains(&&*uart.driver) {
        true => format!("uart_{}.c", uart.driver),
        false => {
            fs::copy(&uart.driver, folder.join(OWN_DRIVER)).map_err(|error| {
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
