"""Coordinate descent on a quadratic plus the perspective of a ridge."""

import numpy as np

from ranksieve.kernels.compiling import kernel


@kernel
def descend(hessian, slope, w, threshold, ridge, inside, signs, tol, max_sweeps):
    """Minimise ½wᵀHw + bᵀw + Σ_j ρ_j(w_j) in place; ``slope`` = Hw + b is kept up to date.

    ρ_j(w) = ½μw² for features ``inside``, else min over 0 < u ≤ 1 of ½μw²/u + ½(t_j²/μ)u: the line t_j|w| up
    to |w| = t_j/μ, the parabola beyond. Stops when a sweep moves no slope by more than ``tol``.
    """
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(len(w)):
            h = hessian[j, j]
            b = slope[j] - h * w[j]
            size, t = abs(b), threshold[j]
            if signs[j] * b > 0.0 or (not inside[j] and size <= t):
                z = 0.0
            elif inside[j] or h <= 0.0 or size * ridge > t * (ridge + h):
                z = -b / (h + ridge)
            else:
                z = -np.sign(b) * (size - t) / h
            step = z - w[j]
            if step != 0.0:
                w[j] = z
                worst = max(worst, abs(step) * (h + ridge))
                for i in range(len(w)):
                    slope[i] += step * hessian[i, j]
        if worst <= tol:
            break
