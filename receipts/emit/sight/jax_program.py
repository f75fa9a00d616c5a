"""What a step of JAX computes, read from its jaxpr: batch, length, widths, depth, types, recomputation.

The program says what no argument does. An argument of 4 x 129 tokens trains 4 x 128 of them: the lookup in the
embedding has the rows and the length that were computed, and a scan around it how often. What follows from arguments
alone is a weight; a product of two activations is attention's. Parts of the step are told by the names that `jax.grad`
and `jax.checkpoint` put on the name stack.
Sources: `jax/_src/interpreters/ad.py` (jvp, transpose), `jax/_src/ad_checkpoint.py`; jaxprs of JAX 0.4.30 to 0.10.
"""

from __future__ import annotations

from math import prod

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NamedTuple

    class Place(NamedTuple):
        """Where an equation stands: its part of the step, how often it runs, and on how many devices."""

        part: str
        times: int
        devices: int
else:
    from collections import namedtuple

    Place = namedtuple("Place", "part times devices")

# The least share of all work that a type has to carry to be named.
MIN_SHARE = 0.10
MAX_EQUATIONS = 500_000
_TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64", "int8": "int8"}
_WIDTHS = ("fp64", "fp32", "bf16", "fp16", "fp8", "int8")
_FUSED = ("dot_product_attention_fwd", "flash", "splash", "mha", "fmha", "fused_attn_forward")


class Lookup:
    """A lookup of tokens in a table that is an argument. ``carried``: a loop hands the table on, and so trains it."""

    def __init__(self, equation: Any, place: Place, table: int, tokens: int | None) -> None:
        self.place, self.table, self.carried = place, _argument(table), table < 0
        self.tokens = None if tokens is None else _argument(tokens)
        self.vocabulary, self.hidden = _shape(equation.invars[0])
        self.rows = _shape(equation.outvars[0])[:-1]

    def fit(self, given: tuple[int, ...]) -> None:
        """Take rows and length from the argument where the lookup has them in one extent, as `jax.vmap` leaves it."""
        every = prod(self.rows)
        if len(given) > 1 and (len(self.rows) == 1 or self.rows[-1] == 1):
            length = next((size for size in (given[-1], given[-1] - 1) if size > 0 and not every % size), 0)
            self.rows = (every // length, length) if length else self.rows


class Product:
    """A multiplication of matrices. ``weight`` is the argument that one side follows from, None for two activations.

    ``inner`` is what is summed over, ``outer`` the width of the result that the weight gives, ``experts`` how many
    such matrices the weight holds, ``out`` the result without the extents that both sides share. Of ``merged`` both
    sides follow from arguments.
    """

    def __init__(self, equation: Any, place: Place, weight: int | None, side: int, *, merged: bool) -> None:
        self.place, self.weight, self.merged = place, None if weight is None else _argument(weight), merged
        self.sides = [_shape(variable) for variable in equation.invars[:2]]
        self.size = prod(_shape(equation.outvars[0]))
        kinds = (_dtype(variable) for variable in equation.invars[:2])
        names = (_TYPES.get(kind, "fp8" if kind.startswith("float8") else "") for kind in kinds)
        self.dtype = min(filter(None, names), key=_WIDTHS.index, default="")
        if equation.primitive.name.startswith("ragged_dot"):
            self.experts, self.inner, self.outer = (self.sides[1] + (1, 1, 1))[:3]
            self.out: tuple[int, ...] = ()
            return
        contracted, shared = equation.params["dimension_numbers"]
        shape = self.sides[side]
        self.experts = prod(shape[axis] for axis in shared[side])
        self.inner = prod(shape[axis] for axis in contracted[side])
        self.outer = prod(shape) // max(1, self.experts * self.inner)
        self.out = _shape(equation.outvars[0])[len(shared[0]) :]


class StepProgram:
    """One step as its jaxpr has it. ``arguments`` are the flat arguments' shapes; raises nothing for odd programs."""

    def __init__(self, closed: Any) -> None:
        jaxpr = closed.jaxpr
        self.arguments = [_shape(variable) for variable in jaxpr.invars]
        self.types = [_dtype(variable) for variable in jaxpr.invars]
        self.lookups: list[Lookup] = []
        self.products: list[Product] = []
        self.used: set[int] = set()
        self.fused = 0
        self.policies: set[str] = set()
        self.top_k: set[int] = set()
        self.layers: set[int] = set()
        self.mesh: dict[str, int] = {}
        # Of arguments: how often a loop trains them in one call (0: as often as it likes), how `shard_map` splits
        # them, and those that hold one copy a device, as `jax.pmap` takes them.
        self.rounds: dict[int, int] = {}
        self.split: dict[int, Any] = {}
        self.copies: set[int] = set()
        self._left = MAX_EQUATIONS
        origins = {id(variable): at for at, variable in enumerate(jaxpr.invars)}
        self._visit(jaxpr, origins, Place("", 1, 1))

    def __repr__(self) -> str:
        return f"StepProgram({len(self.lookups)} lookups, {len(self.products)} products)"

    def _visit(self, jaxpr: Any, origins: dict[int, int], outer: Place) -> None:
        for equation in jaxpr.eqns:
            self._left -= 1
            if self._left < 0:
                return
            place = outer._replace(part=_part(str(equation.source_info.name_stack), outer.part))
            self._equation(equation, origins, place)

    def _equation(self, equation: Any, origins: dict[int, int], place: Place) -> None:
        name, sides = equation.primitive.name, [origins.get(id(variable)) for variable in equation.invars]
        if place.part == "forward":
            self.used.update(_argument(origin) for origin in sides if origin is not None)
        if name in ("remat2", "remat", "checkpoint") and equation.params.get("differentiated"):
            policy = equation.params.get("policy")
            self.policies.add("" if policy is None else _policy(policy))
        elif name == "top_k":
            self.top_k.add(int(equation.params.get("k", 0)))
        if name == "gather":
            self._gather(equation, sides, place)
        elif name == "dot_general" or name.startswith("ragged_dot"):
            weights = [at for at in (1, 0) if sides[at] is not None and not self._integer(equation.invars[at])]
            at = weights[0] if weights else 1
            weight = sides[at] if weights else None
            self.products.append(Product(equation, place, weight, at, merged=len(weights) > 1))
        elif name in ("squeeze", "reshape") and sides[0] is not None and _shape(equation.invars[0])[:1] == (1,):
            self._copied(sides[0], equation.outvars[0], place.devices)
        elif any(word in f"{name} {equation.params.get('name', '')}" for word in _FUSED):
            self.fused += place.times * (place.part == "forward")
        inner = None if name == "pallas_call" else self._inner(equation, origins, sides, place)
        if inner is None:
            inner = [_follows(equation, sides)] * len(equation.outvars)
        for variable, origin in zip(equation.outvars, inner, strict=False):
            if origin is not None:
                origins[id(variable)] = origin

    def _integer(self, variable: Any) -> bool:
        return "int" in _dtype(variable)

    def _gather(self, equation: Any, sides: list[int | None], place: Place) -> None:
        table, out = _shape(equation.invars[0]), _shape(equation.outvars[0])
        whole_rows = len(table) == 2 and tuple(equation.params.get("slice_sizes", ()))[-1:] == table[-1:]
        if sides[0] is None or not whole_rows or len(out) < 2 or out[-1] != table[-1]:
            return
        lookup = Lookup(equation, place, sides[0], sides[1])
        lookup.fit(self.arguments[lookup.tokens] if lookup.tokens is not None else ())
        self.lookups.append(lookup)

    def _inner(self, equation: Any, origins: dict[int, int], sides: list[Any], place: Place) -> list[Any] | None:
        """Visit the programs within an equation; what its results follow from, None where it has none."""
        name, results = equation.primitive.name, None
        given, length, first, stacked = equation.invars, 1, 0, 0
        if name == "scan":
            length = int(equation.params["length"])
            first = equation.params["num_consts"]
            stacked = first + equation.params["num_carry"]
            if place.part == "forward" and any(side is not None for side in sides[stacked:]):
                self.layers.add(length)
        elif name == "while":
            given = given[equation.params["cond_nconsts"] :]
            first, stacked = equation.params["body_nconsts"], len(given)
        devices = self._devices(equation, sides) * place.devices
        programs = list(_programs(equation))
        if name == "cond":
            given, programs = given[1:], sorted(programs, key=lambda program: len(program.eqns))[-1:]
        for program in programs:
            inside: dict[int, int] = {}
            for variable, outer in zip(reversed(program.invars), reversed(given), strict=False):
                if (origin := origins.get(id(outer))) is not None:
                    inside[id(variable)] = origin
                    self._copied(origin, variable, devices)
            for variable, out in zip(program.invars[first:stacked], program.outvars, strict=False):
                if out is not variable and (origin := inside.get(id(variable))) is not None:
                    inside[id(variable)] = min(origin, ~origin)
                    self.rounds.setdefault(_argument(origin), place.times * length * (name == "scan"))
            self._visit(program, inside, place._replace(times=place.times * length, devices=devices))
            results = [inside.get(id(variable)) for variable in program.outvars]
        return None if results is None else results if name not in ("scan", "while") else [None] * len(results)

    def _copied(self, origin: int, variable: Any, devices: int) -> None:
        """Note an argument whose first extent is the devices, each of which takes its own copy."""
        whole = self.arguments[_argument(origin)]
        if devices > 1 and whole[:1] == (devices,) and _shape(variable) == whole[1:]:
            self.copies.add(_argument(origin))

    def _devices(self, equation: Any, sides: list[int | None]) -> int:
        """Over how many devices `shard_map` or `pmap` splits what it holds."""
        if equation.primitive.name == "xla_pmap":
            return int(equation.params.get("global_axis_size") or equation.params.get("axis_size") or 1)
        mesh = equation.params.get("mesh") if equation.primitive.name == "shard_map" else None
        shape = dict(getattr(mesh, "shape", None) or {})
        self.mesh.update({str(name): int(size) for name, size in shape.items()})
        for side, spec in zip(sides, equation.params.get("in_specs") or () if shape else (), strict=False):
            if side is not None:
                self.split[_argument(side)] = spec
        return prod(shape.values())


def _policy(policy: Any) -> str:
    """What JAX calls a policy of `jax.checkpoint`: since 0.8 some are objects without a name of their own."""
    known = getattr(imported.part("jax", "checkpoint_policies"), "__dict__", {})
    return getattr(policy, "__name__", "") or next((name for name, item in known.items() if item == policy), "own")


def axes(spec: Any) -> set[str]:
    """The axes of the mesh in a PartitionSpec."""
    names: set[str] = set()
    for item in spec or ():
        names.update((item,) if isinstance(item, str) else item or ())
    return names


def _programs(equation: Any) -> Iterator[Any]:
    for key, value in equation.params.items():
        if key in ("cond_jaxpr", "jvp_jaxpr_fun", "fwd_jaxpr_thunk", "bwd"):
            continue
        for item in value if isinstance(value, tuple | list) else (value,):
            program = getattr(item, "jaxpr", item)
            if hasattr(program, "eqns"):
                yield program


def _part(names: str, outer: str) -> str:
    if "rematted_computation" in names:
        return "again"
    if "transpose(" in names:
        return "backward"
    return "forward" if "jvp(" in names and outer in ("", "forward") else outer


def _follows(equation: Any, sides: list[int | None]) -> int | None:
    """The argument that a result follows from: floating-point numbers where all do, tokens and masks where one does."""
    known = [side for side in sides if side is not None]
    if not known or not equation.outvars:
        return None
    if "float" not in _dtype(equation.outvars[0]):
        return known[0]
    for side, variable in zip(sides, equation.invars, strict=True):
        # What was looked up, masked or made by tokens is an activation; numbers without extent are anybody's.
        if _shape(variable) and (side is None or "float" not in _dtype(variable)):
            return None
    return known[0]


def _argument(origin: int) -> int:
    """The argument's position; what a loop carries from one round to the next is kept as its complement."""
    return max(origin, ~origin)


def _shape(variable: Any) -> tuple[int, ...]:
    shape = getattr(getattr(variable, "aval", None), "shape", ())
    return tuple(size for size in shape if isinstance(size, int))


def _dtype(variable: Any) -> str:
    return str(getattr(getattr(variable, "aval", None), "dtype", ""))


def facts(program: StepProgram) -> dict[str, Any]:
    """Leaves by path that a step's program shows; what it leaves open is absent."""
    leaves: dict[str, Any] = {"compile.posture": "jit", "numerics.compute_dtype": _compute_types(program)}
    training = any(item.place.part == "forward" for item in program.products)
    lookup = main_lookup(program)
    if lookup is not None:
        leaves |= {"model.vocabulary": lookup.vocabulary, "model.hidden": lookup.hidden}
        leaves |= batch(program, lookup)
    if training:
        parameters = parameter_arguments(program)
        kinds = {_TYPES.get(program.types[at], "") for at in parameters}
        if lookup is not None:
            shapes = (program.arguments[at][at in program.copies :] for at in parameters)
            leaves["model.parameters_total"] = sum(map(prod, shapes))
        leaves["numerics.parameter_dtype"] = kinds.pop() if len(kinds) == 1 else None
        leaves["numerics.recompute"] = _recompute(program)
        ranks = adapter_ranks(program)
        leaves["numerics.adapters.kind"] = "lora" if ranks else None
        leaves["numerics.adapters.rank"] = ranks.pop() if len(ranks) == 1 else None
        if lookup is not None:
            leaves |= _architecture(program, lookup)
    return {path: value for path, value in leaves.items() if value or value is False}


def parameter_arguments(program: StepProgram) -> list[int]:
    """The arguments that the forward pass takes and that hold numbers, but for those of every token, as a mask does."""
    tables = {item.table for item in program.lookups}
    of_tokens = {item.rows for item in program.lookups}
    of_tokens |= {program.arguments[item.tokens] for item in program.lookups if item.tokens is not None}
    floats = (at for at in program.used | tables if "float" in program.types[at])
    return sorted(at for at in floats if program.arguments[at] not in of_tokens)


def main_lookup(program: StepProgram) -> Lookup | None:
    """The lookup of tokens: of those of the forward pass the one with the most rows, then of the larger table."""
    forward = [item for item in program.lookups if item.place.part in ("", "forward") and len(item.rows) > 1]
    return max(forward, key=lambda item: (prod(item.rows), item.vocabulary), default=None)


def forward_passes(program: StepProgram, lookup: Lookup) -> int:
    """How often a step computes the forward pass of this lookup."""
    same = (item for item in program.lookups if item.table == lookup.table and item.place.part in ("", "forward"))
    return sum(item.place.times for item in same if item.rows == lookup.rows)


def batch(program: StepProgram, lookup: Lookup) -> dict[str, Any]:
    """Sequences and their length, in one pass on one device and in a step; how many passes accumulate."""
    rows, length = prod(lookup.rows[:-1]), lookup.rows[-1]
    rounds = steps(program)
    passes = forward_passes(program, lookup) // max(1, rounds)
    leaves: dict[str, Any] = {"batch.micro_batch": rows, "batch.sequence_length": length}
    given = program.arguments[lookup.tokens] if lookup.tokens is not None else ()
    if not rounds or program.types[lookup.table].startswith("int"):
        return leaves
    groups = 1
    if lookup.place.devices > 1:
        # Within a split program: all the rows that were given, of which each device has its part.
        groups = prod(given[:-1]) // (rows * passes * rounds) if given and given[-1] in (length, length + 1) else 0
    if groups:
        leaves |= {"batch.global_batch": rows * passes * groups, "batch.accumulation": passes}
    return leaves


def steps(program: StepProgram) -> int:
    """Steps in one call: as often as a loop trains the table; 0 where that is decided as it runs."""
    lookup = main_lookup(program)
    return program.rounds.get(lookup.table, 1) if lookup is not None else 1


def adapter_ranks(program: StepProgram) -> set[int]:
    """Ranks of low-rank adapters: of products of two weights, or of two trained beside one that is not."""
    forward = [item for item in program.products if item.place.part == "forward" and item.weight is not None]
    ranks = {
        item.inner
        for item in forward
        if item.merged and 2 * item.inner <= min(prod(side) // item.inner for side in item.sides)
    }
    trained = {item.size for item in program.products if item.place.part == "backward" and item.weight is None}
    learn: set[tuple[int, int]] = set()
    keep: set[tuple[int, int]] = set()
    for item in forward:
        (learn if item.inner * item.outer * item.experts in trained else keep).add((item.inner, item.outer))
    pairs = ((down, up) for down in learn for up in learn if down[1] == up[0] and (down[0], up[1]) in keep)
    return ranks | {down[1] for down, up in pairs if 2 * down[1] <= min(down[0], up[1])}


def tokens(program: StepProgram) -> int | None:
    """Tokens of a step over all devices; None where the program does not say."""
    lookup = main_lookup(program)
    leaves = batch(program, lookup) if lookup is not None else {}
    whole = leaves.get("batch.global_batch")
    return whole * leaves["batch.sequence_length"] if whole else None


def _compute_types(program: StepProgram) -> str:
    work: dict[str, float] = {}
    for item in program.products:
        if item.dtype:
            work[item.dtype] = work.get(item.dtype, 0.0) + float(item.size) * item.inner * item.place.times
    total = sum(work.values())
    return "+".join(name for name in sorted(work, key=lambda name: -work[name]) if work[name] >= MIN_SHARE * total)


def _recompute(program: StepProgram) -> str:
    if not program.policies:
        return "none"
    named = sorted(program.policies - {""})
    if named:
        return f"selective: {', '.join(named)}"
    scores = [item for item in program.products if item.weight is None and item.place.part in ("forward", "again")]
    forward = sum(item.place.times for item in scores if item.place.part == "forward")
    again = sum(item.place.times for item in scores if item.place.part == "again")
    return "full" if again >= forward else "selective"


def _architecture(program: StepProgram, lookup: Lookup) -> dict[str, Any]:
    """Depth, heads and widths of a decoder whose blocks are alike."""
    passes, (rows, length) = forward_passes(program, lookup), (prod(lookup.rows[:-1]), lookup.rows[-1])
    forward = [item for item in program.products if item.place.part == "forward"]
    scores = [item for item in forward if item.weight is None and item.out.count(length) > 1]
    widths = {item.inner for item in scores}
    leaves: dict[str, Any] = {}
    if any(item.weight == lookup.table and item.outer == lookup.vocabulary for item in forward):
        leaves["model.tied_embeddings"] = True
    elif any(item.outer == lookup.vocabulary and item.inner == lookup.hidden for item in forward):
        leaves["model.tied_embeddings"] = False
    attending = sum(item.place.times for item in scores) / passes
    joined = 0
    if len(widths) == 1:
        width = widths.pop()
        attending /= 2 if width == length else 1  # then the values' product has the scores' shape
        heads = scores[0].size // (rows * length * length)
        least = min(prod(side) for side in scores[0].sides)
        leaves |= {"model.heads": heads, "model.head_dim": width, "model.kv_heads": least // (rows * length * width)}
        joined = heads * width
    elif not scores:
        attending = program.fused / passes
    depth = attending if attending else max(program.layers, default=0)
    if not depth or depth != int(depth):
        return leaves
    leaves["model.depth"] = depth = int(depth)
    if scores:
        leaves["model.attention_kinds"] = f"{depth} full"  # each position's product with every other one is computed
    return leaves | _feed_forward(forward, lookup, joined, depth * passes, program.top_k, attending=bool(attending))


def _feed_forward(
    forward: list[Product], lookup: Lookup, joined: int, blocks: int, chosen: set[int], *, attending: bool
) -> dict[str, Any]:
    """The width and the kind of the feed-forward of every block, and with it the pattern of the blocks."""
    hidden, vocabulary = lookup.hidden, lookup.vocabulary
    downs: dict[tuple[int, int], int] = {}
    for item in forward:
        key = item.inner, item.experts
        # As wide as the model on both sides are the projections of attention.
        if item.weight is not None and item.outer == hidden and key != (hidden, 1):
            downs[key] = downs.get(key, 0) + item.place.times
    if (joined, 1) in downs:
        downs[joined, 1] -= blocks  # what attention gives back
    if attending and not any(times > 0 for times in downs.values()):
        weights = [item for item in forward if item.weight is not None and item.inner == hidden]
        square = sum(item.place.times for item in weights if item.outer == hidden)
        joint = any(item.outer not in (hidden, vocabulary) for item in weights)
        # What is square may be attention's: what it gives back, and queries, keys and values where each has its own.
        return {"model.pattern": "*", "model.alphabet": "nemo"} if square <= blocks * (1 if joint else 4) else {}
    every = [key for key, times in downs.items() if times == blocks]
    if len(every) != 1 or not attending:
        return {}
    inner, experts = every[0]
    ups = [item for item in forward if item.weight is not None and item.inner == hidden]
    # The last one gives the logits, which may be as wide as the feed-forward.
    ups = ups[:-1] if ups and ups[-1].outer == vocabulary else ups
    if chosen and experts == 1:
        # What chooses is narrower than all else; its experts are summed over with their widths.
        experts = min((item.outer for item in ups), default=1)
        if inner % experts:
            return {}
        inner //= experts
    # One matrix may hold all experts side by side.
    wide = [(item.outer * item.experts, item.place.times) for item in ups if item.experts in (1, experts)]
    plain, double = (sum(times for size, times in wide if size == by * inner * experts) for by in (1, 2))
    if (plain, double) not in ((blocks, double), (2 * blocks, double), (0, blocks)):
        return {}
    gated = plain != blocks
    leaves: dict[str, Any] = {"model.pattern": "[*-]", "model.alphabet": "nemo", "model.ffn": inner}
    if experts > 1:
        leaves |= {"model.pattern": "[*E]", "model.experts": experts, "model.expert_ffn": inner, "model.ffn": None}
        leaves["model.top_k"] = chosen.pop() if len(chosen) == 1 else None
    return leaves | {"model.ffn_projections": 3 if gated else 2}
