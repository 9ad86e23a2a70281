"""A small library for nodes: handlers for requests, messages with an answer, and timers. It has one thread.

    node = Node()

    @node.on("echo")
    def echo(message):
        node.reply(message, {"type": "echo_ok", "echo": message["body"]["echo"]})

    node.run()

A timer is a request to the service `timer` of Labrys. So in virtual time, a node with timers is as fast as one without, and the
same seed repeats it.
"""

import json
import os
import random
import sys


class Node:
    """A node.

    Attributes:
        name: Its name, from `init`.
        names: The names of all nodes.
        random: Random numbers; with Labrys, the seed of the run repeats them.
    """

    def __init__(self):
        self.name = ""
        self.names = []
        self.random = random.Random(os.environ.get("LABRYS_SEED"))
        self._handlers = {"init": self._init}
        self._waiting = {}
        self._sent = 0
        self._started = []

    def on(self, kind):
        """Returns a decorator for the function that handles messages of a type."""

        def register(function):
            self._handlers[kind] = function
            return function

        return register

    def at_start(self, function):
        """Calls a function once, after `init`."""
        self._started.append(function)
        return function

    def send(self, dest, body):
        """Sends a message."""
        print(json.dumps({"src": self.name, "dest": dest, "body": body}), flush=True)

    def reply(self, message, body):
        """Answers a message."""
        self.send(message["src"], {**body, "in_reply_to": message["body"]["msg_id"]})

    def ask(self, dest, body, then):
        """Sends a request. Calls `then` with the body of the answer, if one comes."""
        self._sent += 1
        self._waiting[self._sent] = then
        self.send(dest, {**body, "msg_id": self._sent})

    def after(self, milliseconds, action):
        """Calls a function after a time."""
        self.ask("timer", {"type": "wait", "ms": milliseconds}, lambda _: action())

    def every(self, milliseconds, action):
        """Calls a function again and again, with the same time between two calls."""

        def again():
            action()
            self.after(milliseconds, again)

        self.after(milliseconds, again)

    def log(self, text):
        """Writes a line to the node's log."""
        print(text, file=sys.stderr, flush=True)

    def run(self):
        """Handles messages until stdin ends."""
        for line in sys.stdin:
            message = json.loads(line)
            body = message["body"]
            asked = body.get("in_reply_to")
            if asked is not None:
                then = self._waiting.pop(asked, None)
                if then is not None:
                    then(body)
            else:
                self._handlers[body["type"]](message)

    def _init(self, message):
        self.name, self.names = message["body"]["node_id"], message["body"]["node_ids"]
        self.reply(message, {"type": "init_ok"})
        for function in self._started:
            function()
