//! Names of code addresses.
//!
//! Called once per recording with each unique address, so files are opened once and queried in
//! batches. An address without a name gets the reason instead, because the user can fix most of
//! them (install debug symbols, raise a privilege, write a JIT map). Nothing here fails: a missing
//! file makes its addresses [`Unnamed::NoFile`].

mod aliases;
mod build_id_cache;
mod deadline;
mod debug_files;
mod debuginfod;
mod elf;
mod functions;
mod kallsyms;
mod kernel;
mod lines;
mod perf_map;
mod symbol_file;
mod trampoline;
pub mod unwind;
mod vdso;

use elf::ElfFiles;
use kallsyms::Kallsyms;
use perf_map::PerfMap;
use vdso::Vdso;

pub use build_id_cache::BuildIdCache;
pub use debuginfod::Debuginfod;
pub use kernel::KernelIdentity;
pub use lines::{CodeLine, CodePlace};

use pagewise_model::address_space::{AddressSpace, FileId, Mapping};
use pagewise_model::event::CpuMode;
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, NamedList, Names, SymbolTable, Unnamed};
use rustc_hash::FxHashMap;
use std::cell::LazyCell;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

/// Finds names of code addresses on this machine.
pub struct Symbolizer {
    root: PathBuf,
    files: ElfFiles,
    /// The kernel that was recorded.
    kernel: KernelIdentity,
    /// Why names of generated code were not read.
    unread: Option<String>,
}

/// Addresses of one file, looked up together: each query has to open the file.
#[derive(Default)]
struct Batch<'a> {
    build_id: Option<&'a [u8]>,
    file: Option<FileId>,
    /// Indices into the list of keys, and offsets in the file.
    offsets: Vec<(usize, u64)>,
}

/// Batches by mount namespace (see [`Symbolizer::namespace`]), path and identity: the file of a path
/// may have been replaced while it was recorded.
type Batches<'a> = FxHashMap<(i32, &'a str, Option<&'a [u8]>, Option<FileId>), Batch<'a>>;

impl Default for Symbolizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Symbolizer {
    /// A symbolizer of this machine's kernel, processes and files.
    #[must_use]
    pub fn new() -> Self {
        Self {
            files: ElfFiles::new(
                Path::new("/"),
                BuildIdCache::of_perf(),
                Debuginfod::from_environment(),
            ),
            ..Self::with_root(Path::new("/"))
        }
    }

    /// A symbolizer of the machine whose root directory is mounted at `root`.
    #[must_use]
    pub fn with_root(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            files: ElfFiles::new(root, BuildIdCache::default(), Debuginfod::default()),
            kernel: KernelIdentity::default(),
            unread: None,
        }
    }

    /// The same, with missing programs and debug information taken from `debuginfod`.
    #[must_use]
    pub fn with_debuginfod(self, debuginfod: Debuginfod) -> Self {
        Self {
            files: ElfFiles::new(&self.root, BuildIdCache::default(), debuginfod),
            ..self
        }
    }

    /// The same, with missing programs taken from perf's store `cache`.
    #[must_use]
    pub fn with_build_id_cache(self, cache: BuildIdCache) -> Self {
        Self {
            files: ElfFiles::new(&self.root, cache, Debuginfod::default()),
            ..self
        }
    }

    /// The same for a recording of this kernel. Its code has names if that kernel runs now; if it is
    /// not known which was recorded, it has none.
    #[must_use]
    pub fn of_kernel(self, kernel: KernelIdentity) -> Self {
        Self { kernel, ..self }
    }

    /// Problems in finding names that the user can fix.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let notes: Vec<String> = self.files.notes().chain(self.unread.clone()).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }

    /// The name of each key, or the reason why it has none. Equal keys are looked up once. See
    /// [`Self::names`].
    #[must_use]
    pub fn resolve<S: BuildHasher>(
        &mut self,
        keys: impl IntoIterator<Item = FrameKey>,
        spaces: &HashMap<i32, AddressSpace, S>,
    ) -> SymbolTable {
        let mut keys: Vec<FrameKey> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let named = self.names(&keys, spaces);
        SymbolTable::new(&keys, named)
    }

    /// The name of each of these keys, or the reason why it has none.
    ///
    /// `spaces` has the mappings of each process, as recorded, and those of the kernel, if any,
    /// under -1, which show whether the recorded kernel is the one running now.
    #[must_use]
    pub fn names<S: BuildHasher>(
        &mut self,
        keys: &[FrameKey],
        spaces: &HashMap<i32, AddressSpace, S>,
    ) -> NamedList {
        let mut names = Names::default();
        let nowhere = names.intern(unknown(Unnamed::NoMapping, ""));
        let of = vec![nowhere; keys.len()];
        let mut named = NamedList { names, of };
        let mut batches = Batches::default();
        let mut namespaces: FxHashMap<i32, i32> = FxHashMap::default();
        let mut generated: FxHashMap<i32, Vec<usize>> = FxHashMap::default();
        let mut kernel = Vec::new();
        let mut vdso = Vec::new();
        let mut guest = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            match place(*key, spaces) {
                Place::Kernel => kernel.push(at),
                Place::File(mapping) => {
                    let offset = key.address - mapping.start + mapping.file_offset;
                    let pid = namespaces.entry(key.pid);
                    let namespace = *pid.or_insert_with(|| self.namespace(key.pid));
                    let build_id = mapping.build_id.as_deref();
                    let identity = (namespace, &*mapping.path, build_id, mapping.file);
                    let batch = batches.entry(identity).or_default();
                    (batch.build_id, batch.file) = (build_id, mapping.file);
                    batch.offsets.push((at, offset));
                }
                Place::Generated => generated.entry(key.pid).or_default().push(at),
                Place::Vdso(mapping) => vdso.push((at, key.address - mapping.start)),
                Place::Guest => guest.push(at),
                Place::Nowhere => {}
            }
        }
        let kernel_text = spaces.get(&-1).and_then(recorded_kernel_text);
        let symbols = LazyCell::new(|| match self.kernel.is_running(&self.root) {
            true => Kallsyms::read(&self.root.join("proc/kallsyms")),
            false => Err(Unnamed::OtherFile),
        });
        name_kernel(keys, kernel, kernel_text, &symbols, &mut named);
        set_all(&guest, unknown(Unnamed::Guest, "[guest]"), &mut named);
        self.name_vdso(vdso, kernel_text, &symbols, &mut named);
        self.name_generated(keys, generated, &mut named);
        self.name_files(batches, &mut named);
        named
    }

    /// Where these addresses are in the source, as far as debug information says so; see
    /// [`Self::names`].
    #[must_use]
    pub fn places<S: BuildHasher>(
        &mut self,
        keys: &[FrameKey],
        spaces: &HashMap<i32, AddressSpace, S>,
    ) -> Vec<CodePlace> {
        let mut batches = Batches::default();
        let mut namespaces: FxHashMap<i32, i32> = FxHashMap::default();
        for (at, key) in keys.iter().enumerate() {
            let Place::File(mapping) = place(*key, spaces) else {
                continue;
            };
            let offset = key.address - mapping.start + mapping.file_offset;
            let build_id = mapping.build_id.as_deref();
            let pid = namespaces.entry(key.pid);
            let namespace = *pid.or_insert_with(|| self.namespace(key.pid));
            let identity = (namespace, &*mapping.path, build_id, mapping.file);
            let batch = batches.entry(identity).or_default();
            (batch.build_id, batch.file) = (build_id, mapping.file);
            batch.offsets.push((at, offset));
        }
        let mut places = vec![CodePlace::default(); keys.len()];
        for ((namespace, path, ..), batch) in batches {
            let file = self.path_for(namespace, path);
            self.files.lines(&file, path, &batch, &mut places);
        }
        places
    }

    /// Names code of the vdso if the recorded kernel is the running one: another kernel has another
    /// image. If the recording does not identify its kernel, it may be another one.
    fn name_vdso(
        &self,
        wanted: Vec<(usize, u64)>,
        recorded_text: Option<u64>,
        symbols: &KernelSymbols<impl FnOnce() -> Result<Kallsyms, Unnamed>>,
        named: &mut NamedList,
    ) {
        if wanted.is_empty() {
            return;
        }
        let is_same = recorded_text.is_some()
            && LazyCell::force(symbols)
                .as_ref()
                .is_ok_and(|symbols| symbols.is_of_kernel_at(recorded_text));
        let vdso = is_same.then(|| Vdso::read(&self.root)).flatten();
        for (at, offset) in wanted {
            let name = vdso.as_ref().and_then(|vdso| vdso.name(offset));
            let name = match name {
                Some(name) => Name::Known {
                    functions: vec![name.to_owned()],
                    module: "[vdso]".to_owned(),
                },
                None => unknown(Unnamed::NoSymbol, "[vdso]"),
            };
            named.of[at] = named.names.intern(name);
        }
    }

    fn name_generated(
        &mut self,
        keys: &[FrameKey],
        by_pid: FxHashMap<i32, Vec<usize>>,
        named: &mut NamedList,
    ) {
        for (pid, wanted) in by_pid {
            let map = PerfMap::of_process(&self.root, pid).unwrap_or_else(|why| {
                self.unread.get_or_insert(why);
                None
            });
            for at in wanted {
                let name = map.as_ref().and_then(|map| map.name(keys[at].address));
                let name = name.unwrap_or_else(|| unknown(Unnamed::Jit, "[jit]"));
                named.of[at] = named.names.intern(name);
            }
        }
    }

    fn name_files(&self, batches: Batches<'_>, named: &mut NamedList) {
        for ((namespace, path, ..), batch) in batches {
            let file = self.path_for(namespace, path);
            self.files.name(&file, path, batch, named);
        }
    }

    /// 0 for processes that see the same files as we do, the process id for others.
    fn namespace(&self, pid: i32) -> i32 {
        let of = |who: &str, what: &str| {
            std::fs::read_link(self.root.join("proc").join(who).join(what)).ok()
        };
        let is_own = ["ns/mnt", "root"].into_iter().all(|what| {
            let both = of("self", what).zip(of(&pid.to_string(), what));
            both.is_none_or(|(ours, theirs)| ours == theirs)
        });
        if is_own { 0 } else { pid }
    }

    /// Path by which to open a file of a process: our own, or through the process's root.
    fn path_for(&self, namespace: i32, path: &str) -> PathBuf {
        let relative = path.trim_start_matches('/');
        if namespace == 0 {
            return self.root.join(relative);
        }
        let process = self.root.join("proc").join(namespace.to_string());
        let root = process.join("root");
        // `/proc/PID/maps` shows paths as its reader sees them, including the path of the process's
        // root.
        let within = std::fs::read_link(&root)
            .ok()
            .and_then(|link| Path::new(path).strip_prefix(link).ok().map(Path::to_owned));
        let inside = within.filter(|inside| root.join(inside).exists());
        root.join(inside.unwrap_or_else(|| relative.into()))
    }
}

/// The kernel's table, read when it is first needed: it has some hundred thousand lines.
type KernelSymbols<F> = LazyCell<Result<Kallsyms, Unnamed>, F>;

fn name_kernel(
    keys: &[FrameKey],
    mut wanted: Vec<usize>,
    recorded_text: Option<u64>,
    symbols: &KernelSymbols<impl FnOnce() -> Result<Kallsyms, Unnamed>>,
    named: &mut NamedList,
) {
    if wanted.is_empty() {
        return;
    }
    let symbols = match &**symbols {
        Err(reason) => return set_all(&wanted, unknown(*reason, "[kernel]"), named),
        Ok(symbols) if !symbols.is_of_kernel_at(recorded_text) => {
            return set_all(&wanted, unknown(Unnamed::OtherFile, "[kernel]"), named);
        }
        Ok(symbols) => symbols,
    };
    wanted.sort_unstable_by_key(|&at| keys[at].address);
    for same in wanted.chunk_by(|&a, &b| symbols.same(keys[a].address, keys[b].address)) {
        set_all(same, symbols.name(keys[same[0]].address), named);
    }
}

fn set_all(places: &[usize], name: Name, named: &mut NamedList) {
    let name = named.names.intern(name);
    for &at in places {
        named.of[at] = name;
    }
}

/// Kind of code at an address.
enum Place<'a> {
    Kernel,
    File(&'a Mapping),
    Generated,
    Vdso(&'a Mapping),
    Guest,
    Nowhere,
}

fn place<S: BuildHasher>(key: FrameKey, spaces: &HashMap<i32, AddressSpace, S>) -> Place<'_> {
    match key.mode {
        CpuMode::Kernel => return Place::Kernel,
        CpuMode::Other => return Place::Guest,
        CpuMode::User => {}
    }
    let Some(mapping) = spaces
        .get(&key.pid)
        .and_then(|space| space.find(key.address))
    else {
        return Place::Nowhere;
    };
    match &*mapping.path {
        "[vdso]" => Place::Vdso(mapping),
        path if path.starts_with('/') && !is_nameless(path) => Place::File(mapping),
        _ => Place::Generated,
    }
}

/// Mappings that look like files but contain generated code.
fn is_nameless(path: &str) -> bool {
    ["//anon", "/memfd:", "/dev/zero", "/SYSV"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}

/// Recorded address of the kernel's first code.
fn recorded_kernel_text(space: &AddressSpace) -> Option<u64> {
    space
        .iter()
        .find(|mapping| mapping.path.starts_with("[kernel.kallsyms]"))
        .map(|mapping| mapping.start)
}

fn unknown(reason: Unnamed, module: &str) -> Name {
    Name::Unknown {
        reason,
        module: module.to_owned(),
    }
}

/// The last part of a path, as reports show it.
fn short_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests;
