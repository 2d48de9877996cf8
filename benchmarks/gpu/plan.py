"""What is checked and what is timed on a GPU, and the text of the functions that takes."""

import dataclasses
import random

import attn_gradients
import harness
import parameters
import rehearsal
import schedules
import sets
import varlen

# Scores that are timed beside plain attention.
SCORES = {
    score.name: score
    for score in (varlen.scores.alibi(), varlen.scores.softcap(50.0), varlen.scores.dropout(0.1))
}


# Long sequences, of which there are more tiles than a GPU takes at once.
LONG = "fa-distributions/constant"


@dataclasses.dataclass(frozen=True)
class Timed:
    """A configuration of a set, forward, backward, with tangents, or the gradients of these."""

    config: sets.Config
    gradients: bool
    score: str | None = None  # one of SCORES
    schedule: schedules.Schedule | None = None  # None: that of the table
    strided: bool = False  # q, k and v are views of one tensor
    page: int | None = None  # rows of a page, of keys in pages
    tangents: bool = False
    kv_dtype: str | None = None  # of quantised keys, each row and head with a scale

    @property
    def label(self):
        parts = [self.config.label, self.score, "backward" if self.gradients else None]
        if self.tangents:
            parts.append("with tangents")
        if self.schedule:
            parts.append(self.schedule.label)
        if self.strided:
            parts.append("of views")
        if self.page:
            parts.append(f"in pages of {self.page}")
        if self.kv_dtype:
            parts.append(f"with keys of {self.kv_dtype}")
        return " ".join(part for part in parts if part)

    @property
    def forward(self):
        return dataclasses.replace(self, gradients=False, tangents=False, schedule=None)

    @property
    def captures(self):
        """Whose numbers the captures of the score are, by name."""
        return SCORES[self.score].captures if self.score else {}

    @property
    def flops(self):
        # In the place of two products five, six or ten; what is computed again is not counted.
        products = {(True, False): 5, (False, True): 6, (True, True): 10}
        return self.config.flops * products.get((self.gradients, self.tangents), 2) / 2


@dataclasses.dataclass(frozen=True)
class Checked:
    """A group of the conformance tests, forward or backward."""

    group: parameters.Group
    gradients: bool

    @property
    def label(self):
        return self.group.label + (" backward" if self.gradients else "")


def timed_text(item):
    config = item.config
    name = "attn" + ("_jvp" if item.tangents else "") + ("_grad" if item.gradients else "")
    make = getattr(varlen.text, name)
    more = {"page": item.page, "seqused_k": True} if item.page else {}
    if item.kv_dtype:
        more |= {"kv_dtype": item.kv_dtype, "k_scale": "rows", "v_scale": "rows"}
    text = make(
        dtype=config.dtype,
        heads=config.batch.heads,
        kv_heads=config.batch.kv_heads,
        head_dim=config.head_dim,
        window=config.window,
        name="attention",
        score=SCORES.get(item.score),
        **more,
    )
    if item.schedule:
        text = text.replace("{mask =", f"{{varlen.schedule = {item.schedule}, mask =", 1)
    return text


def _rank(config):
    """What is missed most comes first, as the time is limited."""
    batch = config.batch
    if batch.set == "pr164502":
        return 0 if config.dtype == "bf16" else 4
    if batch.label == LONG:
        return 1
    return {"exact": 2}.get(batch.name, 3)


def _configurations():
    if rehearsal.FOLDER:
        return rehearsal.configurations()
    return sorted(sets.gpu_configurations(), key=_rank)


def timed():
    """Forward and backward of the same configuration, one after the other: no
    training has the queries of decoding."""
    for config in _configurations():
        yield Timed(config, False)
        if config.batch.set in ("pr164502", "nanochat-d24") or config.batch.label == LONG:
            yield Timed(config, True)
    for config in _configurations():
        if config.batch.set == "pr164502" and config.dtype == "bf16" and config.window == sets.FULL:
            # One of them is enough to rehearse.
            for score in list(SCORES)[: 1 if rehearsal.FOLDER else None]:
                yield Timed(config, False, score)
                yield Timed(config, True, score)


def find_timed(label):
    return next(item for item in timed() if item.label == label)


def tuned(chip):
    """What other schedules are timed with, each followed by itself with these."""
    wgmma = chip == "sm_90a"
    for config in _configurations():
        is_short = config.batch.set == "pr164502"
        if (is_short or config.batch.label == LONG) and config.dtype == "bf16":
            for gradients in (False, True) if is_short else (False,):
                item = Timed(config, gradients)
                yield item
                for schedule in schedules.candidates(config.head_dim, gradients, wgmma):
                    yield dataclasses.replace(item, schedule=schedule)


def _of_timed(config, rng):
    """A ragged batch for a function that is timed, with the shape of its use; its
    result is judged as a whole, as FlashAttention's tests do."""
    lengths = [70, 128, 193, 0, 5, 1, 64, 300, 517]
    sequences = []
    for k in lengths:
        q = min(k, 1) if config.batch.set == "decode" else k
        sequences.append(parameters.Sequence(q, k, q, k, (0, 0)))
    rng.shuffle(sequences)
    return parameters.Group(
        "timed", config.dtype, config.batch.heads, config.batch.kv_heads,
        config.head_dim, config.head_dim, config.window, tuple(sequences),
        past_q=3, past_k=3,
    )  # fmt: skip


def checked():
    """Groups of batches, first the functions that are timed, then a sample of
    FlashAttention's parameters with what they leave out."""
    if rehearsal.FOLDER:
        group = _small("rehearsed", 64, sets.CAUSAL, (33, 0, 1, 7))
        return [Checked(group, gradients) for gradients in (False, True)]
    return list(_all_checked())


def _all_checked():
    rng = random.Random("gpu")
    seen = set()
    for config in sets.gpu_configurations():
        for gradients in (False, True):
            if gradients and config.batch.set not in ("pr164502", "nanochat-d24"):
                continue
            checked = Checked(_of_timed(config, rng), gradients)
            if checked.label not in seen:
                seen.add(checked.label)
                yield checked
    for group in parameters.sample_groups():
        if group.dtype == "f64":  # for gradient checks on the CPU
            continue
        # Long ones only make the golden results late.
        sequences = [s for s in group.sequences if s.k_slot <= 1100]
        group = dataclasses.replace(group, sequences=tuple(sequences))
        yield Checked(group, False)
        # Their golden results take three times as long. Which, depends on no other group.
        if random.Random(group.label).random() < 0.3:
            yield Checked(group, True)


def _small(suite, d, window, lengths):
    sequences = tuple(parameters.Sequence(n, n, n, n, (0, 0)) for n in lengths)
    return parameters.Group(suite, "bf16", 2, 1, d, d, window, sequences, past_q=3, past_k=3)


def sanitized():
    """Small batches of each kind of kernel, for tools that make it a hundred times slower:
    every head_dim that has tiles of its own, without a mask, causal and with a window."""
    if rehearsal.FOLDER:
        return checked()[:1]
    return [
        Checked(_small("sanitized", d, window, (70, 0, 1, 193)), gradients)
        for d in (128, 64, 256)
        for window in (sets.CAUSAL, (40, 0), sets.FULL)
        for gradients in (False, True)
    ]


def checked_text(item):
    text = attn_gradients.module_text if item.gradients else harness.module_text
    return text(item.group, name="attention")
