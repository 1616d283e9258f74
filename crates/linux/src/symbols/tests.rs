use super::*;
use pagewise_model::event::CpuMode;

fn user(pid: i32, address: u64) -> FrameKey {
    FrameKey {
        pid,
        mode: CpuMode::User,
        address,
    }
}

/// The mappings of this process, from `/proc/self/maps`.
fn own_space() -> AddressSpace {
    let mut space = AddressSpace::default();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    for line in maps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let (start, end) = words[0].split_once('-').expect("a range");
        let hex = |text| u64::from_str_radix(text, 16).expect("hexadecimal");
        space.map(Mapping {
            start: hex(start),
            end: hex(end),
            file_offset: hex(words[2]),
            protection: 0,
            flags: 0,
            path: words.get(5).copied().unwrap_or("//anon").into(),
            build_id: None,
            file: file(words[3], words[4]),
        });
    }
    space
}

/// `fe:00` and `247278` of such a line.
fn file(device: &str, inode: &str) -> Option<FileId> {
    let (major, minor) = device.split_once(':')?;
    let hex = |text| u32::from_str_radix(text, 16).expect("hexadecimal");
    Some(FileId {
        device: (hex(major), hex(minor)),
        inode: inode.parse().expect("a number"),
    })
}

/// The file at this path, as a mapping of it shows it on the usual file systems.
fn file_at(path: &Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let found = path.metadata().ok()?;
    Some(FileId {
        device: (
            rustix::fs::major(found.dev()),
            rustix::fs::minor(found.dev()),
        ),
        inode: found.ino(),
    })
}

#[inline(never)]
fn a_function_to_be_found() -> u32 {
    std::hint::black_box(7)
}

#[test]
fn functions_of_this_program_and_of_libc_are_named() {
    let own = a_function_to_be_found as fn() -> u32 as usize as u64;
    let malloc = libc::malloc as unsafe extern "C" fn(usize) -> *mut libc::c_void as usize as u64;
    let pid = i32::try_from(std::process::id()).expect("a pid");
    let spaces = HashMap::from([(pid, own_space())]);
    let names = Symbolizer::new().resolve([user(pid, own), user(pid, malloc)], &spaces);
    let functions = |address| match names.get(&user(pid, address)).expect("it was asked for") {
        Name::Known { functions, module } => (functions.join(" "), module.clone()),
        unknown @ Name::Unknown { .. } => panic!("{unknown:?}"),
    };
    assert!(
        functions(own).0.contains("a_function_to_be_found"),
        "{:?}",
        functions(own)
    );
    assert!(
        functions(malloc).0.contains("malloc"),
        "{:?}",
        functions(malloc)
    );
    assert!(
        functions(malloc).1.starts_with("libc"),
        "{:?}",
        functions(malloc)
    );
}

#[test]
fn each_kind_of_nameless_address_has_its_reason() {
    let root = tempfile::tempdir().expect("temporary directory");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("temporary directory");
        std::fs::write(path, text).expect("temporary file");
    };
    write("proc/kallsyms", "0000000000000000 T _text\n");
    write("proc/sys/kernel/osrelease", "6.18.0\n");
    write("tmp/perf-5.map", "9000 10 jitted\n");
    write("usr/bin/text", "this is no ELF file");
    let mut space = AddressSpace::default();
    for (start, path) in [
        (0x1000, "/usr/bin/gone"),
        (0x5000, "/usr/bin/text"),
        (0x7000, "/usr/bin/replaced"),
        (0x9000, "//anon"),
    ] {
        space.map(Mapping {
            start,
            end: start + 0x1000,
            file_offset: 0,
            protection: 5,
            flags: 2,
            path: path.into(),
            build_id: None,
            file: file_at(&root.path().join(path.trim_start_matches('/'))),
        });
    }
    let kernel = FrameKey {
        pid: -1,
        mode: CpuMode::Kernel,
        address: 0xffff_ffff_8100_0000,
    };
    let guest = FrameKey {
        pid: 5,
        mode: CpuMode::Other,
        address: 0x9008,
    };
    let keys = [0x1010, 0x5010, 0x7010, 0x9008, 0x9018, 0xf000].map(|address| user(5, address));
    let spaces = HashMap::from([(5, space)]);
    write("usr/bin/replaced", "by another file");
    let of_release = |release: &str| {
        Symbolizer::with_root(root.path()).of_kernel(KernelIdentity {
            build_id: Vec::new(),
            release: release.to_owned(),
        })
    };
    let all = keys.into_iter().chain([kernel, guest]);
    let names = of_release("6.18.0").resolve(all, &spaces);
    let reason = |key| match names.get(&key).expect("it was asked for") {
        Name::Unknown { reason, .. } => Some(*reason),
        Name::Known { .. } => None,
    };
    let reasons: Vec<_> = keys.into_iter().map(reason).collect();
    assert_eq!(
        reasons,
        [
            Some(Unnamed::NoFile),
            Some(Unnamed::NoSymbol),
            Some(Unnamed::OtherFile),
            None,
            Some(Unnamed::Jit),
            Some(Unnamed::NoMapping)
        ]
    );
    assert_eq!(reason(kernel), Some(Unnamed::KernelHidden));
    assert_eq!(reason(guest), Some(Unnamed::Guest));
    let names = of_release("6.1.0").resolve([kernel], &spaces);
    let Some(Name::Unknown { reason, .. }) = names.get(&kernel) else {
        panic!("{names:?}");
    };
    assert_eq!(*reason, Unnamed::OtherFile);
}

#[test]
fn a_file_of_another_build_gives_no_names() {
    let program = std::env::current_exe().expect("Linux");
    let path = program.to_str().expect("plain path");
    let mut space = AddressSpace::default();
    space.map(Mapping {
        start: 0x1000,
        end: 0x10_0000,
        file_offset: 0,
        protection: 5,
        flags: 2,
        path: path.into(),
        build_id: Some(vec![1; 20].into()),
        file: None,
    });
    let names = Symbolizer::new().resolve([user(1, 0x2000)], &HashMap::from([(1, space)]));
    assert!(
        matches!(
            names.get(&user(1, 0x2000)),
            Some(Name::Unknown {
                reason: Unnamed::OtherFile,
                ..
            })
        ),
        "{names:?}"
    );
}

/// A program with one function that only debug information names, its build id and that function's
/// offset in the file; the debug information is in `cache`, as the debuginfod client stores it.
fn stripped_program(folder: &Path, cache: &Path) -> Option<(PathBuf, Vec<u8>, u64)> {
    use object::{Object, ObjectSection, ObjectSymbol};
    let source = "static __attribute__((noinline)) int hidden(int x) { return x * 3; }\n\
                  int main(int c, char **v) { return hidden(c); }\n";
    let path = |name: &str| folder.join(name).to_str().expect("plain path").to_owned();
    std::fs::write(path("program.c"), source).expect("temporary file");
    let (program, debug) = (path("program"), path("program.debug"));
    for command in [
        [
            "cc",
            "-g",
            "-O1",
            "-Wl,--build-id",
            "-o",
            &program,
            &path("program.c"),
        ]
        .as_slice(),
        &["objcopy", "--only-keep-debug", &program, &debug],
    ] {
        let done = std::process::Command::new(command[0])
            .args(&command[1..])
            .status();
        if !done.is_ok_and(|status| status.success()) {
            skipped!("{} is not to be had", command[0]);
            return None;
        }
    }
    let bytes = std::fs::read(&program).expect("it was made");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let symbol = elf.symbol_by_name("hidden").expect("not stripped yet");
    let text = elf.section_by_name(".text").expect("it has code");
    let (offset, _) = text.file_range().expect("in the file");
    let place = symbol.address() - text.address() + offset;
    let id = elf
        .build_id()
        .expect("readable")
        .expect("asked for")
        .to_owned();
    let strip = std::process::Command::new("strip").arg(&program).status();
    assert!(strip.is_ok_and(|status| status.success()));
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::create_dir_all(cache.join(&hex)).expect("temporary directory");
    std::fs::rename(debug, cache.join(&hex).join("debuginfo")).expect("temporary file");
    Some((program.into(), id, place))
}

#[test]
fn stripped_programs_get_debuginfo_from_debuginfod() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let cache = folder.path().join("cache");
    let Some((program, id, place)) = stripped_program(folder.path(), &cache) else {
        return;
    };
    let mut space = AddressSpace::default();
    space.map(Mapping {
        start: 0x40_0000,
        end: 0x50_0000,
        file_offset: 0,
        protection: 5,
        flags: 2,
        path: program.to_str().expect("plain path").into(),
        build_id: Some(id.clone().into()),
        file: None,
    });
    let spaces = HashMap::from([(1, space)]);
    let key = user(1, 0x40_0000 + place);
    let named = |source: Debuginfod| {
        let mut symbolizer = Symbolizer::with_root(Path::new("/")).with_debuginfod(source);
        let names = symbolizer.resolve([key], &spaces);
        match names.get(&key).expect("it was asked for").clone() {
            Name::Known { functions, .. } => Ok(functions.join(" ")),
            Name::Unknown { reason, .. } => Err(reason),
        }
    };
    assert_eq!(named(Debuginfod::default()), Err(Unnamed::NoSymbol));
    let cached = || Debuginfod::new(Some(cache.clone()), None);
    assert_eq!(named(cached()), Ok("hidden".to_owned()));

    // The program itself may be missing, or be on another host.
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::rename(&program, cache.join(hex).join("executable")).expect("temporary file");
    assert_eq!(named(Debuginfod::default()), Err(Unnamed::NoFile));
    assert_eq!(named(cached()), Ok("hidden".to_owned()));
}
