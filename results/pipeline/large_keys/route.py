"""Decides coded keys by dataflow, if it suits them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.verdict import Verdict
from results.pipeline.decide.coding import ADDRESS
from results.pipeline.decide.details import ZONES
from results.pipeline.decide.kernel import ANSWER, TO_GENERAL
from results.pipeline.decide.targets import DATAFLOW
from results.pipeline.large_keys.blame import blame
from results.pipeline.large_keys.clusters import has_cas
from results.pipeline.large_keys.columns import schema_of
from results.pipeline.large_keys.scan import Scan, Scanning
from results.pipeline.spark.types import struct_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from results.pipeline.decide.kernel import Budget

CHAIN: Final = "chain"
SLICE_EVENTS: Final = 1 << 17  # how many events of a key make a slice of its timeline


def by_dataflow(touches: DataFrame, budget: Budget) -> tuple[DataFrame, DataFrame | None]:
    """Decides keys by dataflow if it suits them.

    Args:
        touches: The coded operations of the keys.
        budget: What the check of a key may use in a worker.

    Returns:
        The answers, in the columns of `results.pipeline.decide.kernel.ANSWER`; and the addresses of the keys that dataflow does
        not suit, None for none.
    """
    chained = has_cas(touches)
    scanning = Scanning(
        initial=budget.initial, bucket_events=SLICE_EVENTS, memory_limit=budget.memory_limit, chained=chained
    )
    scan = Scan(touches, scanning)
    found = scan.found()
    spark = touches.sparkSession
    answers: list[dict[str, object]] = []
    unsuited, bad = [], []
    for each in found:
        if each.general:
            answers.append({ADDRESS: each.address, "verdict": TO_GENERAL, "tied": True})
        elif each.unsuited:
            unsuited.append((each.address,))
        elif each.bad:
            bad.append(each)
        else:
            analyzer = CHAIN if each.chained else ZONES
            answers.append({ADDRESS: each.address, "verdict": str(Verdict.VALID), "analyzer": analyzer, "tied": False})
    if bad:
        theirs = F.broadcast(spark.createDataFrame([(each.address,) for each in bad], schema_of(ADDRESS)))
        blamed = blame(touches.join(theirs, ADDRESS, "left_semi"), scan, bad, scanning)
        for each in bad:
            found_blame = blamed.get(each.address)
            if found_blame is None:
                unsuited.append((each.address,))
                continue
            answers.append(
                {
                    ADDRESS: each.address,
                    "verdict": str(Verdict.INVALID),
                    "analyzer": CHAIN if each.chained else ZONES,
                    "kind": found_blame.kind,
                    "op_start": found_blame.start,
                    "op_end": found_blame.end,
                    "core": [] if found_blame.kind is None else list(found_blame.part),
                    "tied": False,
                    # `blame` gives a kind if the violation depends on too many operations to decide them by themselves.
                    "part": list(found_blame.part) if found_blame.kind is None else [],
                    "observed": list(found_blame.observed),
                }
            )
    scan.release()
    rows = [tuple({**answer, "engine": DATAFLOW}.get(name) for name in ANSWER.names) for answer in answers]
    decided = spark.createDataFrame(rows, struct_of(ANSWER))
    return decided, F.broadcast(spark.createDataFrame(unsuited, schema_of(ADDRESS))) if unsuited else None
