"""A check that finds nothing is no check: contradictions that are planted into a golden answer are found."""
import copy
import importlib.machinery
import importlib.util
import json
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
loader = importlib.machinery.SourceFileLoader("conservation", str(HERE / "run"))
conservation = importlib.util.module_from_spec(importlib.util.spec_from_loader("conservation", loader))
loader.exec_module(conservation)


class Planted(unittest.TestCase):
    def setUp(self):
        packed = conservation.GOLDEN / "churn.json.zst"
        self.document = json.loads(subprocess.run(["zstd", "-dc", packed], capture_output=True, check=True).stdout)

    def found(self, change):
        document = copy.deepcopy(self.document)
        change(document["evidence"]["run"])
        return list(conservation.walked(document))

    def test_golden_answers_have_none(self):
        self.assertEqual(conservation.main([]), 0)

    def test_a_whole_answer_has_none(self):
        self.assertEqual(self.found(lambda run: None), [])

    def test_touches_beyond_peak_and_releases(self):
        def change(run):
            run["by_cause"] = [{"key": "first_touch", "faults": 120_000.0}]
            run["time"]["mm_calls"], run["churn"] = [], None
        self.assertIn("first touches in bytes", " ".join(self.found(change)))

    def test_parts_beyond_their_whole(self):
        def change(run):
            run["by_thread"][0]["faults"] *= 2
        self.assertIn("by_thread: sum of faults", " ".join(self.found(change)))

    def test_a_value_beside_its_interval(self):
        def change(run):
            run["time"]["share_of_cpu"]["value"] = 0.95
        self.assertIn("share_of_cpu: value", " ".join(self.found(change)))

    def test_calls_of_a_flame_graph_beyond_their_caller(self):
        def change(run):
            run["flame"]["children"][0]["total"] *= 3
        self.assertIn("callees", " ".join(self.found(change)))


if __name__ == "__main__":
    unittest.main()
