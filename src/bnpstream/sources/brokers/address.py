"""Broker addresses, such as kafka://localhost:9092/news."""

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

SCHEMES = {
    "kafka": "kafka://HOST:PORT/TOPIC",
    "redis": "redis://HOST:PORT/STREAM",
    "nats": "nats://HOST:PORT/STREAM",
    "postgresql": "postgresql://USER@HOST:PORT/DATABASE?table=TABLE",
}
"""Schemes, with the form of their addresses."""
_SETTINGS = {
    "kafka": {"group": "bnpstream"},
    "redis": {"db": "0"},
    "nats": {},
    "postgresql": {"table": "", "key": "id", "channel": ""},
}
"""Settings that may follow the question mark, with their defaults."""


@dataclass(frozen=True)
class Address:
    """A broker address.

    Attributes
    ----------
    scheme, hosts, name : str
        ``scheme://user:password@hosts/name?settings``.
    settings : dict
        All settings of the scheme, given or not.
    """

    scheme: str
    hosts: str
    name: str
    settings: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    password: str | None = None
    given: dict[str, str] = field(default_factory=dict)

    @property
    def server(self) -> str:
        """Return the address of the server, without a password."""
        user = "" if self.user is None else quote(self.user, safe="") + "@"
        return f"{self.scheme}://{user}{self.hosts}"

    def __str__(self) -> str:
        """Return the address as it was given, without a password."""
        said = "&".join(f"{name}={quote(value, safe='')}" for name, value in self.given.items())
        return f"{self.server}/{quote(self.name, safe='')}" + (f"?{said}" if said else "")


def address_of(text: str) -> Address:
    """Parse an address; ValueError if it is not one.

    Examples
    --------
    >>> found = address_of("redis://:secret@localhost:6379/news?db=1")
    >>> found.name, found.settings, found.password, str(found)
    ('news', {'db': '1'}, 'secret', 'redis://localhost:6379/news?db=1')
    """
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{text}: not a broker address: give one of {', '.join(SCHEMES.values())}")
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    name = unquote(parts.path.strip("/"))
    shape = SCHEMES[parts.scheme]
    shown = f"{parts.scheme}://{hosts}{parts.path}"
    if not hosts or not name or "/" in name:
        raise ValueError(f"{shown}: give {shape}")
    given, known = dict(parse_qsl(parts.query)), _SETTINGS[parts.scheme]
    for setting in given:
        if setting not in known:
            there = ", ".join(known) or "none"
            raise ValueError(f"{shown}: unknown setting {setting!r}; known are {there}")
    settings = known | given
    if not settings.get("table", "-"):
        raise ValueError(f"{shown}: names no table: give {shape}")
    return Address(
        parts.scheme,
        hosts,
        name,
        settings,
        unquote(user) or None,
        unquote(password) or None,
        given,
    )
