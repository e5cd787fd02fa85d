"""Where a file is: on this machine, or at an address such as s3://bucket/labels/*.parquet.

pyarrow opens addresses: `s3://`, `gs://` and `abfs://`, with the credentials that are usual there
(AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, a role of the machine). Another server with
the API of S3 is given by AWS_ENDPOINT_URL, or in the address:
`s3://bucket/labels.csv?endpoint_override=minio:9000&scheme=http`. Names of files are as they are,
without escapes; `?` begins the query, so patterns know `*` and `[...]` only.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TextIO, TypeAlias
from urllib.parse import unquote, urlsplit

from venire.errors import FileError, InputError
from venire.tools.lazy import library

#: Bytes that are asked for at once.
BUFFER: Final = 1 << 22

#: Schemes, and how one says who one is.
ACCESS: Final = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`",
    "abfs": "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or run `az login`",
    "abfss": "set AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or run `az login`",
}

#: What is added to addresses of a scheme: by default pyarrow tries for a quarter of an hour.
PATIENCE: Final = {"gs": "retry_limit_seconds=30"}

_ADDRESS: Final = re.compile(r"([A-Za-z][\w+.-]+)://([^/?]*)/?([^?]*)(?:\?(.*))?", re.DOTALL)
_DENIED: Final = re.compile(
    r"ACCESS_DENIED|AccessKey|Signature|HTTP status 40[13]|UNAUTHENTICATED|OAuth2"
)


@dataclass(frozen=True)
class Address:
    """A file, a folder or a pattern of files on a server.

    >>> address = located("s3://bucket/labels/a b.parquet?region=eu-west-1")
    >>> address.key, address.name, address.suffix
    ('labels/a b.parquet', 'a b.parquet', '.parquet')
    >>> str(address)
    's3://bucket/labels/a b.parquet?region=eu-west-1'
    """

    scheme: str
    host: str
    key: str
    query: str = ""

    def __str__(self) -> str:
        asked = f"?{self.query}" if self.query else ""
        return f"{self.scheme}://{self.host}/{self.key}{asked}"

    def __fspath__(self) -> str:
        """The address, for messages."""
        return str(self)

    @property
    def name(self) -> str:
        return self.key.rstrip("/").rpartition("/")[2] or self.host

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def is_pattern(self) -> bool:
        """Whether it stands for all files that match.

        >>> located("s3://bucket/*.csv").is_pattern, located("s3://bucket/a.csv").is_pattern
        (True, False)
        """
        return any(character in self.key for character in "*[")

    def open(self, encoding: str, newline: str | None = None) -> TextIO:
        """The text of the file, read as it is needed."""
        return io.TextIOWrapper(self.stream(), encoding=encoding, newline=newline)

    def read_bytes(self) -> bytes:
        with self.stream() as file:
            return bytes(file.read())

    def stream(self) -> Any:
        """The file from its beginning, in large pieces."""
        system, path = self._system()
        with self._explained():
            return system.open_input_stream(path, compression=None, buffer_size=BUFFER)

    def random(self) -> Any:
        """The file, to be read here and there."""
        system, path = self._system()
        with self._explained():
            return system.open_input_file(path)

    def size(self) -> int:
        system, path = self._system()
        with self._explained():
            return int(system.get_file_info(path).size or 0)

    def is_dir(self) -> bool:
        """Whether there are files below it."""
        system, path = self._system()
        from pyarrow import fs

        with self._explained():
            return bool(system.get_file_info(path).type == fs.FileType.Directory)

    def files(self, endings: Sequence[str]) -> list[str]:
        """The addresses of the files that match, of those of a folder with such endings, or itself.

        They are in order. There may be none; but a bucket that is not there is an error.
        """
        system, path = self._system()
        from pyarrow import fs

        parts = path.split("/")
        fixed = next((n for n, part in enumerate(parts) if set(part) & set("*[")), len(parts))
        below = fs.FileSelector("/".join(parts[:fixed]), allow_not_found=True)
        below.recursive = len(parts) > fixed + 1
        with self._explained():
            if not self.is_pattern and system.get_file_info(path).type == fs.FileType.File:
                return [str(self)]
            found = [i.path for i in system.get_file_info(below) if i.type == fs.FileType.File]
            if not found:
                self._check_root(system)
        if self.is_pattern:
            found = [name for name in found if _matches(name.split("/"), parts)]
        else:
            found = [name for name in found if Path(name).suffix.lower() in endings]
        root = path.removesuffix(self.key.rstrip("/"))
        return sorted(str(self._at(name.removeprefix(root))) for name in found)

    def _at(self, key: str) -> Address:
        return Address(self.scheme, self.host, key, self.query)

    def _system(self) -> tuple[Any, str]:
        """The file system of pyarrow, and the path there."""
        fs = library("pyarrow.fs", "data")
        more = PATIENCE.get(self.scheme, "")
        more = "" if more.partition("=")[0] in self.query else more
        query = "&".join(filter(None, [self.query, more]))
        with self._explained():
            system, root = fs.FileSystem.from_uri(f"{self.scheme}://{self.host}/?{query}")
        return system, f"{root.rstrip('/')}/{self.key}".rstrip("/")

    def _check_root(self, system: Any) -> None:
        """An error if there is no such bucket."""
        from pyarrow import fs

        root = self._at("")._system()[1]
        if system.get_file_info(root).type == fs.FileType.NotFound:
            raise FileError(self, None, f"there is no bucket {root!r}: check its name")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of pyarrow as ours."""
        import pyarrow as pa

        try:
            yield
        except FileNotFoundError:
            self._check_root(self._at("")._system()[0])
            raise FileError(self, None, "there is no such file: check the address") from None
        except (pa.ArrowNotImplementedError, ImportError) as error:
            message = f"this pyarrow was built without {self.scheme} ({error}): install that of"
            raise FileError(self, None, f"{message} PyPI, pip install pyarrow") from None
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise FileError(
                self, None, f"cannot be read ({reason}): {self._remedy(reason)}"
            ) from None

    def _remedy(self, reason: str) -> str:
        if _DENIED.search(reason):
            return f"{ACCESS[self.scheme]}, of someone who may read it"
        if "NoSuchBucket" in reason or "NO_SUCH_BUCKET" in reason:
            return "check the name of the bucket"
        if "NETWORK_CONNECTION" in reason:
            return "check the network, and AWS_ENDPOINT_URL if the server is one of your own"
        return "check the address"


@dataclass(frozen=True)
class Piped(Address):
    r"""What came through a pipe, which can be read once and is therefore kept.

    >>> table = Piped.of(b"task,worker,label\n1,ann,ok\n", "stdin")
    >>> str(table), table.suffix, Piped.of(b'{"task": 1}', "stdin").suffix
    ('stdin', '.csv', '.jsonl')
    """

    data: bytes = b""

    @classmethod
    def of(cls, data: bytes, name: str) -> Piped:
        """The data under a name; the first bytes say what they are."""
        begins = data[:64].lstrip(b"\xef\xbb\xbf \r\n\t")
        kind = "jsonl" if begins.startswith(b"{") else "json" if begins.startswith(b"[") else "csv"
        kind = "parquet" if begins.startswith(b"PAR1") else kind
        kind = "xlsx" if begins.startswith(b"PK\x03\x04") else kind
        if kind == "jsonl" and _is_one_object(data):
            kind = "json"
        return cls("stdin", name, f"{name}.{kind}", "", data)

    def __str__(self) -> str:
        return self.host

    def __fspath__(self) -> str:
        return self.host

    @property
    def is_pattern(self) -> bool:
        """It is one table."""
        return False

    def stream(self) -> Any:
        return io.BytesIO(self.data)

    random = stream

    def size(self) -> int:
        return len(self.data)

    def is_dir(self) -> bool:
        """It is not a folder."""
        return False

    def files(self, endings: Sequence[str]) -> list[str]:
        """There is only itself, and it has no address."""
        return [str(self)]


def _is_one_object(data: bytes) -> bool:
    """Whether JSON goes on after its first line, as one object over many lines."""
    first, _, rest = data.strip().partition(b"\n")
    return bool(rest) and not first.rstrip().endswith(b"}")


#: A file of this machine, or of a server.
PathOrAddress: TypeAlias = Path | Address


def located(source: str | os.PathLike[str]) -> PathOrAddress:
    """Where a file is, by its path or its address; - is stdin, which is read, as is a pipe.

    >>> located("labels.csv").name, located("file:///data/my%20labels.csv").name
    ('labels.csv', 'my labels.csv')
    >>> located("s3://bucket/labels.csv")
    Address(scheme='s3', host='bucket', key='labels.csv', query='')
    >>> located("ftp://host/labels.csv")
    Traceback (most recent call last):
    venire.errors.InputError: got 'ftp://host/labels.csv', expected a path, or an address that ...
    """
    if isinstance(source, Address | Path):
        return source
    text = os.fspath(source)
    if text == "-":
        return Piped.of(sys.stdin.buffer.read(), "stdin")
    found = _ADDRESS.fullmatch(text)
    if found is None:
        path = Path(text)
        return Piped.of(path.read_bytes(), text) if path.is_fifo() else path
    scheme, host, key, query = found[1].lower(), found[2], found[3], found[4] or ""
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if ":" in host.rpartition("@")[0]:
        raise InputError(
            f"got a password in an address of {host.rpartition('@')[2]!r}, which messages would "
            f"show: {ACCESS.get(scheme, 'set it in the environment')}"
        )
    if scheme not in ACCESS:
        raise InputError(
            f"got {text!r}, expected a path, or an address that begins with file://, "
            f"{', '.join(f'{name}://' for name in ACCESS)}: download it first"
        )
    if not host:
        raise InputError(f"got {text!r}, expected a bucket in it, as in {scheme}://bucket/labels")
    return Address(scheme, host, key, query)


@contextmanager
def readable(place: PathOrAddress, whole: bool = False) -> Iterator[Any]:
    """What the readers of pyarrow take: a path, or an open file, of which `whole` will be read."""
    if isinstance(place, Path):
        yield place
        return
    with place.stream() if whole else place.random() as file:
        yield file


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a path matches, folder by folder, as in a shell.

    >>> _matches(["b", "x", "1.csv"], ["b", "*", "*.csv"]), _matches(["b", "1.csv"], ["*.csv"])
    (True, False)
    """
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))
