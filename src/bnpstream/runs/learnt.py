"""What a model has learnt of what nobody gave."""

from bnpstream.likelihoods.words import WordLikelihood
from bnpstream.runs.model_options import Mixture


def learnt_of(model: Mixture) -> dict[str, float]:
    """Return the parameters that were learnt so far, by name.

    Those of the prior; and of the base measure, for documents its total A (`alpha_total`), else
    its scale relative to what the first rows looked like.
    """
    prior, likelihood = model._model()
    found = {name: float(getattr(prior, name)) for name in prior.learn}
    learner = vars(model).get("_learner")
    if learner is not None and learner.scale is not None:
        if isinstance(likelihood, WordLikelihood):
            found["alpha_total"] = likelihood.base_measure(_n_words(model))[1]
        else:
            found["scale"] = float(learner.scale)
    return found


def _n_words(model: Mixture) -> int:
    return len(model.vocabulary_) if hasattr(model, "vocabulary_") else int(model.n_features_in_)
