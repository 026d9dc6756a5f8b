"""What a model has learnt of what nobody gave."""

from bnpstream.runs.model_options import Mixture


def learnt_of(model: Mixture) -> dict[str, float]:
    """Return the parameters that were learnt so far, by name.

    Those of the prior, and of the base measure (`Likelihood.learnt`).
    """
    prior, likelihood = model._model()
    found = {name: float(getattr(prior, name)) for name in prior.learn}
    learner = vars(model).get("_learner")
    if learner is not None and learner.scale is not None:
        found |= likelihood.learnt(learner.scale)
    return found
