"""Parses one document again and again."""
import json
import sys

ROWS = [{"name": i, "list": [str(j) for j in range(20)], "part": {"number": i * 1.5}} for i in range(3000)]
TEXT = json.dumps(ROWS)
for _ in range(int(sys.argv[1])):
    json.loads(TEXT)
