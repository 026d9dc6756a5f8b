"""The example of docs/embeddings.md with a real encoder, as it is printed there."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

GUIDE = Path(__file__).parents[2] / "docs" / "embeddings.md"


def test_the_example_with_real_embeddings_runs_as_printed(tmp_path, monkeypatch, capsys):
    pytest.importorskip("wordllama", reason="the encoder: pip install 'bnpstream[bench]'")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (printed,) = (block for block in blocks if "import wordllama" in block)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(printed, str(GUIDE), "exec"), names)
    model, vectors, titles = names["model"], names["vectors"], names["titles"]
    task_of = np.repeat(np.arange(9), len(titles) // 9)
    assert adjusted_rand_score(task_of, model.predict(vectors)) > 0.9
    assert (model.novelty_quantile(names["strange"]) > 0.99).all()
    assert "how do I boil an egg" in capsys.readouterr().out
