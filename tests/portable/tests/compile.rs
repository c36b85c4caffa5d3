//! Made next.

fn main() {}
