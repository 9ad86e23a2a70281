//! A node for the workload broadcast: it tells its neighbours what they have not confirmed, at once and then at intervals.

mod node;

use node::Node;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};

const AGAIN_MS: u64 = 200;

#[derive(Default)]
struct State {
    seen: BTreeSet<i64>,
    /// By neighbour: the values that it has.
    confirmed: BTreeMap<String, BTreeSet<i64>>,
    /// By number: the neighbour and the values of a message that has no answer yet.
    open: BTreeMap<u64, (String, Vec<i64>)>,
}

/// Tells each neighbour the values that it may not have.
fn tell(node: &mut Node, state: &mut State) {
    for (neighbour, has) in &state.confirmed {
        let values: Vec<i64> = state.seen.difference(has).copied().collect();
        if !values.is_empty() {
            let number = node.ask(neighbour, json!({"type": "gossip", "values": values}));
            state.open.insert(number, (neighbour.clone(), values));
        }
    }
}

fn integers(list: &Value) -> Vec<i64> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_i64)
        .collect()
}

fn main() {
    let mut node = Node::start();
    let mut state = State::default();
    let mut timer = 0;
    while let Some(message) = node.receive() {
        match message.kind() {
            "topology" => {
                for name in message.body["topology"][&node.name]
                    .as_array()
                    .into_iter()
                    .flatten()
                {
                    state.confirmed.insert(
                        name.as_str().unwrap_or_default().to_owned(),
                        BTreeSet::new(),
                    );
                }
                node.reply(&message, json!({"type": "topology_ok"}));
                timer = node.after(AGAIN_MS);
            }
            "wait_ok" if message.answers() == Some(timer) => {
                tell(&mut node, &mut state);
                timer = node.after(AGAIN_MS);
            }
            "broadcast" => {
                state.seen.extend(message.body["message"].as_i64());
                node.reply(&message, json!({"type": "broadcast_ok"}));
                tell(&mut node, &mut state);
            }
            "gossip" => {
                let (values, before) = (integers(&message.body["values"]), state.seen.len());
                state.seen.extend(&values);
                if let Some(has) = state.confirmed.get_mut(&message.src) {
                    has.extend(values);
                }
                node.reply(&message, json!({"type": "gossip_ok"}));
                if state.seen.len() > before {
                    tell(&mut node, &mut state);
                }
            }
            "gossip_ok" => {
                if let Some((neighbour, values)) = message
                    .answers()
                    .and_then(|number| state.open.remove(&number))
                {
                    state.confirmed.entry(neighbour).or_default().extend(values);
                }
            }
            "read" => node.reply(&message, json!({"type": "read_ok", "messages": state.seen})),
            _ => node.refuse(&message),
        }
    }
}
