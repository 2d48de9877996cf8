"""The text of a module in the torch dialect, of a program of torch.export: by torch-mlir where
that is installed, else, for graphs of the operators of varlen.torch, in the same form."""

import importlib.util
import operator
import re

import torch

_ELEMENTS = {
    torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
    torch.int32: "si32", torch.int64: "si64",
}  # fmt: skip
HAS_TORCH_MLIR = importlib.util.find_spec("torch_mlir") is not None


def write(program):
    """The module in the generic form."""
    if not HAS_TORCH_MLIR:
        return _Writer(program).text
    from torch_mlir import fx

    module = fx.export_and_import(program, output_type=fx.OutputType.RAW)
    return module.operation.get_asm(print_generic_op_form=True)


def to_builtin(text):
    """An imported module without the types and the constants of the torch dialect."""
    text = re.sub(
        r"!torch\.vtensor<\[([\d,?]*)\],s?(\w+)>",
        lambda m: f"tensor<{''.join(extent + 'x' for extent in m[1].split(',') if extent)}{m[2]}>",
        text,
    )
    text = re.sub(r'"torch_c\.\w+_builtin_tensor"\((%\w+)\) : \((.*?)\) -> ', r"tensor.cast \1 : \2 to ", text)
    return re.sub(r'\n *%\w+ = "torch\.(constant\.|prim\.ListConstruct).*', "", text)


def _type(x):
    if isinstance(x, torch.Tensor):
        return f"!torch.vtensor<[{','.join(map(str, x.shape))}],{_ELEMENTS[x.dtype]}>"
    return "!torch.list<vtensor>"


class _Writer:
    """Operands are as torch-mlir's importer writes them: one for each parameter of the schema."""

    def __init__(self, program):
        self._lines, self._names = [], {}
        signature, types = [], []
        for node in program.graph.nodes:
            if node.op == "placeholder":
                self._names[node] = f"%arg{len(types)}"
                types.append(_type(node.meta["val"]))
                signature.append(f"{self._names[node]}: {types[-1]}")
            elif node.op == "output":
                returned = node.args[0]
            elif node.target is operator.getitem:
                self._get(node)
            else:
                self._call(node)
        results = ", ".join(_type(node.meta["val"]) for node in returned)
        values = ", ".join(self._names[node] for node in returned)
        self.text = (
            f"func.func @main({', '.join(signature)}) -> ({results}) {{\n"
            + "\n".join(self._lines)
            + f"\nreturn {values} : {results}\n}}\n"
        )

    def _add(self, text, kind, count=1):
        """An operation; returns its result and its type."""
        name = f"%{len(self._lines)}"
        self._lines.append(f"{name}{f':{count}' if count > 1 else ''} = {text} -> {kind}")
        return name, kind

    def _constant(self, name, kind, value=None):
        properties = "" if value is None else f" <{{value = {value}}}>"
        return self._add(f'"torch.constant.{name}"(){properties} : ()', f"!torch.{kind}")

    def _operand(self, x):
        if x is None:
            return self._constant("none", "none")
        if isinstance(x, str):
            quoted = "".join(c if c.isprintable() and c not in '"\\' else f"\\{ord(c):02X}" for c in x)
            return self._constant("str", "str", f'"{quoted}"')
        if isinstance(x, float):
            return self._constant("float", "float", f"{x:.17e} : f64")
        if isinstance(x, int):
            return self._constant("int", "int", f"{x} : i64")
        if isinstance(x, list | tuple):
            names, types = zip(*map(self._operand, x)) if x else ((), ())
            inputs = f'"torch.prim.ListConstruct"({", ".join(names)}) : ({", ".join(types)})'
            return self._add(inputs, "!torch.list<vtensor>")
        return self._names[x], _type(x.meta["val"])

    def _call(self, node):
        schema = node.target._schema
        given = dict(zip((x.name for x in schema.arguments), node.args)) | node.kwargs
        operands = [self._operand(given.get(x.name, x.default_value)) for x in schema.arguments]
        names, types = zip(*operands)
        results = [_type(x) for x in node.meta["val"]]
        name, _ = self._add(
            f'"torch.operator"({", ".join(names)}) <{{name = "torch.{schema.name.replace("::", ".")}"}}>'
            f" : ({', '.join(types)})",
            f"({', '.join(results)})", len(results),
        )  # fmt: skip
        self._names[node] = [f"{name}#{i}" for i in range(len(results))]

    def _get(self, node):
        source, index = node.args
        if isinstance(self._names[source], str):  # a list
            types = [_type(x) for x in source.meta["val"]]
            name, _ = self._add(
                f'"torch.prim.ListUnpack"({self._names[source]}) : (!torch.list<vtensor>)',
                f"({', '.join(types)})", len(types),
            )  # fmt: skip
            parts = [f"{name}#{i}" for i in range(len(types))] if len(types) > 1 else [name]
            self._names[source] = parts
        self._names[node] = self._names[source][index]
