"""The results as files, and as the page docs/RUNTIMES.md."""
import json
from collections import defaultdict
from pathlib import Path

from judge import RIGHT

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs/RUNTIMES.md"


def load(file):
    return json.loads(file.read_text()) if file.exists() else []


def keep(file, result):
    """Adds a result in place of an earlier one for the same program."""
    same = lambda one: (one["row"], one["program"]) == (result["row"], result["program"])
    others = [one for one in load(file) if not same(one)]
    ordered = sorted([*others, result], key=lambda one: (one["row"], one["program"]))
    file.write_text("[\n" + ",\n".join(json.dumps(one, sort_keys=True) for one in ordered) + "\n]\n")


def line(result):
    """A result in one line."""
    words = [result["row"], result["program"] + ":", result["verdict"]]
    if "truth" in result:
        found = result["truth"]
        words.append(f"[{result['true']}; {found['faults']} faults, {found['cpu']} s; said {'/'.join(result['said'])};"
                     f" advised {'/'.join(result['advised'])} ×{result.get('advised_gain', '-')};"
                     f" best {result['best']} ×{result.get('best_gain', '-')}]")
        if not result["recognised"]:
            words.append("NOT RECOGNISED")
    return " ".join(words)


def score(results):
    """`right of all` for a list of results."""
    right = sum(one["verdict"] in RIGHT for one in results)
    return f"{right} of {len(results)}" if results else "none"


def row_of(one):
    found = one.get("truth")
    if not found:
        return [one["program"], "", "", "", "", one["verdict"]]
    best = f"`{one['best']}` ×{one['best_gain']:.2f}" if one["best"] else "none"
    gain = f" ×{one['advised_gain']:.2f}" if "advised_gain" in one else ""
    told = [rule for rule in one["advised"] if rule != "None"]
    advised = ", ".join(f"`{rule}`" for rule in told) + gain if told else "none"
    return [one["program"], f"{found['faults']:,}", best, ", ".join(one["said"]), advised, one["verdict"]]


def write():
    """docs/RUNTIMES.md."""
    first, last = load(HERE / "first.json"), load(HERE / "last.json")
    seen = [one for one in last if not one["held"]]
    held = [one for one in last if one["held"]]
    dates = sorted({one["date"] for one in last})
    families = defaultdict(list)
    for one in last:
        families[one["family"]].append(one)
    text = (HERE / "page.md").read_text().format(
        dates=" to ".join(dict.fromkeys([dates[0], dates[-1]])), families=len(families),
        versions=len({one["row"] for one in last}), programs=len(last),
        first=score([one for one in first if not one["held"]]), seen=score(seen), held=score(held),
        kinds="\n".join(f"| {word} | {count} |" for word, count in counted(last)))
    for family in sorted(families):
        text += f"\n## {family}\n"
        versions = defaultdict(list)
        for one in families[family]:
            versions[one["row"]].append(one)
        for name, results in sorted(versions.items()):
            one = results[0]
            notes = [f"version {one['version']}"] + ["held back"] * one["held"] + ["not recognised"] * (not one.get("recognised", True))
            text += f"\n**{name}** ({', '.join(notes)})\n\n"
            text += "| program | faults | best setting | cause named | advised | verdict |\n|---|---|---|---|---|---|\n"
            text += "".join(f"| {' | '.join(row_of(one))} |\n" for one in results)
    PAGE.write_text(text)


def counted(results):
    counts = defaultdict(int)
    for one in results:
        counts[one["verdict"].split(":")[0]] += 1
    return sorted(counts.items(), key=lambda pair: -pair[1])
