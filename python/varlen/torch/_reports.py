"""What kernels on a GPU have found wrong in cu_seqlens, which calls do not wait for."""

import torch


def check(device=None):
    """Waits for a CUDA device (None: the current one), and raises what kernels have found
    wrong on it since the last error was raised.

    Calls on CUDA tensors do not wait for their kernels. Where these find cu_seqlens, seqused
    or q_offset that cannot be, results are NaN, and the error is raised by the next call on
    the device that comes after it, or by this function. Nothing to do for a CPU, whose calls
    raise their errors themselves.

    Raises:
        ValueError: with the index and the value, after "an earlier launch".
    """
    if device is None and not torch.cuda.is_available():
        return
    index = torch.cuda.current_device() if device is None else _index_of(device)
    if index is None:
        return
    from .. import _launcher

    torch.cuda.synchronize(index)
    _launcher.poll(index)


def _index_of(device):
    """The number of a CUDA device; None for a CPU."""
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type == "cpu":
        return None
    if device.type != "cuda":
        raise ValueError(f"device: expected one of CUDA, or the CPU, got {device}")
    return torch.cuda.current_device() if device.index is None else device.index
