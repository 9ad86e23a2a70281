//! A small library for nodes: it reads messages, and sends messages and requests.

use serde_json::{json, Value};
use std::io::{self, BufRead, Write};

/// A message on stdin.
pub struct Message {
    pub src: String,
    pub body: Value,
}

impl Message {
    /// Returns the type of the message.
    pub fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }

    /// Returns the number of the request that it answers.
    #[allow(dead_code)]
    pub fn answers(&self) -> Option<u64> {
        self.body["in_reply_to"].as_u64()
    }
}

/// A node, with its name from `init` and the names of all nodes.
pub struct Node {
    pub name: String,
    #[allow(dead_code)]
    pub names: Vec<String>,
    sent: u64,
}

impl Node {
    /// Waits for `init`, and answers it.
    pub fn start() -> Self {
        let init = read().expect("init is the first message");
        let names = init.body["node_ids"].as_array().expect("init has node_ids");
        let node = Self {
            name: init.body["node_id"]
                .as_str()
                .expect("init has node_id")
                .to_owned(),
            names: names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            sent: 0,
        };
        node.reply(&init, json!({"type": "init_ok"}));
        node
    }

    /// Waits for the next message; returns nothing when stdin ends.
    pub fn receive(&self) -> Option<Message> {
        read()
    }

    /// Sends a message.
    pub fn send(&self, dest: &str, body: Value) {
        let line = json!({"src": self.name, "dest": dest, "body": body}).to_string() + "\n";
        let mut out = io::stdout().lock();
        out.write_all(line.as_bytes())
            .and_then(|()| out.flush())
            .expect("stdout is open");
    }

    /// Answers a message.
    pub fn reply(&self, message: &Message, mut body: Value) {
        body["in_reply_to"] = message.body["msg_id"].clone();
        self.send(&message.src, body);
    }

    /// Answers that it does not know the request.
    pub fn refuse(&self, message: &Message) {
        let text = format!("this node does not know {}", message.kind());
        self.reply(message, json!({"type": "error", "code": 10, "text": text}));
    }

    /// Sends a request. Returns its number, which its answer has too.
    #[allow(dead_code)]
    pub fn ask(&mut self, dest: &str, mut body: Value) -> u64 {
        self.sent += 1;
        body["msg_id"] = self.sent.into();
        self.send(dest, body);
        self.sent
    }

    /// Asks the service `timer` of Labrys for an answer after a time. So the same seed repeats a node with timers.
    #[allow(dead_code)]
    pub fn after(&mut self, ms: u64) -> u64 {
        self.ask("timer", json!({"type": "wait", "ms": ms}))
    }
}

fn read() -> Option<Message> {
    let mut line = String::new();
    if io::stdin()
        .lock()
        .read_line(&mut line)
        .expect("stdin has UTF-8")
        == 0
    {
        return None;
    }
    let mut message: Value = serde_json::from_str(&line).expect("a line is JSON");
    let src = message["src"]
        .as_str()
        .expect("a message has src")
        .to_owned();
    Some(Message {
        src,
        body: message["body"].take(),
    })
}
