//! Every store against the same expectations.

use std::collections::BTreeMap;
use std::os::fd::IntoRawFd;

use proptest::prelude::*;

use super::*;

const SLOTS: u64 = 512;

fn place() -> Place {
    let file = tempfile::tempfile().expect("a temporary file");
    let file_bytes = SLOTS * PAGE_BYTES as u64;
    file.set_len(file_bytes).expect("a sparse file");
    let bytes = usize::try_from(shared_bytes(SLOTS)).expect("small");
    Place {
        file: file.into_raw_fd(),
        file_bytes,
        shared: crate::sys::map_shared(bytes).expect("memory"),
    }
}

fn store(name: &str, options: &Options<'_>) -> Box<dyn Store> {
    // SAFETY: the place was created for this store and is never removed.
    let store = unsafe { open(name, place(), options) }.expect("a store");
    store.prepare();
    store
}

/// Page-aligned pages.
struct Pages(Vec<u8>);

impl Pages {
    fn new(count: usize) -> Self {
        Pages(vec![0; (count + 1) * PAGE_BYTES])
    }

    fn bytes(&mut self, count: usize) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(PAGE_BYTES);
        &mut self.0[start..start + count * PAGE_BYTES]
    }
}

/// The page with this number: of one word, of rising integers, or of noise.
fn fill(page: &mut [u8], number: u64) {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for (index, word) in page.chunks_exact_mut(8).enumerate() {
        let value = match number % 3 {
            0 => number,
            1 => number * 1000 + index as u64,
            _ => {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            }
        };
        word.copy_from_slice(&value.to_le_bytes());
    }
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Read(usize, usize),
    Release(usize),
    Retain(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        prop_oneof![
            (1usize..40).prop_map(Step::Write),
            (any::<usize>(), 1usize..40).prop_map(|(a, b)| Step::Read(a, b)),
            any::<usize>().prop_map(Step::Release),
            any::<usize>().prop_map(Step::Release),
            any::<usize>().prop_map(Step::Retain),
        ],
        1..60,
    )
}

fn keeps_its_word(store: &dyn Store, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut held: BTreeMap<Slot, (u64, u32)> = BTreeMap::new();
    let mut written = 0u64;
    let mut pages = Pages::new(40);
    for step in steps {
        match *step {
            Step::Write(count) => {
                let bytes = pages.bytes(count);
                for (page, number) in bytes.chunks_exact_mut(PAGE_BYTES).zip(written..) {
                    fill(page, number);
                }
                let mut slots = [0; 40];
                if store.write(bytes, &mut slots[..count]).is_ok() {
                    for (slot, number) in slots[..count].iter().zip(written..) {
                        prop_assert!(*slot != 0 && *slot >> SLOT_BITS == 0);
                        prop_assert!(held.insert(*slot, (number, 1)).is_none());
                    }
                } else {
                    prop_assert_eq!(slots, [0; 40]);
                }
                written += count as u64;
            }
            Step::Read(first, count) if !held.is_empty() => {
                let wanted: Vec<_> = held
                    .iter()
                    .cycle()
                    .skip(first % held.len())
                    .take(count)
                    .collect();
                let slots: Vec<Slot> = wanted.iter().map(|(slot, _)| **slot).collect();
                let bytes = pages.bytes(count);
                prop_assert_eq!(store.read(&slots, bytes), Ok(()));
                let mut expected = [0; PAGE_BYTES];
                for (page, (slot, (number, _))) in bytes.chunks_exact(PAGE_BYTES).zip(&wanted) {
                    fill(&mut expected, *number);
                    prop_assert!(page == expected, "slot {slot} page {number}");
                }
            }
            Step::Release(which) if !held.is_empty() => {
                let slot = *held.keys().nth(which % held.len()).expect("in range");
                store.release(slot);
                let references = &mut held.get_mut(&slot).expect("held").1;
                *references -= 1;
                if *references == 0 {
                    held.remove(&slot);
                }
            }
            Step::Retain(which) if !held.is_empty() => {
                let slot = *held.keys().nth(which % held.len()).expect("in range");
                prop_assert_eq!(store.retain(slot), Ok(()));
                if slot & IN_MEMORY == 0 {
                    held.get_mut(&slot).expect("held").1 += 1;
                }
            }
            Step::Read(..) | Step::Release(_) | Step::Retain(_) => {}
        }
        prop_assert_eq!(store.usage().pages, held.len() as u64);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn disk_keeps_its_word(steps in steps()) {
        keeps_its_word(&*store("disk", &Options::default()), &steps)?;
    }

    #[test]
    fn encrypted_disk_keeps_its_word(steps in steps()) {
        let options = Options { key: Some([3; 32]), ..Options::default() };
        keeps_its_word(&*store("disk", &options), &steps)?;
    }

    #[test]
    fn compressed_memory_keeps_its_word(steps in steps()) {
        let options = Options { memory_bytes: 4 << 20, ..Options::default() };
        keeps_its_word(&*store("compressed", &options), &steps)?;
    }

    #[test]
    fn tiers_keep_their_word(steps in steps()) {
        let options = Options { memory_bytes: 256 << 10, ..Options::default() };
        keeps_its_word(&*store("tiered", &options), &steps)?;
    }

    #[test]
    fn a_pool_that_is_judged_keeps_its_word(steps in steps()) {
        let options = Options { memory_bytes: 256 << 10, ..Options::default() };
        keeps_its_word(&*store("auto", &options), &steps)?;
    }
}

#[test]
fn packed_pages_move_to_disk_and_back() {
    let options = Options {
        memory_bytes: 1 << 20,
        ..Options::default()
    };
    let store = store("auto", &options);
    let mut pages = Pages::new(4);
    let bytes = pages.bytes(4);
    for (page, number) in bytes.chunks_exact_mut(PAGE_BYTES).zip([3, 4, 6, 7]) {
        fill(page, number);
    }
    let mut packed = [0; 4];
    store.write(bytes, &mut packed).unwrap();
    assert!(
        packed.iter().all(|slot| slot & IN_MEMORY != 0),
        "{packed:?}"
    );
    let mut read = Pages::new(4);
    let mut below = [0; 4];
    store.move_down(&packed, read.bytes(4), &mut below).unwrap();
    assert!(below.iter().all(|slot| slot & IN_MEMORY == 0), "{below:?}");
    packed.iter().for_each(|slot| store.release(*slot));
    store.read(&below, read.bytes(4)).unwrap();
    assert_eq!(read.bytes(4), bytes);
    let page = bytes.first_chunk().unwrap();
    let lifted = store.lift(page).expect("it packs, and there is room");
    store.release(below[0]);
    assert_ne!(lifted & IN_MEMORY, 0);
    store.read(&[lifted], read.bytes(1)).unwrap();
    assert_eq!(read.bytes(1), page);
    store.release(lifted);
    below[1..].iter().for_each(|slot| store.release(*slot));
    assert_eq!(store.usage().pages, 0);
}

#[test]
fn what_finds_no_room_in_the_pool_makes_old_pages_move_down() {
    let options = Options {
        memory_bytes: 128 << 10,
        ..Options::default()
    };
    let store = store("auto", &options);
    let mut pages = Pages::new(1);
    let mut first = None;
    for number in 0..20_000 {
        fill(pages.bytes(1), number * 3 + 1);
        let page = pages.bytes(1).first_chunk().unwrap();
        let lifted = store.lifts().then(|| store.lift(page)).flatten();
        first = first.or(lifted);
        if store.surplus() > 0 {
            assert_eq!(lifted, None, "there was room");
            assert!(store.is_stale(first.unwrap()));
            return;
        }
    }
    panic!("no page is to move down");
}

fn write_three(store: &dyn Store) -> ([Slot; 3], Result<(), StoreError>) {
    let mut pages = Pages::new(3);
    let bytes = pages.bytes(3);
    bytes
        .chunks_exact_mut(PAGE_BYTES)
        .for_each(|page| fill(page, 2));
    let mut slots = [0; 3];
    let written = store.write(bytes, &mut slots);
    (slots, written)
}

fn with_faults(faults: &str) -> Box<dyn Store> {
    store(
        "disk",
        &Options {
            faults: Some(faults),
            ..Options::default()
        },
    )
}

#[test]
fn a_flipped_bit_is_damage_not_data() {
    let store = with_faults("read:flip@1");
    let (slots, written) = write_three(&*store);
    assert_eq!(written, Ok(()));
    let answer = store.read(&slots, Pages::new(3).bytes(3));
    assert_eq!(answer.map_err(|error| error.why), Err(StoreError::Damaged));
}

#[test]
fn errors_of_the_device_come_through_and_hold_no_slot() {
    for (faults, error) in [
        ("write:enospc@1", StoreError::Full),
        ("write:eio@1", StoreError::Io(libc::EIO)),
        ("write:short@1", StoreError::Short),
    ] {
        let store = with_faults(faults);
        assert_eq!(write_three(&*store), ([0; 3], Err(error)), "{faults}");
        assert_eq!(store.usage().pages, 0);
    }
    let store = with_faults("read:eio@2");
    let (slots, _) = write_three(&*store);
    let mut pages = Pages::new(3);
    assert_eq!(store.read(&slots, pages.bytes(3)), Ok(()));
    let error = ReadError {
        place: 0,
        why: StoreError::Io(libc::EIO),
    };
    assert_eq!(store.read(&slots, pages.bytes(3)), Err(error));
}

#[test]
fn a_full_store_refuses_and_recovers() {
    let store = store("disk", &Options::default());
    let mut pages = Pages::new(64);
    let mut all = Vec::new();
    loop {
        let mut slots = [0; 64];
        match store.write(pages.bytes(64), &mut slots) {
            Ok(()) => all.extend(slots),
            Err(error) => {
                assert_eq!(error, StoreError::Full);
                break;
            }
        }
    }
    assert_eq!(all.len(), 448, "seven batches of 64 fit into 511 slots");
    all.iter().for_each(|slot| store.release(*slot));
    assert_eq!(store.write(pages.bytes(64), &mut [0; 64]), Ok(()));
}

#[test]
fn slots_that_nobody_wrote_are_refused() {
    let store = store(
        "tiered",
        &Options {
            memory_bytes: 1 << 20,
            ..Options::default()
        },
    );
    for slot in [0, 5, 100_000, IN_MEMORY | 77, IN_MEMORY | 0x7ff_ffff] {
        assert!(
            store.read(&[slot], Pages::new(1).bytes(1)).is_err(),
            "{slot:#x}"
        );
        store.release(slot);
    }
}

#[test]
fn scattered_slots_are_read_with_and_without_rings() {
    for faults in [None, Some("read:eio@1000000")] {
        let store = store(
            "disk",
            &Options {
                faults,
                ..Options::default()
            },
        );
        let mut pages = Pages::new(40);
        let bytes = pages.bytes(40);
        for (page, number) in bytes.chunks_exact_mut(PAGE_BYTES).zip(0..) {
            fill(page, number * 3 + 2);
        }
        let mut slots = [0; 40];
        store.write(bytes, &mut slots).expect("room");
        slots.reverse();
        bytes.fill(0);
        assert_eq!(store.read(&slots, bytes), Ok(()));
        let mut expected = [0; PAGE_BYTES];
        for (page, number) in bytes.chunks_exact(PAGE_BYTES).zip((0..40).rev()) {
            fill(&mut expected, number * 3 + 2);
            assert!(page == expected);
        }
    }
}

#[test]
fn what_goes_to_disk_encrypted_is_not_what_was_written() {
    let place = place();
    // SAFETY: the place was created for this store and is never removed.
    let store = unsafe {
        open(
            "disk",
            place,
            &Options {
                key: Some([9; 32]),
                ..Options::default()
            },
        )
    }
    .expect("a store");
    let (slots, _) = write_three(&*store);
    let mut raw = Pages::new(1);
    let mut plain = [0; PAGE_BYTES];
    fill(&mut plain, 2);
    // SAFETY: reads a page into memory of a page.
    let read = unsafe {
        let offset = i64::from(slots[0]) << crate::page::PAGE_SHIFT;
        libc::pread(
            place.file,
            raw.bytes(1).as_mut_ptr().cast(),
            PAGE_BYTES,
            offset,
        )
    };
    assert_eq!(read, 4096);
    let same = raw
        .bytes(1)
        .iter()
        .zip(&plain)
        .filter(|(a, b)| a == b)
        .count();
    assert!(same < 100, "{same} bytes are in clear");
}

#[test]
fn unknown_names_and_faults_are_refused() {
    let bad = Options {
        faults: Some("nonsense"),
        ..Options::default()
    };
    // SAFETY: as above.
    unsafe {
        assert_eq!(
            open("tape", place(), &Options::default()).err(),
            Some(OpenError::Unknown)
        );
        assert_eq!(open("disk", place(), &bad).err(), Some(OpenError::Faults));
    }
}
