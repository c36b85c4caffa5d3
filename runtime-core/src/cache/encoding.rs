//! The metadata of an entry as bytes: numbers in little-endian order, and lengths before texts and lists.
//!
//! Written by hand: the model's types would need `serde` and a schema of their own for the sake of this one file.

use crate::{
    Access, ArgKind, Coarsening, CodeFormat, DType, KernelInfo, LoweredKernel, LoweredParam, OptionValue,
    Options, Param,
};

use super::code::CachedCode;

/// Everything but the code.
pub(super) fn encode(cached: &CachedCode) -> Vec<u8> {
    let CachedCode { format, code: _, log, options, lowered, resources } = cached;
    let mut out = Vec::new();
    put_text(&mut out, format.as_str());
    put_text(&mut out, log);
    put_options(&mut out, options);
    put_option(&mut out, lowered.as_deref(), |out, kernels| put_list(out, kernels, put_lowered));
    put_list(&mut out, resources, |out, (name, info)| {
        put_text(out, name);
        put_info(out, info);
    });
    out
}

/// Reads what [`encode`] wrote; `None` if it is anything else. `code` is added.
pub(super) fn decode(bytes: &[u8], code: Vec<u8>) -> Option<CachedCode> {
    let mut input = Input(bytes);
    let cached = CachedCode {
        format: CodeFormat::from(input.text()?),
        code,
        log: input.text()?,
        options: options(&mut input)?,
        lowered: input.option(|input| input.list(lowered))?,
        resources: input.list(|input| Some((input.text()?, info(input)?)))?,
    };
    input.0.is_empty().then_some(cached)
}

pub(super) fn put_u32(out: &mut Vec<u8>, number: u32) {
    out.extend(number.to_le_bytes());
}

pub(super) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend(number.to_le_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u64(out, text.len() as u64);
    out.extend(text.as_bytes());
}

pub(super) fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

pub(super) fn put_list<T>(out: &mut Vec<u8>, list: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_u64(out, list.len() as u64);
    for element in list {
        put(out, element);
    }
}

pub(super) fn put_options(out: &mut Vec<u8>, options: &Options) {
    put_list(out, &options.iter().collect::<Vec<_>>(), |out, (key, value)| {
        put_text(out, key);
        put_value(out, value);
    });
}

fn put_value(out: &mut Vec<u8>, value: &OptionValue) {
    match value {
        OptionValue::Flag(flag) => out.extend([0, u8::from(*flag)]),
        OptionValue::Integer(integer) => {
            out.push(1);
            out.extend(integer.to_le_bytes());
        }
        OptionValue::Number(number) => {
            out.push(2);
            put_u64(out, number.to_bits());
        }
        OptionValue::Text(text) => {
            out.push(3);
            put_text(out, text);
        }
    }
}

fn put_param(out: &mut Vec<u8>, param: &Param) {
    let Param { kind, access, strided, dtype } = *param;
    let kind = match kind {
        ArgKind::Tensor => 0,
        ArgKind::Scalar => 1,
        ArgKind::Bytes => 2,
        ArgKind::Local => 3,
    };
    out.extend([kind, access.bits(), u8::from(strided)]);
    put_option(out, dtype, |out, dtype| {
        let (code, bits, lanes) = dtype.dlpack();
        out.extend([code, bits]);
        out.extend(lanes.to_le_bytes());
    });
}

fn put_lowered(out: &mut Vec<u8>, kernel: &LoweredKernel) {
    let LoweredKernel {
        name,
        symbol,
        params,
        group_size,
        work_items,
        shared_bytes,
        tensor_sizes,
        coarsening,
        reports_on,
    } = kernel;
    put_text(out, name);
    put_text(out, symbol);
    put_list(out, params, |out, LoweredParam { param, min_bytes, alignment_bytes }| {
        put_param(out, param);
        put_u64(out, *min_bytes);
        put_u64(out, *alignment_bytes);
    });
    group_size.iter().for_each(|extent| put_u32(out, *extent));
    put_option(out, *work_items, |out, extents| extents.iter().for_each(|extent| put_u32(out, *extent)));
    put_u32(out, *shared_bytes);
    out.push(u8::from(*tensor_sizes));
    put_option(out, *coarsening, |out, Coarsening { factor, min_groups, min_groups_x }| {
        put_u32(out, factor);
        put_u64(out, min_groups);
        put_u32(out, min_groups_x);
    });
    put_option(out, reports_on.as_deref(), put_text);
}

fn put_info(out: &mut Vec<u8>, info: &KernelInfo) {
    let KernelInfo {
        registers,
        spilled_bytes,
        shared_bytes,
        max_group_items,
        group_size,
        params,
        binary_version,
        virtual_version,
        preferred_multiple,
        private_bytes,
    } = info;
    for number in [registers, spilled_bytes, shared_bytes, max_group_items] {
        put_option(out, *number, put_u32);
    }
    put_option(out, *group_size, |out, extents| extents.iter().for_each(|extent| put_u32(out, *extent)));
    put_option(out, params.as_deref(), |out, params| put_list(out, params, put_param));
    for number in [binary_version, virtual_version, preferred_multiple, private_bytes] {
        put_option(out, *number, put_u32);
    }
}

/// Bytes that are still to be read. Nothing is allocated beyond their number.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.array()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u64()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    pub(super) fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        Some(if self.flag()? { Some(read(self)?) } else { None })
    }

    /// Every element takes at least one byte, so a count beyond the remaining bytes fails early.
    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u64()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn extents(&mut self) -> Option<[u32; 3]> {
        Some([self.u32()?, self.u32()?, self.u32()?])
    }
}

pub(super) fn options(input: &mut Input<'_>) -> Option<Options> {
    let mut options = Options::new();
    for (key, value) in input.list(|input| Some((input.text()?, value(input)?)))? {
        options.push(&key, value);
    }
    Some(options)
}

fn value(input: &mut Input<'_>) -> Option<OptionValue> {
    Some(match input.array()? {
        [0] => OptionValue::Flag(input.flag()?),
        [1] => OptionValue::Integer(i64::from_le_bytes(input.array()?)),
        [2] => OptionValue::Number(f64::from_bits(input.u64()?)),
        [3] => OptionValue::Text(input.text()?),
        _ => return None,
    })
}

fn param(input: &mut Input<'_>) -> Option<Param> {
    let kind = match input.array()? {
        [0] => ArgKind::Tensor,
        [1] => ArgKind::Scalar,
        [2] => ArgKind::Bytes,
        [3] => ArgKind::Local,
        _ => return None,
    };
    let [bits] = input.array()?;
    let access = Access::from_bits(bits);
    if access.bits() != bits {
        return None;
    }
    let strided = input.flag()?;
    let dtype = input.option(|input| {
        let [code, bits] = input.array()?;
        let lanes = u16::from_le_bytes(input.array()?);
        (bits != 0 && lanes != 0).then(|| DType::from_dlpack(code, bits, lanes))
    })?;
    Some(Param { kind, access, strided, dtype })
}

fn lowered(input: &mut Input<'_>) -> Option<LoweredKernel> {
    Some(LoweredKernel {
        name: input.text()?,
        symbol: input.text()?,
        params: input.list(|input| {
            Some(LoweredParam {
                param: param(input)?,
                min_bytes: input.u64()?,
                alignment_bytes: input.u64().filter(|bytes| bytes.is_power_of_two())?,
            })
        })?,
        group_size: input.extents()?,
        work_items: input.option(Input::extents)?,
        shared_bytes: input.u32()?,
        tensor_sizes: input.flag()?,
        coarsening: input.option(|input| {
            Some(Coarsening {
                factor: input.u32().filter(|factor| *factor >= 2)?,
                min_groups: input.u64()?,
                min_groups_x: input.u32()?,
            })
        })?,
        reports_on: input.option(Input::text)?,
    })
}

fn info(input: &mut Input<'_>) -> Option<KernelInfo> {
    Some(KernelInfo {
        registers: input.option(Input::u32)?,
        spilled_bytes: input.option(Input::u32)?,
        shared_bytes: input.option(Input::u32)?,
        max_group_items: input.option(Input::u32)?,
        group_size: input.option(Input::extents)?,
        params: input.option(|input| input.list(param))?,
        binary_version: input.option(Input::u32)?,
        virtual_version: input.option(Input::u32)?,
        preferred_multiple: input.option(Input::u32)?,
        private_bytes: input.option(Input::u32)?,
    })
}
