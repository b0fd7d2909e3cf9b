"""Hostile input for every decoder: `python -m tests.fuzz`, or a few hundred inputs each through `test_fuzz`.

`targets` says what is attacked and which errors count as a refusal, `watch` what counts as a finding, `corpus` and
`mutate` where inputs come from, `worker` runs one target in a process of its own. Findings and the corpus that grew
are kept in `work/`, which git ignores; a finding that was repaired becomes a vector in `tests/vectors/findings`.
"""
