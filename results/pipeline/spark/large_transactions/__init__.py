"""Decides one history of transactions that is larger than memory, in parts: first by keys, then by time.

**By keys** (`by_key`). What a key shows by itself follows from the micro-operations on this key: the order of its
versions, the anomalies that are no cycles, and the dependencies. So each transaction is divided by its keys, and the
kernel gets all parts of some keys. Only `internal` is counted once for each transaction and not for each key; it is
joined again by transaction.

**By time** (`by_time`). The graph has the transactions that did not fail as vertices. An ok one has the place of its
completion. One without an answer has the place of the first completion of an ok one that depends on it, or of its own
start if that is later. If nothing depends on it, no cycle has it, and it is left out. So every edge of real time leads
forward: from A to B only if A completed before B began, and B's place is not before its start.

The line of places is cut into slices of equal length. An edge that leads back over the beginning of a slice is an
*exit* of the vertex that it leaves, and an *entry* of the vertex that it reaches. For a slice, let R be the vertices
that an entry leads to within the slice, and L those that lead to an exit within the slice.

*Claim 1.* If L and R have no common vertex, and no edge leads from behind the slice to a place before it, then no
component has a vertex before the slice and one behind it. *Proof.* Take a path from a vertex behind the slice to one
before it. Its first vertex before the slice is reached by an edge back from an exit in the slice. The last vertex
behind the slice before that leads into the slice by an entry. The path between them stays in the slice. So the exit is
in L and in R.

*Claim 2.* If this holds for all slices, each component lies in one of these sets: the vertices of one slice that are
neither in L nor in R; or R of a slice together with L of the next one. *Proof.* A component in one slice has paths
within the slice between all its vertices, so L has all of them or none, and so has R; and not both. A component in
several slices lies in two neighbours, by claim 1. A vertex in the first of them is reached from one in the second; the
path cannot come from before the slice, because that would lead over the whole slice. So the last part of the path,
after its last entry, lies in the slice, and the vertex is in R. In the same way a vertex in the second one is in L.

So the kernel gets each such set with all edges within it, and finds the same components as in the whole graph. Edges
that lead forward to another slice are not needed, but for those between neighbours. If claim 1 does not hold for a
slice of the largest length that fits into memory, components may be larger than that. Then what was found is true, and
what was not found is unknown.

**On demand.** The anomalies that are searched only for some models are cycles of the graph too, or two transactions of
one component. Let T read from W, or overwrite it; then an edge or a path leads from W to T. Let T also read a version
of another key that is older than one that W wrote. From a reader an edge leads to the next writer, from there one to
the writer after it, and so on up to W; or all readers of the last version lead to all writers without a known order. So
both are in one component, and the kernel gets the reads and writes of all its transactions (`READ`, `WRITE`), with
their places in the orders of versions.

One kind of cycle is found even then. If an edge leads from A to B, both are ok, B completed before A began, and the model
has real time, then real time leads from B to A. So the two are a cycle, whatever lies between them.

**How rows move** (`parcels`). No step has a Python object for each row: the kernel reads texts in the layout of Arrow, and all
other columns are integers. Spark moves *parcels*, each of which has many rows of one bucket: of keys with one hash, or of
one slice. So Spark sorts and spills few large values, and a worker holds one bucket at a time. The words of pieces (keys and
versions) stay where they were made; only those that an explanation names are looked up in the end.
"""
