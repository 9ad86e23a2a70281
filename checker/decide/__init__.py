"""Decides a history: which algorithm applies to which key, the verdicts, and the explanations of the invalid ones."""
