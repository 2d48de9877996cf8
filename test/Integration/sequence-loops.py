# RUN: %python %s
"""Loops over sequences that no pass emits: some of the gradients, other orders, sums that
are written twice. Each result has the bits that the gradient of the operation has."""

import numpy as np

import varlen

rng = np.random.default_rng(0)
# The last sequence is cut between threads.
CU = np.array([0, 0, 70, 71, 110, 900], "i4")
ROWS = 910
OUTPUTS = {"dq": 4, "dk": 2, "dv": 2, "again": 2, "dgains": None, "dbias": None}
INPUTS = {"dout": 4, "q": 4, "k": 2, "v": 2, "out": 4, "lse": None, "gains": None, "bias": None}
ARGUMENTS = {
    name: f"memref<?x{heads}x16xf32>" if heads else "memref<4x?xf32>"
    for name, heads in (INPUTS | OUTPUTS).items()
} | {"cu": "memref<?xi32>"}
CPU = """varlen.schedule = #varlen.cpu_schedule<lanes = 8, vectors = 2, rows = 4, panels = 1,
                                              kv_block = 32, kv = copy>"""
Q, K, NUMBERS = "tensor<?x16xf32>", "tensor<32x16xf32>", "tensor<1x?xf32>"
TILE, BLOCK = "!varlen.tile<sequences>", "!varlen.tile<keys(32)>"
# Tile loops are on buffers already.
PIPELINE = "varlen-attn-to-loops,varlen-lower-to-llvm"


def function(name, body):
    arguments = ", ".join(f'%{x}: {type} {{varlen.name = "{x}"}}' for x, type in ARGUMENTS.items())
    return f"func.func @{name}({arguments}) {{\n{body}\n  return\n}}\n"


def gradient():
    operands = ["dout", "q", "k", "v", "out", "lse", "cu", "cu"]
    outs, captures = ["dq", "dk", "dv", "dgains", "dbias"], ["gains", "bias"]
    listed = [", ".join(f"%{x}" for x in names) for names in (operands, outs, captures)]
    types = ", ".join(ARGUMENTS[x] for x in operands + outs + captures)
    return function("operation", f"""
  varlen.attn_grad {listed[0]} outs({listed[1]}) captures({listed[2]})
      {{mask = #varlen.mask<causal>, wrt_captures = array<i64: 0, 1>, {CPU}}} : ({types}) -> ()
      score (%s: f32, %i: i32, %j: i32, %gain: f32, %table: !varlen.table<f32, keys>) {{
        %y = arith.mulf %s, %gain : f32
        %b = varlen.lookup %table[%j] : !varlen.table<f32, keys>
        %new = arith.addf %y, %b : f32
        varlen.yield %new : f32
      }}""")  # fmt: skip


def write(value, to, at, type, times=""):
    tile = {"%t": TILE, "%b": BLOCK}[at]
    types = f"{type} -> {ARGUMENTS[to]}, {tile}"
    return f"varlen.write {value} to %{to} at {at} otherwise (0.0) {times} : {types}"


def loop(name, sums, wrt=(), at_block=(), at_tile=()):
    """A loop whose step adds to `sums`, in the order in which they are carried; the writes
    of its results, %new_dq, ..., %new_dgains."""
    types = {"dq": Q, "dk": K, "dv": K, "dgains": NUMBERS}
    results = [x for x in types if x in sums]
    carried = [x for x in sums if x in ("dq", "dgains")]
    clauses = {x: "dcaptures" if x == "dgains" else x for x in types}
    start = {x: "sum" if x in carried else "zero" for x in types}
    given = " ".join(f"{clauses[x]}(%{start[x]}_{x} : {types[x]})" for x in results)
    dtables = f"dtables(%dbias : {ARGUMENTS['dbias']})" if 1 in wrt else ""
    clear = f"varlen.clear %dbias at %b : {ARGUMENTS['dbias']}, {BLOCK}" if 1 in wrt else ""
    numbers = f"{{wrt_captures = array<i64: {', '.join(map(str, wrt))}>}}" if wrt else ""
    iter_args = ", ".join(f"%sum_{x} = %zero_{x}" for x in carried)
    carried_types = ", ".join(types[x] for x in carried)
    bound = f"%all:{len(carried)} = " if carried else ""
    passed = f"iter_args({iter_args}) -> ({carried_types})" if carried else ""
    yielded = f"{', '.join(f'%new_{x}' for x in carried)} : {carried_types}" if carried else ""
    newline = "\n      "
    return function(name, f"""
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %n = memref.dim %q, %c0 : {ARGUMENTS["q"]}
  %m = memref.dim %k, %c0 : {ARGUMENTS["k"]}
  %batch = varlen.batch %cu, %cu rows(%n, %m) heads(%c2, %c2) mask <causal> : memref<?xi32>, memref<?xi32>
  %rows = varlen.rows in %batch : <2 x f32>
  %captured = varlen.rows in %batch : <1 x f32>
  varlen.for_tiles "delta" %t of queries(1024) in %batch attributes {{{CPU}}} {{
    %0 = varlen.read %dout at %t : {ARGUMENTS["dout"]}, <queries(1024)> -> tensor<1024x16xf32>
    %1 = varlen.read %out at %t : {ARGUMENTS["out"]}, <queries(1024)> -> tensor<1024x16xf32>
    %2 = varlen.read %lse at %t : {ARGUMENTS["lse"]}, <queries(1024)> -> tensor<1024x1xf32>
    %gain = varlen.read %gains at %t : {ARGUMENTS["gains"]}, <queries(1024)> -> tensor<1024x1xf32>
    %3 = varlen.row_dot %0, %1 : tensor<1024x16xf32> -> tensor<1024x1xf32>
    %l, %d = varlen.online_statistics %3, %2 natural : tensor<1024x1xf32>
    varlen.write %l, %d to %rows at %t otherwise (inf, 0.0) : tensor<1024x1xf32>, tensor<1024x1xf32> -> !varlen.rows<2 x f32>, <queries(1024)>
    varlen.write %gain to %captured at %t otherwise (0.0) : tensor<1024x1xf32> -> !varlen.rows<1 x f32>, <queries(1024)>
  }}
  varlen.for_tiles "gradients" %t of sequences in %batch attributes {{{CPU}}} {{
    %size = varlen.size of %t multiple 16 : {TILE}
    %empty_dgains = tensor.empty(%size) : {NUMBERS}
    %zero_dgains = linalg.fill ins(%zero : f32) outs(%empty_dgains : {NUMBERS}) -> {NUMBERS}
    %empty_dq = tensor.empty(%size) : {Q}
    %zero_dq = linalg.fill ins(%zero : f32) outs(%empty_dq : {Q}) -> {Q}
    %gain = varlen.read %captured at %t : !varlen.rows<1 x f32>, {TILE} -> {NUMBERS}
    %do = varlen.read %dout at %t : {ARGUMENTS["dout"]}, {TILE} -> {Q}
    %l, %d = varlen.read %rows at %t : !varlen.rows<2 x f32>, {TILE} -> {NUMBERS}, {NUMBERS}
    %qs = varlen.read %q at %t : {ARGUMENTS["q"]}, {TILE} -> {Q}
    {bound} varlen.for_blocks %b of keys(32) of %t : {TILE} {passed} {{
      {clear}
      %empty = tensor.empty() : {K}
      %zero_dk = linalg.fill ins(%zero : f32) outs(%empty : {K}) -> {K}
      %zero_dv = linalg.fill ins(%zero : f32) outs(%empty : {K}) -> {K}
      {clear}
      %vs = varlen.read %v at %b : {ARGUMENTS["v"]}, {BLOCK} -> {K}
      %ks = varlen.read %k at %b : {ARGUMENTS["k"]}, {BLOCK} -> {K}
      {", ".join(f"%new_{x}" for x in results)} = varlen.online_attn_grad kq natural at(%t, %b : {TILE}, {BLOCK})
          ins(%qs, %ks, %vs, %do, %l, %d : {Q}, {K}, {K}, {Q}, {NUMBERS}, {NUMBERS})
          captures(%gain : {NUMBERS}) tables(%bias : {ARGUMENTS["bias"]}) {dtables} {given} scale 1.0 {numbers}
          score (%s: f32, %i: i32, %j: i32, %g: f32, %table: !varlen.table<f32, keys>) {{
            %scale = arith.constant 0.25 : f32
            %x = arith.mulf %s, %scale : f32
            %y = arith.mulf %x, %g : f32
            %bias_of = varlen.lookup %table[%j] : !varlen.table<f32, keys>
            %new = arith.addf %y, %bias_of : f32
            varlen.yield %new : f32
          }}
      {newline.join(at_block)}
      varlen.yield {yielded}
    }}
    {newline.join(at_tile)}
  }}
  varlen.free_rows %rows : <2 x f32>
  varlen.free_rows %captured : <1 x f32>""")  # fmt: skip


DK, DV = write("%new_dk", "dk", "%b", K), write("%new_dv", "dv", "%b", K)
AGAIN = write("%new_dv", "again", "%b", K, "times 2.0")
LOOPS = {
    "keys": loop("keys", ["dk", "dv"], (), [DK, DV]),
    "values": loop("values", ["dv"], (), [DV]),
    "table": loop("table", ["dk"], [1], [DK]),
    "queries": loop("queries", ["dq"], (), (), [write("%all", "dq", "%t", Q, "times 1.0")]),
    "numbers": loop("numbers", ["dgains"], [0], (), [write("%all", "dgains", "%t", NUMBERS)]),
    "order": loop(
        "order", ["dgains", "dv", "dk", "dq"], [0, 1], [DV, DK, AGAIN],
        [write("%all#0", "dgains", "%t", NUMBERS), write("%all#1", "dq", "%t", Q)],
    ),
}  # fmt: skip
WRITTEN = {
    "keys": ["dk", "dv"], "values": ["dv"], "table": ["dk", "dbias"], "queries": ["dq"],
    "numbers": ["dgains"], "order": ["dq", "dk", "dv", "dgains", "dbias"],
}  # fmt: skip


def draw(heads):
    shape = (ROWS, heads, 16) if heads else (4, ROWS)
    return rng.standard_normal(shape).astype("f4")


inputs = {name: draw(heads) for name, heads in INPUTS.items()} | {"cu": CU}
# What is not written keeps it.
inputs |= {name: np.full_like(draw(heads), 7) for name, heads in OUTPUTS.items()}
wanted = varlen.run(gradient(), inputs)
for entry, names in WRITTEN.items():
    for count in (1, 3):
        found = varlen.run(LOOPS[entry], inputs, threads=count, pipeline=PIPELINE)
        for name in OUTPUTS:
            expected = wanted[name] if name in names else inputs[name]
            if entry == "order" and name == "again":
                expected = 2 * wanted["dv"]
            assert (found[name].view("i4") == expected.view("i4")).all(), f"{entry}: {name}"
print("all equal")
