"""An attention over a small batch with numbers of any magnitude: what it is, its
inputs, and whether the results of a target are right."""

import dataclasses
import json

import error_bounds
import numpy
import varlen

GRADIENTS = ("dq", "dk", "dv", "dsink")


@dataclasses.dataclass(frozen=True)
class Sequence:
    q_slot: int  # rows of the packed tensors
    k_slot: int
    q_used: int  # rows of them in use
    k_used: int
    offset: int
    # What normal random numbers are multiplied by.
    q: float
    k: float
    v: float
    dout: float


@dataclasses.dataclass(frozen=True)
class Case:
    dtype: str
    kv_heads: int
    group: int
    head_dim: int
    v_head_dim: int
    window: tuple
    alignment: str
    scale: float | None
    sinks: tuple | None  # of as many query heads as there are, in turn
    seqused: bool
    q_offset: bool
    index: str
    gradients: bool
    sequences: tuple
    seed: int

    @property
    def heads(self):
        return self.kv_heads * self.group

    def to_json(self):
        return json.dumps(dataclasses.asdict(self), indent=1)

    @staticmethod
    def from_json(text):
        fields = json.loads(text)
        fields["sequences"] = tuple(Sequence(**s) for s in fields["sequences"])
        for name in ("window", "sinks"):
            fields[name] = fields[name] and tuple(fields[name])
        return Case(**fields)

    @property
    def text_options(self):
        return {
            "dtype": self.dtype, "heads": self.heads, "kv_heads": self.kv_heads,
            "head_dim": self.head_dim, "v_head_dim": self.v_head_dim,
            "window": self.window, "alignment": self.alignment, "scale": self.scale,
            "sink": self.sinks is not None, "seqused_q": self.seqused,
            "seqused_k": self.seqused, "q_offset": self.q_offset, "index": self.index,
        }  # fmt: skip

    def reference_options(self, inputs):
        options = {n: inputs.get(n) for n in ("seqused_q", "seqused_k", "q_offset", "sink")}
        return options | {
            "window": self.window, "alignment": self.alignment, "scale": self.scale,
        }  # fmt: skip


def _starts(lengths):
    return numpy.cumsum([0, *lengths])


def make_inputs(case):
    """Operands of the forward, and the cotangents; rows that are not in use hold
    NaN."""
    rng = numpy.random.default_rng(case.seed)
    compute = error_bounds.accumulation_type(case.dtype)
    integer = varlen.dtypes.by_name[case.index]

    def rows(side, factor, heads, columns):
        slots = [getattr(s, f"{side}_slot") for s in case.sequences]
        values = numpy.full((sum(slots), heads, columns), numpy.nan)
        for first, s in zip(_starts(slots), case.sequences):
            used = getattr(s, f"{side}_used")
            normal = rng.standard_normal((used, heads, columns))
            # A mean of values may be rounded up.
            limit = error_bounds.LARGEST[case.dtype] / 2
            drawn = numpy.clip(normal * getattr(s, factor), -limit, limit)
            values[first : first + used] = drawn
        return varlen.dtypes.narrow(values, case.dtype)

    tensors = {
        "q": rows("q", "q", case.heads, case.head_dim),
        "k": rows("k", "k", case.kv_heads, case.head_dim),
        "v": rows("k", "v", case.kv_heads, case.v_head_dim),
        "dout": rows("q", "dout", case.heads, case.v_head_dim),
        "cu_seqlens_q": _starts([s.q_slot for s in case.sequences]).astype(integer),
        "cu_seqlens_k": _starts([s.k_slot for s in case.sequences]).astype(integer),
    }
    tensors["dlse"] = rng.standard_normal((case.heads, len(tensors["q"]))).astype(compute)
    if case.seqused:
        tensors["seqused_q"] = numpy.array([s.q_used for s in case.sequences], integer)
        tensors["seqused_k"] = numpy.array([s.k_used for s in case.sequences], integer)
    if case.q_offset:
        tensors["q_offset"] = numpy.array([s.offset for s in case.sequences], integer)
    if case.sinks is not None:
        sinks = [case.sinks[h % len(case.sinks)] for h in range(case.heads)]
        tensors["sink"] = numpy.array(sinks, compute)
    return tensors


def judge(case, call):
    """What is wrong with the results of a target, as a list of lines.
    `call(text, inputs)` compiles a function, runs it and returns its results."""
    inputs = make_inputs(case)
    cotangents = {name: inputs.pop(name) for name in ("dout", "dlse")}
    results = call(varlen.text.attn(**case.text_options), inputs)
    if case.gradients:
        results |= call(
            varlen.text.attn_grad(dlse=True, **case.text_options),
            inputs | cotangents | {name: results[name] for name in ("out", "lse")},
        )
    results = {name: varlen.dtypes.widen(x) for name, x in results.items()}
    return _Judge(case, inputs, cotangents, results).problems()


class _Judge:
    """Compares results with the golden ones, sequence by sequence."""

    def __init__(self, case, inputs, cotangents, results):
        self.case, self.inputs, self.results = case, inputs, results
        arguments = [inputs[n] for n in ("q", "k", "v", "cu_seqlens_q", "cu_seqlens_k")]
        options = case.reference_options(inputs)
        reference = varlen.reference
        with numpy.errstate(all="ignore"):
            golden = dict(zip(("out", "lse"), reference.attention(*arguments, **options)))
            plain = dict(zip(("out", "lse"), reference.plain(*arguments, **options)))
            if case.gradients:
                options["dlse"] = cotangents["dlse"]
                arguments.insert(0, cotangents["dout"])
                wanted = reference.gradients(*arguments, **options)
                golden |= zip(GRADIENTS, wanted)
                wanted = reference.plain_gradients(*arguments, **options)
                plain |= zip(GRADIENTS, wanted)
        self.golden, self.plain = golden, plain
        compute = numpy.longdouble if case.dtype == "f64" else numpy.float64
        self.tensors = {
            name: varlen.dtypes.widen(x, compute)
            for name, x in (inputs | cotangents).items()
            if name in ("q", "k", "v", "sink", "dout", "dlse")
        }
        root = numpy.sqrt(compute(case.head_dim))
        self.scale = 1 / root if case.scale is None else compute(numpy.float32(case.scale))
        # Errors of dsink add up over the sequences.
        self.dsink = numpy.zeros(case.heads)
        self.found = []

    def compare(self, what, name, at, error):
        """The results at an index against the golden ones: they may be off by
        `error`, or by what the rule for plain attention allows."""
        got, wanted = self.results[name][at], self.golden[name][at]
        rule = 0.0
        if name != "lse":
            rule = varlen.tolerance.bound(
                wanted, self.plain[name][at], self.case.dtype, name in GRADIENTS
            )
        allowed = error if not numpy.isfinite(rule) else numpy.maximum(error, rule)
        with numpy.errstate(invalid="ignore"):
            right = (abs(got - wanted) <= allowed) | (got == wanted)
        # Beyond the range of its type nothing is asked of a gradient.
        if name in GRADIENTS:
            dtype = "f32" if name == "dsink" else self.case.dtype
            right |= ~(abs(wanted) + error < error_bounds.LARGEST[dtype])
        if not right.all():
            first = tuple(int(i) for i in numpy.argwhere(~right)[0])
            allowed = numpy.broadcast_to(allowed, got.shape)[first]
            self.found.append(
                f"{what}: {name}{list(first)} and {int((~right).sum()) - 1} others: got "
                f"{got[first]}, wanted {wanted[first]} within {allowed:.3g}"
            )

    def zero(self, what, name, rows):
        """Rows that get nothing, exactly."""
        wrong = int((self.results[name][rows] != 0).sum())
        if wrong:
            self.found.append(f"{what}: {name} is not 0 in {wrong} places without a key")

    def sequence(self, number, q0, lq, k0, lk, offset):
        case, tensors = self.case, self.tensors
        rows, keys = slice(q0, q0 + lq), slice(k0, k0 + lk)
        seen = varlen.reference.visible(lq, lk, case.window, case.alignment, offset)
        name = f"sequence {number}"
        bounds = []
        for h in range(case.heads):
            sink = -numpy.inf if case.sinks is None else tensors["sink"][h]
            q, k, v = (
                tensors[x][s, i]
                for x, s, i in (
                    ("q", rows, h), ("k", keys, h // case.group), ("v", keys, h // case.group)
                )
            )  # fmt: skip
            bound = error_bounds.forward(q, k, v, seen, sink, self.scale, case.dtype)
            bounds.append(bound)
            if not bound.in_range:
                continue
            self.compare(f"{name}, head {h}", "out", (rows, h), bound.out)
            self.compare(f"{name}, head {h}", "lse", (h, rows), bound.lse)
        self.zero(name, "out", numpy.arange(q0, q0 + lq)[~seen.any(axis=1)])
        if not case.gradients:
            return
        for kv in range(case.kv_heads):
            heads = range(kv * case.group, (kv + 1) * case.group)
            if not all(bounds[h].in_range for h in heads):
                self.dsink[heads] = numpy.inf
                continue
            dk, dv = 0, 0
            for h in heads:
                bound = error_bounds.gradients(
                    bounds[h], tensors["dout"][rows, h], tensors["dlse"][h, rows],
                    self.golden["out"][rows, h], tensors["q"][rows, h],
                    tensors["k"][keys, kv], tensors["v"][keys, kv], seen, self.scale,
                    case.dtype,
                )  # fmt: skip
                self.compare(f"{name}, head {h}", "dq", (rows, h), bound.dq)
                dk, dv = dk + bound.dk, dv + bound.dv
                self.dsink[h] += bound.dsink
            self.compare(f"{name}, kv head {kv}", "dk", (keys, kv), dk)
            self.compare(f"{name}, kv head {kv}", "dv", (keys, kv), dv)
        self.zero(name, "dq", numpy.arange(q0, q0 + lq)[~seen.any(axis=1)])
        for x in ("dk", "dv"):
            self.zero(name, x, numpy.arange(k0, k0 + lk)[~seen.any(axis=0)])

    def problems(self):
        inputs = self.inputs
        ranges = varlen.reference.sequences(
            inputs["cu_seqlens_q"], inputs["cu_seqlens_k"],
            *(inputs.get(n) for n in ("seqused_q", "seqused_k", "q_offset")),
        )  # fmt: skip
        used = {"q": [], "k": []}
        for number, (q0, lq, k0, lk, offset) in enumerate(ranges):
            used["q"] += range(q0, q0 + lq)
            used["k"] += range(k0, k0 + lk)
            self.sequence(number, q0, lq, k0, lk, offset)
        for name, side in (("out", "q"), ("dq", "q"), ("dk", "k"), ("dv", "k")):
            if name in self.results:
                unused = numpy.ones(len(self.results[name]), bool)
                unused[used[side]] = False
                self.zero("rows that are not in use", name, unused)
        if "dsink" in self.results:
            error = numpy.where(numpy.isneginf(inputs["sink"]), 0, self.dsink)
            self.compare("all", "dsink", slice(None), error)
        return self.found
