"""Ratios of systems measured in the same rounds, with intervals and bars."""
import statistics

# The order statistics that enclose the median with at least 93 %: (rounds, how many to leave out).
# Fewer than five rounds have no such interval; least and largest are shown for them.
LEFT_OUT = ((20, 5), (17, 4), (14, 3), (12, 2), (9, 1), (0, 0))


def figures(results, workload, system):
    """For each figure's name, the value of each round, None where the run failed."""
    rounds = results.get(f"{workload.name}|{system}", [])
    names = dict.fromkeys(name for one in rounds for name in one.get("figures", {}))
    return {name: [one.get("figures", {}).get(name) for one in rounds] for name in names}


def ratio(mine, theirs):
    """Median of the ratios of rounds, its interval and the number of rounds."""
    pairs = sorted(a / b for a, b in zip(mine, theirs) if a and b)
    if not pairs:
        return None
    out = next(out for rounds, out in LEFT_OUT if len(pairs) >= rounds)
    return {"ratio": statistics.median(pairs), "low": pairs[out], "high": pairs[-1 - out], "rounds": len(pairs)}


def pairs_of(workload):
    """Systems to compare: each of ours with each that is not, and those that have a bar."""
    ours = [system for system in workload.systems if system.startswith("pagewise")]
    others = [system for system in workload.systems if not system.startswith("pagewise")]
    pairs = [(mine, other) for mine in ours for other in others]
    return pairs + [pair for pair in workload.bars if pair not in pairs]


def summarise(workloads, results):
    """One row for each workload, figure and pair of systems."""
    rows = []
    for workload in workloads:
        for ours, theirs in pairs_of(workload):
            mine, other = figures(results, workload, ours), figures(results, workload, theirs)
            for name in mine:
                compared = ratio(mine[name], other.get(name, []))
                if compared is None:
                    continue
                bar = workload.bars.get((ours, theirs))
                rows.append({"workload": workload.name, "figure": name, "ours": ours, "theirs": theirs, **compared,
                             "ours_median": statistics.median(filter(None, mine[name])),
                             "theirs_median": statistics.median(filter(None, other[name])),
                             "bar": bar, "met": None if bar is None else compared["ratio"] >= bar})
    return rows


def failures(workloads, results):
    """Runs that gave no figure: workload, system, how many of how many, the last reason."""
    found = []
    for workload in workloads:
        for system in workload.systems:
            rounds = results.get(f"{workload.name}|{system}", [])
            reasons = [one["failed"] for one in rounds if "failed" in one]
            if reasons:
                found.append({"workload": workload.name, "system": system, "failed": len(reasons),
                              "rounds": len(rounds), "reason": reasons[-1]})
    return found


def peaks(workloads, results):
    """Largest memory of each system over its budget: resident set of the program under pagewise, all
    that the kernel charged for the others."""
    largest = {}
    for workload in workloads:
        for system in workload.systems:
            for one in results.get(f"{workload.name}|{system}", []):
                if "peak_mib" in one:
                    over = one["peak_mib"] / workload.budget
                    largest[system] = max(largest.get(system, (0, "")), (over, workload.name))
    return largest


def text(workloads, results):
    """The summary as a page of text."""
    lines = []
    faults = results.get("faults")
    if faults:
        lines += fault_lines(faults)
    last = None
    for row in summarise(workloads, results):
        if row["workload"] != last:
            last = row["workload"]
            budget = next(one.budget for one in workloads if one.name == last)
            lines += ["", f"{last}, budget {budget} MiB"]
        bar = "" if row["bar"] is None else f"  bar {row['bar']}: {'met' if row['met'] else 'MISSED'}"
        pair = f"{short(row['ours'])} / {short(row['theirs'])}"
        lines.append(f"  {row['figure']:<16} {pair:<32} {row['ratio']:6.2f} [{row['low']:.2f}, {row['high']:.2f}]"
                     f"  n={row['rounds']}  {row['ours_median']:.4g} and {row['theirs_median']:.4g}{bar}")
    for one in failures(workloads, results):
        lines.append(f"failed: {one['workload']}, {short(one['system'])}: {one['failed']} of {one['rounds']} rounds: "
                     f"{one['reason']}")
    for system, (over, name) in sorted(peaks(workloads, results).items()):
        pool = ", without its pool of compressed pages" if system.startswith("linux+") else ""
        lines.append(f"peak of memory, {short(system)}{pool}: {over:.2f} of the budget ({name})")
    return "\n".join(lines)


def fault_lines(faults):
    """Latency of one fault; the bars are flatness of SIGBUS and its price beside the kernel's."""
    cell = {(row["way"], row["threads"]): row for row in faults["rows"]}
    threads = sorted({row["threads"] for row in faults["rows"]})
    lines = [f"one fault, p50 / p99 in ns, median of {faults['runs']} processes, at " +
             ", ".join(map(str, threads)) + " threads"]
    for way in ("kernel", "fd", "sigbus"):
        lines.append(f"  {way:<8}" + "".join(
            f"{cell[way, count]['p50_ns']:>9} / {cell[way, count]['p99_ns']:<9}" for count in threads))
    flat = cell["sigbus", threads[-1]]["p50_ns"] / cell["sigbus", threads[0]]["p50_ns"]
    price = cell["sigbus", threads[0]]["p50_ns"] / cell["kernel", threads[0]]["p50_ns"]
    for name, value, bar in (("SIGBUS, most threads / one", flat, 1.25), ("SIGBUS / kernel, one thread", price, 1.5)):
        lines.append(f"  {name}: {value:.2f}  bar {bar}: {'met' if value <= bar else 'MISSED'}")
    return lines


def short(system):
    return system.removeprefix("pagewise:")
