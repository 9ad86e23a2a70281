"""Queues: enqueues, dequeues and drains, checked for lost, duplicate, unexpected and reordered values."""

from workloads.queue.options import Delivery, Order, QueueOptions
from workloads.queue.workload import QueueWorkload

__all__ = ["Delivery", "Order", "QueueOptions", "QueueWorkload"]
