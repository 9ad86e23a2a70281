"""The Spark job: verdicts and timelines from histories that are larger than memory."""
