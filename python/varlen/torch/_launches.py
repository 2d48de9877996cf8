"""Launches of compiled attention on tensors of CUDA devices.

A launch goes to the stream that is current on the device of its tensors, and so does the
workspace, which the caching allocator hands out in the order of that stream: it is free
again when a call returns, for work that comes later in the stream. Nothing waits for the
device, and nothing depends on what tensors hold, so all of it can be captured in a graph.
"""

import torch

from .. import _launcher, _library
from .._attention import source_error
from . import _kernels

# As varlenLauncherLaunch wants rows that are copied whole.
_ROW_ALIGNMENT = 16


def _find_current_stream():
    """A function that gives the handle of the stream that is current on a device."""
    # What compiled code of PyTorch's own calls: torch.cuda.current_stream makes an object.
    find = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return find or (lambda device: torch.cuda.current_stream(device).cuda_stream)


class OnCUDA:
    """A function of tensors on the CUDA device of that number: kernels for dense tensors,
    and others, which read single elements, for those with strides. `find_rules` gives the
    ExtentRules of operands by their names; results, which are the last tensors, agree with them
    already."""

    __slots__ = (
        "_current_stream", "_dense", "_device", "_expects_dense", "_find_rules", "_index",
        "_num_operands", "_rules", "_source", "_strided", "_written",
    )  # fmt: skip
    # Whether what kernels write to are results, or else operands.
    _has_results = True

    def __init__(self, source, find_rules, index):
        self._source, self._find_rules, self._index = source, find_rules, index
        self._device = torch.device("cuda", index)
        self._current_stream = _find_current_stream()
        self._dense = self._strided = None  # Frames
        self._expects_dense = True

    def __call__(self, tensors):
        # Kernels for dense tensors refuse others: that is cheaper than to look at all tensors,
        # where none had strides so far.
        if self._dense is not None and self._expects_dense:
            try:
                return self._launch(self._dense, tensors)
            except ValueError:
                if _is_dense(tensors):
                    raise
            self._expects_dense = False
        if _is_dense(tensors):
            if self._dense is None:
                self._dense = self._load(strided=False)
            return self._launch(self._dense, tensors)
        self._launch_strided(tensors)

    def _launch_strided(self, tensors):
        if self._strided is None:
            self._strided = self._load(strided=True)
        try:
            self._launch(self._strided, tensors)
        except ValueError:
            if not _kernels.call_on_copies(self, tensors, self._num_operands, self._written):
                raise

    def _launch(self, frames, tensors):
        frame = frames.take()
        try:
            for tensor, address in zip(tensors, frame.addresses, strict=True):
                _kernels.export(tensor, address)
            status = frame.measure()
            if status:
                _library.raise_error(status)
            for tensor, dim, more, owner, owner_dim in self._rules:
                if tensors[tensor].size(dim) + more != tensors[owner].size(owner_dim):
                    # The operator's checks say which.
                    raise ValueError("expected extents that agree")
            workspace = torch.empty(frame.size.value, dtype=torch.uint8, device=self._device)
            frame.workspace.value = workspace.data_ptr()
            frame.stream.value = self._current_stream(self._index)
            status = frame.enqueue()
            if status:
                _library.raise_error(status)
        finally:
            frames.give_back(frame)

    def _load(self, *, strided):
        try:
            target = _launcher.find_target(self._index)
            launcher = _launcher.load(self._source, target, strided=strided)
        except _library.CompileError as error:
            raise source_error(error) from None
        # Kernels find out, too, where extents do not agree, but a call does not wait for them.
        are_results = self._has_results
        operands = [x for x in launcher.parameters if not (are_results and x.is_written)]
        self._rules = self._find_rules([x.name for x in operands])
        self._num_operands = len(operands)
        self._written = {i for i, operand in enumerate(operands) if operand.is_written}
        return _library.Frames(launcher, _launcher.LaunchFrame)


class UpdateOnCUDA(OnCUDA):
    """A function without results that writes to operands: by one kind of kernels for all strides,
    which copy no rows whole."""

    __slots__ = ()
    _has_results = False

    def __call__(self, tensors):
        self._launch_strided(tensors)


def _is_dense(tensors):
    for tensor in tensors:
        if not tensor.is_contiguous():
            return False
        if tensor.dim() > 2 and tensor.data_ptr() % _ROW_ALIGNMENT:
            return False
    return True

