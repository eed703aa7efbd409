"""CUPED: less variance by a covariate from before the experiment, such as a user's earlier rate.

Source: Deng, Xu, Kohavi & Walker 2013, "Improving the Sensitivity of Online Controlled Experiments
by Utilizing Pre-Experiment Data", WSDM, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.statistics.hypothesis_tests import Floats


def cuped(values: Sequence[float] | Floats, covariate: Sequence[float] | Floats) -> Floats:
    """Return the adjusted values y - theta * (x - mean(x)), with theta = cov(x, y) / var(x).

    values, covariate: of both arms together, same order, n >= 2. Theta and mean are common to both
    arms, so the difference of the arms' means keeps its expectation; its variance falls by the
    factor 1 - corr(x, y)**2. The covariate must not depend on the arm: measure it before exposure.
    For Welch's test; theta is estimated from all values, so bets must not use it.
    Raises ValueError for different lengths or fewer than two values.
    """
    y, x = np.asarray(values, dtype=float), np.asarray(covariate, dtype=float)
    if len(x) != len(y) or len(y) < 2:
        raise ValueError(f"{len(x)} covariates for {len(y)} values: one each, at least two")
    spread = float(x.var(ddof=1))
    theta = float(np.cov(x, y)[0, 1]) / spread if spread else 0.0
    adjusted: Floats = y - theta * (x - x.mean())
    return adjusted
