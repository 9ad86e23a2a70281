// A node for the workload broadcast: it tells its neighbours what they have not confirmed, at once and then at intervals.
package main

const againMs = 200

var (
	node       = NewNode()
	seen       []any                       // in the order in which they came
	known      = map[any]bool{}            // the same
	neighbours []string                    // in the order of the topology
	confirmed  = map[string]map[any]bool{} // by neighbour: the values that it has
)

// learn takes values, and returns whether one of them is new.
func learn(values []any) bool {
	before := len(seen)
	for _, value := range values {
		if !known[value] {
			known[value] = true
			seen = append(seen, value)
		}
	}
	return len(seen) > before
}

// tell tells each neighbour the values that it may not have.
func tell() {
	for _, neighbour := range neighbours {
		has, values := confirmed[neighbour], []any{}
		for _, value := range seen {
			if !has[value] {
				values = append(values, value)
			}
		}
		if len(values) > 0 {
			node.Ask(neighbour, Body{"type": "gossip", "values": values}, func(Body) { confirm(has, values) })
		}
	}
}

func confirm(has map[any]bool, values []any) {
	for _, value := range values {
		if has != nil { // it is a neighbour
			has[value] = true
		}
	}
}

func main() {
	node.On("topology", func(message Message) {
		for _, name := range message.Body["topology"].(map[string]any)[node.Name].([]any) {
			neighbours = append(neighbours, name.(string))
			confirmed[name.(string)] = map[any]bool{}
		}
		node.Reply(message, Body{"type": "topology_ok"})
		node.Every(againMs, tell)
	})
	node.On("broadcast", func(message Message) {
		learn([]any{message.Body["message"]})
		node.Reply(message, Body{"type": "broadcast_ok"})
		tell()
	})
	node.On("gossip", func(message Message) {
		values := message.Body["values"].([]any)
		confirm(confirmed[message.Src], values)
		node.Reply(message, Body{"type": "gossip_ok"})
		if learn(values) {
			tell()
		}
	})
	node.On("read", func(message Message) {
		node.Reply(message, Body{"type": "read_ok", "messages": append([]any{}, seen...)})
	})
	node.Run()
}
