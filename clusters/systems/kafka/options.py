"""The options of Kafka's brokers and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from harness.declare import option
from harness.errors import InputError


class Acks(enum.StrEnum):
    """Whose copy a producer waits for."""

    ALL = "all"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """How the brokers and their clients are configured."""

    acks: Acks = option(
        Acks.ALL,
        "all: a record is acknowledged when all in-sync replicas have it. leader: when the leader has it (acks=1); a negative "
        "control.",
    )
    idempotent: bool = option(
        default=False,
        help="Whether the producer numbers its records and tries again; a broker then drops records that it has already.",
    )
    min_isr: int = option(
        2, "The number of in-sync replicas without which a leader refuses records (min.insync.replicas).", low=1, high=9
    )
    session_ms: int = option(
        3000,
        "Milliseconds without a heartbeat after which the controller takes a broker for gone; also the lag in time after "
        "which a replica is not in sync.",
        low=500,
        high=60_000,
    )

    def __post_init__(self) -> None:
        if self.idempotent and self.acks is not Acks.ALL:
            raise InputError("expected acks=all with an idempotent producer, which needs it; give --acks all")
