//! All that a call needs, pinned until it is over.

use super::kept::whole;
use super::sockets;
use crate::intercept::given;
use crate::paging::PAGER;
use crate::paging::pins::Pin;

/// Ranges of one call.
const MOST: usize = 24;

/// Pins of a call; ranges beyond [`MOST`] are not pinned.
pub struct Held {
    pins: [Option<Pin<'static>>; MOST],
    messages: [Option<sockets::Pins>; 2],
    count: usize,
}

impl Held {
    pub const fn nothing() -> Self {
        Self {
            pins: [const { None }; MOST],
            messages: [const { None }; 2],
            count: 0,
        }
    }

    /// Pins `bytes` bytes at `place`, as far as one call may.
    pub fn keep(&mut self, place: usize, bytes: usize, write: bool) {
        if let Some(free) = self.pins.get_mut(self.count)
            && let Some(pin) = whole(place, bytes.min(PAGER.most_pinned() as usize), write)
        {
            *free = Some(pin);
            self.count += 1;
        }
    }

    /// Pins the buffers of a list.
    pub fn keep_parts(&mut self, list: usize, count: usize) {
        let size = size_of::<libc::iovec>();
        let count = count.min(MOST);
        if given::is_readable(list, count * size) {
            for index in 0..count {
                // SAFETY: the list can be read.
                let part = unsafe { (list as *const libc::iovec).add(index).read_unaligned() };
                self.keep(part.iov_base as usize, part.iov_len, true);
            }
        }
    }

    /// Pins what a message points to.
    pub fn keep_message(&mut self, message: usize) {
        if let Some(free) = self.messages.iter_mut().find(|pins| pins.is_none()) {
            *free = Some(sockets::message(message as *const libc::msghdr, true));
        }
    }
}
