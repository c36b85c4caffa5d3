//! Lists every backend and its devices, with the reason for each unavailable one, and opens a device by name.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::backend::LoadOutcome;
use runtime_core::{Error, ErrorKind, Result, Runtime};

fn main() -> Result<()> {
    let runtime = Runtime::new();
    for target in runtime.targets() {
        println!("{} {}", target.name, target.version);
        match target.devices {
            Ok(devices) => {
                for info in devices {
                    let status = info
                        .unavailable_reason
                        .clone()
                        .unwrap_or_else(|| format!("takes {}", info.format_names().join(", ")));
                    let arch = info.arch.as_deref().unwrap_or("unknown architecture");
                    println!("  {}: {} ({arch}), {status}", info.id, info.name);
                }
            }
            Err(reason) => println!("  no devices: {reason}"),
        }
    }
    // The load report has a line for every library and directory that was considered.
    for line in runtime.load_report().iter().filter(|line| line.outcome != LoadOutcome::Skipped) {
        println!("{line}");
    }

    let host = runtime.open("host")?; // the same as "host:0"
    for space in &host.info().spaces {
        let mib = space.total_bytes.map_or("unknown".to_owned(), |bytes| (bytes >> 20).to_string());
        println!("{}: memory space {} of {mib} MiB", host.device_id(), space.name);
    }
    match runtime.open("host:99") {
        Err(error) if error.kind() == ErrorKind::NotFound => println!("as expected: {error}"),
        other => return Err(Error::new(ErrorKind::Internal, format!("host:99 gave {other:?}"))),
    }
    Ok(())
}
