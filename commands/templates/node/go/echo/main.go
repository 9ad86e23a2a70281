// A node for the workload echo: it answers with what it got.
package main

func main() {
	node := NewNode()
	node.On("echo", func(message Message) {
		node.Reply(message, Body{"type": "echo_ok", "echo": message.Body["echo"]})
	})
	node.Run()
}
