//! Messages of taskstats over generic netlink (include/uapi/linux/{netlink,genetlink,taskstats}.h).

use pagewise_model::delays::{Delay, Delays};
use pagewise_model::tasks::CountedTask;
use pagewise_model::units::Nanos;

const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const NAME: &[u8] = b"TASKSTATS\0";
const GET: u8 = 1;
const PROCESS: u16 = 2;
const REGISTER: u16 = 3;
const STATISTICS: u16 = 3;
const OF_TASK: u16 = 4;
const OF_PROCESS: u16 = 5;
/// NLM_F_REQUEST | NLM_F_ACK.
const ACKNOWLEDGED: u16 = 1 | 4;
const ERROR: u16 = 2;
/// Bytes of the two headers.
const HEADER: usize = 16;
const HEADERS: usize = HEADER + 4;
/// Bit of an attribute that contains other attributes.
const NESTED: u16 = 0x8000;
/// First version with the thread group (Linux 5.17), without which threads cannot be assigned to a
/// process.
const FIRST_VERSION: u16 = 12;
/// First version that counts copies (6.1).
const COPIES_VERSION: u16 = 13;

/// Offsets in `struct taskstats`; none has changed since it was added.
mod offset {
    pub const READY: usize = 16;
    pub const DISK: usize = 32;
    pub const SWAP: usize = 48;
    pub const RUN: usize = 72;
    pub const NAME: usize = 80;
    pub const PID: usize = 128;
    pub const PARENT: usize = 132;
    pub const LIFETIME: usize = 144;
    pub const RECLAIM: usize = 312;
    pub const THRASHING: usize = 328;
    pub const COMPACTION: usize = 352;
    pub const GROUP: usize = 368;
    pub const COPYING: usize = 400;
}

/// Bytes of a name (`TS_COMM_LEN`).
const NAME_ROOM: usize = 32;

/// Requests the number of the taskstats family.
pub(super) fn ask_family() -> Vec<u8> {
    message(CONTROLLER, GET_FAMILY, FAMILY_NAME, NAME)
}

/// Requests the delays of a process's threads, including those that have ended.
pub(super) fn ask_process(family: u16, pid: i32) -> Vec<u8> {
    message(family, GET, PROCESS, &pid.to_ne_bytes())
}

/// Subscribes to a message about each task that ends on these CPUs.
pub(super) fn register(family: u16, cpus: &str) -> Vec<u8> {
    let mut text = cpus.as_bytes().to_vec();
    text.push(0);
    message(family, GET, REGISTER, &text)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "messages of some hundred bytes"
)]
fn message(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let padded = value.len().next_multiple_of(4);
    let mut bytes = Vec::with_capacity(HEADERS + 4 + padded);
    bytes.extend(((HEADERS + 4 + padded) as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend(ACKNOWLEDGED.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend(((4 + value.len()) as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(HEADERS + 4 + padded, 0);
    bytes
}

/// The kernel's reply to a request: success, or the `errno`; `None` for another message.
pub(super) fn acknowledgement(bytes: &[u8]) -> Option<Result<(), i32>> {
    let is_error = u16_at(bytes, 4)? == ERROR;
    let code = i32_at(bytes, HEADER)?;
    is_error.then_some(if code == 0 { Ok(()) } else { Err(-code) })
}

/// The family's number, if the message contains it.
pub(super) fn family(bytes: &[u8]) -> Option<u16> {
    let mut found = attributes(bytes.get(HEADERS..)?).filter(|(kind, _)| *kind == FAMILY_ID);
    u16_at(found.next()?.1, 0)
}

/// The tasks in one packet. Per-process aggregates are left out: they are sums of these.
pub(super) fn ended(packet: &[u8], now: Nanos) -> Vec<CountedTask> {
    let mut found = Vec::new();
    let mut rest = packet;
    while let Some(length) = u32_at(rest, 0).and_then(|length| usize::try_from(length).ok()) {
        let Some(bytes) = rest.get(..length).filter(|bytes| bytes.len() >= HEADERS) else {
            break;
        };
        let of_tasks = attributes(&bytes[HEADERS..]).filter(|(kind, _)| *kind == OF_TASK);
        let statistics = of_tasks.flat_map(|(_, value)| attributes(value));
        let statistics = statistics.filter(|(kind, _)| *kind == STATISTICS);
        found.extend(statistics.filter_map(|(_, value)| task(value, now)));
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// The kernel's reply to [`ask_process`]. If it counted no wait of any kind, it does not count
/// delays for this process, and only the time ready to run is returned.
pub(super) fn of_process(packet: &[u8]) -> Option<Delays> {
    let mut of_process = attributes(packet.get(HEADERS..)?).filter(|one| one.0 == OF_PROCESS);
    let mut inside = attributes(of_process.next()?.1).filter(|one| one.0 == STATISTICS);
    let bytes = inside.next()?.1;
    let version = u16_at(bytes, 0).filter(|version| *version >= FIRST_VERSION)?;
    let words = delays(version, |at| delay(bytes, at));
    let kinds = [
        words.disk,
        words.swap,
        words.reclaim,
        words.thrashing,
        words.compaction,
        words.copying,
    ];
    let counts = kinds.into_iter().flatten().any(|kind| kind.count > 0);
    let ready_alone = Delays {
        tasks: 1,
        ready: words.ready,
        ..Delays::default()
    };
    Some(if counts { words } else { ready_alone })
}

fn delays(version: u16, of: impl Fn(usize) -> Option<Delay>) -> Delays {
    Delays {
        tasks: 1,
        ready: of(offset::READY),
        disk: of(offset::DISK),
        swap: of(offset::SWAP),
        reclaim: of(offset::RECLAIM),
        thrashing: of(offset::THRASHING),
        compaction: of(offset::COMPACTION),
        copying: of(offset::COPYING).filter(|_| version >= COPIES_VERSION),
    }
}

fn task(bytes: &[u8], now: Nanos) -> Option<CountedTask> {
    let version = u16_at(bytes, 0).filter(|version| *version >= FIRST_VERSION)?;
    let lifetime = u64::from_ne_bytes(array(bytes, offset::LIFETIME)?).saturating_mul(1_000);
    // If a task starts to wait before counting begins, its delay is counted since boot
    // (kernel/delayacct.c; seen on Linux 6.18 for waits on a disk).
    let possible = |at: usize| delay(bytes, at).filter(|delay| delay.time.0 <= lifetime);
    Some(CountedTask {
        pid: i32_at(bytes, offset::GROUP)?,
        tid: i32_at(bytes, offset::PID)?,
        parent: i32_at(bytes, offset::PARENT)?,
        name: name(bytes)?,
        ended: now,
        lifetime: Nanos(lifetime),
        run: Nanos(u64::from_ne_bytes(array(bytes, offset::RUN)?)),
        delays: delays(version, possible),
    })
}

fn name(bytes: &[u8]) -> Option<String> {
    let room = bytes.get(offset::NAME..offset::NAME + NAME_ROOM)?;
    let name = room.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// A count and the total time in nanoseconds.
fn delay(bytes: &[u8], at: usize) -> Option<Delay> {
    Some(Delay {
        count: u64::from_ne_bytes(array(bytes, at)?),
        time: Nanos(u64::from_ne_bytes(array(bytes, at + 8)?)),
    })
}

/// Attributes one after another: length including this 4-byte header, kind, value, padded to 4
/// bytes.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let kind = u16_at(bytes, 2)? & !NESTED;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(array(bytes, at)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(array(bytes, at)?))
}

fn i32_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(array(bytes, at)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = u16::try_from(4 + value.len()).expect("small");
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn packet(version: u16) -> Vec<u8> {
        let mut task = vec![0; 416];
        task[..2].copy_from_slice(&version.to_ne_bytes());
        let mut put =
            |at: usize, value: u64| task[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        put(offset::RECLAIM, 7);
        put(offset::RECLAIM + 8, 900);
        put(offset::COPYING, 3);
        put(offset::LIFETIME, 1);
        put(offset::DISK + 8, 16_000_000_000_000);
        put(offset::PID, (20 << 32) | 12);
        put(offset::GROUP, 11);
        put(offset::RUN, 450);
        task[offset::NAME..offset::NAME + 4].copy_from_slice(b"gzip");
        let inside = [
            attribute(1, &12_u32.to_ne_bytes()),
            attribute(6, &[]),
            attribute(STATISTICS, &task),
        ];
        let mut bytes = vec![0; HEADERS];
        bytes.extend(attribute(OF_TASK | NESTED, &inside.concat()));
        // The sum of the process.
        bytes.extend(attribute(5, &inside.concat()));
        let length = u32::try_from(bytes.len()).expect("small");
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_task_is_told_once_with_its_process_and_parent() {
        let found = ended(&packet(13), Nanos(5_000));
        assert_eq!(found.len(), 1, "{found:?}");
        let task = &found[0];
        assert_eq!((task.tid, task.pid, task.parent), (12, 11, 20));
        assert_eq!(task.name, "gzip");
        let times = (task.run, task.lifetime, task.ended);
        assert_eq!(times, (Nanos(450), Nanos(1_000), Nanos(5_000)));
        let delays = task.delays;
        assert_eq!(
            delays.reclaim,
            Some(Delay {
                count: 7,
                time: Nanos(900)
            })
        );
        assert_eq!(delays.copying.map(|copying| copying.count), Some(3));
        // Longer than the task's lifetime of one µs.
        assert_eq!(delays.disk, None);
        assert_eq!(ended(&packet(12), Nanos(0))[0].delays.copying, None);
    }

    #[test]
    fn a_process_reports_its_waits_or_none_if_uncounted() {
        let words = of_process(&packet(13)).expect("a process");
        assert_eq!(words.reclaim.map(|reclaim| reclaim.count), Some(7));
        let mut idle = packet(13);
        // The counts of reclaim and copies in the sum of the process.
        let sum = idle.len() - 416;
        for at in [offset::RECLAIM, offset::COPYING, offset::DISK] {
            idle[sum + at..sum + at + 8].fill(0);
        }
        let words = of_process(&idle).expect("a process");
        assert!(
            words.ready.is_some() && words.reclaim.is_none(),
            "{words:?}"
        );
    }

    #[test]
    fn what_is_cut_off_or_too_old_tells_nothing() {
        assert!(ended(&packet(11), Nanos(0)).is_empty());
        let whole = packet(13);
        for length in 0..whole.len() {
            assert!(ended(&whole[..length], Nanos(0)).is_empty(), "{length}");
        }
    }

    #[test]
    fn requests_are_laid_out_as_the_kernel_reads_them() {
        let bytes = register(0x1c, "0-1");
        assert_eq!(bytes.len(), 28);
        assert_eq!(u32_at(&bytes, 0), Some(28));
        assert_eq!(&bytes[20..], [8, 0, 3, 0, b'0', b'-', b'1', 0]);
    }
}
