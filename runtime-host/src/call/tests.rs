use runtime_core::DType;

use super::*;

fn word(dtype: DType, bits: u64) -> RegValue {
    RegValue::scalar(dtype, bits).unwrap()
}

#[test]
fn scalars_are_extended_to_a_register() {
    assert_eq!(word(DType::I8, 0xff).bits, u64::MAX);
    assert_eq!(word(DType::I32, 0x8000_0000).bits, 0xffff_ffff_8000_0000);
    assert_eq!(word(DType::U16, 0xffff), RegValue { bits: 0xffff, class: RegClass::Integer });
    assert_eq!(word(DType::BOOL, 1).class, RegClass::Bool);
    assert_eq!(word(DType::BF16, 0x3f80).class, RegClass::F16);
    assert_eq!(word(DType::FP8_E4M3, 0x38).class, RegClass::Integer);
    assert_eq!(RegValue::scalar(DType::COMPLEX128, 0), None);
    assert_eq!(RegValue::scalar(DType::from_dlpack(2, 32, 4), 0), None);
}

#[test]
fn registers_fill_by_class() {
    let mut registers = Registers::default();
    for index in 0..INTEGERS as u64 {
        assert_eq!(registers.push(RegValue::pointer(index)), DIRECT);
    }
    for index in 0..FLOATS as u64 {
        assert_eq!(registers.push(word(DType::F64, index)), DIRECT);
    }
    assert!(!registers.push(RegValue::pointer(6)));
    assert!(!registers.push(word(DType::F32, 8)));
    assert_eq!(registers.integers, [0, 1, 2, 3, 4, 5]);
    assert_eq!(registers.floats[7].to_bits(), 7);
}

/// Takes more integers and floats than there are registers, mixed, and writes them to memory in order.
extern "C" fn record(
    out: *mut f64,
    a: i8,
    b: f32,
    c: u16,
    d: f64,
    e: i64,
    f: f32,
    g: u8,
    h: i32,
    i: f64,
    j: f32,
    k: f64,
    l: f64,
    m: f32,
    n: f64,
    o: i16,
    p: f32,
    q: u64,
) {
    let values = [
        f64::from(a),
        f64::from(b),
        f64::from(c),
        d,
        e as f64,
        f64::from(f),
        f64::from(g),
        f64::from(h),
        i,
        f64::from(j),
        k,
        l,
        f64::from(m),
        n,
        f64::from(o),
        f64::from(p),
        q as f64,
    ];
    // SAFETY: the tests pass memory for all of them.
    unsafe { std::slice::from_raw_parts_mut(out, values.len()) }.copy_from_slice(&values);
}

fn f32_word(value: f32) -> RegValue {
    word(DType::F32, u64::from(value.to_bits()))
}

fn f64_word(value: f64) -> RegValue {
    word(DType::F64, value.to_bits())
}

#[test]
fn arguments_beyond_the_registers_are_passed() {
    let mut out = [0.0_f64; 17];
    let words = [
        RegValue::pointer(out.as_mut_ptr() as u64),
        word(DType::I8, 0xfb),
        f32_word(1.5),
        word(DType::U16, 65535),
        f64_word(-2.25),
        word(DType::I64, (-77_i64).cast_unsigned()),
        f32_word(3.5),
        word(DType::U8, 200),
        word(DType::I32, 0xffff_fff0),
        f64_word(4.5),
        f32_word(5.5),
        f64_word(6.5),
        f64_word(7.5),
        f32_word(8.5),
        f64_word(9.5),
        word(DType::I16, 0x8000),
        f32_word(10.5),
        word(DType::U64, 1 << 40),
    ];
    let function = Function::new(record as *const c_void, None);
    for _ in 0..2 {
        out.fill(0.0);
        function.call(&words).unwrap();
        assert_eq!(
            out,
            [
                -5.0,
                1.5,
                65535.0,
                -2.25,
                -77.0,
                3.5,
                200.0,
                -16.0,
                4.5,
                5.5,
                6.5,
                7.5,
                8.5,
                9.5,
                -32768.0,
                10.5,
                1_099_511_627_776.0
            ]
        );
    }
}

extern "C" fn sum(out: *mut u64, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) {
    // SAFETY: the tests pass memory for it.
    unsafe { out.write([a, b, c, d, e, f, g].iter().zip(1..).map(|(value, place)| value * place).sum()) };
}

#[test]
fn a_second_signature_does_not_replace_the_first() {
    let mut out = 0_u64;
    let function = Function::new(sum as *const c_void, None);
    let mut words = vec![RegValue::pointer(&raw mut out as u64)];
    words.extend((1..=7).map(|value| word(DType::U64, value)));
    function.call(&words).unwrap();
    assert_eq!(std::mem::take(&mut out), 140);
    let narrow: Vec<_> = words
        .iter()
        .map(
            |&RegValue { bits, class }| {
                if bits < 8 { word(DType::U8, bits) } else { RegValue { bits, class } }
            },
        )
        .collect();
    function.call(&narrow).unwrap();
    // SAFETY: `out` is written behind the compiler's back.
    assert_eq!(unsafe { (&raw const out).read_volatile() }, 140);
}
