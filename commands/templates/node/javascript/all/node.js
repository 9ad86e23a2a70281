// A small library for nodes: handlers for requests, messages with an answer, and timers. A timer is a request to the service
// `timer` of Labrys. So in virtual time, a node with timers is as fast as one without, and the same seed repeats it.
"use strict";

const readline = require("node:readline");

class Node {
  constructor() {
    this.name = "";
    this.names = [];
    this.handlers = { init: (message) => this.init(message) };
    this.waiting = new Map();
    this.sent = 0;
  }

  // Calls a function with each message of a type.
  on(type, handle) {
    this.handlers[type] = handle;
  }

  send(dest, body) {
    process.stdout.write(JSON.stringify({ src: this.name, dest, body }) + "\n");
  }

  reply(message, body) {
    this.send(message.src, { ...body, in_reply_to: message.body.msg_id });
  }

  // Sends a request. Calls `then` with the body of the answer, if one comes.
  ask(dest, body, then) {
    this.sent += 1;
    this.waiting.set(this.sent, then);
    this.send(dest, { ...body, msg_id: this.sent });
  }

  // Calls a function again and again, with the same time between two calls.
  every(ms, action) {
    this.ask("timer", { type: "wait", ms }, () => {
      action();
      this.every(ms, action);
    });
  }

  // Handles messages until stdin ends.
  run() {
    readline.createInterface({ input: process.stdin }).on("line", (line) => {
      const message = JSON.parse(line);
      const asked = message.body.in_reply_to;
      if (asked === undefined) {
        this.handlers[message.body.type](message);
        return;
      }
      const then = this.waiting.get(asked);
      this.waiting.delete(asked);
      if (then) then(message.body);
    });
  }

  init(message) {
    this.name = message.body.node_id;
    this.names = message.body.node_ids;
    this.reply(message, { type: "init_ok" });
  }
}

module.exports = { Node };
