"""What a server does before its first request works with a database, and without one."""

from typing import Any

import pytest
from django.db import DatabaseError

from playground.web import site as warming
from playground.web.board import views as board


@pytest.mark.filterwarnings("error")
@pytest.mark.django_db(transaction=True)
def test_a_board_of_no_cluster_is_drawn_before_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    draw = board.page_of

    def counted(request: Any, cluster: Any) -> Any:
        response = draw(request, cluster)
        drawn.append(response.status_code)
        return response

    monkeypatch.setattr(board, "page_of", counted)
    warming._draw_a_board()
    assert drawn == [200]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("error", [DatabaseError("no such table"), RuntimeError("not allowed here")])
@pytest.mark.django_db(transaction=True)
def test_a_server_starts_where_no_board_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(request: Any, cluster: Any) -> Any:
        raise error

    monkeypatch.setattr(board, "page_of", fail)
    with caplog.at_level("INFO", logger=warming.__name__):
        warming._draw_a_board()
    assert str(error) in caplog.text
