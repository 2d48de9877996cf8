"""Colours for MLIR, which Pygments has none for."""

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text


class MLIRLexer(RegexLexer):
    name = "MLIR"
    aliases = ["mlir"]
    filenames = ["*.mlir"]

    tokens = {
        "root": [
            (r"\s+", Text),
            (r"//.*", Comment.Single),
            (r'"(\\.|[^"\\])*"', String.Double),
            (r"%[\w$.#-]+", Name.Variable),
            (r"@[\w$.-]+", Name.Function),
            (r"\^[\w$.-]+", Name.Label),
            (r"[#!][A-Za-z_][\w$.-]*", Name.Attribute),
            (words(("true", "false", "unit", "dense", "array"), suffix=r"\b"), Keyword.Constant),
            (words(("tensor", "memref", "vector", "tuple", "none", "index"), suffix=r"\b"), Keyword.Type),
            (r"[su]?i\d+\b|b?f\d+\w*\b", Keyword.Type),
            # Extents and element type of a shape, as in 64x?xbf16.
            (r"(\?|\d+)(x(\?|\d+))*x(?=[a-z!?])", Number.Integer),
            (r"0x[0-9A-Fa-f]+|-?\d+(\.\d*([eE][-+]?\d+)?)?", Number),
            (r"[a-z_]\w*(\.\w+)+", Name.Builtin),
            (r"[A-Za-z_][\w$]*", Name),
            (r"->|[=:+*/<>?|&!-]", Operator),
            (r"[()\[\]{},.#@%^\\`~;$'\"]", Punctuation),
        ]
    }
