//! A node for the workload echo: it answers with what it got.

mod node;

use node::Node;
use serde_json::json;

fn main() {
    let node = Node::start();
    while let Some(message) = node.receive() {
        match message.kind() {
            "echo" => node.reply(
                &message,
                json!({"type": "echo_ok", "echo": message.body["echo"]}),
            ),
            _ => node.refuse(&message),
        }
    }
}
