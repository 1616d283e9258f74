"""Tests of how `run` judges doctor's answers. Run: python3 -m unittest discover bench/programs"""

import importlib.machinery
import importlib.util
import unittest
from pathlib import Path

import programs

loader = importlib.machinery.SourceFileLoader("judgement", str(Path(__file__).with_name("run")))
judgement = importlib.util.module_from_spec(importlib.util.spec_from_loader("judgement", loader))
loader.exec_module(judgement)

KNOBS = [{"kind": "glibc_tunable", "name": "glibc.malloc.trim_threshold", "value": "67108864"}]


def program(cause, cure):
    return programs.Program(name="p", kind="k", command=["true"], needs=[], cause=cause, cure=cure, best={})


def findings(diagnosis, settings, predicted=(2.0, 1.8, 2.2), proved=2.1, verdict="faster"):
    """Findings as doctor writes them, cut down to what the judge reads."""
    estimate = dict(zip(("value", "low", "high"), predicted))
    advice = [{"settings": settings, "predicted_speedup": estimate}] if settings else []
    comparison = {"arm": "cure", "verdict": verdict,
                  "cpu_speedup": {"value": proved, "low": proved - 0.1, "high": proved + 0.1}}
    proof = {"arms": [{"name": "default", "settings": []}, {"name": "cure", "settings": settings}],
             "comparisons": [comparison], "confirmation": None}
    return {"diagnoses": [{"id": diagnosis}], "advice": advice, "proof": proof if settings else None}


def answer(program, findings):
    return judgement.Answer(program, findings, None)


class Judgement(unittest.TestCase):
    def test_right_answer(self):
        a = answer(program(["churn.brk"], ["glibc"]), findings("churn.brk", KNOBS))
        self.assertTrue(a.cause_right and a.cure_right and a.covered)
        self.assertFalse(a.false_cure)

    def test_wrong_cause(self):
        self.assertFalse(answer(program(["cow.fork"], ["none"]), findings("churn.brk", [])).cause_right)

    def test_prediction_outside_the_interval(self):
        a = answer(program(["churn.brk"], ["glibc"]), findings("churn.brk", KNOBS, proved=2.5))
        self.assertFalse(a.covered)

    def test_cure_that_did_not_make_it_faster(self):
        a = answer(program(["churn.brk"], ["glibc"]), findings("churn.brk", KNOBS, verdict="no_difference"))
        self.assertFalse(a.cure_right)

    def test_false_cure_of_a_healthy_program(self):
        a = answer(program(["healthy"], ["none"]), findings("healthy", KNOBS))
        self.assertTrue(a.false_cure)
        self.assertFalse(a.cure_right)

    def test_advice_in_words_is_no_cure_by_settings(self):
        a = answer(program(["churn.mmap"], ["none"]), findings("churn.mmap", []))
        self.assertTrue(a.cure_right)
        self.assertIsNone(a.covered)

    def test_families(self):
        preload = {"kind": "preload", "path": "/usr/lib/libjemalloc.so.2"}
        conf = {"kind": "env", "name": "MALLOC_CONF", "value": "dirty_decay_ms:-1"}
        classic = {"kind": "env", "name": "MALLOC_TOP_PAD_", "value": "1048576"}
        self.assertEqual(judgement.family([preload, conf]), "preload")
        self.assertEqual(judgement.family([conf]), "jemalloc")
        self.assertEqual(judgement.family([classic]), "glibc")
        self.assertEqual(judgement.family([]), "none")


class Manifest(unittest.TestCase):
    def test_every_program_is_complete(self):
        entries = programs.load("/tmp/out")
        self.assertGreaterEqual(len(entries), 14)
        self.assertEqual(len({p.name for p in entries}), len(entries))
        for entry in entries:
            self.assertTrue(entry.command and entry.cause and entry.cure and entry.best, entry.name)
            self.assertLessEqual(set(entry.cure), {"glibc", "preload", "jemalloc", "none"}, entry.name)


if __name__ == "__main__":
    unittest.main()
