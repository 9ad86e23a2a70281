package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// Body is the body of a message. Its numbers are of the type json.Number.
type Body map[string]any

// Message is a line on stdin.
type Message struct {
	Src  string `json:"src"`
	Dest string `json:"dest"`
	Body Body   `json:"body"`
}

// Node has handlers for requests, messages with an answer, and timers. A timer is a request to the service `timer` of Labrys.
// So the same seed repeats a node with timers.
type Node struct {
	Name     string
	Names    []string
	handlers map[string]func(Message)
	waiting  map[string]func(Body)
	sent     int
}

// NewNode returns a node that answers `init`.
func NewNode() *Node {
	node := &Node{handlers: map[string]func(Message){}, waiting: map[string]func(Body){}}
	node.On("init", func(message Message) {
		node.Name = message.Body["node_id"].(string)
		for _, name := range message.Body["node_ids"].([]any) {
			node.Names = append(node.Names, name.(string))
		}
		node.Reply(message, Body{"type": "init_ok"})
	})
	return node
}

// On calls a function with each message of a type.
func (node *Node) On(kind string, handle func(Message)) {
	node.handlers[kind] = handle
}

// Send sends a message.
func (node *Node) Send(dest string, body Body) {
	line, err := json.Marshal(Message{node.Name, dest, body})
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

// Reply answers a message.
func (node *Node) Reply(message Message, body Body) {
	node.Send(message.Src, with(body, "in_reply_to", message.Body["msg_id"]))
}

// Ask sends a request. It calls `then` with the body of the answer, if one comes.
func (node *Node) Ask(dest string, body Body, then func(Body)) {
	node.sent++
	node.waiting[fmt.Sprint(node.sent)] = then
	node.Send(dest, with(body, "msg_id", node.sent))
}

// Every calls a function again and again, with the same time between two calls.
func (node *Node) Every(ms int, action func()) {
	node.Ask("timer", Body{"type": "wait", "ms": ms}, func(Body) {
		action()
		node.Every(ms, action)
	})
}

// Run handles messages until stdin ends.
func (node *Node) Run() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var message Message
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.UseNumber() // a float64 would round large integers
		if err := decoder.Decode(&message); err != nil {
			panic(err)
		}
		if asked, found := message.Body["in_reply_to"]; found {
			number := fmt.Sprint(asked)
			if then := node.waiting[number]; then != nil {
				delete(node.waiting, number)
				then(message.Body)
			}
		} else if handle := node.handlers[message.Body["type"].(string)]; handle != nil {
			handle(message)
		} else {
			node.Reply(message, Body{"type": "error", "code": 10, "text": "this node does not know the request"})
		}
	}
}

// with returns a copy of a body with one more member.
func with(body Body, name string, value any) Body {
	copied := Body{name: value}
	for key, each := range body {
		if key != name {
			copied[key] = each
		}
	}
	return copied
}
