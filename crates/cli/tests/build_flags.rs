//! Flags that the build script passes on to the library: build scripts have no tests of their own.

use std::path::Path;

#[path = "../build/flags.rs"]
mod flags;
#[path = "../build/package.rs"]
mod package;

fn kept(given: &[&str]) -> Vec<String> {
    flags::for_library(given.iter().copied())
}

#[test]
fn processor_linker_and_folders_reach_the_library() {
    let given = [
        "-C",
        "target-cpu=native",
        "-Clinker=clang",
        "--codegen=link-arg=-fuse-ld=lld",
        "--codegen",
        "link-args=-Wl,-z,now -pie",
        "--remap-path-prefix",
        "/a=/b",
        "--remap-path-prefix=/c=/d",
        "-L",
        "native=/e",
        "--sysroot=/f",
    ];
    let expected = [
        "-Ctarget-cpu=native",
        "-Clinker=clang",
        "-Clink-arg=-fuse-ld=lld",
        "-Clink-args=-Wl,-z,now",
        "--remap-path-prefix=/a=/b",
        "--remap-path-prefix=/c=/d",
        "-Lnative=/e",
        "--sysroot=/f",
    ];
    assert_eq!(kept(&given), expected);
}

#[test]
fn another_libcs_library_has_its_linker_and_our_processor() {
    let given = [
        "-Ctarget-cpu=x86-64-v3",
        "-Ctarget-feature=+crt-static,+avx2",
        "-Clinker=x86_64-linux-musl-gcc",
        "-Clinker-flavor=gcc",
        "-Clink-self-contained=yes",
        "-Clink-arg=-L/musl/lib",
        "-L/musl/lib",
        "-Cforce-frame-pointers=yes",
        "--remap-path-prefix=/a=/b",
    ];
    let expected = [
        "-Ctarget-cpu=x86-64-v3",
        "-Ctarget-feature=+avx2",
        "-Cforce-frame-pointers=yes",
        "--remap-path-prefix=/a=/b",
    ];
    assert_eq!(flags::without_linking(kept(&given)), expected);
}

#[test]
fn a_folder_is_called_by_its_name() {
    let flag = flags::renamed(Path::new("/home/user/pagewise"), ".");
    assert_eq!(flag, "--remap-path-prefix=/home/user/pagewise=.");
}

#[test]
fn what_instruments_warns_or_makes_static_stays_outside() {
    let given = [
        "-Ctarget-feature=+crt-static,+avx2",
        "-C",
        "target-feature=+crt-static",
        "-Clink-arg=-static-pie",
        "-Cinstrument-coverage",
        "-Dwarnings",
        "-D",
        "unused",
        "-Zsanitizer=address",
        "-Cpanic=unwind",
        "--cfg",
        "tokio_unstable",
        "-C",
    ];
    assert_eq!(kept(&given), ["-Ctarget-feature=+avx2"]);
}

#[test]
fn the_librarys_workspace_names_no_folder_of_this_machine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    // A second build finds what the first has left.
    for _ in 0..2 {
        package::write(&root, folder.path()).unwrap();
    }
    let mut manifests = vec![folder.path().join("Cargo.toml")];
    for name in package::CRATES {
        let member = folder.path().join("crates").join(name);
        assert!(member.join("src/lib.rs").exists(), "{name}");
        manifests.push(member.join("Cargo.toml"));
    }
    for manifest in manifests {
        let text = std::fs::read_to_string(manifest).unwrap();
        assert!(
            !text.contains("dev-dependencies") && !text.contains("[[example"),
            "{text}"
        );
        let is_absolute = |line: &str| line.contains("path = \"/");
        assert!(!text.lines().any(is_absolute), "{text}");
    }
}
