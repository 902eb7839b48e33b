"""Coordinate descent on a small quadratic with a separable, possibly one-sided, ℓ1 term."""

from numba import njit


@njit(cache=True, nogil=True)
def minimise_quadratic(hessian, gradient, w, up, down, ridge, tol, max_sweeps):
    """Minimise over z: gᵀ(z − w) + ½(z − w)ᵀH(z − w) + Σ_j [up_j z_j⁺ + down_j z_j⁻ + ½ ridge z_j²].

    Stops when a sweep moves no coordinate's slope by more than ``tol``. Returns z.
    """
    d = len(w)
    z, slope = w.copy(), gradient.copy()
    for _ in range(max_sweeps):
        largest = 0.0
        for j in range(d):
            h = hessian[j, j]
            if h + ridge <= 0.0:
                continue
            u = h * z[j] - slope[j]
            new = 0.0
            if u > up[j]:
                new = (u - up[j]) / (h + ridge)
            elif u < -down[j]:
                new = (u + down[j]) / (h + ridge)
            step = new - z[j]
            if step != 0.0:
                z[j] = new
                for k in range(d):
                    slope[k] += hessian[k, j] * step
                largest = max(largest, abs(step) * (h + ridge))
        if largest <= tol:
            break
    return z
