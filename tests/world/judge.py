"""Holds answers of `doctor` against what runs showed."""
from truth import GAIN, best, helps

# Shares of CPU time, counts and ratios from which faults are worth a word.
KERNEL = 0.15
FEW_FAULTS = 5000
MINOR = 0.3  # Below this, the allocator's or collector's own code may be the greater cause, which runs do not show.
SHORT = 0.2  # Seconds of CPU time below which no setting is worth a word.
LITTLE = 0.1  # Seconds in the kernel below which faults may be told or not.
AGAIN = 2.0  # Bytes that faulted for each byte of the peak: more have been returned and requested again.
WORSE = 1.25  # The best setting gains this many times what the advised one does: the advice is poor.
LOUD = {"costly", "severe"}


def cause(truth):
    """What the runs show: `churn`, `touch`, `open` (one or the other), `little` (any word is right), or `nothing`."""
    faulted = truth["faults"] * 4096
    peak = truth["peak_kib"] * 1024
    if truth["faults"] >= FEW_FAULTS and truth["system"] < LITTLE:
        return "little"
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


def is_right(truth, word):
    true = cause(truth)
    of_code = word in {"collector", "allocator"} and truth["system"] < MINOR * truth["cpu"]
    if true == "little" or of_code:
        return True
    return word in FITTING[true] if true in FITTING else word not in UNFIT


def advised(answer):
    """The first advice with settings, or none."""
    return next((one for one in answer.get("advice", []) if one.get("settings")), None)


def summary(answers):
    """What answers to one program say: causes, rules of the first advice, and whether a proof is offered. They come with
    their messages."""
    return {"said": sorted({said(answer) for answer, _ in answers}),
            "advised": sorted({str((advised(answer) or {"rule": None})["rule"]) for answer, _ in answers}),
            "offered": any("--prove" in answer["verdict"] or "--prove" in messages for answer, messages in answers)}


def judged(told, truth):
    """What was said (`summary`) with the word on it, and what that rests on."""
    top = best(truth) if truth["cpu"] >= SHORT else None
    result = {**told, "true": cause(truth), "best": top}
    if top:
        result["best_gain"] = truth["arms"][top]["gain"]
    if told["advised"] != ["None"] and len(told["advised"]) == 1:
        result["advised_gain"] = truth["arms"].get(f"advised {told['advised'][0]}", {}).get("gain", 0)
    return {**result, "verdict": verdict(result, truth)}


def verdict(result, truth):
    fits = all(is_right(truth, word) for word in result["said"])
    # On the edge of a threshold either word is right; two different fixes are not.
    if not fits and len(result["said"]) > 1 or len(result["advised"]) > 1:
        return "not the same each time"
    if not fits:
        return "wrong cause"
    if result["advised"] == ["None"]:
        missed = "left to a proof" if result["offered"] else "missed"
        return missed if result["best"] else "right"
    if not result["advised_gain"] >= (1 + GAIN) / 2:
        return "advice does not help"
    if result["best"] and result["best_gain"] > WORSE * result["advised_gain"]:
        return "right, another gains more"
    return "right"


RIGHT = {"right", "right, another gains more", "left to a proof"}
