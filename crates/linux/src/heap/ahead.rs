//! Memory that is read on a thread of its own while what was read before is looked at.

use super::Source;
use pagewise_model::memory::Presence;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

/// Pieces that are read ahead. More would be older when they are looked at.
const DEPTH: usize = 4;

/// Does `work` with the memory behind `source`, of which pieces of `piece` bytes that follow each other are
/// read ahead, as far as the same pages go on.
pub fn ahead<T>(
    source: &(dyn Source + Sync),
    presence: &Presence,
    piece: usize,
    work: impl FnOnce(&dyn Source) -> T,
) -> T {
    thread::scope(|scope| {
        let (orders, to_read) = mpsc::channel::<Piece>();
        let (have_read, pieces) = mpsc::channel();
        let reading = thread::Builder::new().spawn_scoped(scope, move || {
            for mut order in to_read {
                order.is_read = source
                    .read_piece(order.address, piece, &mut order.bytes)
                    .is_ok();
                if have_read.send(order).is_err() {
                    break;
                }
            }
        });
        if reading.is_err() {
            return work(source);
        }
        work(&Ahead {
            source,
            presence,
            piece,
            orders,
            pieces,
            queue: RefCell::default(),
        })
    })
}

/// A piece that is to be read, or was.
struct Piece {
    address: u64,
    bytes: Vec<u8>,
    is_read: bool,
}

struct Ahead<'a> {
    source: &'a dyn Source,
    presence: &'a Presence,
    piece: usize,
    orders: Sender<Piece>,
    pieces: Receiver<Piece>,
    queue: RefCell<Queue>,
}

/// Addresses that were ordered, and room for pieces.
#[derive(Default)]
struct Queue {
    ordered: VecDeque<u64>,
    spare: Vec<Vec<u8>>,
}

impl Source for Ahead<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        self.source.read(address, into)
    }

    fn read_piece(&self, address: u64, length: usize, into: &mut Vec<u8>) -> io::Result<()> {
        if length != self.piece {
            return self.source.read_piece(address, length, into);
        }
        let mut queue = self.queue.borrow_mut();
        if !self.take(&mut queue, address, into) {
            self.source.read_piece(address, length, into)?;
        }
        self.order(&mut queue, address);
        Ok(())
    }
}

impl Ahead<'_> {
    /// Takes the piece at `address` from those that were ordered; those before it are not wanted any more.
    fn take(&self, queue: &mut Queue, address: u64, into: &mut Vec<u8>) -> bool {
        while queue.ordered.pop_front().is_some() {
            let Ok(mut piece) = self.pieces.recv() else {
                queue.ordered.clear();
                return false;
            };
            let is_wanted = piece.address == address;
            if is_wanted && piece.is_read {
                std::mem::swap(into, &mut piece.bytes);
            }
            queue.spare.push(piece.bytes);
            if is_wanted {
                return piece.is_read;
            }
        }
        false
    }

    /// Orders what follows the piece at `address`.
    fn order(&self, queue: &mut Queue, address: u64) {
        let Some(run) = self.presence.at(address) else {
            return;
        };
        let piece = self.piece as u64;
        let mut next = queue.ordered.back().copied().unwrap_or(address) + piece;
        while queue.ordered.len() < DEPTH && next + piece <= run.end {
            let order = Piece {
                address: next,
                bytes: queue.spare.pop().unwrap_or_default(),
                is_read: false,
            };
            if self.orders.send(order).is_err() {
                return;
            }
            queue.ordered.push_back(next);
            next += piece;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Image;
    use super::*;
    use pagewise_model::memory::{PageRun, PageState};
    use std::sync::Mutex;

    /// Each word is its own address; notes what was read.
    #[derive(Default)]
    struct Counting(Mutex<Vec<(u64, usize)>>);

    impl Source for Counting {
        fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.lock().unwrap().push((address, into.len()));
            for (word, place) in into.chunks_exact_mut(8).zip(0_u64..) {
                word.copy_from_slice(&(address + 8 * place).to_le_bytes());
            }
            Ok(())
        }
    }

    #[test]
    fn words_are_the_same_and_no_absent_page_is_read_ahead() {
        let run = |start, end| PageRun {
            start,
            end,
            state: PageState::Anonymous,
        };
        let presence = Presence::new(vec![run(0x10_0000, 0x41_3000), run(0x80_0000, 0x90_0000)]);
        let source = Counting::default();
        let jumps = [0x10_0000, 0x80_0000, 0x20_0000, 0x21_0000, 0x10_0000];
        super::ahead(&source, &presence, Image::LARGEST, |ahead| {
            let mut image = Image::new(ahead, &presence, 4096);
            for start in jumps {
                for at in (start..start + 0x10_0000).step_by(64) {
                    assert_eq!(image.word(at), Ok(at));
                }
            }
            for at in (0x10_0000..0x41_3000).step_by(8) {
                assert_eq!(image.word(at), Ok(at));
            }
        });
        let read = source.0.into_inner().unwrap();
        assert!(read.iter().all(|(start, length)| {
            let end = start + *length as u64;
            presence.at(*start).is_some_and(|run| end <= run.end)
        }));
    }
}
