"""The workloads of Maelstrom, under their names there: most are workloads of Labrys with other defaults."""
