"""The evaluation's table: programs, budgets, systems, and the ratio that each must reach."""
import dataclasses

THREADS = "1,2,4,8"
OURS = "pagewise:sigbus:prefetch"
FD = "pagewise:fd:prefetch"
DEFAULTS = "pagewise"
AUTO = "pagewise:auto"
LIMITED = "pagewise:limited"
KERNEL = "pagewise:kernel"


@dataclasses.dataclass
class Workload:
    """One program under several systems. Budget and pool of compressed pages are in MiB; `bars` has
    the least ratio of figures of a pair of systems, `options` are more ones of `pagewise run`."""
    name: str
    words: list
    budget: int
    systems: list
    bars: dict
    pool: int = 0
    options: list = dataclasses.field(default_factory=list)

    def grow(self, scale):
        """Multiplies memory and budget, where the program is the microbenchmark."""
        if scale > 1 and self.words[0] == "touch":
            self.words[3] = str(int(self.words[3]) * scale)
            self.budget, self.pool = self.budget * scale, self.pool * scale
            self.name += f", {self.words[3]} MiB"


def microbenchmark(order, access, times, bar):
    """(b): `times` the budget; peers, and the default delivery, at twice the budget."""
    peers = ["umap", "extmem"] if times == 2 else []
    bars = {(OURS, peer): 2.0 for peer in peers} | ({(OURS, "linux"): bar} if bar else {})
    return Workload(f"{order} {access} {times}x", ["touch", order, access, str(128 * times), THREADS], 128,
                    ["linux", OURS, *([FD] if times == 2 else []), *([KERNEL] if order == "random" else []), *peers], bars)


def graph(algorithm, kind):
    """(d): some 75 MB of graph under a budget of 28 MiB, 39 %."""
    policies = {name: f"pagewise:sigbus:{name}" for name in ("2q", "csr", "replay")}
    bars = {}
    if algorithm == "pagerank":
        bars = {(policies["csr"], "linux"): 1.5, (policies["replay"], "linux"): 1.5,
                (policies["csr"], policies["2q"]): 1.0}
    return Workload(f"{algorithm} {kind}", ["graph", algorithm, kind, "19", "16"], 28,
                    ["linux", *policies.values()], bars)


def compressible(order, access):
    """Contents that shrink to a third: 256 MiB under 144, of which 72 hold compressed pages."""
    stores = [f"{OURS}:{kind}" for kind in ("compressed", "tiered", "auto")]
    return Workload(f"compressible, {order} {access}", ["touch", order, access, "256", "1,4"], 144,
                    ["linux", "linux+zswap", "linux+zram", OURS, *stores], {}, pool=72)


def program(name, budget=128, systems=("linux", "linux+zram", DEFAULTS, AUTO, LIMITED, KERNEL)):
    """(e): a program that needs about twice the budget. Of compressed swap a third of it is the pool."""
    return Workload(name, ["programs.py", name, str(2 * budget)], budget, list(systems), {(DEFAULTS, "linux"): 0.95},
                    pool=budget // 3)


def nearly_fits(name, mib, budget):
    """(e): a program that goes over `mib` again and again, of which the budget has room for most."""
    return Workload(f"{name} of {mib} MiB under {budget}", ["programs.py", name, str(mib)], budget, ["linux", "linux+zram", DEFAULTS],
                    {}, pool=mib // 6)


def file(order, bar):
    """(f): a mapped file of 1/0.7 of the budget, beside Linux's own mapping of it."""
    return Workload(f"file {order}", ["file", order, "512", "1,4"], 358, ["linux", OURS, FD],
                    {(system, "linux"): bar for system in (OURS, FD)}, options=["--files", "16M"])


WORKLOADS = [
    microbenchmark("random", "read", 2, 1.5),
    microbenchmark("random", "write", 2, 1.2),
    microbenchmark("sequential", "read", 2, 4.0),
    microbenchmark("sequential", "write", 2, 2.5),
    *[microbenchmark(order, access, 4, None) for order in ("random", "sequential") for access in ("read", "write")],
    Workload("hot set beside a scan", ["touch", "hotset", "read", "256", "1"], 128,
             ["linux", OURS, "pagewise:sigbus:2q"], {}),
    *[graph(algorithm, kind) for algorithm in ("pagerank", "bfs") for kind in ("uniform", "kronecker")],
    file("sequential", 1.5),
    file("strided", 1.5),
    file("random", 1.0),
    *[program(name) for name in ("redis", "redis-save", "sqlite", "duckdb", "postgres-sort", "postgres-group", "pandas",
                                 "sort", "gcc", "java-g1", "java-zgc", "node")],
    program("numpy", systems=("linux", "linux+zram", DEFAULTS, AUTO, LIMITED, OURS)),
    program("torch", 330),
    *[nearly_fits("collect", 242, budget) for budget in (243, 230, 204)],
    *[compressible("random", "read"), compressible("random", "write"), compressible("sequential", "read")],
]
