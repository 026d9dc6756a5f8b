"""Cases that cover all pairs: any two values that go together are together in some case."""

import random
from itertools import combinations

COMPILED_ROWS, REFERENCE_ROWS = 260, 150
WORDS = ("words", "words-given", "wide")
N_COLUMNS = {"words": 40, "wide": 9000}
NAMED = ("dp", "nig", "ngg", "stable", "py")
GIVEN = {
    "dp-given": {"call": "dirichlet_process", "concentration": 2.0},
    "nig-given": {"call": "normalized_inverse_gaussian", "concentration": 3.0, "tilt": 2.0},
    "py-given": {"call": "PitmanYor", "concentration": 1.5, "discount": 0.25},
    "py-plain": {
        "call": "PitmanYor",
        "concentration": 1.0,
        "discount": 0.1,
        "cluster_count": "plain",
        "learn": ["concentration"],
    },
    "ngg-integral": {
        "call": "GeneralizedGamma",
        "concentration": 2.0,
        "discount": 0.3,
        "tilt": 1.5,
        "auxiliary": "quadrature",
        "cluster_count": "plain",
    },
    "numerical": {
        "call": "NumericalMeasure",
        "log_intensity": "function generalized_dirichlet",
        "concentration": 1.5,
    },
}
OPTIONS_OF_PRIOR = {
    "dp-given": ["--prior", "dp", "--concentration", "2.0"],
    "nig-given": ["--prior", "nig", "--concentration", "3.0", "--tilt", "2.0"],
    "py-given": ["--prior", "py", "--concentration", "1.5", "--discount", "0.25"],
}
FAMILIES = {
    "words-given": ("words", {"call": "DirichletMultinomial", "alpha": 0.3}),
    "words": ("words", "auto"),
    "wide": ("wide", "multinomial"),
    "gaussian": ("real", "gaussian"),
    "gaussian-given": (
        "real",
        {
            "call": "Gaussian",
            "mean": [0.0, 0.0, 0.0],
            "mean_strength": 0.05,
            "degrees": 8.0,
            "covariance": [[1.0, 0.2, 0.0], [0.2, 1.0, 0.0], [0.0, 0.0, 1.0]],
        },
    ),
    "diagonal": ("holes", "diagonal"),
    "spherical": ("real", "spherical"),
    "poisson": ("counts", "poisson"),
    "bernoulli": ("truths", "bernoulli"),
    "categorical": ("labels", "categorical"),
    "mixed": ("mixed", "auto"),
    "product": (
        "mixed",
        {
            "call": "Product",
            "parts": [
                ["size", {"call": "DiagonalGaussian"}, [0, 1]],
                ["count", {"call": "Poisson"}, [2]],
                ["truth", {"call": "Bernoulli"}, [3]],
                ["label", {"call": "Categorical"}, [4]],
            ],
        },
    ),
    "documents": ("documents", None),
}
PLAIN = {
    "new_cluster_threshold": None,
    "min_responsibility": 1e-4,
    "prune_threshold": None,
    "n_revisits": 1,
    "tol": 1e-4,
    "keep_sites": False,
    "merge_every": 1000,
    "n_jobs": None,
    "spread": None,
    "total": None,
}
DETAILS = {
    "plain": PLAIN,
    "fine": PLAIN
    | {"min_responsibility": 0.0, "prune_threshold": 0.02, "n_revisits": 2, "tol": 0.0}
    | {"merge_every": 50, "n_jobs": 2, "spread": 30.0, "total": 6.0},
    "coarse": PLAIN
    | {"new_cluster_threshold": 0.6, "min_responsibility": 0.01, "prune_threshold": 0.3}
    | {"n_revisits": 3, "tol": 0.05, "merge_every": 30, "n_jobs": 1, "spread": 40.0},
    "sites": PLAIN | {"keep_sites": True, "merge_every": 70},
}
FACTORS = {
    "face": (
        *("fit", "partial_fit", "refine", "river"),
        *("command-fit", "command-stream", "dask-0", "dask-1"),
    ),
    "family": tuple(FAMILIES),
    "engine": ("compiled", "reference"),
    "prior": (*NAMED, *GIVEN),
    "details": tuple(DETAILS),
    "window": (0, 50, "all"),
    "passes": (1, 3),
    "half_life": ("none", "rows", "time"),
    "budget": ("none", "clusters", "memory"),
    "prefix": (16, 60, 400),
    "merges": ("auto", None, 0.0, 5.0),
    "weights": (False, True),
    "resumed": (False, True),
    "format": ("none", "svmlight", "lda-c", "uci", "npz", "csv", "jsonl", "text"),
}
"""In an order in which later ones are limited by earlier ones."""


def allowed(factor, case):
    """Return the values of a factor that go with those of the factors before it."""
    limit = LIMITS.get(factor)
    return [x for x in FACTORS[factor] if limit is None or limit(x, case)]


def _is_command(case):
    return case["face"].startswith("command")


def _family(family, case):
    if case["face"] == "river":
        return family in ("documents", "diagonal")
    if family == "documents":
        return case["face"] not in ("refine", "dask-1")
    return not (_is_command(case) and family in ("product", "gaussian-given"))


def _engine(engine, case):
    return engine == "compiled" or case["face"] != "river"  # river's has no choice


def _prior(prior, case):
    if prior == "numerical":  # a function cannot be saved or sent; compiled, it takes long
        return case["engine"] == "reference" and case["face"] in ("fit", "partial_fit")
    return not _is_command(case) or prior in NAMED or prior in OPTIONS_OF_PRIOR


def _details(details, case):
    if case["face"] == "refine":
        return details == "sites"
    if _is_command(case) or case["face"] == "river":
        return details in ("plain", "coarse")
    return details != "sites" or (case["face"] != "dask-1" and case["family"] != "documents")


def _passes_once(case):
    """Return whether there is nothing but one pass over the rows."""
    return case["family"] == "documents" or case["face"] in ("river", "dask-1")


def _window(window, case):
    if window == 0:
        return True
    if window == "all" and _is_command(case):  # a command has --passes
        return False
    return not _passes_once(case) and case["details"] != "sites"


def _passes(passes, case):
    if passes == 1:
        return True
    once = _passes_once(case) or case["window"] != 0
    return case["face"] in ("fit", "refine", "command-fit") and not once


def _half_life(half_life, case):
    if half_life == "none":
        return True
    if half_life == "time":
        words = _is_command(case) and case["family"] in WORDS  # their files have no times
        return case["face"] not in ("river", "dask-0", "dask-1") and not words
    return case["face"] not in ("river", "dask-1")


def _budget(budget, case):
    return budget == "none" or case["face"] != "river"


def _merges(merges, case):
    if case["family"] == "documents" or case["face"] == "river":
        return merges == "auto"
    if case["face"] == "dask-1":
        return merges in ("auto", None)
    return merges is not None or not _is_command(case)  # a command has no word for it


def _weights(weights, case):
    takes = case["face"] in ("fit", "partial_fit", "refine") and case["family"] != "documents"
    return takes or not weights


def _resumed(resumed, case):
    return not resumed or (case["face"] != "river" and case["prior"] != "numerical")


def _format(form, case):
    if not _is_command(case):
        return form == "none"
    if case["family"] in WORDS:
        fits = form in ("svmlight", "lda-c", "uci", "npz")
    elif case["family"] == "documents":
        fits = form in ("jsonl", "text")
    else:
        fits = form in ("csv", "jsonl")
    broken = form in ("svmlight", "lda-c", "csv", "jsonl")  # others have no line to break
    timed = form in ("csv", "jsonl")
    return fits and (broken or not case["resumed"]) and (timed or case["half_life"] != "time")


LIMITS = {
    "family": _family,
    "engine": _engine,
    "prior": _prior,
    "details": _details,
    "window": _window,
    "passes": _passes,
    "half_life": _half_life,
    "budget": _budget,
    "merges": _merges,
    "weights": _weights,
    "resumed": _resumed,
    "format": _format,
}


def completed(rng, fixed):
    """Return a case with some values fixed, the others at random; None if that does not go."""
    case = {}
    for factor in FACTORS:
        choice = allowed(factor, case)
        if factor in fixed:
            choice = [x for x in choice if x == fixed[factor] and type(x) is type(fixed[factor])]
        if not choice:
            return None
        case[factor] = rng.choice(choice)
    return case


def pairs(case):
    """Return the pairs of values of a case."""
    return set(combinations([(name, repr(value)) for name, value in case.items()], 2))


def covering(tries=60, kept=3):
    """Return cases that have every pair of values which goes together."""
    rng, pool = random.Random(0), {}
    for one, other in combinations(FACTORS, 2):
        for a in FACTORS[one]:
            for b in FACTORS[other]:
                found = 0
                for _ in range(tries):
                    case = completed(rng, {one: a, other: b})
                    if case is not None:
                        pool[tuple(map(repr, case.values()))] = case
                        found += 1
                    if found == kept:
                        break
    cases = list(pool.values())
    inside = [pairs(case) for case in cases]
    left = set().union(*inside)
    chosen = []
    while left:
        gains = [len(some & left) for some in inside]
        best = gains.index(max(gains))
        chosen.append(cases[best])
        left -= inside[best]
    return chosen


# --- from values to all settings ------------------------------------------------------------------

HALF_LIFE = {"rows": 40.0, "time": 60.0}
MEMORY = {"wide": "24kB", "documents": "24kB"}
ROOM = "60kB"
"""Of rows that are stored whole: 128 clusters, and not twice as many."""


def written(case, number):
    """Return a case as a row of the table, with every setting."""
    kind, likelihood = FAMILIES[case["family"]]
    reference = case["engine"] == "reference"
    row = {
        "name": f"{number:03d}-{case['family']}-{case['prior']}-{case['face']}",
        "face": case["face"],
        "data": {
            "kind": kind,
            "rows": REFERENCE_ROWS if reference else COMPILED_ROWS,
            "seed": number % 11,
        },
    }
    if _is_command(case):
        row |= {"options": _options(case), "format": case["format"]}
    else:
        row |= _settings(case, likelihood)
    return row | {
        "weights": case["weights"],
        "times": case["half_life"] == "time",
        "resumed": case["resumed"],
    }


def _half_life_of(case):
    # Where all rows are revisited by `refine`, none may be forgotten.
    return (
        None
        if case["half_life"] == "none"
        else HALF_LIFE[case["half_life"]] * (10 if case["face"] == "refine" else 1)
    )


def _settings(case, likelihood):
    details = DETAILS[case["details"]]
    prior = GIVEN.get(case["prior"], case["prior"])
    shared = {name: details[name] for name in ("new_cluster_threshold", "min_responsibility")}
    shared |= {"prior": prior, "prefix_rows": case["prefix"]}
    if case["face"] == "river":
        kind = "counts" if case["family"] == "documents" else "gaussian"
        return {"settings": shared | {"likelihood": kind}}
    memory = MEMORY.get(case["family"], ROOM)
    shared |= {
        "max_clusters": 6 if case["budget"] == "clusters" else None,
        "max_memory": memory if case["budget"] == "memory" else None,
        "engine": case["engine"],
        "n_jobs": details["n_jobs"],
        "half_life": _half_life_of(case),
    }
    if case["family"] == "documents":
        own = {"spread": details["spread"], "total": details["total"]}
        return {"estimator": "DocumentMixture", "settings": shared | own}
    names = ("prune_threshold", "n_revisits", "tol", "keep_sites", "merge_every")
    own = {name: details[name] for name in names}
    own |= {"likelihood": likelihood, "n_passes": case["passes"], "revisit": case["window"]}
    own |= {"merge_threshold": case["merges"]}
    return {"estimator": "StreamingMixture", "settings": shared | own}


def _options(case):
    family, details = case["family"], DETAILS[case["details"]]
    said = list(OPTIONS_OF_PRIOR.get(case["prior"], ["--prior", case["prior"]]))
    said += ["--format", case["format"], "--prefix-rows", case["prefix"]]
    said += ["--engine", case["engine"], "--batch-rows", 48, "--checkpoint-rows", 100]
    said += ["--checkpoint-seconds", 1000]
    if family == "words-given":
        said += ["--likelihood", "multinomial", "--alpha", 0.3]
    elif family in WORDS:
        said += ["--likelihood", "multinomial"]
    elif family == "mixed":
        said += ["--likelihood", "auto"]
    elif family != "documents":
        said += ["--likelihood", family]
    if case["format"] in ("svmlight", "lda-c"):
        said += ["--n-features", N_COLUMNS[FAMILIES[family][0]] + 1]
    if case["format"] == "jsonl" and family == "documents":
        said += ["--counts-field", "words"]
    if details["new_cluster_threshold"] is not None:
        said += ["--new-cluster-threshold", details["new_cluster_threshold"]]
    if case["window"] != 0:
        said += ["--revisit", case["window"], "--revisits", details["n_revisits"]]
    if case["passes"] > 1:
        said += ["--passes", case["passes"]]
    if case["merges"] != "auto":
        said += ["--merge-threshold", case["merges"]]
    if case["budget"] == "clusters":
        said += ["--max-clusters", 6]
    elif case["budget"] == "memory":
        said += ["--max-memory", MEMORY.get(family, ROOM)]
    if case["half_life"] == "rows":
        said += ["--half-life", "40"]
    elif case["half_life"] == "time":
        said += ["--half-life", "60s", "--time-field", "t"]
    return [str(one) for one in said]


def rows():
    """Return the rows of the table that cover all pairs."""
    return [written(case, number) for number, case in enumerate(covering())]
