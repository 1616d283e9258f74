"""Tests of counting and judging. Run: python3 -m unittest discover bench/strangers"""

import unittest

import catalogue
import rows
from judgement import Judged

TEXT = """\
   12
\tffffffff815dda44 do_anonymous_page ([kernel.kallsyms])
\tffffffff815dda45 handle_mm_fault ([kernel.kallsyms])
\tffffffff815dda46 asm_exc_page_fault ([kernel.kallsyms])
\t    55d0c1 main (/tmp/x)

   12
\tffffffff815dda44 unmap_page_range ([kernel.kallsyms])
\tffffffff815dda45 __x64_sys_munmap ([kernel.kallsyms])
\tffffffff815dda46 do_syscall_64 ([kernel.kallsyms])
\t    7f11c1 __munmap (/usr/lib/libc.so.6)

   13
\t    7f11c1 _int_malloc (/usr/lib/libc.so.6)
\t    55d0c1 main (/tmp/x)

   13
\t    55d0c1 main (/tmp/x)
"""


def answer(identity, verdict="", share=None, severity="severe", headline=""):
    found = {"id": identity, "severity": severity, "headline": headline}
    if share is not None:
        found["share_of_cpu"] = {"value": share, "low": share, "high": share}
    return {"verdict": verdict, "diagnoses": [found], "advice": []}


def truth(arms=None, **shares):
    return {
        "default": {"cpu": 1.0, "wall": 1.0}, "arms": arms or {},
        "shares": {"samples": 1000, "rows": {name.replace("__", "."): value for name, value in shares.items()}},
    }


class Rows(unittest.TestCase):
    def test_each_sample_is_of_one_row(self):
        found = rows.count(TEXT.splitlines(keepends=True))
        self.assertEqual(found["rows"], {"fault.anon": 0.25, "memory.munmap": 0.25, "allocator": 0.25, "own": 0.25})
        self.assertEqual((found["samples"], found["processes"]), (4, 2))

    def test_a_caller_that_perf_does_not_know_is_no_kernel(self):
        text = "   12\n\t    55d0c1 main (/tmp/x)\n\t         0 [unknown] ([unknown])\n"
        self.assertEqual(rows.count(text.splitlines(keepends=True))["rows"], {"own": 1.0})

    def test_no_samples_are_no_shares(self):
        self.assertIsNone(rows.count([]))


class Causes(unittest.TestCase):
    def test_churn_is_right_where_fresh_pages_and_unmapping_cost_most(self):
        known = truth(fault__anon=0.4, memory__munmap=0.2, own=0.4)
        self.assertEqual(Judged("x", answer("churn.mmap", share=0.58), known).cause, "right")
        self.assertIn("allocator.hot is 0%", Judged("x", answer("allocator.hot"), known).cause)

    def test_a_call_is_right_only_where_the_headline_names_the_largest(self):
        known = truth(call__getrandom=0.8, memory__mmap=0.1, own=0.1)
        right = answer("kernel.work", headline="The kernel works for the program, mostly on the system call getrandom")
        wrong = answer("kernel.work", headline="The kernel works for the program, mostly on mapping and unmapping memory (mmap)")
        self.assertEqual(Judged("x", right, known).cause, "right")
        self.assertNotEqual(Judged("x", wrong, known).cause, "right")

    def test_silence_is_right_only_where_memory_costs_less_than_a_tenth(self):
        silent = answer("computing", severity="note")
        self.assertEqual(Judged("x", silent, truth(own=0.97, fault__anon=0.03)).cause, "right")
        self.assertNotEqual(Judged("x", silent, truth(own=0.7, fault__anon=0.3)).cause, "right")

    def test_a_call_on_memory_may_be_named_by_itself(self):
        said = answer("kernel.work", headline="The kernel works for the program, most of all on the system call mincore")
        self.assertEqual(Judged("x", said, truth(memory__mincore=0.6, call__other=0.1, own=0.3)).cause, "right")

    def test_what_takes_a_few_milliseconds_need_not_be_said(self):
        known = truth(own=0.7, fault__anon=0.3)
        known["default"]["cpu"] = 0.1
        self.assertEqual(Judged("x", answer("computing", severity="note"), known).cause, "right")

    def test_a_share_that_perf_does_not_find_is_counted(self):
        known = truth(fault__copy=0.3, own=0.7)
        self.assertIsNone(Judged("x", answer("cow.fork", share=0.28), known).share_apart)
        self.assertIsNotNone(Judged("x", answer("cow.fork", share=0.6), known).share_apart)


class Fixes(unittest.TestCase):
    GAIN = {"mimalloc": {"cpu_ratio": {"value": 1.5, "low": 1.4, "high": 1.6}}}
    NONE = {"glibc knobs": {"cpu_ratio": {"value": 0.9, "low": 0.85, "high": 0.95}}}

    def test_no_setting_is_false_where_one_gains_and_none_is_tried(self):
        said = answer("allocator.hot", "x takes 40 %. No setting cures that; what can be done by hand is listed below.")
        self.assertEqual(Judged("x", said, truth(self.GAIN, allocator=0.4)).false_no, "mimalloc ×1.50")
        said["verdict"] = "x takes 40 %. No setting is known to cure that; pagewise doctor --prove tries 'mimalloc'."
        self.assertIsNone(Judged("x", said, truth(self.GAIN, allocator=0.4)).false_no)

    def test_an_advised_setting_that_surely_loses_is_false(self):
        said = answer("churn.brk")
        said["advice"] = [{"rule": "glibc.keep-freed-memory", "settings": [{"kind": "env"}]}]
        self.assertEqual(Judged("x", said, truth(self.NONE, fault__anon=0.4)).false_fixes, ["glibc.keep-freed-memory ×0.90"])


class Halves(unittest.TestCase):
    def test_a_hash_of_the_name_decides_and_stays(self):
        self.assertEqual([catalogue.half(name) for name in ("stress-brk", "stress-mmapfork", "tool-jq")], ["tuning", "kept", "tuning"])


if __name__ == "__main__":
    unittest.main()
