//! The functions of an image, by address.

use std::collections::{BTreeMap, HashMap};
use std::fs;

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use runtime_core::{Error, Result};

use super::compiler::io;
use super::elf::Image;
use crate::boards::Processor;

/// Code that belongs to no function of the symbol table.
const UNKNOWN: &str = "unknown code";

/// The functions of an image.
#[derive(Debug)]
pub(crate) struct Functions {
    /// End and name by first address.
    by_address: BTreeMap<u64, (u64, String)>,
    /// First address by name, of those too that begin where a larger one does.
    by_name: HashMap<String, u64>,
}

impl Functions {
    /// Reads the symbol table of an image.
    ///
    /// # Errors
    /// `Io` if its file cannot be read.
    pub(crate) fn of(image: &Image, processor: Processor) -> Result<Self> {
        let elf = fs::read(image.file()).map_err(|error| io("image", &error))?;
        let object = object::File::parse(&*elf).map_err(|error| Error::invalid(error.to_string()))?;
        let functions =
            object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let symbols = functions.filter_map(|symbol| {
            let address = processor.code_address(symbol.address());
            Some((address, symbol.size(), symbol.name().ok()?.to_owned()))
        });
        Ok(Self::from_symbols(symbols.collect()))
    }

    /// From address, size and name of each.
    fn from_symbols(mut symbols: Vec<(u64, u64, String)>) -> Self {
        let by_name = symbols.iter().map(|(address, _, name)| (name.clone(), *address)).collect();
        // The largest of an address is the last, and stays.
        symbols.sort();
        let mut by_address = BTreeMap::new();
        let mut next = u64::MAX;
        for (address, size, name) in symbols.into_iter().rev() {
            // Assembly need not give a size.
            let end = if size == 0 { next } else { address.saturating_add(size) };
            by_address.entry(address).or_insert((end, name));
            next = address;
        }
        Self { by_address, by_name }
    }

    /// The address of a function.
    ///
    /// # Errors
    /// `Unsupported` if the image has none of that name.
    pub(crate) fn address(&self, name: &str) -> Result<u64> {
        self.by_name.get(name).copied().ok_or_else(|| {
            Error::unsupported(format!(
                "the image has no function {name}, so its functions cannot be counted"
            ))
        })
    }

    /// Adds up counts of addresses by function, the largest first.
    pub(crate) fn sum(&self, counts: impl IntoIterator<Item = (u64, u64)>) -> Vec<(String, u64)> {
        let mut sums = BTreeMap::new();
        for (address, count) in counts {
            *sums.entry(self.name(address)).or_default() += count;
        }
        let mut sums: Vec<(String, u64)> =
            sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
        sums.sort_by(|(_, one), (_, other)| other.cmp(one));
        sums
    }

    fn name(&self, address: u64) -> &str {
        match self.by_address.range(..=address).next_back() {
            Some((_, (end, name))) if address < *end => name,
            _ => UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(symbols: &[(u64, u64, &str)]) -> Functions {
        Functions::from_symbols(
            symbols.iter().map(|&(address, size, name)| (address, size, name.to_owned())).collect(),
        )
    }

    #[test]
    fn counts_go_to_the_function_around_the_address() {
        let functions = functions(&[(0x20, 8, "g"), (0x10, 0x10, "f")]);
        let sums = functions.sum([(0x10, 1), (0x1e, 2), (0x20, 9), (0x28, 4), (0x4, 1)]);
        let expected = [("g", 9), (UNKNOWN, 5), ("f", 3)].map(|(name, sum)| (name.to_owned(), sum));
        assert_eq!(sums, expected);
        assert_eq!(functions.address("g").unwrap(), 0x20);
        assert!(functions.address("h").unwrap_err().message().contains("no function h"));
    }

    #[test]
    fn functions_of_assembly_reach_to_the_next_one() {
        let functions = functions(&[
            (0x10, 0, "label"),
            (0x10, 0x8, "start"),
            (0x10, 0x4, "alias"),
            (0x20, 0, "zero"),
            (0x20, 0, "nil"),
            (0x30, 2, "last"),
        ]);
        let names = [0x10, 0x17, 0x18, 0x20, 0x2f, 0x32].map(|address| functions.name(address));
        assert_eq!(names, ["start", "start", UNKNOWN, "zero", "zero", UNKNOWN]);
        assert_eq!(functions.address("alias").unwrap(), 0x10);
    }
}
