"""Writes the same records as JSON and as XML: `documents.py FILE COUNT`, the kind by the file's ending."""
import json
import sys

path, count = sys.argv[1], int(sys.argv[2])
records = [{"id": i, "name": f"item {i}", "tags": [i, i + 1, i * 7 % 100], "at": {"x": i, "y": -i}} for i in range(count)]
with open(path, "w") as file:
    if path.endswith(".json"):
        json.dump(records, file)
    else:
        rows = (f'<row id="{r["id"]}"><name>{r["name"]}</name><x>{r["at"]["x"]}</x><y>{r["at"]["y"]}</y></row>' for r in records)
        file.write("<rows>" + "\n".join(rows) + "</rows>")
