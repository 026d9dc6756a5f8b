"""Jobs on a run directory: feed a source to a model, read what was found."""
