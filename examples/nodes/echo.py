#!/usr/bin/env python3
"""The smallest node: it answers `echo`."""

import json
import sys

node, sent = "", 0
for line in sys.stdin:
    message = json.loads(line)
    body = message["body"]
    sent += 1
    answer = {"type": body["type"] + "_ok", "msg_id": sent, "in_reply_to": body["msg_id"]}
    if body["type"] == "init":
        node = body["node_id"]
    else:
        answer["echo"] = body["echo"]
    print(json.dumps({"src": node, "dest": message["src"], "body": answer}), flush=True)
