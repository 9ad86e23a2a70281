"""The file systems that Hadoop reaches: `file:`, `hdfs:`, `s3a:`, and others that the cluster has a driver for.

The rule: this module treats all file systems alike. A file that others look for appears whole or not at all. It is written
under another name and then renamed, which is atomic on local disks and HDFS. On S3 the last step is one request, which is
atomic there. Only the driver uses this, and never for rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from results.pipeline.errors import BadInput, words_of
from results.pipeline.read.files import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopFiles:
    """The file systems that a Spark session reaches."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001 - pyspark has no other way to Hadoop's file systems
        self._configuration = context._jsc.hadoopConfiguration()  # noqa: SLF001 - likewise

    def glob(self, pattern: str) -> list[Entry]:
        """Returns the entries of a path or a Hadoop pattern, sorted; a path that exists is never a pattern.

        Raises:
            BadInput: The path cannot be read.
        """
        path = self._path(pattern)
        with _bad_input(pattern):
            system = path.getFileSystem(self._configuration)
            if system.exists(path):
                return [_found(system.getFileStatus(path))]
            statuses = system.globStatus(path)
        return sorted((_found(status) for status in statuses or ()), key=lambda entry: entry.path)

    def folder(self, path: str) -> list[Entry]:
        """Returns the entries of a folder, sorted.

        Raises:
            BadInput: It cannot be read.
        """
        with _bad_input(path):
            statuses = self._system(path).listStatus(self._path(path))
        return sorted((_found(status) for status in statuses), key=lambda entry: entry.path)

    def exists(self, path: str) -> bool:
        """Returns whether such a file or folder exists."""
        with _bad_input(path):
            return bool(self._system(path).exists(self._path(path)))

    def qualified(self, path: str) -> str:
        """Returns a path's whole URI."""
        with _bad_input(path):
            return str(self._system(path).makeQualified(self._path(path)).toString())

    def read(self, path: str, limit: int) -> bytes:
        """Returns the first bytes of a file, at most `limit`.

        Raises:
            BadInput: It cannot be read.
        """
        with _bad_input(path):
            stream = self._system(path).open(self._path(path))
            try:
                return bytes(stream.readNBytes(limit))
            finally:
                stream.close()

    def tail(self, path: str, size: int, limit: int) -> bytes:
        """Returns the last bytes of a file of this size, at most `limit`.

        Raises:
            BadInput: It cannot be read.
        """
        with _bad_input(path):
            stream = self._system(path).open(self._path(path))
            try:
                stream.seek(max(size - limit, 0))
                return bytes(stream.readNBytes(limit))
            finally:
                stream.close()

    def create(self, path: str, content: bytes) -> bool:
        """Writes a new file; returns False if it exists already."""
        with _bad_input(path):
            system = self._system(path)
            if system.exists(self._path(path)):
                return False
            _write(system.create(self._path(path), False), content)  # noqa: FBT003 - Java has no keywords
        return True

    def replace(self, path: str, content: bytes) -> None:
        """Writes a file, and replaces an existing one atomically."""
        partial = f"{path}.partial"
        with _bad_input(path):
            _write(self._system(path).create(self._path(partial), True), content)  # noqa: FBT003 - Java has no keywords
            target = self._path(path)
            context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(target.toUri(), self._configuration)
            options = self._context_array("org.apache.hadoop.fs.Options$Rename", "OVERWRITE")
            context.rename(self._path(partial), target, options)

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with its contents; does nothing if there is none."""
        with _bad_input(path):
            self._system(path).delete(self._path(path), True)  # noqa: FBT003 - Java has no keywords

    def _path(self, text: str) -> Any:
        with _bad_input(text):
            return self._jvm.org.apache.hadoop.fs.Path(text)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._configuration)

    def _context_array(self, name: str, member: str) -> Any:
        """Returns a Java array with one member of an enum, for Java's methods with `...`."""
        kind = self._jvm.java.lang.Class.forName(name)
        array = self._jvm.java.lang.reflect.Array.newInstance(kind, 1)
        self._jvm.java.lang.reflect.Array.set(array, 0, self._jvm.java.lang.Enum.valueOf(kind, member))
        return array


class _bad_input:  # noqa: N801 - a context manager, named as a function
    """Raises exceptions of Java as `BadInput` with the path."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Py4JJavaError):
            raise BadInput(f"{self._path}: {_advised(words_of(error))}") from error
        if isinstance(error, Py4JError):
            raise BadInput(f"{self._path}: the file system gives no answer: {error}") from error


def _advised(words: str) -> str:
    missing = "ClassNotFoundException" in words or "No FileSystem for scheme" in words
    return f"{words}; docs/reference/spark.md describes what Spark needs for S3 and others" if missing else words


def _write(stream: Any, content: bytes) -> None:
    try:
        stream.write(content)
    finally:
        stream.close()


def _found(status: Any) -> Entry:
    path = status.getPath()
    return Entry(
        path=path.toString(),
        name=path.getName(),
        is_folder=status.isDirectory(),
        size=status.getLen(),
        modified_ms=status.getModificationTime(),
    )
