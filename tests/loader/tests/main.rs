//! The loader, against libraries that are broken in every way that a library can be.

mod files;
mod fixture;
mod instances;
mod search;
mod symbols;
mod tables;
