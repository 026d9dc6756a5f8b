"""Data sets: their distributions, and where the corpora are looked for."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.special import gammaln
from scipy.stats import chi2

from bnpstream.datasets import (
    bars,
    bars_components,
    digits,
    find,
    load_20news,
    load_kos,
    load_nyt8447,
    load_nytimes,
    local,
    powerlaw_documents,
)

SURPRISE = 1e-3


def assert_chi_square(statistic: float, degrees_of_freedom: int) -> None:
    """Fail on a statistic that is too large, or too small, to be due to chance."""
    assert SURPRISE < chi2.sf(statistic, degrees_of_freedom) < 1 - SURPRISE


def homogeneity(counts: np.ndarray) -> float:
    """Return the chi-square statistic of rows that share their probabilities."""
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())


def pitman_yor_expected_clusters(n: int, concentration: float, discount: float) -> float:
    """Return E[K_n] = (theta / sigma) ((theta + sigma)_n / (theta)_n - 1)."""
    log_ratio = (
        gammaln(concentration + discount + n)
        - gammaln(concentration + discount)
        - gammaln(concentration + n)
        + gammaln(concentration)
    )
    return concentration / discount * (np.exp(log_ratio) - 1)


def test_bars_components_are_bars_over_a_baseline():
    components = bars_components(size=8, baseline=0.3)
    assert components.shape == (16, 64)
    assert np.allclose(components.sum(axis=1), 1)
    for k in range(8):
        image = np.full((8, 8), 0.3 / 64)
        image[k] += 0.7 / 8
        assert np.allclose(components[k].reshape(8, 8), image)
        assert np.allclose(components[8 + k].reshape(8, 8), image.T)


def test_bars_shapes_and_types():
    images = bars()
    assert isinstance(images.counts, sparse.csr_array)
    assert images.counts.dtype == np.int64
    assert images.counts.shape == (200, 64)
    assert images.labels.dtype == np.intp
    assert images.feature_names is None
    assert np.all(images.counts.sum(axis=1) == 50)


@pytest.mark.parametrize(("size", "baseline"), [(8, 0.3), (3, 0.6)])
def test_bars_follow_their_distribution(size, baseline):
    images = bars(n_images=4000, n_counts=50, size=size, baseline=baseline, seed=1)
    n_clusters = 2 * size
    sizes = np.bincount(images.labels, minlength=n_clusters)
    assert_chi_square(((sizes - 4000 / n_clusters) ** 2).sum() * n_clusters / 4000, n_clusters - 1)

    expected = 50 * sizes[:, None] * bars_components(size, baseline)
    counts = images.counts.toarray()
    observed = np.array([counts[images.labels == k].sum(axis=0) for k in range(n_clusters)])
    statistic = ((observed - expected) ** 2 / expected).sum()
    assert_chi_square(statistic, n_clusters * (size**2 - 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_images": 0}, "n_images is 0: give a value above 0"),
        ({"n_counts": -1}, "n_counts is -1: give a value above 0"),
        ({"size": 0}, "size is 0: give a value above 0"),
        ({"baseline": 1.5}, "baseline is 1.5: give a probability from 0 to 1"),
        ({"baseline": float("nan")}, "baseline is nan: give a probability from 0 to 1"),
    ],
)
def test_bars_name_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        bars(**arguments)


@pytest.mark.parametrize("make", [bars, powerlaw_documents])
def test_a_seed_fixes_everything(make):
    first, again, other = make(seed=5), make(seed=5), make(seed=6)
    assert np.array_equal(first.counts.toarray(), again.counts.toarray())
    assert np.array_equal(first.labels, again.labels)
    assert not np.array_equal(first.counts.toarray(), other.counts.toarray())
    assert not np.array_equal(first.labels, other.labels)


def test_powerlaw_shapes_and_types():
    documents = powerlaw_documents()
    assert isinstance(documents.counts, sparse.csr_array)
    assert documents.counts.dtype == np.int64
    assert documents.counts.shape == (10_000, 100)
    assert documents.labels.dtype == np.intp
    assert documents.feature_names is None
    assert np.all(documents.counts.sum(axis=1) == 50)
    first_rows = np.unique(documents.labels, return_index=True)[1]
    assert np.all(np.diff(first_rows) > 0)


@pytest.mark.parametrize(("concentration", "discount"), [(1.0, 0.75), (4.0, 0.3)])
def test_number_of_powerlaw_clusters_grows_as_pitman_yor(concentration, discount):
    # The first n rows of a Pitman-Yor partition are one themselves: growth within one draw.
    sizes = np.array([10, 40, 160])
    n_draws = 400
    n_clusters = np.empty((n_draws, sizes.size))
    for seed in range(n_draws):
        labels = powerlaw_documents(
            n_documents=160,
            n_words=2,
            document_length=1,
            concentration=concentration,
            discount=discount,
            seed=seed,
        ).labels
        n_clusters[seed] = [labels[:n].max() + 1 for n in sizes]
    expected = [pitman_yor_expected_clusters(n, concentration, discount) for n in sizes]
    standard_error = n_clusters.std(axis=0, ddof=1) / np.sqrt(n_draws)
    assert np.all(np.abs(n_clusters.mean(axis=0) - expected) < 3.5 * standard_error)


@pytest.mark.parametrize("alpha", [0.2, 0.75, 3.0])
def test_powerlaw_words_are_dirichlet(alpha):
    # Two words of one document agree with probability (alpha + 1) / (V alpha + 1). So large a
    # concentration gives each document its own cluster, and makes documents independent.
    n, n_words = 20_000, 5
    documents = powerlaw_documents(
        n_documents=n, n_words=n_words, document_length=2, alpha=alpha, concentration=1e12
    )
    assert documents.labels.max() == n - 1
    p = (alpha + 1) / (n_words * alpha + 1)
    n_pairs = (documents.counts.toarray() == 2).any(axis=1).sum()
    assert abs(n_pairs - n * p) < 3.5 * np.sqrt(n * p * (1 - p))


def test_powerlaw_documents_share_their_words_within_a_cluster_only():
    documents = powerlaw_documents(
        n_documents=300, n_words=5, document_length=200, alpha=5.0, concentration=3.0, discount=0.0
    )
    counts = documents.counts.toarray()
    n_clusters = documents.labels.max() + 1
    assert n_clusters > 5
    within = sum(homogeneity(counts[documents.labels == k]) for k in range(n_clusters))
    assert_chi_square(within, (300 - n_clusters) * 4)
    assert homogeneity(counts) > 3 * 299 * 4


@pytest.mark.parametrize("name", ["n_documents", "n_words", "document_length", "alpha"])
def test_powerlaw_names_bad_arguments(name):
    with pytest.raises(ValueError, match=f"{name} is 0: give a value above 0"):
        powerlaw_documents(**{name: 0})


def test_digits():
    images = digits()
    assert isinstance(images.counts, sparse.csr_array)
    assert images.counts.dtype == np.int64
    assert images.counts.shape == (1797, 64)
    assert images.counts.min() == 0
    assert images.counts.max() == 16
    assert images.labels.dtype == np.intp
    assert np.array_equal(np.unique(images.labels), np.arange(10))
    assert len(images.feature_names) == 64
    # A zero is drawn around an empty middle; a one is not.
    middle = images.counts.toarray().reshape(-1, 8, 8)[:, 3:5, 3:5].mean(axis=(1, 2))
    assert middle[images.labels == 0].mean() < 2 < 10 < middle[images.labels == 1].mean()


def test_find_follows_the_environment_variable(tmp_path, monkeypatch):
    (tmp_path / "corpus").mkdir()
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    assert find("corpus") == tmp_path / "corpus"
    (tmp_path / "file").touch()
    for name in ("absent", "file"):
        message = f"no data set {name!r}: no folder {tmp_path / name}; set"
        with pytest.raises(FileNotFoundError, match=f"{re.escape(message)}.*BNPSTREAM_DATA"):
            find(name)


@pytest.mark.parametrize("setting", [None, ""])
def test_find_looks_beside_the_checkout_otherwise(tmp_path, monkeypatch, setting):
    if setting is None:
        monkeypatch.delenv("BNPSTREAM_DATA", raising=False)
    else:
        monkeypatch.setenv("BNPSTREAM_DATA", setting)
    assert Path(__file__).resolve().parents[2] == local._PROJECT_ROOT
    monkeypatch.setattr(local, "_PROJECT_ROOT", tmp_path / "checkout")
    (tmp_path / "shared" / "data" / "corpus").mkdir(parents=True)
    assert find("corpus") == tmp_path / "shared" / "data" / "corpus"
    beside = tmp_path / "shared" / "data" / "absent"
    with pytest.raises(FileNotFoundError, match=re.escape(f"no folder {beside};")):
        find("absent")


def test_load_kos_reads_docword_and_vocabulary(tmp_path, monkeypatch):
    folder = tmp_path / "kos"
    folder.mkdir()
    (folder / "docword.kos.txt.gz").write_text("1\n2\n1\n1 2 5\n")
    (folder / "vocab.kos.txt").write_text("senate\nhouse\n")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    kos = load_kos()
    assert kos.counts.toarray().tolist() == [[0, 5]]
    assert kos.labels is None
    assert kos.feature_names == ["senate", "house"]


def test_kos():
    try:
        kos = load_kos()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert kos.counts.shape == (3430, 6906)
    assert kos.counts.nnz == 353_160
    assert kos.counts.sum() == 467_714
    assert len(kos.feature_names) == 6906
    totals = dict(zip(kos.feature_names, kos.counts.sum(axis=0).tolist(), strict=True))
    # A blog on the campaign of 2004: ids and words are matched if its names come out on top.
    assert {"bush", "kerry"} <= set(sorted(totals, key=totals.__getitem__)[-5:])


def test_load_nytimes_reads_its_folder_or_the_files_that_are_named(tmp_path, monkeypatch):
    folder = tmp_path / "nytimes"
    folder.mkdir()
    (folder / "docword.nytimes.txt.gz").write_text("1\n2\n1\n1 2 5\n")
    (folder / "vocab.nytimes.txt").write_text("zzz_senate\nhouse\n")
    (tmp_path / "short.txt").write_text("2\n2\n1\n2 1 3\n")
    (tmp_path / "words.txt").write_text("one\n")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    corpus = load_nytimes()
    assert corpus.counts.toarray().tolist() == [[0, 5]]
    assert corpus.feature_names == ["zzz_senate", "house"]
    other = load_nytimes(docword=tmp_path / "short.txt")
    assert other.counts.toarray().tolist() == [[0, 0], [3, 0]]
    with pytest.raises(
        ValueError, match=r"words\.txt: has 1 words, but there are 2 in .*short\.txt: give two"
    ):
        load_nytimes(tmp_path / "short.txt", tmp_path / "words.txt")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path / "absent"))
    assert load_nytimes(tmp_path / "short.txt", folder / "vocab.nytimes.txt").labels is None


def test_load_nyt8447_reads_lda_c_and_vocabulary(tmp_path, monkeypatch):
    folder = tmp_path / "nyt8447"
    folder.mkdir()
    (folder / "nyt.ldac.gz").write_text("1 1:5\n")
    (folder / "nyt.tokens.gz").write_text("company\npercent\nstate")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    nyt = load_nyt8447()
    assert nyt.counts.toarray().tolist() == [[0, 5, 0]]
    assert nyt.labels is None
    assert nyt.feature_names == ["company", "percent", "state"]


def test_nyt8447():
    try:
        nyt = load_nyt8447()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert nyt.counts.shape == (8447, 3012)
    assert nyt.counts.nnz == 963_063
    assert nyt.counts.sum() == 1_221_626
    assert len(nyt.feature_names) == 3012
    occurs = {
        word: nyt.counts[:, [nyt.feature_names.index(word)]].toarray() > 0
        for word in ("game", "team", "court", "judge")
    }

    def lift(word: str, other: str) -> float:
        return (occurs[word] & occurs[other]).mean() / (occurs[word].mean() * occurs[other].mean())

    # Ids and words are matched if words of one subject share articles, and of two do not.
    assert lift("game", "team") > 2
    assert lift("court", "judge") > 2
    assert lift("game", "judge") < 1


def write_20news(folder: Path, labels: str) -> None:
    (folder / "20news").mkdir()
    for name, content in {
        "docword.20news.train.txt.gz": "2\n2\n1\n1 2 5\n",
        "docword.20news.test.txt.gz": "1\n2\n1\n1 1 3\n",
        "labels.20news.train.txt.gz": labels,
        "labels.20news.test.txt.gz": "7\n",
        "vocab.20news.txt.gz": "archive\nname\n",
    }.items():
        (folder / "20news" / name).write_text(content)


def test_load_20news_reads_one_split(tmp_path, monkeypatch):
    write_20news(tmp_path, labels="1\n20\n")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    train, test = load_20news(), load_20news("test")
    assert train.counts.toarray().tolist() == [[0, 5], [0, 0]]
    assert train.labels.tolist() == [0, 19]
    assert test.counts.toarray().tolist() == [[3, 0]]
    assert test.labels.tolist() == [6]
    assert train.feature_names == test.feature_names == ["archive", "name"]


def test_load_20news_needs_one_label_a_document(tmp_path, monkeypatch):
    write_20news(tmp_path, labels="1\n2\n3\n")
    monkeypatch.setenv("BNPSTREAM_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"labels\.20news\.train.*: 3 labels for 2 documents: "):
        load_20news()


def test_load_20news_names_a_bad_split():
    with pytest.raises(ValueError, match="split is 'dev': give 'train' or 'test'"):
        load_20news("dev")


@pytest.mark.parametrize(
    ("split", "n_documents", "n_pairs", "n_tokens"),
    [("train", 11_269, 1_467_345, 2_765_300), ("test", 7505, 967_874, 1_796_919)],
)
def test_20news(split, n_documents, n_pairs, n_tokens):
    try:
        news = load_20news(split)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    assert news.counts.shape == (n_documents, 61_188)
    assert news.counts.nnz == n_pairs
    assert news.counts.sum() == n_tokens
    assert news.labels.dtype == np.intp
    assert np.array_equal(np.unique(news.labels), np.arange(20))
    assert len(news.feature_names) == 61_188
    # Alphabetically, rec.sport.hockey is group 10 and sci.space group 14.
    for word, group in (("hockey", 10), ("orbit", 14)):
        occurs = news.counts[:, [news.feature_names.index(word)]].toarray().ravel() > 0
        assert np.bincount(news.labels[occurs], minlength=20).argmax() == group
