"""Makes an archive of the classes of jars, for `archives`: `archive_classes.py ARCHIVE JAR=SIZE=TIME...`.

The words after a jar only tell one state of it from another. With constant addresses and a constant heap, Java makes the same
bytes each time.
"""

import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

CLASS = re.compile(r"(?!META-INF/)(.+/)?(?!module-info\b)[^/]+\.class")
LIST = Path("classes.txt")


def main(archive: str, *states: str) -> None:
    """Writes the list of the classes, those that Java itself starts with first, and lets Java archive them."""
    jars = [state.rsplit("=", 2)[0] for state in states]
    settings = subprocess.run(
        ["java", "-XshowSettings:properties", "-version"], check=True, stderr=subprocess.PIPE, text=True
    ).stderr
    (home,) = re.findall(r"^ *java\.home = (.+)$", settings, re.MULTILINE)
    own = [line for line in Path(home, "lib/classlist").read_text().splitlines() if not line.startswith("#")]
    names = [name for jar in jars for name in ZipFile(jar).namelist() if CLASS.fullmatch(name)]
    classes = dict.fromkeys([*own, *(name.removesuffix(".class") for name in names)])
    LIST.write_text("\n".join(classes) + "\n")
    files = (f"-XX:SharedClassListFile={LIST}", f"-XX:SharedArchiveFile={archive}", "-cp", ":".join(jars))
    java = ("setarch", "--addr-no-randomize", "java", "-Xshare:dump", "-XX:+UseSerialGC", "-Xms512m", "-Xmx512m")
    subprocess.run([*java, *files], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
