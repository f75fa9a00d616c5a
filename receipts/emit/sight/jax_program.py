"""What a step of JAX computes, equation by equation of its jaxpr.

What follows from arguments alone is a weight; a product of two activations is attention's. Parts of the step are told
by the names that `jax.grad` and `jax.checkpoint` put on the name stack. What depends on the backward pass comes after
the gradients, and so a loss is told from their norm.
Sources: `jax/_src/interpreters/ad.py` (jvp, transpose), `jax/_src/ad_checkpoint.py`; jaxprs of JAX 0.4.30 to 0.10.
"""

from __future__ import annotations

from math import prod

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NamedTuple

    class Place(NamedTuple):
        """Where an equation stands: its part of the step, how often it runs, and on how many devices."""

        part: str
        times: int
        devices: int
else:
    from collections import namedtuple

    Place = namedtuple("Place", "part times devices")

MAX_EQUATIONS = 500_000
TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64", "int8": "int8"}
_WIDTHS = ("fp64", "fp32", "bf16", "fp16", "fp8", "int8")
# What a number follows from: arguments by real numbers alone, the forward pass, the backward pass, a number that was
# given, as a running total does; or it is a root.
SMOOTH, FORWARD, LATE, ROOT, GIVEN = 1, 2, 4, 8, 16
_KEEPS_ROOT = ("convert_element_type", "squeeze", "reshape", "broadcast_in_dim", "psum", "pmax", "copy")
# What leaves gradients the gradients, as their sum over devices.
_SUMS = ("psum", "psum2", "psum_invariant", "pvary", "pbroadcast")
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
    such matrices the weight holds, ``out`` the result without the extents that both sides share. ``merged`` is
    the argument that the other side follows from, too; None without one.
    """

    def __init__(self, equation: Any, place: Place, weight: int | None, side: int, merged: int | None) -> None:
        self.place = place
        self.weight, self.merged = (None if origin is None else _argument(origin) for origin in (weight, merged))
        self.sides = [_shape(variable) for variable in equation.invars[:2]]
        self.size = prod(_shape(equation.outvars[0]))
        kinds = (_dtype(variable) for variable in equation.invars[:2])
        names = (TYPES.get(kind, "fp8" if kind.startswith("float8") else "") for kind in kinds)
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


class Scope:
    """Variables of one program by their id: the argument that each is made of, and what its numbers follow from."""

    def __init__(self, origins: dict[int, int]) -> None:
        self.origins = origins
        self.follows: dict[int, int] = {}

    def take(self, variable: Any, scope: Scope, outer: Any) -> None:
        """A variable that is another one of another scope."""
        if (origin := scope.origins.get(id(outer))) is not None:
            self.origins[id(variable)] = origin
        self.follows[id(variable)] = scope.follows.get(id(outer), 0)

    def step(self, equation: Any, origin: int | None, part: str) -> None:
        """An equation without a program of its own."""
        follows = {"forward": FORWARD, "backward": LATE}.get(part, 0)
        for variable in equation.invars:
            follows |= self.follows.get(id(variable), 0)
        name = equation.primitive.name
        if name not in _KEEPS_ROOT:
            follows = (follows & ~ROOT) | ROOT * (name == "sqrt")
        for variable in equation.outvars:
            if origin is not None:
                self.origins[id(variable)] = origin
            self.follows[id(variable)] = follows if "float" in _dtype(variable) else follows & ~SMOOTH


class StepProgram:
    """One step as its jaxpr has it. ``arguments`` are the flat arguments' shapes; raises nothing for odd programs."""

    def __init__(self, closed: Any) -> None:
        jaxpr = closed.jaxpr
        self.arguments = [_shape(variable) for variable in jaxpr.invars]
        self.types = [_dtype(variable) for variable in jaxpr.invars]
        self.lookups: list[Lookup] = []
        self.products: list[Product] = []
        # Arguments of the forward pass, by how often it takes them on all devices.
        self.used: dict[int, int] = {}
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
        # Whether some calls train and others do less, as a number decides.
        self.skips = False
        self._left = MAX_EQUATIONS
        self._path: tuple[Any, ...] = ()
        self._gradients: list[tuple[tuple[Any, ...], list[Any], dict[int, tuple[int, ...]]]] = []
        scope = Scope({id(variable): at for at, variable in enumerate(jaxpr.invars)})
        scope.follows = {
            id(variable): SMOOTH | GIVEN * (not _shape(variable))
            for variable in jaxpr.invars
            if "float" in _dtype(variable)
        }
        self._visit(jaxpr, scope, Place("", 1, 1))
        # What each result follows from.
        self.results = [scope.follows.get(id(variable), 0) for variable in jaxpr.outvars]
        self.given_back = {(_shape(variable), _dtype(variable)) for variable in jaxpr.outvars}
        gradients, self.gives_gradients = _gradients(jaxpr, scope)
        # Where the gradients may be: the equations that lead there, the variables, and the arguments as they are there.
        self._gradients = [((), gradients, dict(enumerate(self.arguments))), *self._gradients]
        self.learns_numbers = any(not _shape(item) for _, every, _ in self._gradients for item in every)

    def _visit(self, jaxpr: Any, scope: Scope, outer: Place) -> None:
        for equation in jaxpr.eqns:
            self._left -= 1
            if self._left < 0:
                return
            place = outer._replace(part=_part(str(equation.source_info.name_stack), outer.part))
            name, sides = equation.primitive.name, [scope.origins.get(id(variable)) for variable in equation.invars]
            if place.part == "forward":
                times = place.times * place.devices
                positions = (_argument(side) for side in sides if side is not None)
                self.used |= {at: max(times, self.used.get(at, 0)) for at in positions}
            if name in ("remat2", "remat", "checkpoint") and equation.params.get("differentiated"):
                policy = equation.params.get("policy")
                # Since JAX 0.8 some policies are objects without a name of their own.
                known = getattr(imported.part("jax", "checkpoint_policies"), "__dict__", {})
                own = next((name for name, item in known.items() if item == policy), "own")
                self.policies.add("" if policy is None else getattr(policy, "__name__", "") or own)
            elif name == "top_k":
                self.top_k.add(int(equation.params.get("k", 0)))
            if name == "gather":
                table, out = _shape(equation.invars[0]), _shape(equation.outvars[0])
                whole_rows = len(table) == 2 and tuple(equation.params.get("slice_sizes", ()))[-1:] == table[-1:]
                if sides[0] is not None and whole_rows and len(out) > 1 and out[-1] == table[-1]:
                    lookup = Lookup(equation, place, sides[0], sides[1])
                    lookup.fit(self.arguments[lookup.tokens] if lookup.tokens is not None else ())
                    self.lookups.append(lookup)
            elif name == "dot_general" or name.startswith("ragged_dot"):
                weights = [at for at in (1, 0) if sides[at] is not None and "int" not in _dtype(equation.invars[at])]
                at = weights[0] if weights else 1
                merged = sides[0] if len(weights) > 1 else None
                self.products.append(Product(equation, place, sides[at] if weights else None, at, merged))
            elif name in ("squeeze", "reshape") and sides[0] is not None and _shape(equation.invars[0])[:1] == (1,):
                self._copied(sides[0], equation.outvars[0], place.devices)
            elif any(word in f"{name} {equation.params.get('name', '')}" for word in _FUSED):
                self.fused += place.times * (place.part == "forward")
            if name == "pallas_call" or not self._inner(equation, scope, sides, place):
                scope.step(equation, _origin(equation, sides), place.part)

    def _inner(self, equation: Any, scope: Scope, sides: list[Any], place: Place) -> bool:
        """Visit the programs within an equation, and take what its results follow from; False where it has none."""
        name = equation.primitive.name
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
            given, programs = given[1:], sorted(programs, key=_work)
            uneven, programs = _work(programs[0]) < _work(programs[-1]), programs[-1:]
            self.skips |= uneven and any(
                "transpose(" in str(item.source_info.name_stack) for item in _every(programs[0])
            )
        for program in programs:
            inside = Scope({})
            for variable, outer in zip(reversed(program.invars), reversed(given), strict=False):
                inside.take(variable, scope, outer)
                if (origin := inside.origins.get(id(variable))) is not None:
                    self._copied(origin, variable, devices)
            for variable, out in zip(program.invars[first:stacked], program.outvars, strict=False):
                if out is not variable and (origin := inside.origins.get(id(variable))) is not None:
                    inside.origins[id(variable)] = min(origin, ~origin)
                    self.rounds.setdefault(_argument(origin), place.times * length * (name == "scan"))
            path, self._path = self._path, (*self._path, equation)
            self._visit(program, inside, place._replace(times=place.times * length, devices=devices))
            if not place.part and name != "cond" and (gradients := _gradients(program, inside)[0]):
                origins = ((inside.origins.get(id(variable)), _shape(variable)) for variable in program.invars)
                known = {_argument(origin): shape for origin, shape in origins if origin is not None}
                self._gradients.append((self._path, gradients, known))
            self._path = path
            for variable, out in zip(equation.outvars, program.outvars, strict=False):
                scope.take(variable, inside, out)
                if name in ("scan", "while"):
                    scope.origins.pop(id(variable), None)
        return bool(programs)

    def _copied(self, origin: int, variable: Any, devices: int) -> None:
        """Note an argument whose first extent is the devices, each of which takes its own copy."""
        whole = self.arguments[_argument(origin)]
        if devices > 1 and whole[:1] == (devices,) and _shape(variable) == whole[1:]:
            self.copies.add(_argument(origin))

    def norm(self, closed: Any, parameters: Sequence[int], *, loops: bool) -> Callable[..., Any] | None:
        """What computes the norm of the first step's gradients from the program's arguments; None where it cannot.

        They are the variables with the parameters' shapes, within a loop where one call makes many steps alone.
        """
        for path, gradients, known in sorted(self._gradients, key=lambda item: len(item[0])):
            names = [equation.primitive.name for equation in path]
            if loops != any(name in ("scan", "while") for name in names) or names.count("shard_map") > 1:
                continue
            if {*parameters} - {*known}:
                continue
            specs: dict[tuple[int, ...], set[Any]] = {}
            shapes = []
            for at in parameters:
                one = at in self.copies and known[at][:1] == (1,)
                shapes.append(known[at][one:])
                specs.setdefault(shapes[-1], set()).add(() if at in self.copies else tuple(self.split.get(at) or ()))
            alike = sorted(shapes) == sorted(_shape(item) for item in gradients)
            if alike and ("shard_map" not in names or all(len(every) == 1 for every in specs.values())):
                split = [next(iter(specs[_shape(item)])) for item in gradients]
                part = closed.jaxpr, closed.consts
                return lambda *given: norm(_evaluated(*part, path, gradients, split, given))
        return None

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


def _every(program: Any) -> Iterator[Any]:
    """All equations of a program and of those within it."""
    for equation in program.eqns:
        yield equation
        for inner in _programs(equation):
            yield from _every(inner)


def _work(program: Any) -> int:
    """Elements that the products of matrices in a program give, and thereby which of two computes more."""
    return sum(prod(_shape(item.outvars[0])) for item in _every(program) if item.primitive.name == "dot_general")


def _part(names: str, outer: str) -> str:
    if "rematted_computation" in names:
        return "again"
    if "transpose(" in names:
        return "backward"
    return "forward" if "jvp(" in names and outer in ("", "forward") else outer


def _origin(equation: Any, sides: list[int | None]) -> int | None:
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


def _gradients(jaxpr: Any, scope: Scope) -> tuple[list[Any], bool]:
    """Variables of the whole program that hold the gradients: what the backward pass gives and others take; and whether
    the program gives such back.

    Of several passes their sum; where all that is done with it is a division by their number, what that gives.
    """
    takers: dict[int, list[Any]] = {}
    given: dict[int, Any] = {}
    rounds: dict[int, int] = {}
    literals: dict[int, Any] = {}  # within `shard_map` they are told apart from what differs between devices
    late = {name for name, follows in scope.follows.items() if follows & LATE}
    for equation in jaxpr.eqns:
        part = _part(str(equation.source_info.name_stack), "")
        begins = any(True for _ in _programs(equation)) and not late & {id(item) for item in equation.invars}
        name = equation.primitive.name
        added = name in ("add", "add_any") and all(id(item) in given for item in equation.invars)
        if name in _SUMS:
            pairs = list(zip(equation.invars, equation.outvars, strict=True))
            given |= {id(out): out for item, out in pairs if id(item) in given}
            literals |= {id(out): item.val for item, out in pairs if hasattr(item, "val")}
            rounds |= {id(out): 1 for _, out in pairs}
            continue
        if part == "backward" or (part != "again" and begins) or added:
            given |= {id(item): item for item in equation.outvars if id(item) in late and "float" in _dtype(item)}
            rounds |= dict.fromkeys(map(id, equation.outvars), int(equation.params.get("length", 1)))
            if not added:
                continue
        for item in equation.invars:
            if id(item) in given and not added:
                takers.setdefault(id(item), []).append(equation)
    gradients = []
    for name, equations in takers.items():
        (first, *others), item = equations, given[name]
        last = first.invars[-1]
        by = getattr(last, "val", literals.get(id(last), getattr(first.invars[0], "val", None)))
        divided = first.primitive.name == "div" or (first.primitive.name == "mul" and by and by * rounds[name] == 1)
        # A loss that was scaled by a number that is given has gradients that are divided by it.
        unscaled = first.primitive.name == "div" and scope.follows.get(id(last), 0) & (GIVEN | FORWARD | LATE) == GIVEN
        divided = unscaled or (by is not None and divided)
        gradients.append(first.outvars[0] if not others and divided else item)
    return gradients, any(_shape(item) and id(item) in given for item in jaxpr.outvars)


def _evaluated(
    jaxpr: Any, consts: Any, path: tuple[Any, ...], gradients: list[Any], split: list[Any], given: Sequence[Any]
) -> list[Any]:
    """The gradients, where these equations lead to them: of a loop those of its first round."""
    evaluate = imported.part("jax.core", "eval_jaxpr") or imported.part("jax._src.core", "eval_jaxpr")
    if not path:
        return list(evaluate(jaxpr.replace(outvars=gradients), consts, *given))
    (equation, *rest), jax = path, imported.module("jax")
    params, name = equation.params, equation.primitive.name
    computed = iter(
        evaluate(jaxpr.replace(outvars=[item for item in equation.invars if not hasattr(item, "val")]), consts, *given)
    )
    taken = [item.val if hasattr(item, "val") else next(computed) for item in equation.invars]
    if name == "while":
        taken = taken[params["cond_nconsts"] :]
    elif name == "scan":
        first = params["num_consts"] + params["num_carry"]
        taken[first:] = [item[-1 if params["reverse"] else 0] for item in taken[first:]]
    inner = params["body_jaxpr" if name == "while" else "jaxpr"]
    body = getattr(inner, "jaxpr", inner), getattr(inner, "consts", ())
    if name != "shard_map":
        return _evaluated(*body, tuple(rest), gradients, split, taken)
    manual = {*params["newly_manual_axes"]}

    def local(*given: Any) -> list[Any]:
        every = _evaluated(*body, tuple(rest), gradients, split, given)
        # What no device has a part of is the same on all of them, or its mean is what they will take.
        over = (tuple(sorted(manual - axes(spec))) for spec in split)
        return [jax.lax.pmean(item, names) if names else item for item, names in zip(every, over, strict=True)]

    specs = [imported.module("jax.sharding").PartitionSpec(*spec) for spec in split]
    keys = {key: params[key] for key in ("mesh", "in_specs", "check_vma")}
    return list(jax.shard_map(local, out_specs=specs, axis_names=manual, **keys)(*taken))


def norm(gradients: list[Any]) -> Any:
    """The norm over all of these arrays."""
    np = imported.module("jax.numpy")
    return np.sqrt(sum(np.sum(np.square(np.abs(item.astype(np.float32)))) for item in gradients))
