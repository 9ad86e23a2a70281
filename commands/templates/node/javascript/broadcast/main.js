#!/usr/bin/env node
// A node for the workload broadcast: it tells its neighbours what they have not confirmed, at once and then at intervals.
"use strict";

const { Node } = require("./node.js");

const AGAIN_MS = 200;
const node = new Node();
const seen = new Set();
const confirmed = new Map(); // by neighbour: the values that it has

// Tells each neighbour the values that it may not have.
function tell() {
  for (const [neighbour, has] of confirmed) {
    const values = [...seen].filter((value) => !has.has(value));
    if (values.length > 0) {
      node.ask(neighbour, { type: "gossip", values }, () => values.forEach((value) => has.add(value)));
    }
  }
}

node.on("topology", (message) => {
  for (const neighbour of message.body.topology[node.name]) confirmed.set(neighbour, new Set());
  node.reply(message, { type: "topology_ok" });
  node.every(AGAIN_MS, tell);
});

node.on("broadcast", (message) => {
  seen.add(message.body.message);
  node.reply(message, { type: "broadcast_ok" });
  tell();
});

node.on("gossip", (message) => {
  const before = seen.size;
  for (const value of message.body.values) {
    seen.add(value);
    confirmed.get(message.src)?.add(value);
  }
  node.reply(message, { type: "gossip_ok" });
  if (seen.size > before) tell();
});

node.on("read", (message) => {
  node.reply(message, { type: "read_ok", messages: [...seen] });
});

node.run();
