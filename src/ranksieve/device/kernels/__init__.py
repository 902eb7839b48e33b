"""Triton kernels: products with features, sums over pairs, and blocks of Hessians.

None adds with atomic operations: sums have a fixed order, so that results repeat bit by bit on one GPU.
"""
