"""The paper's tables and figures: what each of its cells is a run of, ours beside the paper's, and what holds."""
