"""A capture's rows in several passes that share them: together they are those of one pass, numbers and links included."""

from __future__ import annotations

import pyarrow as pa
import pytest
from places import CAPTURES

from pcapstat import _native


@pytest.mark.parametrize("table", ["messages", "exchanges"])
@pytest.mark.parametrize("name", ["c-paho-python-many", "loss-paho-python-qos2", "c-aiocoap-get"])
def test_shares_make_up_the_whole(name: str, table: str) -> None:
    """Each row is in one share, as it is in a pass that is not shared."""
    path = str(CAPTURES / f"{name}.pcapng")
    whole = pa.table(_native.Reader([path]).tables([table])).to_pylist()
    shares = [pa.table(_native.Reader([path], share=(index, 3)).tables([table])).to_pylist() for index in range(3)]
    number = table.removesuffix("s")
    assert sorted((row for share in shares for row in share), key=lambda row: row[number]) == sorted(whole, key=lambda row: row[number])
    assert len({row["session"] for row in whole}) == 1 or sum(bool(share) for share in shares) > 1


def test_a_share_that_is_none_is_refused() -> None:
    """An index must be below the count."""
    with pytest.raises(ValueError, match="share"):
        _native.Reader([str(CAPTURES / "a-paho-qos1.pcapng")], share=(2, 2))
