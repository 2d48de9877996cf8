"""Small functions around attention: what comes before it and behind it, loops and branches
around it, and calls; with inputs for them."""

import numpy as np
from varlen import dtypes, scores, text

UNARY = {
    "f32": ("math.tanh", "math.absf", "arith.negf"), "bf16": ("math.absf", "arith.negf"),
}  # fmt: skip
BINARY = ("arith.addf", "arith.mulf", "arith.maximumf")


class Function:
    """The text of a module whose public function is @main, and `inputs` by name."""

    def __init__(self, rng):
        self.rng, self.lines, self.count = rng, [], 0
        self.element = rng.choice(("f32", "f32", "f32", "bf16"))
        kv_heads = rng.choice((1, 2))
        self.heads, self.dim = kv_heads * rng.choice((1, 2)), rng.choice((8, 16, 24))
        self.score = rng.choice((None, None, scores.alibi(), scores.softcap(3.0), scores.causal()))
        self.options = {
            "dtype": self.element, "heads": self.heads, "kv_heads": kv_heads, "head_dim": self.dim,
            "window": rng.choice(((-1, -1), (-1, 0), (3, 0), (2, 2), 5)),
            "alignment": rng.choice(("bottom_right", "top_left")), "score": self.score,
            "scale": rng.choice((None, 0.25)), "sink": rng.random() < 0.2,
            "seqused_k": rng.random() < 0.2, "q_offset": rng.random() < 0.2,
        }  # fmt: skip
        self.inputs = self.draw_inputs(kv_heads)
        self.text = self.write()

    def draw_inputs(self, kv_heads):
        rng, numbers = self.rng, np.random.default_rng(self.rng.getrandbits(64))
        count = rng.randrange(4)
        queries, keys = ([rng.choice((0, 1, 3, 9)) for _ in range(count)] for _ in range(2))
        self.static_rows = rng.random() < 0.3

        def normal(*shape):
            return dtypes.narrow(numbers.standard_normal(shape), self.element)

        def integers(*values):
            return np.array(values, "i4")

        rows, kv_rows = sum(queries) + rng.randrange(2), sum(keys) + rng.randrange(2)
        inputs = {
            "q": normal(rows, self.heads, self.dim), "k": normal(kv_rows, kv_heads, self.dim),
            "v": normal(kv_rows, kv_heads, self.dim),
            "cu_seqlens_q": integers(*np.cumsum([0, *queries])),
            "cu_seqlens_k": integers(*np.cumsum([0, *keys])),
        }  # fmt: skip
        if self.options["seqused_k"]:
            inputs["seqused_k"] = integers(*(rng.randint(0, n) for n in keys))
        if self.options["q_offset"]:
            inputs["q_offset"] = integers(*(rng.randint(-3, 3) for _ in keys))
        if self.options["sink"]:
            inputs["sink"] = numbers.standard_normal(self.heads).astype("f4")
        for name in self.score.captures if self.score else ():
            inputs[name] = numbers.uniform(0.1, 0.5, self.heads).astype("f4")
        return inputs

    # -- Text ---------------------------------------------------------------------

    def emit(self, text):
        self.count += 1
        self.lines.append(f"%x{self.count} = {text}")
        return f"%x{self.count}"

    def map(self, operation, *values):
        """An elementwise operation on tensors of q's type."""
        rows = self.emit(f"tensor.dim {values[0]}, %c0 : {self.type}")
        dynamic = rows if "?" in self.type else ""
        empty = self.emit(f"tensor.empty({dynamic}) : {self.type}")
        types = ", ".join([self.type] * len(values))
        operands = f"ins({', '.join(values)} : {types}) outs({empty} : {self.type})"
        return self.emit(f"linalg.map {{ {operation} }} {operands}")

    def attend(self, q):
        values = ", ".join([q, *(f"%{name}" for name in list(self.inputs)[1:])])
        self.count += 1
        self.lines.append(
            f"%x{self.count}:2 = func.call @attend({values}) : ({', '.join(self.types)}) -> "
            f"({', '.join(self.results)})"
        )
        return f"%x{self.count}#0", f"%x{self.count}#1"

    def branch(self, q):
        """Attention where there are rows, else what it would be of none: the queries."""
        rows = self.emit(f"tensor.dim {q}, %c0 : {self.type}")
        some = self.emit(f"arith.cmpi sgt, {rows}, %c0 : index")
        before, self.lines = self.lines, []
        out, _ = self.attend(q)
        inner, self.lines = self.lines, before
        return self.emit(
            f"scf.if {some} -> ({self.type}) {{\n" + "\n".join(inner)
            + f"\nscf.yield {out} : {self.type}\n}} else {{\nscf.yield {q} : {self.type}\n}}"
        )

    def loop(self, q):
        """Attention of its own result, twice."""
        before, self.lines = self.lines, []
        out, _ = self.attend("%carried")
        inner, self.lines = self.lines, before
        return self.emit(
            f"scf.for %i = %c0 to %c2 step %c1 iter_args(%carried = {q}) -> ({self.type}) {{\n"
            + "\n".join(inner) + f"\nscf.yield {out} : {self.type}\n}}"
        )

    def write(self):
        rng, options = self.rng, dict(self.options)
        if self.static_rows:
            options |= {"tq": len(self.inputs["q"]), "tk": len(self.inputs["k"])}
        callee = text.attn(**options, name="attend")
        parameters = callee[callee.index("(") + 1 : callee.index(")\n    ->")]
        self.types = [line.split(": ")[1].split(" {")[0] for line in parameters.split(",\n")]
        result = callee[callee.index(")\n    -> (") + len(")\n    -> (") : callee.index(") {\n")]
        self.results = [part.split(" {")[0] for part in result.split(", ")]
        self.type = self.types[0]
        q, returned = "%q", [None, None]
        if rng.random() < 0.4:
            q = self.map(rng.choice(UNARY[self.element]), q)
        kind = rng.choice(("plain", "plain", "branch", "loop"))
        if kind == "plain":
            out, returned[1] = self.attend(q)
        else:
            out = getattr(self, kind)(q)
        if rng.random() < 0.4:
            out = self.map(rng.choice(BINARY), out, "%q")
        if rng.random() < 0.3:
            out = self.map(rng.choice(UNARY[self.element]), out)
        if rng.random() < 0.2:
            out, returned[1] = self.attend(out)
        returned[0] = out
        pairs = [pair for pair in zip(returned, self.results) if pair[0]]
        named = ", ".join(
            f'{type} {{varlen.name = "{name}"}}' for name, (_, type) in zip(("out", "lse"), pairs)
        )
        constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(3))
        body = "\n".join(self.lines)
        values, types = (", ".join(part) for part in zip(*pairs))
        return (
            f"func.func @main({parameters}) -> ({named}) {{\n{constants}\n{body}\n"
            f"return {values} : {types}\n}}\n{callee.replace('func.func @', 'func.func private @')}"
        )
