"""The benchmarks: Strongroom and Azurite side by side, in turn, in one run. See README.md."""
