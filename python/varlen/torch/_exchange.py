"""What ranks of a process group send each other: rows of tensors, as the plan of a batch says."""

import hashlib

import torch
import torch.distributed as dist


def pack(tensors):
    """Tensors of the same rows, (tensor, the dimension that rows are), as bytes of each row."""
    parts = [x.movedim(dim, 0).contiguous() for x, dim in tensors]
    parts = [x.view(x.shape[0], x.shape[1:].numel()).view(torch.uint8) for x in parts]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 1)


def unpack(packed, tensors):
    """The opposite of pack: new tensors of the kinds of those that were packed."""
    found, begin, rows = [], 0, packed.shape[0]
    for like, dim in tensors:
        shape = like.movedim(dim, 0).shape[1:]
        size = shape.numel() * like.element_size()
        # Flat first: of one row, or none, strides say nothing.
        part = packed[:, begin : begin + size].reshape(-1).contiguous().view(like.dtype)
        found.append(part.view(rows, *shape).movedim(0, dim).contiguous())
        begin += size
    return found


def explain_failure(error):
    """What is raised where a group's operation has failed."""
    return RuntimeError(
        "context_parallel: the process group has failed; a rank may have ended, or not called "
        f"context_parallel as the others did: {error}"
    )


class Waiting:
    """A message under way: its result, once it is there."""

    def __init__(self, works, result, *kept):
        self._works, self._result, self._kept = works, result, kept

    def wait(self):
        try:
            for work in self._works:
                work.wait()
        except RuntimeError as error:
            raise explain_failure(error) from error
        self._kept = ()
        return self._result


def send_to_all(group, parts, sent, result, received):
    """Starts to send `sent` numbers, or rows, of parts to each rank of a group, and to receive
    `received` of each in result."""
    try:
        work = dist.all_to_all_single(result, parts, received, sent, group=group, async_op=True)
    except RuntimeError as error:
        raise explain_failure(error) from error
    return Waiting((work,), result, parts)


class Exchange:
    """Rows that each rank of a group sends to each other one, all at once.

    `sent` are, for each rank, an index of rows, and `received` how many come from each."""

    def __init__(self, group, sent, received):
        self._group, self._received = group, received
        self._sent = [len(x) for x in sent]
        self._index = torch.cat(list(sent)) if sent else torch.empty(0, dtype=torch.int64)

    def start(self, packed):
        rows = packed.index_select(0, self._index)
        result = packed.new_empty(sum(self._received), *packed.shape[1:])
        return self._start(rows, result, self._sent, self._received)

    def start_back(self, packed):
        """The reverse: what was received goes back to its owners."""
        result = packed.new_empty(sum(self._sent), *packed.shape[1:])
        return self._start(packed.contiguous(), result, self._received, self._sent)

    @property
    def index(self):
        """Rows of the owner for those that start_back brings."""
        return self._index

    def _start(self, rows, result, sent, received):
        if not any(sent) and not any(received) and self._is_silent():
            return Waiting((), result)
        return send_to_all(self._group, rows, sent, result, received)

    def _is_silent(self):
        """Whether no other rank takes part either."""
        return dist.get_world_size(self._group) == 1


def swap(group, to, rows, source, received):
    """Sends rows, bytes of each, to a rank of the group and receives as many as `received` from
    another one; nothing where there are none."""
    operations = []
    result = rows.new_empty(received, rows.shape[1])

    def add(operation, tensor, rank):
        if tensor.numel():
            peer = dist.get_global_rank(group, rank)
            operations.append(dist.P2POp(operation, tensor, peer, group))

    add(dist.isend, rows, to)
    add(dist.irecv, result, source)
    try:
        works = dist.batch_isend_irecv(operations) if operations else ()
    except RuntimeError as error:
        raise explain_failure(error) from error
    return Waiting(works, result, rows)


def check_agreement(call, problem, group, device):
    """That all ranks of the group have a call that describes the same, and none an error in its
    place, `problem`, before anything is sent that others may not expect. Where not, raises
    ValueError on all of them but those with a problem."""
    told = call.signature() if problem is None else f"{type(problem).__name__}: {problem}"
    digest = hashlib.sha256(told.encode()).digest()
    numbers = [int.from_bytes(digest[i : i + 8], "little", signed=True) for i in (0, 8)]
    own = torch.tensor(numbers, dtype=torch.int64, device=device)
    size = dist.get_world_size(group)
    every = [torch.empty_like(own) for _ in range(size)]
    try:
        dist.all_gather(every, own, group=group)
    except RuntimeError as error:
        raise explain_failure(error) from error
    if bool((torch.stack(every) == own).all()):
        return
    # Some rank has found the same: all of them come here.
    descriptions = [None] * size
    own = call.describe() if problem is None else told
    dist.all_gather_object(descriptions, own, group=group)
    if problem is not None:
        return
    for rank, other in enumerate(descriptions):
        if isinstance(other, str):
            raise ValueError(f"rank {rank} has stopped: {_show(other)}")
    first = descriptions[0]
    for rank, other in enumerate(descriptions):
        for name in first | other:
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"{name}: expected the same on all ranks, got {_show(first.get(name))} on "
                    f"rank 0 and {_show(other.get(name))} on rank {rank}"
                )


def _show(value):
    text = str(value)
    return text if len(text) < 200 else f"{text[:200]}..."
