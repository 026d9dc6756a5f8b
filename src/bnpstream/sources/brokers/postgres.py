"""PostgreSQL: rows of a table in the order of a unique key; answers as rows that are replaced."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import orjson
import psycopg
from psycopg import sql

from bnpstream.sources.brokers.address import Address
from bnpstream.sources.brokers.broker import Answer, Bounds, Broker, DownError, Message, Outlet
from bnpstream.sources.protocol import JSON, LostError

T = TypeVar("T")

ANSWER_SECONDS = 5
MOST_COUNTED = 100_000
"""Most rows that are counted to report the lag."""
_COLUMNS = ("cluster", "topic", "probability", "novelty")
_KEY = """
    SELECT format_type(a.atttypid, a.atttypmod), EXISTS (
        SELECT FROM pg_index i
        WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indnkeyatts = 1
          AND i.indkey[0] = a.attnum)
    FROM pg_attribute a
    WHERE a.attrelid = to_regclass(%s) AND a.attname = %s AND NOT a.attisdropped
"""


class _Link:
    """A connection, and the meaning of its errors."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.table = sql.Identifier(*address.settings["table"].split("."))
        self.session: Any = None

    def connect(self) -> None:
        """Connect or reconnect."""
        self.close()
        host, _, port = self.address.hosts.partition(":")
        about: dict[str, Any] = {"host": host, "port": port, "user": self.address.user}
        about |= {"dbname": self.address.name, "password": self.address.password}
        given = {name: value for name, value in about.items() if value}
        self.session = self.ask(
            lambda: psycopg.connect(**given, connect_timeout=ANSWER_SECONDS, autocommit=True)
        )

    def ask(self, request: Callable[[], T]) -> T:
        """Return the result of a request."""
        try:
            return request()
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise DownError(str(error).strip() or type(error).__name__) from error
        except psycopg.Error as error:
            raise LostError(f"{self.address}: {str(error).strip()}") from error

    def rows(self, query: Any, *values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self.ask(lambda: self.session.execute(query, values).fetchall())

    def close(self) -> None:
        """Disconnect."""
        if self.session is not None:
            with suppress(psycopg.Error):
                self.session.close()
            self.session = None


class Messages(Broker):
    """Rows of a table, which is a single lane; an offset is a key as text, None before the first.

    A row that commits after a larger key was read is missed, without notice.
    """

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)
        self._key = sql.Identifier(address.settings["key"])
        self._type: Any = None
        self._last: str | None = None
        self._until: str | None = None
        self._is_finite = self._was_told = False

    def connect(self) -> None:
        """Connect, and look up the key."""
        self._link.connect()
        table, key = self._link.table.as_string(), self.address.settings["key"]
        found = self._link.rows(_KEY, table, key)
        if not found:
            raise LostError(f"{self.address}: there is no table {table} with a column {key!r}")
        ((type_, is_unique),) = found
        if not is_unique:
            raise LostError(
                f"{self.address}: column {key!r} is not unique, so rows could be lost: give the "
                "primary key as ?key=, or create a unique index on this column"
            )
        self._type = sql.SQL(type_)
        channel = sql.Identifier(self.address.settings["channel"] or table.strip('"'))
        self._link.ask(lambda: self._link.session.execute(sql.SQL("LISTEN {}").format(channel)))

    def bounds(self) -> list[Bounds]:
        """Return the largest key."""
        query = sql.SQL(
            "SELECT t.{key}::text FROM {table} t WHERE {key} IS NOT NULL "
            "ORDER BY t.{key} DESC LIMIT 1"
        )
        found = self._link.rows(query.format(key=self._key, table=self._link.table))
        return [Bounds(None, found[0][0] if found else None)]

    def missing(self, lane: int, last: JSON, bounds: Bounds, lineage: JSON, n_read: int) -> str:
        """Return "": rows already read may be removed, and other losses cannot be noticed."""
        return ""

    def unread(self, last: Sequence[JSON], lineage: JSON, n_read: int) -> list[int]:
        """Return the number of rows after a key, up to a limit, because counting takes time."""
        query, values = self._after(last[0], None, MOST_COUNTED)
        counted = sql.SQL("SELECT count(*) FROM ({}) found").format(query)
        ((count,),) = self._link.rows(counted, *values)
        return [count]

    def seek(self, last: dict[int, JSON], until: dict[int, JSON] | None = None) -> None:
        """Continue after a key."""
        self._last, self._is_finite = last[0], until is not None
        self._until = None if until is None else until[0]
        if not self._is_finite and not self._was_told:
            self._was_told = True
            warnings.warn(
                f"{self.address}: rows are read in the order of {self.address.settings['key']!r}: "
                "a row that commits after a larger one was read is missed; let only one "
                "transaction write at a time, or read without --follow once all have ended",
                stacklevel=2,
            )

    def read(self, n: int, seconds: float) -> list[Message] | None:
        """Return the next rows; if there are none, wait for a notification."""
        if self._is_finite and self._until is None:
            return None
        query, values = self._after(self._last, self._until, n)
        found = self._link.rows(query, *values)
        if not found and self._is_finite:
            return None
        if not found:
            session = self._link.session
            if self._link.ask(lambda: list(session.notifies(timeout=seconds, stop_after=1))):
                found = self._link.rows(query, *values)
        messages = [Message(0, key, row.encode()) for key, row in found]
        if messages:
            self._last = messages[-1].offset
        return messages

    def _after(self, last: str | None, until: str | None, n: int) -> tuple[sql.Composed, list[str]]:
        """Return the query for the next n rows, and its values."""
        bounds = [(">", last), ("<=", until)]
        given = [(sign, value) for sign, value in bounds if value is not None]
        conditions: list[sql.Composable] = [
            sql.SQL("{} {} %s::{}").format(self._key, sql.SQL(sign), self._type)
            for sign, _ in given
        ] or [sql.SQL("true")]
        query = sql.SQL(
            "SELECT {key}::text, row_to_json(t)::text FROM {table} t WHERE {where} "
            "AND {key} IS NOT NULL ORDER BY t.{key} LIMIT {n}"
        ).format(
            key=self._key,
            table=self._link.table,
            where=sql.SQL(" AND ").join(conditions),
            n=sql.Literal(n),
        )
        return query, [value for _, value in given]

    def spot(self, lane: int, offset: Any) -> dict[str, JSON]:
        """Return table and key."""
        settings = self.address.settings
        return {"table": settings["table"], settings["key"]: offset}

    def is_after(self, offset: JSON, last: JSON) -> bool:
        """Return True, because the server gives no other rows."""
        return True

    def close(self) -> None:
        """Disconnect."""
        self._link.close()


class Answers(Outlet):
    """Answers as rows of a table, created if needed; each id has one row, its last answer."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._link = _Link(address)

    def connect(self) -> None:
        """Connect, and create the table if it does not exist."""
        self._link.connect()
        self._execute(
            "CREATE TABLE IF NOT EXISTS {table} (id text PRIMARY KEY, cluster bigint, "
            "topic bigint, probability float8, novelty float8, answer jsonb)"
        )
        self._execute(
            "CREATE TEMPORARY TABLE bnpstream_answers "
            "(n serial, LIKE {table}) ON COMMIT DELETE ROWS"
        )

    def _execute(self, query: str) -> None:
        statement = sql.SQL(query).format(table=self._link.table)
        self._link.ask(lambda: self._link.session.execute(statement))

    def send(self, answers: Sequence[Answer]) -> None:
        """Copy answers to the server; each replaces an earlier one with its id."""
        self._link.ask(lambda: self._send(answers))

    def _send(self, answers: Sequence[Answer]) -> None:
        names = ["id", *_COLUMNS, "answer"]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        changes = sql.SQL(", ").join(
            sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in names[1:]
        )
        session = self._link.session
        with session.transaction(), session.cursor() as cursor:
            copied = sql.SQL("COPY bnpstream_answers ({}) FROM STDIN").format(columns)
            with cursor.copy(copied) as copy:
                for _, line in answers:
                    answer = orjson.loads(line)
                    cells = [answer[name] for name in _COLUMNS]
                    copy.write_row([str(answer["id"]), *cells, line.decode()])
            cursor.execute(
                sql.SQL(
                    "INSERT INTO {table} ({columns}) SELECT DISTINCT ON (id) {columns} "
                    "FROM bnpstream_answers ORDER BY id, n DESC "
                    "ON CONFLICT (id) DO UPDATE SET {changes}"
                ).format(table=self._link.table, columns=columns, changes=changes)
            )

    def close(self) -> None:
        """Disconnect."""
        self._link.close()
