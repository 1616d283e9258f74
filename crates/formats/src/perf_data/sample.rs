//! `PERF_RECORD_SAMPLE`: fields in the order of `perf_output_sample` (kernel/events/core.c).

use super::attr::Attr;
use super::cursor::{Cursor, u64_at};
use super::layout::{read_format, sample_type as bit};
use pagewise_model::event::{Callchain, CpuMode, Sample, SourceIndex, UserStack};
use pagewise_model::units::Nanos;

/// `PERF_SAMPLE_BRANCH_HW_INDEX`.
const BRANCH_HW_INDEX: u64 = 1 << 17;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = 1 << 19;
/// `PERF_SAMPLE_REGS_ABI_64`.
const REGS_ABI_64: u64 = 2;

/// Decodes the payload of a sample of source `source`. `None` when it contradicts itself.
pub(super) fn decode<'a>(
    attr: &Attr,
    source: SourceIndex,
    payload: &'a [u8],
) -> Option<Sample<'a>> {
    let mut at = Cursor(payload);
    let mut sample = Sample {
        source,
        pid: -1,
        tid: -1,
        time: Nanos(0),
        cpu: None,
        cgroup: 0,
        ip: 0,
        mode: CpuMode::User,
        address: 0,
        period: attr.fixed_period(),
        callchain: Callchain::default(),
        raw: &[],
        user_stack: None,
    };
    decode_scalars(attr, &mut at, &mut sample)?;
    if attr.has(bit::READ) {
        skip_read(attr.read_format, &mut at)?;
    }
    if attr.has(bit::CALLCHAIN) {
        let count = at.u64()?;
        sample.callchain = Callchain::from_le_bytes(at.take_array(count, 8)?);
    }
    if attr.has(bit::RAW) {
        let size = at.u32()?;
        sample.raw = at.take(size as usize)?;
    }
    if attr.has(bit::BRANCH_STACK) {
        skip_branches(attr.branch_sample_type, &mut at)?;
    }
    if attr.has(bit::REGS_USER | bit::STACK_USER) {
        sample.user_stack = decode_user_stack(attr, &mut at)?;
    }
    sample.cgroup = decode_rest(attr, &mut at)?;
    Some(sample)
}

/// The fields of fixed size up to the period.
fn decode_scalars(attr: &Attr, at: &mut Cursor<'_>, sample: &mut Sample<'_>) -> Option<()> {
    if attr.has(bit::IDENTIFIER) {
        at.u64()?;
    }
    if attr.has(bit::IP) {
        sample.ip = at.u64()?;
    }
    if attr.has(bit::TID) {
        sample.pid = at.i32()?;
        sample.tid = at.i32()?;
    }
    if attr.has(bit::TIME) {
        sample.time = Nanos(at.u64()?);
    }
    if attr.has(bit::ADDR) {
        sample.address = at.u64()?;
    }
    if attr.has(bit::ID) {
        at.u64()?;
    }
    if attr.has(bit::STREAM_ID) {
        at.u64()?;
    }
    if attr.has(bit::CPU) {
        sample.cpu = Some(at.u32()?);
        at.u32()?;
    }
    if attr.has(bit::PERIOD) {
        sample.period = at.u64()?.max(1);
    }
    Some(())
}

/// The id and the count of each event of the sample's group, where the sample contains them.
pub(super) fn group_counts<'a>(
    attr: &Attr,
    payload: &'a [u8],
) -> Option<impl Iterator<Item = (u64, u64)> + use<'a>> {
    let format = attr.read_format;
    if !attr.reads_group() || format & read_format::ID == 0 {
        return None;
    }
    let mut at = Cursor(payload);
    let scalars = bit::IDENTIFIER
        | bit::IP
        | bit::TID
        | bit::TIME
        | bit::ADDR
        | bit::ID
        | bit::STREAM_ID
        | bit::CPU
        | bit::PERIOD;
    at.take_array(u64::from((attr.sample_type & scalars).count_ones()), 8)?;
    let (times, per_event) = read_sizes(format);
    let events = at.u64()?;
    at.take_array(times, 8)?;
    let counts = at.take_array(events, per_event * 8)?;
    let counts = counts.chunks_exact(if per_event == 3 { 24 } else { 16 });
    // The count comes first, then the id, then the number lost.
    Some(counts.filter_map(|count| Some((u64_at(count, 8)?, u64_at(count, 0)?))))
}

/// The number of words of a read for times, and for each event.
fn read_sizes(format: u64) -> (u64, u64) {
    let has = |bit: u64| u64::from(format & bit != 0);
    let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
    (times, 1 + has(read_format::ID) + has(read_format::LOST))
}

fn skip_read(format: u64, at: &mut Cursor<'_>) -> Option<()> {
    let (times, per_value) = read_sizes(format);
    let values = if format & read_format::GROUP != 0 {
        at.u64()?
    } else {
        1
    };
    at.take_array(times, 8)?;
    at.take_array(values, per_value * 8)?;
    Some(())
}

fn skip_branches(branch_sample_type: u64, at: &mut Cursor<'_>) -> Option<()> {
    let count = at.u64()?;
    if branch_sample_type & BRANCH_HW_INDEX != 0 {
        at.u64()?;
    }
    at.take_array(count, 24)?;
    if branch_sample_type & BRANCH_COUNTERS != 0 {
        at.take_array(count, 8)?;
    }
    Some(())
}

/// Registers and stack. The outer `None` is a broken record, the inner one "nothing to unwind":
/// a kernel thread, a 32-bit program, or a source with only one of the two.
fn decode_user_stack<'a>(attr: &Attr, at: &mut Cursor<'a>) -> Option<Option<UserStack<'a>>> {
    let mut abi = 0;
    let mut registers: &[u8] = &[];
    if attr.has(bit::REGS_USER) {
        abi = at.u64()?;
        if abi != 0 {
            registers = at.take_array(u64::from(attr.sample_regs_user.count_ones()), 8)?;
        }
    }
    let mut stack: &[u8] = &[];
    if attr.has(bit::STACK_USER) {
        let size = at.u64()?;
        if size != 0 {
            let copied = at.take_u64(size)?;
            let used = usize::try_from(at.u64()?).ok()?;
            stack = copied.get(..used)?;
        }
    }
    Some(
        (abi == REGS_ABI_64 && !stack.is_empty()).then_some(UserStack {
            register_mask: attr.sample_regs_user,
            registers,
            stack,
        }),
    )
}

/// The control group, which follows and precedes fields that the model does not use; only their
/// lengths are checked.
fn decode_rest(attr: &Attr, at: &mut Cursor<'_>) -> Option<u64> {
    if attr.sample_type >> 14 == 0 {
        return Some(0);
    }
    for field in [
        bit::WEIGHT | bit::WEIGHT_STRUCT,
        bit::DATA_SRC,
        bit::TRANSACTION,
    ] {
        if attr.has(field) {
            at.u64()?;
        }
    }
    if attr.has(bit::REGS_INTR) && at.u64()? != 0 {
        at.take_array(u64::from(attr.sample_regs_intr.count_ones()), 8)?;
    }
    if attr.has(bit::PHYS_ADDR) {
        at.u64()?;
    }
    let cgroup = match attr.has(bit::CGROUP) {
        true => at.u64()?,
        false => 0,
    };
    for field in [bit::DATA_PAGE_SIZE, bit::CODE_PAGE_SIZE] {
        if attr.has(field) {
            at.u64()?;
        }
    }
    if attr.has(bit::AUX) {
        let size = at.u64()?;
        at.take_u64(size)?;
    }
    Some(cgroup)
}
