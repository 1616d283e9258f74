//! The program's calls that the pager must see.
//!
//! There are two mechanisms. Symbols exported here come before libc's, so that calls between
//! libraries arrive; and for calls inside libc (malloc's own mappings) the entries of libc's
//! functions are replaced by jumps ([`detour`]). Every function also works before the pager has
//! started, and if the start is refused: then it does what libc's function does.

mod address_space;
mod allocator;
mod bypass;
mod calls;
mod detour;
mod endings;
mod environment;
mod file_mappings;
mod files;
mod forks;
mod given;
mod heap;
mod hints;
mod ioctls;
mod libc_code;
mod locks;
mod memory;
mod merging;
mod panics;
mod process;
mod programs;
mod shim;
mod signals;
mod strict;
mod threads;

use crate::figures::unmanaged;
use crate::inject;
use crate::paging::{PAGER, fatal};
use crate::start;
use crate::sys::{self, Answer};
use pagewise_wire::settings::{Settings, VARIABLE};
use pagewise_wire::shared::Unmanaged;

/// Runs before `main` and before the constructors of the program's own libraries.
#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    crate::mapped_files::prepare();
    let Some(text) = sys::environment::variable(VARIABLE) else {
        return;
    };
    let settings = match Settings::from_text(&text) {
        Ok(settings) => settings,
        Err(part) => {
            fatal::say(format_args!(
                "{VARIABLE} has an invalid part '{part}'; memory is not managed"
            ));
            return;
        }
    };
    heap::prepare();
    let data_before = memory::data_before();
    shim::prepare();
    start::attach(&settings);
    let first = start::is_first(&settings);
    panics::starting(true);
    let started = start::start(&settings);
    panics::starting(false);
    if let Err(refusal) = started {
        let why = refusal.words();
        if first || settings.strict {
            fatal::say(format_args!("the program is not started: {why}"));
            sys::end(1);
        }
        fatal::say(format_args!("this program's memory is not managed: {why}"));
        unmanaged::note_own(Unmanaged::Failed);
        return;
    }
    let mut exits = false;
    detour::while_writable(|| {
        exits = detour::install(&PAGER);
        forks::install();
    });
    bypass::prepare(first);
    if !exits {
        process::prepare();
    }
    threads::prepare();
    heap::adopt_heap();
    memory::adopt_present(data_before);
    if inject::takes_away("allocation") {
        allocator::seal();
    }
}

/// A result as returned by libc: the value, or -1 and `errno`.
fn libc_answer(answer: Answer) -> isize {
    if answer < 0 && answer > -4096 {
        set_errno(sys::errno(answer));
        return -1;
    }
    answer
}

fn set_errno(value: i32) {
    // SAFETY: these functions are called by threads of libc, which have an errno.
    unsafe { *libc::__errno_location() = value };
}
