"""Holds answers of `doctor` against what runs showed."""
from truth import GAIN, best, helps

# Shares of CPU time, counts and ratios from which faults are worth a word.
KERNEL = 0.15
FEW_FAULTS = 5000
AGAIN = 2.0  # Bytes that faulted for each byte of the peak: more have been returned and requested again.
WORSE = 1.25  # The best setting gains this many times what the advised one does: the advice is poor.
LOUD = {"costly", "severe"}


def cause(truth):
    """What the runs show: `churn`, `touch`, `open` (one or the other), or `nothing`."""
    faulted = truth["faults"] * 4096
    peak = truth["peak_kib"] * 1024
    avoided = [arm for arm in truth["arms"].values() if helps(arm) and arm["faults"] < truth["faults"] / 2]
    if truth["faults"] < FEW_FAULTS or truth["system"] < KERNEL * truth["cpu"]:
        return "nothing" if not avoided else "open"
    if faulted > AGAIN * peak:
        return "churn"
    return "open" if avoided else "touch"


def said(answer):
    """The same of the gravest finding of an answer."""
    loud = [one["id"] for one in answer.get("diagnoses", []) if one["severity"] in LOUD]
    if not loud:
        return "healthy"
    kind = loud[0].split(".")[0]
    return {"churn": "churn", "first_touch": "touch", "huge": "touch", "read_first": "touch", "fresh_memory": "fresh",
            "collector": "collector", "allocator": "allocator"}.get(kind, loud[0])


FITTING = {
    "churn": {"churn", "fresh"},
    "touch": {"touch", "fresh"},
    "open": {"churn", "touch", "fresh", "collector", "allocator"},
}
UNFIT = {"churn", "touch", "fresh"}


def is_right(true, word):
    return word in FITTING[true] if true in FITTING else word not in UNFIT


def advised(answer):
    """The first advice with settings, or none."""
    return next((one for one in answer.get("advice", []) if one.get("settings")), None)


def judged(answers, truth):
    """One word on the answers to one program, with what it rests on. `answers` come with their messages, in which a
    proof is offered."""
    true = cause(truth)
    words = {said(answer) for answer, _ in answers}
    # Twice as many faults as a threshold, or half: on its edge, either word is right.
    rules = {(advised(answer) or {"rule": None})["rule"] for answer, _ in answers}
    top = best(truth)
    result = {"true": true, "said": sorted(words), "advised": sorted(map(str, rules)), "best": top}
    if top:
        result["best_gain"] = truth["arms"][top]["gain"]
    if len(words) > 1 and not all(is_right(true, word) for word in words) or len(rules) > 1:
        return {**result, "verdict": "not the same each time"}
    if not all(is_right(true, word) for word in words):
        return {**result, "verdict": "wrong cause"}
    rule = rules.pop()
    if rule is None:
        offered = any("--prove" in answer["verdict"] or "--prove" in messages for answer, messages in answers)
        missed = "left to a proof" if offered else "missed"
        return {**result, "verdict": missed if top else "right"}
    arm = truth["arms"].get(f"advised {rule}", {})
    result["advised_gain"] = arm.get("gain", 0)
    if not arm.get("gain", 0) >= (1 + GAIN) / 2:
        return {**result, "verdict": "advice does not help"}
    if top and result["best_gain"] > WORSE * arm["gain"]:
        return {**result, "verdict": "right, another gains more"}
    return {**result, "verdict": "right"}


RIGHT = {"right", "right, another gains more", "left to a proof"}
