"""Jobs over a run directory: feeding a source to a model, reading off what was found."""
