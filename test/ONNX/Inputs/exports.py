"""Models of transformers, exported by torch.onnx and by the exporter of transformers, with
their own masks, compute what they do in PyTorch: `make conformance`, or NAMES.

Models are small, with random weights. They are exported with a padded batch of 9 tokens, and
run on one of 3 sequences of 14.
"""

import logging
import os
import pathlib
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
import varlen
from transformers.exporters.exporter_onnx import OnnxConfig, OnnxExporter
from varlen.onnx import ModelError, import_model

# Largest error of a result beside its largest element.
LIMIT = 1e-5

_CORE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
_BASE = _CORE | {"intermediate_size": 96, "vocab_size": 97, "max_position_embeddings": 64}
_GROUPED = _BASE | {"num_key_value_heads": 2}
_HEAD_DIM = _GROUPED | {"head_dim": 16}
_GPT = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 97, "n_positions": 64}
_GEMMA = _HEAD_DIM | {"sliding_window": 4, "query_pre_attn_scalar": 16}
_IMAGE = _CORE | {"intermediate_size": 96, "image_size": 32, "patch_size": 8}

# Options of configurations: models that continue text, that read it, and of images.
DECODERS = {
    "llama": _GROUPED, "mistral": _GROUPED | {"sliding_window": 4}, "qwen2": _GROUPED, "qwen3": _HEAD_DIM,
    "gemma": _HEAD_DIM, "gemma2": _GEMMA, "gemma3_text": _GEMMA, "phi3": _GROUPED | {"pad_token_id": 0},
    "phi": _BASE, "olmo": _GROUPED, "olmo2": _GROUPED, "stablelm": _GROUPED,
    "starcoder2": _GROUPED | {"sliding_window": 4}, "cohere": _GROUPED, "granite": _GROUPED,
    "smollm3": _GROUPED | {"pad_token_id": 0}, "gpt_neox": _BASE, "gpt2": _GPT, "bloom": _GPT,
    "opt": _CORE | {"ffn_dim": 96, "vocab_size": 97, "max_position_embeddings": 64, "word_embed_proj_dim": 64},
    "glm": _HEAD_DIM | {"pad_token_id": 0}, "gptj": _GPT | {"rotary_dim": 8}, "nemotron": _GROUPED,
    "ernie4_5": _HEAD_DIM, "exaone4": _GROUPED | {"sliding_window": 4}, "gpt_bigcode": _GPT,
}  # fmt: skip
ENCODERS = {
    "bert": _BASE, "roberta": _BASE, "electra": _BASE | {"embedding_size": 64},
    "albert": _BASE | {"embedding_size": 64}, "mpnet": _BASE,
    "distilbert": {"dim": 64, "hidden_dim": 96, "n_layers": 2, "n_heads": 4, "vocab_size": 97,
                   "max_position_embeddings": 64},
    "modernbert": _BASE | {"pad_token_id": 0, "local_attention": 4, "cls_token_id": 1, "sep_token_id": 2,
                           "bos_token_id": 1, "eos_token_id": 2},
}  # fmt: skip
IMAGES = {"vit": _IMAGE, "deit": _IMAGE, "siglip_vision_model": _IMAGE, "clip_vision_model": _IMAGE, "dinov2": _IMAGE}


class Result(torch.nn.Module):
    """One result of a model, whose inputs have names."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)))[self.result]


def build(name, options):
    config = transformers.AutoConfig.for_model(name, **options)
    torch.manual_seed(0)
    is_decoder = name in DECODERS
    if is_decoder:
        config.use_cache = False
    kind = transformers.AutoModelForCausalLM if is_decoder else transformers.AutoModel
    return kind.from_config(config).eval()


def inputs_of(name, batch, rows):
    random = torch.Generator().manual_seed(rows)
    if name in IMAGES:
        return {"pixel_values": torch.randn(batch, 3, 32, 32, generator=random)}
    mask = torch.ones(batch, rows, dtype=torch.long)
    # Text is continued behind its end, so padding is in front.
    mask[0, slice(None, 3) if name in DECODERS else slice(-3, None)] = 0
    return {"input_ids": torch.randint(3, 97, (batch, rows), generator=random), "attention_mask": mask}


def export(name, model, result, folder, is_own):
    """The path of the model, exported by the exporter of transformers or by torch.onnx."""
    inputs = inputs_of(name, 2, 9)
    path = folder / "model.onnx"
    if is_own:
        program = OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True))
        program.save_pretrained(str(folder))
        return path
    dims = [{0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence", max=64)} for _ in inputs]
    if name in IMAGES:
        dims = [{0: torch.export.Dim("batch")}]
    wrapped = Result(model, list(inputs), result)
    torch.onnx.export(
        wrapped, tuple(inputs.values()), dynamo=True, opset_version=23, input_names=list(inputs),
        output_names=[result], dynamic_shapes=(tuple(dims),), verbose=False,
    ).save(str(path))  # fmt: skip
    return path


def check(name, model, result, path):
    """The error of an exported model, and how many attentions it has."""
    inputs = inputs_of(name, 3, 14)
    with torch.no_grad():
        wanted = model(**inputs)[result].numpy()
    function = import_model(path)
    program = varlen.compile(function.text)
    got = program(*(inputs[i].numpy() for i in function.inputs), *function.weights.values())
    got = got if isinstance(got, tuple) else (got,)
    ours = got[function.outputs.index(result)]
    assert ours.shape == wanted.shape, (ours.shape, wanted.shape)
    # Padding, too, but for models whose rows of it are nothing that anyone reads.
    error = np.abs(ours - wanted).max() / np.abs(wanted).max()
    return error, function.text.count("varlen.attn ")


def main(names):
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    known = DECODERS | ENCODERS | IMAGES
    good, bad, refused = 0, [], []
    for name in names or known:
        result = "logits" if name in DECODERS else "last_hidden_state"
        model = build(name, known[name])
        for exporter in ("torch.onnx", "transformers"):
            what = f"{name} by {exporter}"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    path = export(name, model, result, pathlib.Path(folder), exporter == "transformers")
                except Exception as error:  # whatever an exporter raises
                    refused.append(what)
                    print(f"{what}: not exported: {str(error).splitlines()[0][:100]}", flush=True)
                    continue
                try:
                    error, attentions = check(name, model, result, path)
                except (ModelError, varlen.CompileError, ValueError) as failure:
                    bad.append(what)
                    print(f"{what}: {str(failure)[:200]}", flush=True)
                    continue
            print(f"{what}: {attentions} attentions, error {error:.1e}", flush=True)
            if error <= LIMIT:
                good += 1
            else:
                bad.append(what)
    print(f"{good} exports of transformers run, {len(bad)} do not, {len(refused)} were not exported")
    return int(bool(bad) or not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
