"""Sentences as hashed words and pairs of words, against a slow twin."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import naive
from ordspan.core import sentences
from steps import BRIEF

pytestmark = pytest.mark.filterwarnings("ignore:overflow")  # of hashes, in plain Python
SENTENCES = [
    "It's GREAT!! :) not bad, not bad at all",
    "",
    "Ça m’a plu… “très” bien — l'été, 3.5/5 €",
    "'quoted' rock 'n' roll don't' ' ’ '",
    "とても美味しい。また来ます",
    "👍👍🏽 ok\tok\nok",
]


def laid_out(cells):
    """Cells as the compiled functions take them."""
    parts = [cell.lower().encode() for cell in cells]
    text = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return text, np.cumsum([len(part) for part in parts], dtype=np.int64)


def dense(cells, bits):
    values, columns, starts = sentences.hash_sentences(*laid_out(cells), np.uint64(7), bits)
    rows = np.zeros((len(cells), 2**bits))
    for row in range(len(cells)):
        own = columns[starts[row] : starts[row + 1]]
        assert (np.diff(own) > 0).all()  # sorted, each once, as SciPy wants it
        rows[row, own] = values[starts[row] : starts[row + 1]]
    return rows


@BRIEF
@example(SENTENCES, 3)
@example(SENTENCES, 16)
@given(st.lists(st.text(alphabet=st.sampled_from("ab3_ .,'’!:)é¿×…好👍\ufe0f\n"))), st.just(6))
def test_any_text_is_split_as_by_the_regular_expression_and_hashed_as_by_the_twin(cells, bits):
    lowered = [cell.lower() for cell in cells]
    text, ends = laid_out(cells)
    split = [[] for _ in cells]
    for start, end, cell in sentences.token_ends(text, ends).tolist():
        split[cell].append(bytes(text[start:end]).decode().replace("’", "'"))
    assert split == [naive.tokens(cell) for cell in lowered]
    expected = [naive.sentence_features(cell, 7, bits) for cell in cells]
    np.testing.assert_allclose(dense(cells, bits), np.reshape(expected, (-1, 2**bits)), rtol=1e-12)
