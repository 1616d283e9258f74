"""The rows of families.toml: each version of each family, and which of them are held back."""
import hashlib
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def all_rows():
    """Each version of each family: a row of families.toml with its lists multiplied out."""
    for row in tomllib.loads((HERE / "families.toml").read_text())["row"]:
        for place in row.get("places", ["host"]):
            for version in row.get("versions", [""]):
                fill = lambda text: text.replace("{version}", version)
                name = " ".join(filter(None, [row["name"], version, "" if place == "host" else place]))
                yield {**row, "place": place, "version": version, "full": name,
                       "command": [fill(word) for word in row["command"]],
                       "packages": [fill(word) for word in row.get("packages", [])]}


def is_held(row):
    """A third of the rows, whose programs are not looked at until the end."""
    return int(hashlib.sha256(row["full"].encode()).hexdigest(), 16) % 3 == 0


def is_wanted(row, asked):
    of_family = not asked.family or row["name"] in asked.family.split(",")
    starts = [row["version"], row["place"]]
    of_version = not asked.version or any(one.startswith(asked.version) for one in starts)
    return is_held(row) == asked.held and of_family and of_version
