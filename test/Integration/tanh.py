"""The tanh of vectors beside numpy's longest float: off by at most 2 units in the last
place, over all exponents, and right for infinities, NaN and 0."""

# REQUIRES: x86, venv
# RUN: %python %s

import numpy as np

import varlen

rng = np.random.default_rng(3)
for name, float_type in (("f32", np.float32), ("f64", np.float64)):
    x = np.concatenate([
        rng.uniform(-2, 2, 200000), rng.uniform(-25, 25, 50000),
        np.ldexp(rng.uniform(-1, 1, 20000), rng.integers(-120, 120, 20000)),
        [0.625, np.nextafter(float_type(0.625), float_type(0)), 0, np.inf, -np.inf, np.nan],
    ]).astype(float_type)  # fmt: skip
    text = f"""
    func.func @f(%x: tensor<?x{name}> {{varlen.name = "x"}}) -> (tensor<?x{name}> {{varlen.name = "y"}}) {{
      %y = math.tanh %x : tensor<?x{name}>
      return %y : tensor<?x{name}>
    }}"""
    golden = np.tanh(x.astype(np.longdouble))
    for target in ("generic", "host"):
        y = varlen.run(text, {"x": x}, target=target)["y"]
        assert (np.isnan(y) == np.isnan(x)).all()
        with np.errstate(invalid="ignore"):
            error = np.abs(y - golden) / np.spacing(np.abs(golden).astype(float_type))
        error[np.isnan(x)] = 0
        assert error.max() <= 2, (name, target, x[error.argmax()], error.max())
