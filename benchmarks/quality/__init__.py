"""The quality benchmark: accuracy of all methods on nine data sets, over fixed random splits by query."""
