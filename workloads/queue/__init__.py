"""Queues: values go in and come out, judged by what was lost, came out twice, came from nowhere, or out of order."""

from workloads.queue.options import Delivery, Order, QueueOptions
from workloads.queue.workload import QueueWorkload

__all__ = ["Delivery", "Order", "QueueOptions", "QueueWorkload"]
