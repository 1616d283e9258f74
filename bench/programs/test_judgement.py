"""Tests of judging and counting. Run: python3 -m unittest discover bench/programs"""

import unittest
from pathlib import Path
from unittest import mock

import judge
import programs
import shares

KNOBS = [{"kind": "glibc_tunable", "name": "glibc.malloc.trim_threshold", "value": "67108864"}]
MILLISECOND = 1_000_000


def program(cause=("churn.brk",), gain="cpu"):
    return programs.Program(name="p", kind="k", family="churn", command=["true"], needs=[], cause=list(cause), gain=gain)


def estimate(value, apart=0.1):
    return {"value": value, "low": value - apart, "high": value + apart}


def findings(diagnosis, severity="severe", settings=(), verdict="v", account=None):
    """Findings as doctor writes them, cut down to what the judge reads."""
    advice = [{"rule": "cure", "settings": list(settings)}] if settings else []
    run = {"cost": {"user": 600 * MILLISECOND, "system": 400 * MILLISECOND}, "account": account or {}}
    return {"verdict": verdict, "diagnoses": [{"id": diagnosis, "severity": severity}], "advice": advice, "evidence": {"run": run}}


def arm(value, apart=0.1):
    return {"cpu_speedup": estimate(value, apart), "wall_speedup": estimate(1.0)}


def judged(found, known=None, gain=None, of=None):
    return judge.Judged(of or program(), found, known, {"cure": estimate(gain)} if gain else {})


class Causes(unittest.TestCase):
    def test_gravest_diagnosis_must_be_a_true_cause(self):
        self.assertTrue(judged(findings("churn.brk")).cause_right)
        self.assertFalse(judged(findings("churn.mmap")).cause_right)

    def test_a_note_is_as_good_as_healthy(self):
        healthy = program(cause=["healthy"])
        self.assertTrue(judged(findings("first_touch", "note"), of=healthy).cause_right)
        self.assertFalse(judged(findings("first_touch", "costly"), of=healthy).cause_right)

    def test_waiting_is_told_by_the_longest_wait(self):
        account = {"elapsed": [{"id": "cpu", "time": estimate(9)}, {"id": "disk", "time": estimate(5)}, {"id": "sleep", "time": estimate(3)}]}
        self.assertTrue(judged(findings("open", "note", account=account), of=program(cause=["wait.disk"])).cause_right)
        self.assertFalse(judged(findings("open", "note", account=account), of=program(cause=["wait.sleep"])).cause_right)


class Cures(unittest.TestCase):
    known = {"arms": {"glibc knobs": arm(2.0), "tcmalloc": arm(2.2), "unsure": arm(3.0, apart=2.5)}}

    def test_best_known_is_the_largest_sure_gain(self):
        self.assertEqual(judged(findings("churn.brk"), self.known).best, (2.2, "tcmalloc"))

    def test_runs_in_turn_with_the_best_known_decide_where_there_are_any(self):
        found = findings("churn.brk", settings=KNOBS)
        self.assertFalse(judged(found, self.known, gain=1.5).cure_right)
        self.assertTrue(judged({**found, "suite_beside": estimate(0.95)}, self.known, gain=1.5).cure_right)
        self.assertFalse(judged({**found, "suite_beside": estimate(0.85)}, self.known, gain=2.2).cure_right)

    def test_the_arm_that_a_proof_chose_is_the_cure(self):
        found = findings("churn.brk", settings=KNOBS)
        tried = {"arm": "other", "pairs": 6, **arm(2.1)}
        found["proof"] = {"arms": [{"name": "cure", "settings": KNOBS}], "comparisons": [{"arm": "cure", "pairs": 6, **arm(1.2)}, tried], "winner": "other"}
        self.assertTrue(judged(found, self.known, gain=1.2).cure_right)
        found["proof"]["winner"] = None
        self.assertFalse(judged(found, self.known, gain=1.2).cure_right)

    def test_predictions_are_held_against_the_proof(self):
        found = findings("churn.brk", settings=KNOBS)
        found["advice"][0]["predicted_speedup"] = {"value": 1.5, "low": 1.3, "high": 1.8}
        found["proof"] = {"arms": [{"name": "cure", "settings": KNOBS}], "comparisons": [{"arm": "cure", "pairs": 6, **arm(1.7)}], "winner": "cure"}
        self.assertEqual([held for *_, held in judged(found).predictions], [True])
        found["proof"]["comparisons"][0]["cpu_speedup"] = estimate(1.9)
        self.assertEqual([held for *_, held in judged(found).predictions], [False])
        found["advice"][0]["predicted_speedup"]["high"] = 6.0
        self.assertEqual(judged(found).predictions, [])

    def test_first_cure_within_a_tenth(self):
        self.assertTrue(judged(findings("churn.brk", settings=KNOBS), self.known, gain=2.0).cure_right)
        self.assertFalse(judged(findings("churn.brk", settings=KNOBS), self.known, gain=1.9).cure_right)

    def test_no_advice_where_there_is_a_cure(self):
        self.assertIs(judged(findings("churn.brk"), self.known).cure_right, False)
        self.assertIsNone(judged(findings("churn.brk"), {"arms": {}}).cure_right)

    def test_false_cure_surely_gains_nothing(self):
        self.assertEqual(judged(findings("churn.brk", settings=KNOBS), self.known, gain=0.9).false_cures, ["cure"])
        self.assertEqual(judged(findings("churn.brk", settings=KNOBS), self.known, gain=1.0).false_cures, [])

    def test_nothing_to_gain_in_vain(self):
        said = findings("healthy", "healthy", verdict="Compute-bound: nothing to gain from memory management.")
        self.assertTrue(judged(said, self.known, of=program(cause=["healthy"])).false_nothing)
        self.assertFalse(judged(said, {"arms": {}}, of=program(cause=["healthy"])).false_nothing)
        self.assertTrue(judged(said, {"arms": {}}).false_nothing)

    def test_settings_as_the_variables_that_apply_them(self):
        settings = [*KNOBS, *KNOBS, {"kind": "preload", "path": "libtcmalloc.so"}, {"kind": "env", "name": "GOGC", "value": "400"}]
        self.assertEqual(judge.variables(settings, None), {
            "GLIBC_TUNABLES": ":".join(["glibc.malloc.trim_threshold=67108864"] * 2), "LD_PRELOAD": "libtcmalloc.so", "GOGC": "400"})
        self.assertEqual(judge.variables([{"kind": "thp", "mode": "never"}], Path("/out")), {"BENCH_WRAP": "/out/without_huge_pages"})
        self.assertEqual(judge.variables([{"kind": "unset", "name": "GOGC"}], None), {"GOGC": None})

    def test_a_variable_that_is_taken_away_does_not_reach_the_program(self):
        one = program()
        one.command, one.env = ["sh", "-c", 'test -z "${GOGC+set}"'], {"GOGC": "50"}
        programs.run_once(one, {"GOGC": None})
        self.assertRaises(RuntimeError, programs.run_once, one, {})


class Shares(unittest.TestCase):
    account = {
        "kernel": estimate(400 * MILLISECOND, 0),
        "unexplained": estimate(50 * MILLISECOND),
        "cpu": [{"id": "own", "time": estimate(500 * MILLISECOND, 0)}, {"id": "allocator", "time": estimate(100 * MILLISECOND, 0)},
                {"id": "fault", "time": estimate(300 * MILLISECOND, 20 * MILLISECOND)}],
        "tasks": {"processes": [{"pid": 7, "parent": 1, "threads": [{"tid": 7, "all": {
            "lifetime": 2000, "parts": [{"id": "ready", "time": estimate(1000, 0)}, {"id": "cpu", "time": estimate(600, 0)},
                                        {"id": "disk", "time": estimate(300, 0)}, {"id": "unexplained", "time": estimate(100, 0)}]}}]}]},
    }

    def test_what_being_recorded_took_is_no_part_of_the_program(self):
        parts = [{"id": "own", "time": estimate(400, 0)}, {"id": "fault", "time": estimate(400, 0)}, {"id": "observer", "time": estimate(200, 50)}]
        told = judge.shares_told({"cpu": parts, "kernel": estimate(600, 0)}, 1000)
        self.assertEqual(told["user"]["value"], 0.5)
        self.assertEqual(told["fault"]["value"], 0.5)
        self.assertEqual(told["kernel"], {"value": 0.5, "low": 350 / 800, "high": 450 / 800})

    def test_rows_beside_the_truth(self):
        true = {"user": estimate(0.6, 0.01), "kernel": estimate(0.45, 0.01), "fault": estimate(0.33, 0.02), "waiting": estimate(0.35, 0.01)}
        rows = judged(findings("file", account=self.account), {"shares": true}).rows()
        self.assertEqual([(name, agreed) for name, _, _, agreed in rows], [("user", True), ("kernel", False), ("fault", True), ("waiting", True)])

    def test_unexplained_share(self):
        self.assertAlmostEqual(judged(findings("file", account=self.account)).unexplained, 0.05)

    def test_samples_of_user_kernel_and_faults(self):
        script = "7 \n\n7 \n\tffffffff81 clear_page_erms\n\tffffffff82 asm_exc_page_fault\n\n7 \n\tffffffff83 do_syscall_64\n\n7 \n\n"
        self.assertEqual(shares.count(script), {"samples": 4, "user": 0.5, "kernel": 0.5, "fault": 0.25})


class Manifest(unittest.TestCase):
    def test_every_family_has_four_programs(self):
        entries = programs.load("/tmp/out")
        self.assertEqual(len({p.name for p in entries}), len(entries))
        counts = {family: sum(p.family == family for p in entries) for family in {p.family for p in entries}}
        self.assertEqual(set(counts), {"churn", "allocator", "runtime", "huge", "limit", "file", "fork", "lock", "flush", "healthy"})
        self.assertGreaterEqual(min(counts.values()), 4)
        self.assertGreaterEqual(counts["healthy"], 8)
        for entry in entries:
            self.assertTrue(entry.command and entry.cause, entry.name)


class Runs(unittest.TestCase):
    def test_a_run_that_does_not_end_is_ended_with_its_children(self):
        endless = programs.Program(name="p", kind="k", family="healthy", command=["sh", "-c", "sleep 600 & wait"], needs=[], cause=["healthy"])
        with mock.patch.object(programs, "LIMIT_S", 0.2), self.assertRaisesRegex(RuntimeError, "did not end within 0.2 s"):
            programs.run_once(endless, {})


if __name__ == "__main__":
    unittest.main()
