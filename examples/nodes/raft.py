#!/usr/bin/env python3
"""Registers by Raft (Ongaro and Ousterhout, 2014, figure 2), for the workload lin-kv.

All requests are entries of the log, also reads. Term, vote and log are in a file of the node's folder, so they outlive a kill.
A node that does not lead asks the leader for its client. If it knows no leader, it refuses the request with error 11.

With `--bug NAME` it has a planted bug:

half             one node of three is a majority, or two of five
unsaved-entries  a follower confirms entries that it has not written to the file
local-reads      the leader answers a read from its own state, without an entry
any-vote         a node votes for a candidate whose log is older than its own
"""

import json
import os
import sys
from pathlib import Path

from node import Node

node = Node()
BUG = sys.argv[sys.argv.index("--bug") + 1] if "--bug" in sys.argv else ""
TICK_MS = 50
HEARTBEAT_TICKS = 2
ELECTION_TICKS = (6, 12)
BATCH = 50
FILE = Path("raft.json")


class Raft:
    """The state of a node. An entry is `[term, request, client, number of the request]`; the first has the index 1."""

    def __init__(self):
        self.term, self.vote, self.log = 0, None, []
        if FILE.exists():
            self.term, self.vote, self.log = json.loads(FILE.read_text())
        self.role, self.leader = "follower", None
        self.votes = set()
        self.committed = self.applied = 0
        self.next, self.match = {}, {}
        self.values = {}
        self.ticks, self.patience = 0, 0
        self.be_patient()

    def save(self):
        """Makes term, vote and log durable."""
        content = json.dumps([self.term, self.vote, self.log])
        with open("raft.new", "w") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace("raft.new", FILE)

    def be_patient(self):
        """Draws how long it waits for a leader."""
        self.ticks, self.patience = 0, node.random.randint(*ELECTION_TICKS)

    def others(self):
        """Returns the names of the other nodes."""
        return [name for name in node.names if name != node.name]

    def is_majority(self, count):
        """Returns whether so many nodes are a majority."""
        return 2 * count >= len(node.names) - 1 if BUG == "half" else 2 * count > len(node.names)

    def last(self):
        """Returns the term and the index of the last entry."""
        return (self.log[-1][0] if self.log else 0), len(self.log)

    def tick(self):
        """Some time has passed."""
        self.ticks += 1
        if self.role == "leader":
            if self.ticks >= HEARTBEAT_TICKS:
                self.ticks = 0
                for other in self.others():
                    self.replicate(other)
        elif self.ticks >= self.patience:
            self.run_for_leader()

    def run_for_leader(self):
        """Becomes a candidate."""
        self.term, self.vote, self.role, self.leader, self.votes = (
            self.term + 1,
            node.name,
            "candidate",
            None,
            {node.name},
        )
        self.save()
        self.be_patient()
        node.log(f"runs for leader in term {self.term}")
        term, index = self.last()
        for other in self.others():
            node.send(other, {"type": "request_vote", "term": self.term, "last_term": term, "last_index": index})
        self.count_votes()

    def count_votes(self):
        """Leads if a majority voted for it."""
        if self.role == "candidate" and self.is_majority(len(self.votes)):
            self.role, self.leader = "leader", node.name
            self.next = {other: len(self.log) + 1 for other in self.others()}
            self.match = dict.fromkeys(self.others(), 0)
            node.log(f"leads term {self.term}")
            self.append({"type": "nothing"}, None, None)

    def follow(self, term, leader=None):
        """Follows in a term that is at least its own."""
        if term > self.term:
            self.term, self.vote = term, None
            self.save()
        if self.role != "follower":
            node.log(f"follows in term {self.term}")
        self.role = "follower"
        self.leader = leader
        if leader is not None:
            self.be_patient()

    def append(self, request, client, number):
        """Adds an entry to the log of the leader."""
        self.log.append([self.term, request, client, number])
        self.save()
        for other in self.others():
            self.replicate(other)
        self.commit()

    def replicate(self, other):
        """Sends the entries that another node may lack."""
        begin = self.next[other]
        previous = self.log[begin - 2][0] if begin > 1 else 0
        entries = self.log[begin - 1 : begin - 1 + BATCH]
        body = {"type": "append", "term": self.term, "index": begin - 1, "previous": previous, "entries": entries}
        node.send(other, {**body, "committed": self.committed})

    def commit(self):
        """Commits the entries of its own term that a majority has."""
        has = sorted([len(self.log), *self.match.values()], reverse=True)
        for count, index in enumerate(has, 1):
            if self.is_majority(count) and index > self.committed and self.log[index - 1][0] == self.term:
                self.committed = index
                break
        self.apply()

    def apply(self):
        """Applies the committed entries. The leader answers those that it took from a client."""
        while self.applied < self.committed:
            term, request, client, number = self.log[self.applied]
            self.applied += 1
            answer = self.carry_out(request)
            if client is not None and self.role == "leader" and term == self.term:
                node.send(client, {**answer, "in_reply_to": number})

    def carry_out(self, request):
        """Changes the registers, and returns the answer."""
        kind, key = request["type"], str(request.get("key"))
        if kind == "write":
            self.values[key] = request["value"]
            return {"type": "write_ok"}
        if kind != "nothing" and key not in self.values:
            return {"type": "error", "code": 20, "text": "no such key"}
        if kind == "read":
            return {"type": "read_ok", "value": self.values[key]}
        if kind == "cas":
            if self.values[key] != request["from"]:
                return {"type": "error", "code": 22, "text": f"the value is {self.values[key]}"}
            self.values[key] = request["to"]
        return {"type": "cas_ok"}


raft = None


@node.at_start
def start():
    """Reads the file, and begins to wait for a leader."""
    global raft
    raft = Raft()
    node.every(TICK_MS, lambda: raft.tick())


@node.on("request_vote")
def request_vote(message):
    """Votes once in a term, for a candidate whose log is not older."""
    body = message["body"]
    if body["term"] > raft.term:
        raft.follow(body["term"])
    recent = BUG == "any-vote" or (body["last_term"], body["last_index"]) >= raft.last()
    granted = body["term"] == raft.term and raft.vote in {None, message["src"]} and recent
    if granted:
        raft.vote = message["src"]
        raft.save()
        raft.be_patient()
    node.send(message["src"], {"type": "vote", "term": raft.term, "granted": granted})


@node.on("vote")
def vote(message):
    """Counts a vote."""
    body = message["body"]
    if body["term"] > raft.term:
        raft.follow(body["term"])
    elif body["term"] == raft.term and body["granted"]:
        raft.votes.add(message["src"])
        raft.count_votes()


@node.on("append")
def append(message):
    """Takes entries of the leader, if they fit its own log."""
    body = message["body"]
    if body["term"] < raft.term:
        node.send(message["src"], {"type": "appended", "term": raft.term, "match": None, "last": len(raft.log)})
        return
    raft.follow(body["term"], message["src"])
    index = body["index"]
    if index > len(raft.log) or (index > 0 and raft.log[index - 1][0] != body["previous"]):
        last = min(len(raft.log), index - 1)
        node.send(message["src"], {"type": "appended", "term": raft.term, "match": None, "last": last})
        return
    for position, entry in enumerate(body["entries"], index):
        if position < len(raft.log) and raft.log[position][0] != entry[0]:
            del raft.log[position:]
        if position >= len(raft.log):
            raft.log.append(entry)
    if body["entries"] and BUG != "unsaved-entries":
        raft.save()
    match = index + len(body["entries"])
    raft.committed = max(raft.committed, min(body["committed"], match))
    raft.apply()
    node.send(message["src"], {"type": "appended", "term": raft.term, "match": match, "last": len(raft.log)})


@node.on("appended")
def appended(message):
    """Learns what a follower has."""
    body, other = message["body"], message["src"]
    if body["term"] > raft.term:
        raft.follow(body["term"])
    if raft.role != "leader" or body["term"] != raft.term:
        return
    if body["match"] is None:
        raft.next[other] = max(1, body["last"] + 1)
        raft.replicate(other)
        return
    raft.match[other] = max(raft.match[other], body["match"])
    raft.next[other] = raft.match[other] + 1
    raft.commit()
    if raft.next[other] <= len(raft.log) and body["match"] > 0:
        raft.replicate(other)


def request(message):
    """Takes a request, if this node leads. Otherwise it asks the leader."""
    body = message["body"]
    content = {key: value for key, value in body.items() if key != "msg_id"}
    if raft.role != "leader":
        if raft.leader is not None and message["src"] not in node.names:
            node.ask(raft.leader, content, lambda answer: node.reply(message, answer))
        else:
            node.reply(message, {"type": "error", "code": 11, "text": "no leader"})
    elif BUG == "local-reads" and body["type"] == "read":
        node.reply(message, raft.carry_out(body))
    else:
        raft.append(content, message["src"], body["msg_id"])


for kind in ("read", "write", "cas"):
    node.on(kind)(request)

node.run()
