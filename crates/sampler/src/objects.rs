//! The program or library that holds a code address, as the dynamic linker knows it.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::cfi::Tables;
use crate::sys;

/// A part of memory with the contents of a file.
#[derive(Clone, Copy, Default)]
pub struct Part {
    pub start: u64,
    pub end: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
}

impl Part {
    fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// What holds an address.
pub struct Object {
    /// The part with the address.
    pub code: Part,
    /// The part with the unwind tables, and their address.
    tables: Option<(Part, u64)>,
    /// The file's path, empty for the program itself; valid until the library is closed.
    name: *const c_char,
}

impl Object {
    /// The unwind tables.
    ///
    /// # Safety
    /// The object stays loaded while they are used: code of it is on this thread's stack.
    pub unsafe fn tables(&self) -> Option<Tables<'_>> {
        let (part, header) = self.tables?;
        let bytes = (part.end - part.start) as usize;
        // SAFETY: the linker mapped this part of the file, which nothing writes; by the caller, it stays.
        let bytes = unsafe { core::slice::from_raw_parts(part.start as *const u8, bytes) };
        Some(Tables {
            bytes,
            address: part.start,
            header,
        })
    }

    /// The path of the file.
    ///
    /// # Safety
    /// As for [`Self::tables`].
    pub unsafe fn path(&self) -> &[u8] {
        match self.name.is_null() {
            true => &[],
            // SAFETY: a string of the linker's; by the caller, it stays.
            false => unsafe { CStr::from_ptr(self.name) }.to_bytes(),
        }
    }
}

/// What holds `address`.
pub fn holding(address: u64) -> Option<Object> {
    match FIND.load(Ordering::Relaxed) {
        0 => by_iteration(address),
        find => by_finding(find, address),
    }
}

/// glibc's `_dl_find_object` (since 2.35), which takes no lock; 0 if there is none.
static FIND: AtomicUsize = AtomicUsize::new(0);

/// Looks for functions of the dynamic linker. Not inside a call of its own.
pub fn prepare() {
    // SAFETY: a name that ends with NUL.
    let find = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
    FIND.store(find as usize, Ordering::Relaxed);
}

/// `struct dl_find_object` of x86-64 (glibc, dlfcn.h).
#[repr(C)]
#[derive(Default)]
struct Found {
    flags: u64,
    start: usize,
    end: usize,
    link_map: usize,
    eh_frame: usize,
    reserved: [u64; 7],
}

/// The start of `struct link_map` (link.h).
#[repr(C)]
struct LinkMap {
    bias: usize,
    name: *const c_char,
}

fn by_finding(find: usize, address: u64) -> Option<Object> {
    // SAFETY: the function of that name has this type.
    let find: unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int =
        unsafe { mem::transmute(find) };
    let mut found = Found::default();
    // SAFETY: it takes any address.
    if unsafe { find(address as *mut c_void, &raw mut found) } != 0 || found.link_map == 0 {
        return None;
    }
    // SAFETY: the linker's record of a loaded object.
    let LinkMap { bias, name } = unsafe { (found.link_map as *const LinkMap).read() };
    let headers = program_headers(found.start)?;
    object(address, bias, headers, Some(found.eh_frame as u64), name)
}

/// The program headers of what is mapped at `start` with its ELF header.
fn program_headers(start: usize) -> Option<&'static [libc::Elf64_Phdr]> {
    let header = start as *const libc::Elf64_Ehdr;
    if start == 0 || !sys::is_readable(start as u64) {
        return None;
    }
    // SAFETY: a whole page is readable, from its start.
    let header = unsafe { header.read() };
    let size = usize::from(header.e_phnum) * mem::size_of::<libc::Elf64_Phdr>();
    let in_page = (header.e_phoff as usize).checked_add(size)? <= 4096;
    let is_elf = header.e_ident.starts_with(b"\x7fELF")
        && usize::from(header.e_phentsize) == mem::size_of::<libc::Elf64_Phdr>();
    if !is_elf || !in_page || header.e_phoff % 8 != 0 {
        return None;
    }
    let headers = (start + header.e_phoff as usize) as *const libc::Elf64_Phdr;
    // SAFETY: in the same page.
    Some(unsafe { core::slice::from_raw_parts(headers, header.e_phnum.into()) })
}

/// What a look at all objects is for.
struct Wanted {
    address: u64,
    found: Option<Object>,
}

/// For glibc before 2.35, and musl.
fn by_iteration(address: u64) -> Option<Object> {
    let mut wanted = Wanted {
        address,
        found: None,
    };
    // SAFETY: the function takes what it is given here.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut wanted).cast()) };
    wanted.found
}

unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> c_int {
    // SAFETY: from `by_iteration`, which waits for this; the linker's own record.
    let (info, wanted) = unsafe { (&*info, &mut *wanted.cast::<Wanted>()) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    let count = usize::from(info.dlpi_phnum);
    // SAFETY: so many headers are there.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, count) };
    let bias = info.dlpi_addr as usize;
    wanted.found = object(wanted.address, bias, headers, None, info.dlpi_name);
    c_int::from(wanted.found.is_some())
}

/// The object with these headers, loaded at `bias`, if it holds the address.
fn object(
    address: u64,
    bias: usize,
    headers: &[libc::Elf64_Phdr],
    eh_frame: Option<u64>,
    name: *const c_char,
) -> Option<Object> {
    let place = |header: &libc::Elf64_Phdr| (bias as u64).wrapping_add(header.p_vaddr);
    let loaded = |address: u64| {
        let parts = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD);
        let mut parts = parts.map(|header| Part {
            start: place(header),
            // Without what is not from the file.
            end: place(header).wrapping_add(header.p_filesz),
            offset: header.p_offset,
        });
        parts.find(|part| part.holds(address))
    };
    let code = loaded(address)?;
    let in_headers = headers
        .iter()
        .find(|header| header.p_type == libc::PT_GNU_EH_FRAME);
    let eh_frame = eh_frame.or_else(|| in_headers.map(place));
    let tables = eh_frame.and_then(|at| Some((loaded(at)?, at)));
    Some(Object { code, tables, name })
}
