"""The options of Kafka's brokers and clients."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from harness.declare import option
from harness.errors import InputError


class Acks(enum.StrEnum):
    """Whose copy a producer waits for."""

    ALL = "all"
    LEADER = "leader"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """How the brokers and their clients are configured."""

    kafka_version: Literal["4.1.2", "4.0.1"] = option("4.1.2", "The release of Kafka.", releases=True)
    acks: Acks = option(
        Acks.ALL,
        "all: a record is acknowledged when all in-sync replicas have it. leader: when the leader has it (acks=1); a negative "
        "control.",
    )
    idempotent: bool = option(
        default=False,
        help="Whether the producer numbers its records and tries again after every error; a broker then drops records that it "
        "has already. Without it, the producer tries again only after an answer that another broker leads.",
    )
    transactional: bool = option(
        default=False,
        help="Whether each enqueue is a transaction; consumers read committed records only. Only with the workload queue.",
    )
    partitions: int = option(
        6, "The partitions of each queue; the group divides them among the consumers.", low=1, high=100
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

    flush_messages: int = option(
        0,
        "After so many records, a broker syncs a partition to the disk; 1: before each answer, 0: never on its own, which is "
        "Kafka's default. Without it, a power loss of all replicas can lose acknowledged records.",
        low=0,
        high=1_000_000,
    )

    def __post_init__(self) -> None:
        if (self.idempotent or self.transactional) and self.acks is not Acks.ALL:
            raise InputError(
                "expected acks=all with an idempotent or transactional producer, which needs it; give --acks all"
            )
