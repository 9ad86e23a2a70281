#!/usr/bin/env node
// A node for the workload lin-kv: it asks the service lin-kv, and gives its answer to the client.
"use strict";

const { Node } = require("./node.js");

const node = new Node();

for (const type of ["read", "write", "cas"]) {
  node.on(type, (message) => {
    node.ask("lin-kv", message.body, (answer) => node.reply(message, answer));
  });
}

node.run();
