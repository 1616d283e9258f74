//! The program or library that holds a code address, as the dynamic linker knows it.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::cfi::Tables;
use crate::layout::BUILD_ID;
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
    /// The file's build id and its length.
    build_id: ([u8; BUILD_ID], usize),
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

    /// The build id of the file, empty if it has none.
    pub fn build_id(&self) -> &[u8] {
        let (bytes, length) = &self.build_id;
        bytes.get(..*length).unwrap_or_default()
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
    FIND.store(named(c"_dl_find_object") as usize, Ordering::Relaxed);
}

/// Whether C++'s `new` comes with the allocator that has this `malloc`: it then does not call `malloc`.
pub fn brings_operators(malloc: u64) -> bool {
    let new = named(c"_Znwm") as u64;
    let of = |address| holding(address).map(|object| object.code.start);
    new != 0 && of(new).is_some_and(|start| of(malloc) == Some(start))
}

/// The function of this name that the program finds.
fn named(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with NUL.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
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
    let notes = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_NOTE);
    let notes = notes.filter_map(|header| {
        let (at, bytes) = (place(header), header.p_filesz as usize);
        loaded(at).filter(|part| part.end - at >= bytes as u64)?;
        // SAFETY: in a part of the file that is mapped, and which nothing writes.
        Some(unsafe { core::slice::from_raw_parts(at as *const u8, bytes) })
    });
    let build_id = notes.filter_map(build_id_in).next().unwrap_or_default();
    Some(Object {
        code,
        tables,
        build_id,
        name,
    })
}

/// The build id among notes (ELF, "Note Section"; `NT_GNU_BUILD_ID` of the owner GNU).
fn build_id_in(mut notes: &[u8]) -> Option<([u8; BUILD_ID], usize)> {
    let word = |notes: &[u8], at: usize| -> Option<usize> {
        Some(u32::from_le_bytes(*notes.get(at..)?.first_chunk()?) as usize)
    };
    loop {
        let (name, content, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let end = start.checked_add(content)?;
        if kind == 3 && notes.get(12..)?.starts_with(b"GNU\0") && content <= BUILD_ID {
            let mut id = [0; BUILD_ID];
            id.get_mut(..content)?
                .copy_from_slice(notes.get(start..end)?);
            return Some((id, content));
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], content: &[u8]) -> Vec<u8> {
        let length = |part: &[u8]| u32::try_from(part.len()).expect("short").to_le_bytes();
        let mut note = [
            &length(name)[..],
            &length(content),
            &kind.to_le_bytes(),
            name,
        ]
        .concat();
        note.resize(note.len().next_multiple_of(4), 0);
        note.extend(content);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn a_build_id_is_found_among_other_notes() {
        let id: Vec<u8> = (1..=20).collect();
        let others = note(1, b"GNU\0", b"abi");
        let notes = [
            others.clone(),
            note(3, b"stapsdt\0", b"x"),
            note(3, b"GNU\0", &id),
        ]
        .concat();
        let found = build_id_in(&notes).map(|(found, length)| found[..length].to_vec());
        assert_eq!(found, Some(id));
        assert_eq!(build_id_in(&others), None);
        for cut in 0..notes.len() - 20 {
            assert_eq!(build_id_in(&notes[..cut]), None);
        }
    }
}
