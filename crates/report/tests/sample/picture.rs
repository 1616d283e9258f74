//! The data that is drawn: stacks, flame graph, fault map, timeline.

use super::Noise;
use pagewise_model::findings::{
    Cause, FaultMap, FaultMapCell, FaultMapRow, Findings, FlameNode, RegionKind, Site,
};
use pagewise_model::timeline::{PressurePoint, Timeline, TimelinePoint};
use pagewise_model::units::{Bytes, Nanos};

const EVAL: &str = "_start;__libc_start_main;main;Py_BytesMain;Py_RunMain;pymain_run_python;\
                    PyRun_SimpleStringFlags;run_mod;_PyEval_EvalFrameDefault";

fn folded() -> Vec<(String, f64)> {
    let below_eval = [
        (
            "zlib_compress;zlib_compress_impl;deflateInit2_;deflateReset;lm_init;memset",
            508_200.0,
        ),
        (
            "zlib_compress;zlib_compress_impl;deflate;deflate_slow;fill_window;memcpy",
            121_340.0,
        ),
        (
            "zlib_compress;zlib_compress_impl;deflate;deflate_slow;longest_match",
            61_230.0,
        ),
        (
            "zlib_compress;zlib_compress_impl;deflate;deflate_slow;_tr_flush_block;compress_block",
            41_120.0,
        ),
        (
            "zlib_compress;zlib_compress_impl;deflateInit2_;malloc;_int_malloc;sysmalloc",
            22_100.0,
        ),
        (
            "zlib_compress;zlib_compress_impl;PyBytes_FromStringAndSize;_PyObject_Malloc;new_arena",
            2_922.0,
        ),
        (
            "_PyEval_Vector;PyObject_Vectorcall;os_urandom;_PyOS_URandom",
            12.0,
        ),
    ];
    let starting = [
        (
            "_dl_start;_dl_sysdep_start;dl_main;_dl_relocate_object;elf_machine_rela",
            980.0,
        ),
        (
            "_dl_start;_dl_sysdep_start;dl_main;_dl_map_object_deps;_dl_map_object",
            310.0,
        ),
        (
            "_start;__libc_start_main;main;Py_BytesMain;Py_InitializeFromConfig;init_interp_main;init_importlib",
            1_204.0,
        ),
        (
            "_start;__libc_start_main;main;Py_BytesMain;Py_InitializeFromConfig;init_interp_main;init_import_site;PyImport_ImportModule",
            1_423.0,
        ),
    ];
    below_eval
        .iter()
        .map(|&(stack, faults)| (format!("{EVAL};{stack}"), faults))
        .chain(
            starting
                .iter()
                .map(|&(stack, faults)| (stack.to_owned(), faults)),
        )
        .collect()
}

fn module_of(name: &str) -> &'static str {
    match name {
        _ if name.contains("deflate")
            || name.contains("lm_init")
            || name.contains("fill_window")
            || name.contains("longest")
            || name.contains("compress_block")
            || name.contains("_tr_") =>
        {
            "libz.so.1.2.13"
        }
        "memset" | "memcpy" | "malloc" | "_int_malloc" | "sysmalloc" | "__libc_start_main" => {
            "libc.so.6"
        }
        _ if name.starts_with("_dl_") || name.starts_with("dl_") || name.starts_with("elf_") => {
            "ld-linux-x86-64.so.2"
        }
        _ => "python3.11",
    }
}

fn add(node: &mut FlameNode, path: &[&str], faults: f64) {
    node.total += faults;
    let Some((&name, rest)) = path.split_first() else {
        return;
    };
    let at = node.children.iter().position(|child| child.name == name);
    let at = at.unwrap_or_else(|| {
        node.children.push(FlameNode {
            name: name.into(),
            module: module_of(name).into(),
            ..FlameNode::default()
        });
        node.children.len() - 1
    });
    add(&mut node.children[at], rest, faults);
    node.children.sort_by(|a, b| b.total.total_cmp(&a.total));
}

pub fn flame() -> FlameNode {
    let mut root = FlameNode {
        name: "all".into(),
        ..FlameNode::default()
    };
    for (stack, faults) in folded() {
        add(&mut root, &stack.split(';').collect::<Vec<_>>(), faults);
    }
    root
}

pub fn site(stack: &str, faults: f64, culprit: &str) -> Site {
    Site {
        stack: stack.split(';').map(str::to_owned).collect(),
        culprit: culprit.into(),
        faults,
        main_cause: Cause::RefaultAfterBrk,
    }
}

pub fn sites() -> Vec<Site> {
    let mut stacks = folded();
    stacks.sort_by(|a, b| b.1.total_cmp(&a.1));
    stacks
        .iter()
        .take(8)
        .map(|(stack, faults)| {
            let frames: Vec<&str> = stack.split(';').collect();
            let in_libc = |frame: &&&str| module_of(frame) != "libc.so.6";
            let culprit = frames.iter().rev().find(in_libc).copied().unwrap_or("");
            let cause = if *faults > 2_000.0 {
                Cause::RefaultAfterBrk
            } else {
                Cause::FileMinor
            };
            Site {
                main_cause: cause,
                ..site(stack, *faults, culprit)
            }
        })
        .collect()
}

pub fn fault_map() -> FaultMap {
    let stretches = [
        (
            0x5555_5555_4000_u64,
            RegionKind::FilePrivate,
            8,
            64_u64 << 10,
        ),
        (0x5555_55c1_2000, RegionKind::Heap, 34, 32 << 10),
        (0x7fff_e8a0_0000, RegionKind::Anonymous, 10, 64 << 10),
        (0x7fff_f6c0_0000, RegionKind::FilePrivate, 22, 64 << 10),
        (0x7fff_fffd_e000, RegionKind::Stack, 3, 16 << 10),
    ];
    let mut map = FaultMap {
        time_step: Nanos(11_560_000),
        columns: 200,
        ..FaultMap::default()
    };
    let mut noise = Noise(5);
    for (base, region, count, length) in stretches {
        for index in 0..count {
            let row = u32::try_from(map.rows.len()).unwrap_or(0);
            map.rows.push(FaultMapRow {
                start: format!("{:#x}", base + index * length),
                length: Bytes(length),
                region,
            });
            fill_row(&mut map, row, region, index, &mut noise);
        }
    }
    map
}

fn fill_row(map: &mut FaultMap, row: u32, region: RegionKind, index: u64, noise: &mut Noise) {
    for column in 0..map.columns {
        let churns = region == RegionKind::Heap && (16..30).contains(&index) && column >= 4;
        let faults = if churns {
            275.0 * (1.0 + 0.15 * noise.normal()).max(0.1)
        } else if column < 4 && noise.unit() < 0.8 {
            (noise.unit() * 16.0).ceil()
        } else if noise.unit() < 0.01 {
            1.0
        } else {
            continue;
        };
        map.cells.push(FaultMapCell {
            row,
            column,
            faults,
            churn: if churns { 1.0 } else { 0.0 },
        });
    }
}

pub fn timeline() -> Timeline {
    let mut noise = Noise(9);
    let mut faults = 0.0;
    let points = (0_u32..=116)
        .map(|index| {
            let time = u64::from(index) * 20_000_000;
            faults += match index {
                0 => 0.0,
                1 | 2 => 2_000.0,
                _ => 6_650.0 * (1.0 + 0.06 * noise.normal()),
            };
            let high = noise.unit() < 0.5;
            TimelinePoint {
                time: Nanos(time),
                vsize: Bytes(15_204_352 + if high { 270_336 } else { 0 }),
                rss: Bytes(
                    9_700_000 + if high { 270_336 } else { 0 } + u64::from(index.min(4)) * 350_000,
                ),
                pss: (index % 10 == 0).then_some(Bytes(8_100_000)),
                swap: Bytes(0),
                minor_faults: faults as u64,
                major_faults: if index > 0 { 3 } else { 0 },
                user: Nanos(time / 1000 * 238),
                system: Nanos(time / 1000 * 752),
                processes: 1,
                threads: 2,
                active: Some(1),
            }
        })
        .collect();
    Timeline {
        interval: Nanos(20_000_000),
        points,
        pressure: pressure(),
        gaps: 2,
        notes: vec![
            "PSS was read at each tenth point only: reading it took longer than the interval."
                .into(),
        ],
    }
}

fn pressure() -> Vec<PressurePoint> {
    (0..24_u64)
        .map(|index| PressurePoint {
            time: Nanos(index * 100_000_000),
            stall_some: Some(Nanos(index.saturating_sub(14) * 6_000_000)),
            stall_full: Some(Nanos(index.saturating_sub(15) * 2_100_000)),
            cgroup_usage: Some(Bytes(412_000_000 + index * 4096)),
            cgroup_limit_hits: Some(0),
            kswapd_scanned: index.saturating_sub(12) * 40,
            direct_scanned: index.saturating_sub(16) * 7,
            ..PressurePoint::default()
        })
        .collect()
}

/// Enlarges the drawn data to the size of a long recording of a large program.
pub fn enlarge(findings: &mut Findings) {
    let mut noise = Noise(21);
    let mut root = FlameNode {
        name: "all".into(),
        ..FlameNode::default()
    };
    for leaf in 0..3_000_u32 {
        let depth = 20 + leaf % 20;
        let path: Vec<String> = (0..depth)
            .map(|level| {
                let spread = 1 + level.min(12) * leaf / 400;
                format!(
                    "namespace_{}::function_{}",
                    level % 7,
                    level * 1_000 + spread
                )
            })
            .collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        add(&mut root, &path, 1.0 + 6_000.0 * noise.unit());
    }
    findings.flame = root;
    let map = &mut findings.fault_map;
    map.columns = 600;
    map.cells.clear();
    for row in 0..u32::try_from(map.rows.len()).unwrap_or(0) {
        for column in 0..map.columns {
            let faults = (noise.unit() * 400.0).round();
            let churn = noise.unit();
            map.cells.push(FaultMapCell {
                row,
                column,
                faults,
                churn,
            });
        }
    }
    let last = findings.timeline.points.last().copied().unwrap_or_default();
    findings
        .timeline
        .points
        .extend((1..36_000_u64).map(|index| TimelinePoint {
            time: Nanos(last.time.0 + index * 100_000_000),
            rss: Bytes(last.rss.0 + (noise.unit() * 1e6) as u64),
            minor_faults: last.minor_faults + index * 300,
            ..last
        }));
}
