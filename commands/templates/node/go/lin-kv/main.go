// A node for the workload lin-kv: it asks the service lin-kv, and gives its answer to the client.
package main

func main() {
	node := NewNode()
	for _, kind := range []string{"read", "write", "cas"} {
		node.On(kind, func(message Message) {
			node.Ask("lin-kv", message.Body, func(answer Body) { node.Reply(message, answer) })
		})
	}
	node.Run()
}
