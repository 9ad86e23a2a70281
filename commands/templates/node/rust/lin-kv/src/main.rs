//! A node for the workload lin-kv: it asks the service lin-kv, and gives its answer to the client.

mod node;

use node::Node;
use std::collections::BTreeMap;

fn main() {
    let mut node = Node::start();
    let mut open = BTreeMap::new(); // by number: the request of the client
    while let Some(message) = node.receive() {
        if let Some(number) = message.answers() {
            if let Some(request) = open.remove(&number) {
                node.reply(&request, message.body);
            }
            continue;
        }
        match message.kind() {
            "read" | "write" | "cas" => {
                let number = node.ask("lin-kv", message.body.clone());
                open.insert(number, message);
            }
            _ => node.refuse(&message),
        }
    }
}
