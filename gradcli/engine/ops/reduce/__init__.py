"""Sums, products, norms and extremes along dims, and running ones."""
