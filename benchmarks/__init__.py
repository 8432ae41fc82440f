"""The benchmarks: they measure Strongroom and Azurite in alternation, in one run. See README.md."""
