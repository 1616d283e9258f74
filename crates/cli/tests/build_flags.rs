//! The build script's choice among the flags of the outer build: scripts have no tests of their own.

#[path = "../build/flags.rs"]
mod flags;

fn kept(given: &[&str]) -> Vec<String> {
    flags::for_library(given.iter().copied())
}

#[test]
fn processor_linker_and_names_of_folders_reach_the_library_in_every_spelling() {
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
