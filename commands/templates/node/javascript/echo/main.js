#!/usr/bin/env node
// A node for the workload echo: it answers with what it got.
"use strict";

const { Node } = require("./node.js");

const node = new Node();

node.on("echo", (message) => {
  node.reply(message, { type: "echo_ok", echo: message.body.echo });
});

node.run();
