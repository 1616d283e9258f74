"""The page docs/RUNTIMES.md, from the families' files (crates/families/rules) and results.jsonl."""
import tomllib
from collections import Counter
from pathlib import Path

import results
from judge import RIGHT

HERE = Path(__file__).resolve().parent
RULES = HERE.parents[1] / "crates/families/rules"
PAGE = HERE.parents[1] / "docs/RUNTIMES.md"
PRICES = {"none": "", "keep": "freed memory stays", "peak": "freed memory stays, and the allocator's own"}


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


def is_right(result):
    return result["verdict"] in RIGHT


def score(some, test=is_right):
    """`right of all` for a list of results."""
    return f"{sum(map(test, some))} of {len(some)}" if some else "not run"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def code(words):
    return ", ".join(f"`{word}`" for word in words)


def recognition(family):
    """How a family is recognised, one line for each way."""
    heap = family.get("heap", {})
    ways = {
        "library": [f"{name}*" for name in family.get("libraries", [])],
        "mapped file": heap.get("files", []),
        "symbol of the program": family.get("symbols", []) + heap.get("symbols", []),
        "symbol of a static program": family.get("symbols_inside", []),
        "text in a stripped file": family.get("texts", []),
    }
    return "; ".join(f"{way}: {code(names)}" for way, names in ways.items() if names)


def versions(part):
    bounds = [f"from {part['from_version']}"] if "from_version" in part else []
    return ", ".join(bounds + ([f"before {part['before_version']}"] if "before_version" in part else []))


def settings(rule):
    """The settings of a rule, as they are written in a shell."""
    shown = []
    for one in rule.get("settings", []):
        match one["kind"]:
            case "unset":
                shown.append(f"no {one['name']}")
            case "preload":
                shown.append(f"LD_PRELOAD={one['path']}")
            case _:
                shown.append(f"{one['name']}={one['value']}")
    return "<br>".join(f"`{one}`" for one in shown) or "by hand"


def rule_row(rule):
    limits = filter(None, [versions(rule), "by a proof only" if rule.get("trial") else "",
                           f"added to the user's own after `{rule['join']}`" if "join" in rule else ""])
    price = PRICES[rule["price"]] or (f"× {rule['memory_times']}" if "memory_times" in rule else "")
    if "memory_more" in rule:
        price = f"{rule['memory_more'] >> 20} MiB"
    return [f"`{rule['id']}`", ", ".join(rule["symptoms"]), settings(rule), "; ".join(limits), price]


def about(family):
    text = f"\n## {family['name']}\n\n"
    if ways := recognition(family):
        text += f"Recognised by {ways}. "
    if texts := [one for one in (family.get("version_after"), family.get("version_before")) if one]:
        text += f"Its version is beside {code(texts)} in its file. "
    text += f"Tried up to {family['tried']}. " if "tried" in family else "No version of it was tried by its settings. "
    if family["variables"]:
        text += f"Reads {code(family['variables'])}."
    text = text.rstrip() + "\n"
    if family.get("default"):
        text += "\n" + table(["default", "versions", "value"],
                             [[f"`{one['name']}`", versions(one) or "all", one["value"]] for one in family["default"]])
    if family.get("rule"):
        text += "\n" + table(["advice", "against", "settings", "when", "memory"], map(rule_row, family["rule"]))
    return text


def result_row(one):
    found = one.get("truth")
    name = f"{one['row']}{' (held back)' if one['held'] else ''}"
    if not found:
        return [name, one["version"] or "", one["program"], "", "", "", "", one["verdict"]]
    best = f"`{one['best']}` ×{one['best_gain']:.2f}" if one["best"] else "none"
    gain = f" ×{one['advised_gain']:.2f}" if "advised_gain" in one else ""
    rules = [rule for rule in one["advised"] if rule != "None"]
    advised = ", ".join(f"`{rule}`" for rule in rules) + gain if rules else "none"
    verdict = one["verdict"] + ("" if one["recognised"] else "; not recognised")
    return [name, one["version"] or "", one["program"], f"{found['faults']:,}", best, ", ".join(one["said"]), advised, verdict]


def text():
    """The whole page."""
    found = results.load()
    seen = [one for one in found if not one["held"]]
    held = [one for one in found if one["held"]]
    dates = sorted({one["date"] for one in found}) or ["never"]
    verdicts = Counter(one["verdict"].split(":")[0] for one in found)
    page = (HERE / "page.md").read_text().format(
        dates=" to ".join(dict.fromkeys([dates[0], dates[-1]])), families=len({one["family"] for one in found}),
        versions=len({one["row"] for one in found}), programs=len(found),
        first=score(seen, lambda one: one["first"] in RIGHT), seen=score(seen), held=score(held),
        kinds="\n".join(f"| {word} | {count} |" for word, count in verdicts.most_common()))
    for file in sorted(RULES.glob("*.toml")):
        page += about(tomllib.loads(file.read_text()))
    page += "\n## Results\n\nWithout a version: the newest that the system has.\n\n"
    page += table(["row", "version", "program", "faults", "best setting", "cause named", "advised", "verdict"],
                  map(result_row, found))
    return page


def write():
    PAGE.write_text(text())


def check():
    """Whether the page is what its sources say."""
    return PAGE.exists() and PAGE.read_text() == text()
